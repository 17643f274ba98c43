"""What the ledger says that one request cost, by what its calls were for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, Sum

from health.models import Attempt


@dataclass(frozen=True, slots=True)
class Purpose:
    """Shape: one purpose, model and endpoint; `unpriced` calls have no known cost and are not in `cost_pusd`. Units: trillionths of a US dollar."""

    purpose: str
    model: str
    endpoint: str
    calls: int
    failed: int
    unpriced: int
    estimated: int
    cost_pusd: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def of_request(request: str, since: datetime, until: datetime) -> tuple[Purpose, ...]:
    """Sums the calls of one request within a time, which is what the index finds. One query."""
    rows: Any = (
        Attempt.objects.filter(started_at__gte=since, started_at__lte=until, request=request)
        .order_by()
        .values("purpose", "model", "endpoint")
        .annotate(
            n=Count("id"),
            failed=Count("id", filter=~Q(status__in=(Attempt.Status.OK, Attempt.Status.TRUNCATED, Attempt.Status.PARTIAL))),
            unpriced=Count("id", filter=Q(cost_pusd=None)),
            guessed=Count("id", filter=Q(estimated=True)),
            cost=Sum("cost_pusd"),
            **{f"sum_{name}": Sum(name) for name in TOKENS},
        )
        .order_by("purpose", "model", "endpoint")
    )
    return tuple(
        Purpose(
            row["purpose"],
            row["model"],
            row["endpoint"],
            row["n"],
            row["failed"],
            row["unpriced"],
            row["guessed"],
            int(row["cost"] or 0),
            *(int(row[f"sum_{name}"] or 0) for name in TOKENS),
        )
        for row in rows
    )
