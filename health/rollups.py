"""Sums of the ledger by day and month: what lists, budgets and monitors read instead of the rows.

Whatever adds a row to the ledger notes it here in the same transaction, whatever corrects one notes that, and nothing else writes here. What is noted is
summed later, in one transaction that takes the note away: by whoever reads the sums, by the writers after so many rows, by a job every minute. So a
commit costs one row more and not twenty, the sums are exact after any death, and they stay when retention deletes the rows. There is a sum for each
name of each part (model, key, team …) by itself: to read one costs as many rows as there are names, whatever was called together with what.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

import orjson
from django.conf import settings
from django.db import DataError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Count, Max, Min, Q, Sum, Value
from django.db.models.functions import Coalesce

from health.database import Database, Insert
from health.limits import QUARTER_HOUR_MS, calendar
from health.models import Attempt, DayTotal, FreshCalls, PartTotal

log = logging.getLogger(__name__)

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


def adding(table: str, key: Sequence[str]) -> Insert:
    """An insert that adds to what is there."""
    columns = {**{name: "date" if name == "day" else "text" for name in key}, **dict.fromkeys(MEASURES, "bigint")}
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in MEASURES)
    return Insert(table, columns, f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}")


PUT_DAY = adding("health_daytotal", DAY_KEY)
PUT_PART = adding("health_parttotal", PART_KEY)


# What the totals need of a row.
NEEDED = ("started_at", *KIND, "estimated", *TOKENS, "latency_ms", "cost_pusd")
ESTIMATED = NEEDED.index("estimated")
needed_of = itemgetter(*NEEDED)
PUT_FRESH = Insert("health_freshcalls", {"calls": "text"})
TAKE_FRESH = "DELETE FROM health_freshcalls RETURNING calls"
# A writer sums after so many rows, so that readers never find many more.
DUE_AFTER = 1000
noted = 0


def put(db: Database, new: Sequence[Row], corrected: Sequence[tuple[Row, Row]] = ()) -> None:
    """Notes the sums of rows that are new, and of what corrected ones change. One row, in the transaction that writes them."""
    global noted
    noted += len(new) + len(corrected)
    kinds: dict[Key, list[int]] = {}
    for row in new:
        enter(kinds, needed_of(row), 1)
    for before, after in corrected:
        enter(kinds, needed_of(before), -1)
        enter(kinds, needed_of(after), 1)
    db.put(PUT_FRESH, [(orjson.dumps(list(kinds.items())).decode(),)])


def is_due() -> bool:
    """Tells a writer that it has noted enough to sum it."""
    return noted >= DUE_AFTER


def fold(cursor: CursorWrapper | None = None) -> int:
    """Sums what was noted, in one transaction; returns how many notes there were. With a cursor, in the transaction that it is in."""
    global noted
    if cursor is None:
        if not FreshCalls.objects.exists():
            return 0
        with transaction.atomic(), connection.cursor() as own:
            return fold(own)
    noted = 0
    cursor.execute(TAKE_FRESH)
    notes = [orjson.loads(calls) for (calls,) in cursor.fetchall()]
    try:
        write(cursor, notes)
    except DataError:
        # A sum that no column holds, of tokens that a provider made up: it must keep no other out, nor readers from what there is.
        for note in notes:
            try:
                write(cursor, [note])
            except DataError:
                log.error("Calls could not be added to the totals: a sum would be too large. The ledger has them: %s", [kind[0] for kind in note][:5])
    return len(notes)


def write(cursor: CursorWrapper, notes: Iterable[Sequence[Any]]) -> None:
    """Adds notes to both tables, rows in key order, or none of them. Errors: DataError."""
    kinds: Sums = {}
    for note in notes:
        for key, sums in note:
            add(kinds, tuple(key), sums)
    days, parts = spread(kinds)
    cursor.execute("SAVEPOINT totals")
    try:
        for table, found in ((PUT_DAY, days), (PUT_PART, parts)):
            if found:
                cursor.executemany(table.each, [(*key, *found[key]) for key in sorted(found)])
    except (DataError, OverflowError) as error:
        cursor.execute("ROLLBACK TO SAVEPOINT totals")
        raise DataError(str(error)) from error
    finally:
        cursor.execute("RELEASE SAVEPOINT totals")


def sweep(now: datetime) -> int:
    """Sums what was noted, every minute: what no reader asked for either."""
    return fold()


def enter(kinds: dict[Key, list[int]], row: Sequence[Any], sign: int) -> None:
    """Adds one row, as NEEDED has it, to the sums of its kind, or takes it out."""
    at = row[0] if isinstance(row[0], str) else row[0].isoformat()
    if at[-6:-5] not in ("+", "-"):  # as another program may write UTC
        at = datetime.fromisoformat(at).isoformat()
    key = (day_at(at[:16], at[-6:], settings.BENCH_TIME_ZONE), *row[1:ESTIMATED])
    estimated, *counts, cost = row[ESTIMATED:]
    one = (1, row[1] not in GOOD, estimated, cost is None, *counts, cost or 0)
    held = kinds.get(key)
    if held is None:
        kinds[key] = [sign * int(value) for value in one]
    else:
        for place, value in enumerate(one):
            held[place] += sign * value


@lru_cache(maxsize=4096)
def day_at(minute: str, offset: str, zone: str) -> str:
    """The day of a minute, as its text and that of its offset: no zone's day begins within one."""
    started = datetime.fromisoformat(f"{minute}{offset}")
    return calendar(zone, int(started.timestamp() * 1000) // QUARTER_HOUR_MS).day


def spread(kinds: Mapping[Key, Sequence[int]]) -> tuple[Sums, Sums]:
    """Sums kinds of calls by day and model, and by each name of each part."""
    days: Sums = {}
    parts: Sums = {}
    for (day, status, *names), sums in kinds.items():
        add(days, (day, names[1], names[0], status), sums)
        for part, name in zip(PARTS, names, strict=True):
            if part != "key_id":
                add(parts, ("day", part, day, name), sums)
            elif name:
                add(parts, ("day", part, day, str(name)), sums)
    for (_, part, day, name), sums in list(parts.items()):
        add(parts, ("month", part, day[:7], name), sums)
    return days, parts


def add(found: Sums, key: Key, sums: Sequence[int]) -> None:
    held = found.get(key)
    found[key] = sums if held is None else list(map(int.__add__, held, sums))


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
            cursor.execute("LOCK TABLE health_attempt, health_freshcalls, health_daytotal, health_parttotal IN SHARE ROW EXCLUSIVE MODE")


def sum_day(day: date, zone: ZoneInfo) -> bool:
    start = datetime.combine(day, time(), zone).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
    with transaction.atomic():
        alone()
        fold()
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
        fold()
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
