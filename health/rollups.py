"""Sums of the ledger by day and month, kept in the transaction that writes the rows they sum: what lists, budgets and monitors read instead of the rows.

Whatever adds a row to the ledger adds it here, whatever corrects one corrects it here, and nothing else writes here. So the sums are exact
after any death, and they stay when retention deletes the rows. There is a sum for each name of each part (model, key, team …) by itself: to read
one costs as many rows as there are names, whatever was called together with what.
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
from health.models import Attempt, DayTotal, PartTotal

# Calls that ended in one of these did what was asked of them.
GOOD = ("ok", "truncated", "cancelled")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
MEASURES = ("calls", "failed", "estimated", "unpriced", *TOKENS, "latency_ms", "cost_pusd")
# What calls are summed by, and the ledger's column.
PARTS = {
    "model": "model",
    "endpoint": "endpoint",
    "key": "key_name",
    "key_id": "key_id",
    "collection": "collection",
    "purpose": "purpose",
    "judge": "judge",
    "team": "team",
}
DAY_KEY = ("day", "endpoint", "model", "status")
PART_KEY = ("grain", "part", "period", "name")
# A kind of call: its day, its end, and its name of each part.
KIND = ("status", *PARTS.values())

Row = Mapping[str, Any]
Key = tuple[Any, ...]
Sums = dict[Key, Sequence[int]]
kind_of = itemgetter(*KIND)
tokens_of = itemgetter(*TOKENS)


def adding(table: str, key: Sequence[str]) -> Insert:
    """An insert that adds to what is there."""
    columns = {**{name: "date" if name == "day" else "text" for name in key}, **dict.fromkeys(MEASURES, "bigint")}
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in MEASURES)
    return Insert(table, columns, f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}")


PUT_DAY = adding("health_daytotal", DAY_KEY)
PUT_PART = adding("health_parttotal", PART_KEY)


def put(db: Database, new: Sequence[Row], corrected: Sequence[tuple[Row, Row]] = ()) -> None:
    """Adds rows that are new, and puts corrected ones in the place of what they were: one statement for each table, rows in key order."""
    kinds: dict[Key, list[int]] = {}
    for row in new:
        enter(kinds, row, 1)
    for before, after in corrected:
        enter(kinds, before, -1)
        enter(kinds, after, 1)
    days, parts = spread(kinds)
    db.put(PUT_DAY, [(*key, *days[key]) for key in sorted(days)])
    db.put(PUT_PART, [(*key, *parts[key]) for key in sorted(parts)])


def enter(kinds: dict[Key, list[int]], row: Row, sign: int) -> None:
    """Adds one row to the sums of its kind, or takes it out."""
    at = row["started_at"]
    started = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    key = (calendar(settings.BENCH_TIME_ZONE, int(started.timestamp() * 1000) // QUARTER_HOUR_MS).day, *kind_of(row))
    cost = row["cost_pusd"]
    one = (1, row["status"] not in GOOD, row["estimated"], cost is None, *tokens_of(row), row["latency_ms"], cost or 0)
    held = kinds.get(key)
    if held is None:
        kinds[key] = [sign * int(value) for value in one]
    else:
        for place, value in enumerate(one):
            held[place] += sign * value


def spread(kinds: Mapping[Key, Sequence[int]]) -> tuple[Sums, Sums]:
    """Sums kinds of calls by day and model, and by each name of each part."""
    days: Sums = {}
    parts: Sums = {}
    for (day, status, *names), sums in kinds.items():
        add(days, (day, names[1], names[0], status), sums)
        month = day[:7]
        for part, name in zip(PARTS, names, strict=True):
            if part == "key_id":
                if not name:
                    continue
                name = str(name)
            add(parts, ("day", part, day, name), sums)
            add(parts, ("month", part, month, name), sums)
    return days, parts


def add(found: Sums, key: Key, sums: Sequence[int]) -> None:
    held = found.get(key)
    found[key] = sums if held is None else [a + b for a, b in zip(held, sums, strict=True)]


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
            months.add(f"{day:%Y-%m}")
            count += 1
        day += timedelta(days=1)
    for month in sorted(months):
        sum_month(month)
    return count


def rebuild_day(day: date, zone: ZoneInfo) -> bool:
    """Sums one day and its month anew; tells whether its sums were written."""
    with transaction.atomic():
        if written := sum_day(day, zone):
            sum_month(f"{day:%Y-%m}")
    return written


def alone() -> None:
    """Lets others' commits wait until this transaction ends, or a row that comes meanwhile would be in neither the old sums nor the new ones."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE health_attempt, health_daytotal, health_parttotal IN SHARE ROW EXCLUSIVE MODE")


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
        PartTotal.objects.filter(grain="day", period=f"{day}").delete()
        rows = attempts.order_by().values(*KIND).annotate(**sums_of_attempts())
        days, parts = spread({(f"{day}", *kind_of(row)): [int(row[f"sum_{name}"]) for name in MEASURES] for row in rows})
        DayTotal.objects.bulk_create([DayTotal(**dict(zip((*DAY_KEY, *MEASURES), (*key, *sums), strict=True))) for key, sums in days.items()], batch_size=500)
        PartTotal.objects.bulk_create(
            [PartTotal(**dict(zip((*PART_KEY, *MEASURES), (*key, *sums), strict=True))) for key, sums in parts.items() if key[0] == "day"], batch_size=500
        )
    return True


def sum_month(month: str) -> None:
    """Sums one month's days."""
    with transaction.atomic():
        alone()
        PartTotal.objects.filter(grain="month", period=month).delete()
        days = PartTotal.objects.filter(grain="day", period__gte=f"{month}-01", period__lte=f"{month}-31").order_by().values("part", "name")
        summed: Any = days.annotate(**{f"sum_{name}": Sum(name) for name in MEASURES})
        PartTotal.objects.bulk_create(
            [
                PartTotal(grain="month", period=month, part=row["part"], name=row["name"], **{name: int(row[f"sum_{name}"]) for name in MEASURES})
                for row in summed
            ],
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
