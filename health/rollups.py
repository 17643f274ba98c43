"""Sums of the ledger by day and by month, kept in the transaction that writes the rows they sum: what lists, budgets and monitors read instead of the rows.

Whatever adds a row to the ledger adds it here, whatever corrects one corrects it here, and nothing else writes here. So the sums are exact
after any death, and they stay when retention deletes the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Max, Min, Q, Sum, Value
from django.db.models.functions import Coalesce

from health.database import Database, Insert
from health.limits import QUARTER_HOUR_MS, calendar
from health.models import Attempt, DayTotal, MonthTotal

# Calls that ended in one of these did what was asked of them.
GOOD = ("ok", "truncated", "cancelled")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
NAMES = ("model", "endpoint", "purpose", "collection", "judge", "team", "key_id", "key_name")
MEASURES = ("calls", "failed", "estimated", "unpriced", *TOKENS, "latency_ms", "cost_pusd")
DAY_KEY = ("day", "status", *NAMES)
MONTH_KEY = ("month", *NAMES)

Row = Mapping[str, Any]
names_of = itemgetter("status", *NAMES)
tokens_of = itemgetter(*TOKENS)


def adding(table: str, key: Sequence[str]) -> Insert:
    """An insert that adds to what is there."""
    kinds = {"day": "date", "key_id": "bigint"}
    columns = {**{name: kinds.get(name, "text") for name in key}, **dict.fromkeys(MEASURES, "bigint")}
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in MEASURES)
    return Insert(table, columns, f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}")


PUT_DAY = adding("health_daytotal", DAY_KEY)
PUT_MONTH = adding("health_monthtotal", MONTH_KEY)


def put(db: Database, new: Sequence[Row], corrected: Sequence[tuple[Row, Row]] = ()) -> None:
    """Adds rows that are new, and puts corrected ones in the place of what they were: one statement for each table, rows in key order."""
    days: dict[tuple[Any, ...], list[int]] = {}
    for row in new:
        enter(days, row, 1)
    for before, after in corrected:
        enter(days, before, -1)
        enter(days, after, 1)
    months: dict[tuple[Any, ...], list[int]] = {}
    for (day, _, *names), sums in days.items():
        key = (day[:7], *names)
        months[key] = [a + b for a, b in zip(held, sums, strict=True)] if (held := months.get(key)) else sums
    db.put(PUT_DAY, [(*key, *days[key]) for key in sorted(days)])
    db.put(PUT_MONTH, [(*key, *months[key]) for key in sorted(months)])


def enter(days: dict[tuple[Any, ...], list[int]], row: Row, sign: int) -> None:
    """Adds one row to the sums of its day, or takes it out."""
    status, model, endpoint, purpose, collection, judge, team, key_id, key_name = names_of(row)
    at = row["started_at"]
    started = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    day = calendar(settings.BENCH_TIME_ZONE, int(started.timestamp() * 1000) // QUARTER_HOUR_MS).day
    key = (day, status, model, endpoint, purpose, collection, judge, team, key_id or 0, key_name)
    cost = row["cost_pusd"]
    one = (1, status not in GOOD, row["estimated"], cost is None, *tokens_of(row), row["latency_ms"], cost or 0)
    held = days.get(key)
    if held is None:
        days[key] = [sign * int(value) for value in one]
    else:
        for place, value in enumerate(one):
            held[place] += sign * value


# ------------------------------------------------------------------ made anew


def rebuild(since: date | None = None) -> int:
    """Sums whole days of the ledger anew, one transaction a day, then their months; returns how many days were written.

    Shape: a day of which rows are gone by retention keeps the sums it has.
    """
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    ends = Attempt.objects.aggregate(first=Min("started_at"), last=Max("started_at"))
    if ends["first"] is None:
        return 0
    day, last = ends["first"].astimezone(zone).date(), ends["last"].astimezone(zone).date()
    day = max(day, since) if since else day
    count = 0
    months = set()
    while day <= last:
        if sum_day(day, zone):
            months.add(day.replace(day=1))
            count += 1
        day += timedelta(days=1)
    for month in sorted(months):
        sum_month(month)
    return count


def rebuild_day(day: date, zone: ZoneInfo) -> bool:
    """Sums one day and its month anew; tells whether its sums were written."""
    with transaction.atomic():
        if written := sum_day(day, zone):
            sum_month(day.replace(day=1))
    return written


def alone() -> None:
    """Lets others' commits wait until this transaction ends, or a row that comes meanwhile would be in neither the old sums nor the new ones."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE health_attempt, health_daytotal, health_monthtotal IN SHARE ROW EXCLUSIVE MODE")


def sum_day(day: date, zone: ZoneInfo) -> bool:
    start = datetime.combine(day, time(), zone).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
    with transaction.atomic():
        alone()
        attempts = Attempt.objects.filter(started_at__gte=start, started_at__lt=end)
        held = DayTotal.objects.filter(day=day)
        if attempts.count() < (held.aggregate(calls=Sum("calls"))["calls"] or 0):
            return False
        held.delete()
        rows = attempts.order_by().values("status", *NAMES).annotate(**sums_of_attempts())
        found = [DayTotal(day=day, **{**row, "key_id": row["key_id"] or 0, **whole(row)}) for row in rename(rows)]
        # Rows whose key is 0 and those without one are the same here.
        DayTotal.objects.bulk_create(merged(found), batch_size=500)
    return True


def sum_month(first: date) -> None:
    """Sums one month's days."""
    month, following = f"{first:%Y-%m}", (first + timedelta(days=32)).replace(day=1)
    with transaction.atomic():
        alone()
        MonthTotal.objects.filter(month=month).delete()
        totals = DayTotal.objects.filter(day__gte=first, day__lt=following).order_by().values(*NAMES)
        summed = totals.annotate(**{f"sum_{name}": Sum(name) for name in MEASURES})
        MonthTotal.objects.bulk_create(
            [MonthTotal(month=month, **{name: row[name] for name in NAMES}, **{name: int(row[f"sum_{name}"]) for name in MEASURES}) for row in summed],
            batch_size=500,
        )


def sums_of_attempts() -> dict[str, Any]:
    return {
        "sum_calls": Count("id"),
        "sum_failed": Count("id", filter=~Q(status__in=GOOD)),
        "sum_estimated": Count("id", filter=Q(estimated=True)),
        "sum_unpriced": Count("id", filter=Q(cost_pusd=None)),
        "sum_cost_pusd": Coalesce(Sum("cost_pusd"), Value(0)),
        **{f"sum_{name}": Sum(name) for name in (*TOKENS, "latency_ms")},
    }


def rename(rows: Any) -> list[dict[str, Any]]:
    return [{name.removeprefix("sum_"): value for name, value in row.items()} for row in rows]


def whole(row: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(row[name]) for name in MEASURES}  # PostgreSQL sums bigints as decimals


def merged(found: Sequence[DayTotal]) -> list[DayTotal]:
    """Makes one of what has the same key."""
    by_key: dict[tuple[Any, ...], DayTotal] = {}
    for total in found:
        key = tuple(getattr(total, name) for name in DAY_KEY)
        if (other := by_key.get(key)) is None:
            by_key[key] = total
        else:
            for name in MEASURES:
                setattr(other, name, getattr(other, name) + getattr(total, name))
    return list(by_key.values())
