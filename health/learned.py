"""What providers told of their limits, what they last said is left, and what limits that only report would have refused: written down, and read.

Written with the ledger's lines, so that no call waits for it, and only where something is new. A limit that a provider told holds like one that a
person set, window by window, where nobody set one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from health.models import Allowance, LearnedLimit, ShadowHit


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
