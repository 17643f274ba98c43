"""Budgets as meters: what a request reserves of them, what was spent before they were set, and the alerts as they run out.

A budget's meter is settled with the calls that reserved of it, as every meter is, so fifty calls at once against a budget for one admit one. What no
reservation told it (calls before the budget was set, or under way just then; a loss that turned out otherwise) it learns from the ledger: at
once when the budget is set, and every minute while nothing is reserved of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from access import budgets
from access.budgets import Limit
from health import rollups
from health.alerts import line_of, raise_alert
from health.costs import pusd, usd_text
from health.limits import QUARTER_HOUR_MS, Meter, calendar, decode, encode
from health.models import Meter as MeterRow
from health.models import PartTotal, Permit
from health.reserve import PUSD, Denied

# A meter's name has 120 characters.
LONGEST_NAME, KEPT_OF_NAME = 90, 60
PARTS = {"owner": "judge", "team": "team", "collection": "collection", "key": "key_id"}
# Before the scope of what was granted for good.
GRANTED = "granted:"
Spent = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a budget stands this month, or since the first grant. Units: trillionths of a US dollar; `reserved_pusd` is held for calls under way."""

    limit: Limit
    month: str
    spent_pusd: int
    reserved_pusd: int
    resets_at: datetime

    @property
    def cap_pusd(self) -> int:
        return pusd(self.limit.budget_usd)

    @property
    def left_pusd(self) -> int:
        return max(self.cap_pusd - self.spent_pusd - self.reserved_pusd, 0)


def scope_of(limit: Limit) -> str:
    """Names a budget's meter, as in team:platform, or granted:team:platform."""
    return f"{GRANTED if limit.is_granted else ''}{scope_named(limit.kind, limit.name, limit.key_id)}"


def scope_named(kind: str, name: str, key_id: int | None = None) -> str:
    if kind == "key":
        return f"key:{key_id}"
    if len(name) > LONGEST_NAME:
        name = f"{name[:KEPT_OF_NAME]}~{hashlib.sha256(name.encode()).hexdigest()[:24]}"
    return f"{kind}:{name}"


def whose(scope: str) -> str:
    """Says whose a budget is, from its meter's scope, as a message puts it."""
    kind, _, name = scope.removeprefix(GRANTED).partition(":")
    what = "balance" if scope.startswith(GRANTED) else "budget"
    return "this key's budget" if kind == "key" else f"the {what} of the {kind} {name}"


def said(limits: Iterable[Limit], has_key_budget: bool) -> str:
    """Names budgets, as a sentence begins."""
    names = [*(["This key's budget"] if has_key_budget else []), *(whose(scope_of(one)) for one in limits)]
    text = " and ".join(names)
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------ what was spent


def spent_in(month: str) -> Spent:
    """Sums a month's costs by whom budgets are for: ("team", "platform"), ("key_id", "7"). One query."""
    rollups.fold()
    rows = PartTotal.objects.filter(grain="month", period=month, part__in=list(PARTS.values()))
    return {(part, name): int(cost) for part, name, cost in rows.values_list("part", "name", "cost_pusd")}


def spent_ever(kind: str, name: str) -> int:
    """Sums all that was ever spent under a budget's kind and name. Units: trillionths of a US dollar."""
    rollups.fold()
    rows = PartTotal.objects.filter(grain="month", part=PARTS[kind], name=name)
    return sum(int(cost) for cost in rows.values_list("cost_pusd", flat=True))


def whom(limit: Limit) -> tuple[str, str]:
    """How totals name whom a budget is for."""
    return PARTS[limit.kind], str(limit.key_id) if limit.kind == "key" else limit.name


