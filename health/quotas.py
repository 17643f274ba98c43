"""What is left of everything that is limited, and when it begins anew: limits set by hand, limits that providers told, budgets, shadow limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from access import budgets, keylist
from catalog.load import load_models
from health import budgets as money
from health import learned
from health.learned import Learned, Left
from health.limits import DAY, MINUTE, MINUTE_MS, MONTH, PARALLEL, QUARTER_HOUR_MS, Meter, calendar, decode, recent, used
from health.models import Meter as MeterRow
from health.reserve import SHADOW
from wire.limit_headers import habits_of

# How far back would-be refusals are counted.
HITS = timedelta(days=30)
USD = "usd"


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit of one thing.

    Shape: `scope` endpoint, model, key, owner, team or collection; `source` hand, header, refusal, or shadow for what only reports; what nobody knows
    is None. Units: of `usd` trillionths of a US dollar.
    """

    scope: str
    name: str
    measure: str
    window: str
    direction: str
    source: str
    limit: int | None
    used: int | None
    left: int | None
    resets_at: datetime | None
    provider_remaining: int | None = None
    provider_resets_at: datetime | None = None
    told_at: datetime | None = None
    would_refuse: int | None = None


@dataclass(frozen=True, slots=True)
class Books:
    """What is read once for all rows. Shape: meters by "scope|measure", allowances by their four names, hits by three."""

    meters: Mapping[str, Meter]
    left: Mapping[tuple[str, str, str, str], Left]
    told: Mapping[str, list[Learned]]
    hits: Mapping[tuple[str, str, str], int]
    now_ms: int

    def row(self, scope: str, name: str, meter: str, measure: str, window: str, limit: int, zone: str, source: str = "hand", **more: Any) -> Quota:
        """One limit that this server counts itself."""
        held = self.meters.get(f"{meter}|{measure}") or Meter(zone=zone)
        gone = used(held, self.now_ms).get(window, 0)
        kind, _, _ = meter.rpartition(":")
        said = self.left.get((meter, measure, window, "")) if kind in ("endpoint", "model") else None
        return Quota(
            scope=scope,
            name=name,
            measure=measure,
            window=window,
            direction="",
            source=source,
            limit=limit,
            used=gone,
            left=max(limit - gone, 0),
            resets_at=resets_at(held, window, zone, self.now_ms),
            **{**provider_said(said), **more},
        )


def provider_said(said: Left | None) -> dict[str, Any]:
    return {"provider_remaining": said.remaining, "provider_resets_at": said.resets_at, "told_at": said.told_at} if said else {}


def resets_at(meter: Meter, window: str, zone: str, now_ms: int) -> datetime | None:
    """When a window begins anew: a rolling minute once what it holds has left."""
    if window == MINUTE:
        entries = recent(meter.minute, now_ms)
        return moment(entries[-1][0] + MINUTE_MS) if entries else None
    today = calendar(zone, now_ms // QUARTER_HOUR_MS)
    return {DAY: moment(today.day_ends_ms), MONTH: moment(today.month_ends_ms)}.get(window)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


# ------------------------------------------------------------------ all of them


def quotas(now: datetime) -> list[Quota]:
    """Lists every limit there is, by what it is of. Some ten queries, whatever the size of ledger and roster."""
    told: dict[str, list[Learned]] = {}
    for one in learned.learned():
        told.setdefault(one.scope, []).append(one)
    hits: dict[tuple[str, str, str], int] = {}
    for hit in learned.shadow_hits((now - HITS).date()):
        name = (hit.scope.removeprefix(SHADOW), hit.measure, hit.window)
        hits[name] = hits.get(name, 0) + hit.calls
    books = Books(
        meters={name: decode(state) for name, state in MeterRow.objects.values_list("scope", "state")},
        left={(one.scope, one.measure, one.window, one.direction): one for one in learned.allowances()},
        told=told,
        hits=hits,
        now_ms=int(now.timestamp() * 1000),
    )
    return [*of_roster(books), *of_keys(books), *of_budgets(now)]


def of_roster(books: Books) -> Iterator[Quota]:
    endpoints = set()
    for model in load_models().values():
        endpoint = model.endpoint
        zone = habits_of(endpoint.base_url).zone
        if endpoint.id not in endpoints:
            endpoints.add(endpoint.id)
            yield from of_thing(books, "endpoint", endpoint.name, f"endpoint:{endpoint.id}", endpoint.limits, zone)
        yield from of_thing(books, "model", model.alias, f"model:{model.id}", model.limits, zone)


def of_thing(books: Books, scope: str, name: str, meter: str, limits: Mapping[str, Any], zone: str) -> Iterator[Quota]:
    """An endpoint's or a model's: set by hand, else as its provider told them, then what only reports."""
    shown = set()
    for measure, window, limit in flat(limits):
        shown.add((measure, window, ""))
        yield books.row(scope, name, meter, measure, window, limit, zone)
    for one in books.told.get(meter, ()):
        key = (one.measure, one.window, one.direction)
        if key in shown:
            continue  # a person's word goes before a provider's
        shown.add(key)
        if not one.direction and one.window in (MINUTE, DAY, MONTH, PARALLEL):
            said = books.left.get((meter, *key))
            yield books.row(scope, name, meter, one.measure, one.window, one.limit, zone, one.told_by, **({} if said else {"told_at": one.learned_at}))
        else:
            yield told_only(books, scope, name, meter, key, one.limit, one.told_by, one.learned_at)
    for (of, *rest), said in books.left.items():
        key = (rest[0], rest[1], rest[2])
        if of == meter and key not in shown:
            yield told_only(books, scope, name, meter, key, said.limit, "header", said.told_at)
    for measure, window, limit in flat(limits.get("shadow") or {}):
        hits = books.hits.get((meter, measure, window), 0)
        yield books.row(scope, name, f"{SHADOW}{meter}", measure, window, limit, zone, "shadow", would_refuse=hits)


def told_only(books: Books, scope: str, name: str, meter: str, key: tuple[str, str, str], limit: int | None, source: str, told_at: datetime) -> Quota:
    """A limit that only its provider counts."""
    said = books.left.get((meter, *key))
    measure, window, direction = key
    more = {"told_at": told_at, **provider_said(said)}
    return Quota(scope, name, measure, window, direction, source, limit, None, said.remaining if said else None, said.resets_at if said else None, **more)


def flat(limits: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for measure in ("requests", "tokens"):
        for window, limit in (limits.get(measure) or {}).items():
            yield measure, window, limit
    if (most := limits.get(PARALLEL)) is not None:
        yield PARALLEL, PARALLEL, most


def of_keys(books: Books) -> Iterator[Quota]:
    for key_id, key in keylist.limited():
        for measure, window, limit in (("requests", MINUTE, key.rpm), ("tokens", MINUTE, key.tpm), (PARALLEL, PARALLEL, key.max_parallel)):
            if limit is not None:
                yield books.row("key", key.name, f"key:{key_id}", measure, window, limit, "UTC")


def of_budgets(now: datetime) -> Iterator[Quota]:
    for one in money.standings(budgets.every(), now):
        gone = one.spent_pusd + one.reserved_pusd
        yield Quota(one.limit.kind, one.limit.name, USD, MONTH, "", "hand", one.cap_pusd, gone, one.left_pusd, one.resets_at)
