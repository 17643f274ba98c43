"""What providers told of their limits, what they last said is left, and what limits that only report would have refused: written down, and read.

Written with the ledger's lines, so that no call waits for it, and only where something is new. A limit that a provider told holds like one that a
person set, window by window, where nobody set one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection

from catalog import roster
from catalog.load import load_models
from health.attempt import Attempt
from health.models import Allowance, LearnedLimit, ShadowHit
from health.resting import LIMIT, Resting
from wire.limit_headers import CONCURRENT, REQUESTS, TOKENS, Told, habits_of, read

# Only these hold a call back; what a provider counts otherwise is shown.
HOLDING = frozenset({REQUESTS, TOKENS})
WINDOWS = frozenset({"minute", "day", "month"})
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0}
# From here on a number says that there is no limit (Cerebras writes a thousand million).
NONE_FROM = 10**9
# A refusal's words are believed for so long unless they are heard again; what headers say is said with every answer.
BELIEVED = {"header": timedelta(days=30), "refusal": timedelta(days=7)}
# A limit that changes from answer to answer must not have every process read the roster anew each time.
CHANGE_AFTER = timedelta(seconds=60)
SAY_AGAIN_AFTER = timedelta(days=1)
ALLOWANCE_EVERY_S = 5.0
SHADOW_HITS_FOR = timedelta(days=400)
NONE_LEFT = frozenset({"0", "0.0", "-1", "rejected"})
MOST_TOLD = 16
MOST_KNOWN = 10_000
# Names of limits are the provider's: a new one with each answer would move the roster each time, and fill the table.
MOST_OF_ONE = 48


@dataclass(frozen=True, slots=True)
class Learned:
    """One limit as a provider told it. Shape: `scope` is endpoint:<id> or model:<id>; `told_by` header or refusal; `direction` input, output or empty."""

    scope: str
    measure: str
    window: str
    direction: str
    limit: int
    told_by: str
    learned_at: datetime


@dataclass(frozen=True, slots=True)
class Left:
    """What a provider last said is left of one limit. Shape: as `Learned`; what it did not say is None."""

    scope: str
    measure: str
    window: str
    direction: str
    limit: int | None
    remaining: int | None
    resets_at: datetime | None
    told_at: datetime


@dataclass(frozen=True, slots=True)
class ShadowHits:
    """How many calls a day (UTC) a limit that only reports would have refused."""

    scope: str
    measure: str
    window: str
    day: date
    calls: int


# ------------------------------------------------------------------ what holds


def in_force(now: datetime, scopes: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Reads the learned limits that calls are held to, by scope, in a roster's shape. One query.

    Where a provider counts input and output apart, its limits of tokens hold nothing back beforehand: what counts towards them (cached input, output that is
    only allowed for) is each provider's own, and an estimate of ours would stop calls that it takes.
    """
    rows = LearnedLimit.objects.filter(scope__in=scopes) if scopes else LearnedLimit.objects.all()
    believed = [r for r in rows if r.learned_at > now - BELIEVED.get(r.told_by, timedelta(0)) and 1 <= r.limit < NONE_FROM]
    apart = {(r.scope, r.window) for r in believed if r.direction}
    found: dict[str, dict[str, Any]] = {}
    for row in believed:
        if row.measure == "parallel":
            found.setdefault(row.scope, {})["parallel"] = row.limit
        elif row.measure in HOLDING and row.window in WINDOWS and not row.direction and (row.measure != TOKENS or (row.scope, row.window) not in apart):
            found.setdefault(row.scope, {}).setdefault(row.measure, {})[row.window] = row.limit
    return found


def applied(models: Mapping[str, roster.Model], force: Mapping[str, Mapping[str, Any]]) -> dict[str, roster.Model]:
    """Gives models that know the limits that were learned of them and of their endpoints."""
    endpoints: dict[int, roster.Endpoint] = {}
    found: dict[str, roster.Model] = {}
    for alias, model in models.items():
        if (endpoint := endpoints.get(model.endpoint.id)) is None:
            learned = force.get(f"endpoint:{model.endpoint.id}")
            endpoint = endpoints[model.endpoint.id] = replace(model.endpoint, learned=learned) if learned else model.endpoint
        own = force.get(f"model:{model.id}")
        found[alias] = replace(model, endpoint=endpoint, learned=own or {}) if own or endpoint.learned else model
    return found


# ------------------------------------------------------------------ what an answer teaches


