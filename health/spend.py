"""What the ledger says of a stretch of time, for the overview: calls, failures, money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum

from health.models import Attempt


@dataclass(frozen=True, slots=True)
class Spend:
    """Shape: `unpriced` calls have no known cost and are not in `cost_pusd`.

    Units: trillionths of a US dollar.
    """

    calls: int
    failed: int
    cost_pusd: int
    unpriced: int


def since(start: datetime) -> Spend:
    """Sums the ledger from a moment on."""
    found = Attempt.objects.filter(started_at__gte=start).aggregate(
        calls=Count("id"),
        failed=Count("id", filter=~Q(status__in=["ok", "truncated", "cancelled"])),
        cost=Sum("cost_pusd"),
        unpriced=Count("id", filter=Q(cost_pusd=None)),
    )
    return Spend(calls=found["calls"], failed=found["failed"], cost_pusd=int(found["cost"] or 0), unpriced=found["unpriced"])
