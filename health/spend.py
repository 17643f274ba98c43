"""What the ledger says of some days, for the overview: calls, failures, money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Sum

from health import rollups
from health.models import DayTotal


@dataclass(frozen=True, slots=True)
class Spend:
    """Shape: `unpriced` calls have no known cost and are not in `cost_pusd`.

    Units: trillionths of a US dollar.
    """

    calls: int
    failed: int
    cost_pusd: int
    unpriced: int


def today(now: datetime) -> date:
    """The day that it is where BENCH_TIME_ZONE says: a budget's day, and a total's."""
    return now.astimezone(ZoneInfo(settings.BENCH_TIME_ZONE)).date()


def since(day: date) -> Spend:
    """Sums the ledger from a day on. One query."""
    rollups.fold()
    names = ("calls", "failed", "cost_pusd", "unpriced")
    found = DayTotal.objects.filter(day__gte=day).aggregate(**{f"sum_{name}": Sum(name) for name in names})
    return Spend(**{name: int(found[f"sum_{name}"] or 0) for name in names})