class Notes:
    """What this process has written down already, so that an answer which says nothing new costs no write."""

    def __init__(self) -> None:
        self.limits: dict[tuple[int, str, str, str], tuple[int, datetime]] = {}
        self.allowances: dict[str, tuple[datetime, bool]] = {}
        self.read_at: dict[int, datetime] = {}

    def told_by(self, attempt: Attempt, now: datetime) -> Sequence[Told]:
        """Reads what an answer told, every few seconds, and at once where something may be used up: reading costs more than all else here."""
        if attempt.told or not (said := attempt.limits_said):
            return attempt.told
        model = attempt.order.model
        at = self.read_at.get(model.id)
        if at is not None and (now - at).total_seconds() < ALLOWANCE_EVERY_S and NONE_LEFT.isdisjoint(said.values()):
            return ()
        self.read_at[model.id] = now
        return read(said, habits_of(model.endpoint.base_url), now.timestamp())

    def line_of(self, model: roster.Model, told: Sequence[Told], now: datetime) -> dict[str, Any]:
        """What the ledger is told of an answer's limits; empty where there is nothing new."""
        line: dict[str, Any] = {}
        is_shared = not habits_of(model.endpoint.base_url).per_model
        told = [one for one in told[:MOST_TOLD] if len(one.window or "") <= 16]
        if new := [one for one in told if one.limit is not None and self.is_new(model.id, one, now)]:
            limits = [[measure_of(t), t.window or "", t.direction, int(t.limit or 0), t.by] for t in new]
            line["learned"] = [{"endpoint": model.endpoint.id, "model": model.id, "shared": is_shared, "at": now.isoformat(), "limits": limits}]
        left = [one for one in told if one.remaining is not None or one.reset_s is not None]
        if left and self.is_due(scope := f"endpoint:{model.endpoint.id}" if is_shared else f"model:{model.id}", left, now):
            line["allowances"] = [allowance(scope, one, now) for one in left]
        return line

    def is_new(self, model_id: int, one: Told, now: datetime) -> bool:
        name, limit = (model_id, measure_of(one), one.window or "", one.direction), int(one.limit or 0)
        known = self.limits.get(name)
        if known is not None and now - known[1] < (SAY_AGAIN_AFTER if known[0] == limit else CHANGE_AFTER):
            return False
        if len(self.limits) >= MOST_KNOWN:
            self.limits.clear()
        self.limits[name] = (limit, now)
        return True

    def is_due(self, scope: str, left: Sequence[Told], now: datetime) -> bool:
        """Every few seconds, and at once when something is used up."""
        is_spent = any(one.remaining is not None and one.remaining <= 0 for one in left)
        at, was_spent = self.allowances.get(scope, (None, False))
        if at is not None and (now - at).total_seconds() < ALLOWANCE_EVERY_S and (was_spent or not is_spent):
            return False
        self.allowances[scope] = (now, is_spent)
        return True


notes = Notes()


def measure_of(one: Told) -> str:
    return "parallel" if one.unit == CONCURRENT else one.unit


def allowance(scope: str, one: Told, now: datetime) -> dict[str, Any]:
    return {
        "scope": scope,
        "measure": measure_of(one),
        "window": one.window or "",
        "direction": one.direction,
        "limit": None if one.limit is None else int(one.limit),
        "remaining": None if one.remaining is None else int(one.remaining),
        "resets_at": None if one.reset_s is None else (now + timedelta(seconds=one.reset_s)).isoformat(),
        "told_at": now.isoformat(),
    }


def rest_of(model: roster.Model, told: Sequence[Told], now: datetime) -> Resting | None:
    """The rest that an answer earns which says that nothing is left: the next call would be refused, so it is not made.

    Shape: of the endpoint where its models share their limits, else of the model.
    """
    found: Resting | None = None
    for one in told:
        if one.unit not in HOLDING or one.remaining is None or one.remaining > 0 or not one.reset_s:
            continue
        # Some say when the window would be whole again, which is long after there is room in it once more.
        seconds = min(one.reset_s, SECONDS.get(one.window or "", one.reset_s))
        until = now + timedelta(seconds=seconds)
        if found is None or until > found.until:
            scope = f"model:{model.alias}" if habits_of(model.endpoint.base_url).per_model else f"endpoint:{model.endpoint.name}"
            window = f" of this {one.window}" if one.window else ""
            found = Resting(scope, LIMIT, 0, until, f"The provider says that no {one.unit}{window} are left.", now)
    return found


# ------------------------------------------------------------------ the commits


