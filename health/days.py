"""A model's days: calls, failures, tokens, money and latency from the totals, and what speed probes measured. Costs as many rows as there are days."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from statistics import median
from zoneinfo import ZoneInfo

from django.conf import settings

from health import sums
from health.models import Probe
from health.sums import Sums


@dataclass(frozen=True, slots=True)
class Day:
    """One day in BENCH_TIME_ZONE. Shape: `sums` None where there was no call; of speed the day's medians, None where nothing was measured."""

    day: date
    sums: Sums | None
    ttft_ms: float | None
    tokens_per_s: float | None


def of_model(alias: str, since: date, until: date) -> list[Day]:
    """Reads every day from the first to the last, themselves included. Two queries."""
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    days = [since + timedelta(days=n) for n in range((until - since).days + 1)]
    summed = {one.period: one for one in sums.days_of("model", alias, days)}
    first: dict[date, list[float]] = defaultdict(list)
    rates: dict[date, list[float]] = defaultdict(list)
    start = datetime.combine(since, time(), zone)
    probes = Probe.objects.filter(model=alias, kind__in=["short", "long"], at__gte=start, outcome=Probe.Outcome.OK)
    for kind, at, ttft_ms, tokens_per_s in probes.values_list("kind", "at", "ttft_ms", "tokens_per_s"):
        day = at.astimezone(zone).date()
        if kind == "short" and ttft_ms is not None:
            first[day].append(ttft_ms)
        if kind == "long" and tokens_per_s is not None:
            rates[day].append(tokens_per_s)
    return [Day(day, summed.get(f"{day}"), middle(first.get(day)), middle(rates.get(day))) for day in days]


def middle(found: list[float] | None) -> float | None:
    return median(found) if found else None
