"""What monitors ask: today's calls by endpoint, model and status, what is reserved or rests, when a queue worker last proved to be at work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Sum

from health import rollups
from health.models import DayTotal, Heartbeat, Permit, Rest
from health.spend import today


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
    """Sums today's calls, where today is that of BENCH_TIME_ZONE: some of the totals, whatever the day's calls are."""
    names = ("calls", "latency_ms", "input_tokens", "output_tokens", "cache_read_tokens", "cost_pusd", "unpriced")
    rollups.fold()
    grouped = DayTotal.objects.filter(day=today(now)).order_by("endpoint", "model", "status").values_list("endpoint", "model", "status")
    found = []
    for endpoint, model, status, *sums in grouped.annotate(*(Sum(name) for name in names)):
        calls, latency_ms, input_tokens, output_tokens, cache_read_tokens, cost, unpriced = (int(each) for each in sums)
        if calls:
            known = None if unpriced == calls else cost
            found.append(DaySum(endpoint, model, status, calls, latency_ms, input_tokens, output_tokens, cache_read_tokens, known))
    return found


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