PUT_LIMIT = (
    'INSERT INTO health_learnedlimit (scope, measure, "window", direction, "limit", told_by, learned_at) VALUES (%s, %s, %s, %s, %s, %s, %s)'
    ' ON CONFLICT (scope, measure, "window", direction) DO UPDATE SET "limit" = excluded."limit", told_by = excluded.told_by, learned_at = excluded.learned_at'
)
KNOWN = 'SELECT measure, "window", direction, "limit", learned_at <= %s, learned_at <= %s FROM health_learnedlimit WHERE scope = %s'
# The largest that any model behind an endpoint was told: they share it.
LARGEST = (
    'SELECT measure, "window", direction, MAX("limit"), MIN(told_by) FROM health_learnedlimit'
    " WHERE scope IN (SELECT 'model:' || CAST(id AS text) FROM catalog_model WHERE endpoint_id = %s) GROUP BY measure, \"window\", direction"
)
PUT_ALLOWANCE = (
    'INSERT INTO health_allowance (scope, measure, "window", direction, "limit", remaining, resets_at, told_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)'
    ' ON CONFLICT (scope, measure, "window", direction) DO UPDATE SET "limit" = excluded."limit", remaining = excluded.remaining,'
    " resets_at = excluded.resets_at, told_at = excluded.told_at WHERE excluded.told_at > health_allowance.told_at"
)


def commit_learned(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    for item in sorted(items, key=lambda item: (item["model"], item["at"])):
        at = datetime.fromisoformat(item["at"])
        if put_limits(cursor, f"model:{item['model']}", item["limits"], at) and item["shared"]:
            cursor.execute(LARGEST, [item["endpoint"]])
            put_limits(cursor, f"endpoint:{item['endpoint']}", cursor.fetchall(), at, settled=True)


def put_limits(cursor: Any, scope: str, limits: Iterable[Sequence[Any]], at: datetime, settled: bool = False) -> bool:
    """Writes what is new, another since a while, or not heard for long; tells whether anything was. A statement that changes nothing would move the roster."""
    adapt = connection.ops.adapt_datetimefield_value
    cursor.execute(KNOWN, [adapt(at - CHANGE_AFTER), adapt(at - SAY_AGAIN_AFTER), scope])
    known = {(measure, window, direction): (limit, may_change, is_old) for measure, window, direction, limit, may_change, is_old in cursor.fetchall()}
    new = []
    for measure, window, direction, limit, told_by in limits:
        name = (measure, window, direction)
        if name not in known and len(known) >= MOST_OF_ONE:
            continue
        there, may_change, is_old = known.setdefault(name, (None, True, True))
        if is_old or (limit != there and (may_change or settled)):
            new.append([scope, measure, window, direction, limit, told_by, adapt(at)])
    for row in sorted(new, key=lambda row: row[1:4]):
        cursor.execute(PUT_LIMIT, row)
    return bool(new)


def commit_allowances(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    adapt = connection.ops.adapt_datetimefield_value
    newest = {(i["scope"], i["measure"], i["window"], i["direction"]): i for i in sorted(items, key=lambda i: i["told_at"])}
    for name, item in sorted(newest.items()):
        resets_at = adapt(datetime.fromisoformat(item["resets_at"])) if item["resets_at"] else None
        cursor.execute(PUT_ALLOWANCE, [*name, item["limit"], item["remaining"], resets_at, adapt(datetime.fromisoformat(item["told_at"]))])


def forget_gone(now: datetime) -> int:
    """Deletes what was told of endpoints and models that are no more, and old counts of shadow limits; returns how many limits there were."""
    models = load_models().values()
    there = {f"model:{m.id}" for m in models} | {f"endpoint:{m.endpoint.id}" for m in models}
    told = {*LearnedLimit.objects.values_list("scope", flat=True), *Allowance.objects.values_list("scope", flat=True)}
    gone = sorted(told - there)
    count = 0
    if gone:  # a statement that deletes nothing would move the roster's version all the same
        count, _ = LearnedLimit.objects.filter(scope__in=gone).delete()
        Allowance.objects.filter(scope__in=gone).delete()
    ShadowHit.objects.filter(day__lt=now.date() - SHADOW_HITS_FOR).delete()
    return count


# ------------------------------------------------------------------ for whoever shows it


def learned() -> list[Learned]:
    """Reads all limits that providers told. One query."""
    rows = LearnedLimit.objects.order_by("scope", "measure", "window", "direction")
    return [Learned(r.scope, r.measure, r.window, r.direction, r.limit, r.told_by, r.learned_at) for r in rows]


def allowances() -> list[Left]:
    """Reads what providers last said is left. One query."""
    rows = Allowance.objects.order_by("scope", "measure", "window", "direction")
    return [Left(r.scope, r.measure, r.window, r.direction, r.limit, r.remaining, r.resets_at, r.told_at) for r in rows]


def shadow_hits(since: date) -> list[ShadowHits]:
    """Reads would-be refusals from a day (UTC) on, newest first. One query."""
    rows = ShadowHit.objects.filter(day__gte=since).order_by("-day", "scope", "measure", "window")
    return [ShadowHits(r.scope, r.measure, r.window, r.day, r.calls) for r in rows]
