"""The ledger at large: how many calls and tokens, and what they cost, by month and by what somebody asks about; the calls of many panels at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncMonth

from health.history import rows
from health.lines import Row
from health.models import Attempt

# What sums are asked by, and the ledger's column.
BY = {"model": "model", "key": "key_name", "endpoint": "endpoint", "collection": "collection", "judge": "judge", "purpose": "purpose"}
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class Sums:
    """One month of one model, key, endpoint …

    Shape: `month` "2026-11"; `calls` are attempts; `cost_pusd` sums the calls whose price is known, None where none is; `unpriced` the others.
    Units: `cost_pusd` trillionths of a US dollar.
    """

    month: str
    name: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated: int
    cost_pusd: int | None
    unpriced: int


def by_month(by: str, since: datetime | None = None, until: datetime | None = None) -> list[Sums]:
    """Sums the ledger up, newest month first, then by name. Months are the calendar's in BENCH_TIME_ZONE, as budgets are. One query.

    Errors: KeyError for a `by` that is none of BY.
    """
    column = BY[by]
    attempts = Attempt.objects.all()
    if since is not None:
        attempts = attempts.filter(started_at__gte=since)
    if until is not None:
        attempts = attempts.filter(started_at__lt=until)
    found = (
        attempts.order_by()
        .annotate(month=TruncMonth("started_at", tzinfo=ZoneInfo(settings.BENCH_TIME_ZONE)))
        .values("month", column)
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=~Q(status__in=["ok", "truncated", "cancelled"])),
            estimated_calls=Count("id", filter=Q(estimated=True)),
            unpriced=Count("id", filter=Q(cost_pusd=None)),
            cost=Sum("cost_pusd"),
            **{f"sum_{field}": Sum(field) for field in TOKENS},
        )
        .order_by("-month", column)
    )
    return [
        Sums(
            month=f"{row['month']:%Y-%m}",
            name=row[column],
            calls=row["calls"],
            failed=row["failed"],
            estimated=row["estimated_calls"],
            cost_pusd=None if row["cost"] is None else int(row["cost"]),  # PostgreSQL sums bigints as decimals
            unpriced=row["unpriced"],
            **{field: int(row[f"sum_{field}"]) for field in TOKENS},
        )
        for row in found
    ]


def attempts_of_panels(panels: Sequence[str]) -> tuple[Row, ...]:
    """The ledger's rows of several panels, first ones first. One query."""
    return rows(Attempt.objects.filter(panel__in=panels))
