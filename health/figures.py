"""What monitors ask: today's calls by endpoint, model and status, what is reserved or rests, when a queue worker last proved to be at work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Sum

from health.models import Attempt, Heartbeat, Permit, Rest


@dataclass(frozen=True, slots=True)
class DaySum:
    """One day's calls of one kind. Units: `cost_pusd` trillionths of a US dollar of the calls whose price is known, None where none is."""

    endpoint: str
    model: str
    status: str
    calls: int
    latency_ms: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_pusd: int | None


def of_day(now: datetime) -> list[DaySum]:
    """Sums the calls since midnight UTC: a range of the index on `started_at`."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    grouped = Attempt.objects.filter(started_at__gte=midnight).order_by("endpoint", "model", "status").values_list("endpoint", "model", "status")
    summed = grouped.annotate(Count("pk"), Sum("latency_ms"), Sum("input_tokens"), Sum("output_tokens"), Sum("cache_read_tokens"), Sum("cost_pusd"))
    return [DaySum(*row) for row in summed]


def reserved_calls(now: datetime) -> int:
    """How many calls under way hold a reservation."""
    return Permit.objects.filter(expires_at__gt=now).count()


def resting(now: datetime) -> int:
    """How many endpoints and models are left alone for now."""
    return Rest.objects.filter(until__gt=now).count()


def heartbeat_age_s(now: datetime) -> float | None:
    """How long ago a queue worker last proved to be at work. None: never."""
    last: datetime | None = Heartbeat.objects.aggregate(last=Max("at"))["last"]
    return None if last is None else max((now - last).total_seconds(), 0.0)