def month_at(now: datetime) -> tuple[str, datetime]:
    """The month that it is for budgets, and when it ends."""
    today = calendar(settings.BENCH_TIME_ZONE, int(now.timestamp() * 1000) // QUARTER_HOUR_MS)
    return today.month, datetime.fromtimestamp(today.month_ends_ms / 1000, UTC)


def held_by(meter: Meter, month: str, limit: Limit) -> int:
    if limit.is_granted:
        return meter.total
    return meter.month[1] if meter.month and meter.month[0] == month else 0


def standings(limits: Iterable[Limit], now: datetime) -> list[Standing]:
    """Reads how budgets stand. Two queries, however many there are, and one more for each that is granted."""
    month, ends = month_at(now)
    limits = list(limits)
    spent = spent_in(month) if limits else {}
    names = [f"{scope_of(limit)}|{PUSD}" for limit in limits]
    meters = {name: decode(state) for name, state in MeterRow.objects.filter(scope__in=names).values_list("scope", "state")} if names else {}
    found = []
    for limit, name in zip(limits, names, strict=True):
        gone = spent_ever(limit.kind, limit.name) - limit.before_pusd if limit.is_granted else spent.get(whom(limit), 0)
        held = held_by(meters[name], month, limit) if name in meters else 0
        found.append(Standing(limit, month, gone, max(held - gone, 0), ends))
    return found


# ------------------------------------------------------------------ refusals

refused: set[str] = set()  # what this process has told of


def refusal_line(denied: Denied, key_name: str, now: datetime) -> Mapping[str, Any] | None:
    """What the ledger is told of a budget's first refusal in a month; None for any other. A budget that hardly covers a call may never be spent whole."""
    if denied.measure != PUSD:
        return None
    month, _ = month_at(now)
    once = f"budget:{month}:refused:{denied.scope}"
    if once in refused:
        return None
    refused.add(once)
    kind, _, name = denied.scope.removeprefix(GRANTED).partition(":")
    name = key_name if kind == "key" else name
    if denied.scope.startswith(GRANTED):
        message = f"The balance of the {kind} {name} did not cover a request, which was refused. A grant lets such through: POST /v1/billing/topups."
        return line_of("budget", f"{kind} {name}", once, message, now)
    message = f"The budget of the {kind} {name} did not cover a request, which was refused. The next month or a larger budget lets such through."
    return line_of("budget", f"{kind} {name}", once, message, now)


# ------------------------------------------------------------------ keeping meters true


def begin(kind: str, name: str, key_id: int | None = None) -> None:
    """Tells a budget's meter what was spent this month before, in the transaction that sets the budget: from the first request on it counts."""
    level(Limit(kind, name, Decimal(0), key_id=key_id), timezone.now(), also_under_way=True)


def level(limit: Limit, now: datetime, *, also_under_way: bool = False) -> bool:
    """Makes a budget's meter say what the ledger says; tells whether it had to. While something is reserved of it only the larger counts.

    Whoever settles or reserves waits for the meter's row meanwhile, so that permits and totals are of one moment.
    """
    month, _ = month_at(now)
    name = f"{scope_of(limit)}|{PUSD}"
    with transaction.atomic():
        row, _ = MeterRow.objects.select_for_update().get_or_create(scope=name, defaults={"state": ""})
        is_held = Permit.objects.filter(holds__contains=orjson.dumps(name).decode()).exists()
        if is_held and not also_under_way:
            return False
        meter = decode(row.state)
        part, of = whom(limit)
        rollups.fold()
        if limit.is_granted:
            truth = spent_ever(limit.kind, limit.name) - limit.before_pusd
        else:
            truth = int(PartTotal.objects.filter(grain="month", part=part, period=month, name=of).values_list("cost_pusd", flat=True).first() or 0)
        held = held_by(meter, month, limit)
        if truth == held or (is_held and held > truth):
            return False
        after = replace(meter, total=truth) if limit.is_granted else replace(meter, month=(month, truth))
        MeterRow.objects.filter(pk=name).update(state=encode(replace(after, zone=settings.BENCH_TIME_ZONE)))
    return True


def watch(now: datetime) -> int:
    """Levels meters that say something else than the ledger, and raises the alerts that are due; returns how many were new."""
    found = standings(budgets.every(), now)
    for one in found:
        if one.reserved_pusd or one.spent_pusd:
            level(one.limit, now)
    return sum(alert(one) for one in found)


def alert(one: Standing) -> int:
    """Raises an alert for each percent that is reached, once a month and amount."""
    limit, cap = one.limit, one.cap_pusd
    count = 0
    for percent in limit.alert_at:
        if one.spent_pusd * 100 >= cap * percent and (cap or one.spent_pusd):
            span, within, what = (f"{one.month}:", f" in {one.month}", "budget") if not limit.is_granted else ("", "", "balance")
            once = f"budget:{span}{percent}:{cap}:{scope_of(limit)}"
            amount = f"${usd_text(cap)} granted" if limit.is_granted else f"${usd_text(cap)} a month"
            message = f"The {what} of the {limit.kind} {limit.name[:200]} ({amount}) is spent to {percent}% or more: ${usd_text(one.spent_pusd)}{within}."
            count += raise_alert("budget", f"{limit.kind} {limit.name}", once, message)
    return count
