"""The ledger at large: how many calls and tokens, and what they cost, by day or month and by what somebody asks about; the calls of many panels at once.

Read from the totals that `health.rollups` keeps, so that a million calls cost no more than their days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Max, Min, QuerySet, Sum
from django.db.models.functions import TruncMonth

from access.pages import Page, read_token, sliced
from health.history import rows
from health.lines import Row
from health.models import Attempt, DayTotal, MonthTotal
from health.rollups import MEASURES

# What sums are asked by, and the column.
BY = {
    "model": "model",
    "endpoint": "endpoint",
    "key": "key_name",
    "collection": "collection",
    "purpose": "purpose",
    "judge": "judge",
    "owner": "judge",
    "team": "team",
}
GROUPS = ("month", "day")
# So many days are read at once where sums are by the day.
STRETCH = 31


@dataclass(frozen=True, slots=True)
class Sums:
    """One month or day of one model, key, endpoint …

    Shape: `period` "2026-11" or "2026-11-29"; `calls` are attempts; `cost_pusd` sums the calls whose price is known, None where none is;
    `unpriced` the others. Units: `cost_pusd` trillionths of a US dollar.
    """

    period: str
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


def each(by: str, group: str = "month", since: date | None = None, until: date | None = None) -> Iterator[Sums]:
    """Sums the ledger up, newest period first, then by name; reads on only as far as somebody takes. Days are those of BENCH_TIME_ZONE.

    Shape: from `since` up to, not including, `until`. Errors: KeyError for a `by` that is none of BY.
    """
    column = BY[by]
    if group == "month":
        yield from months(column, since, until)
        return
    ends = DayTotal.objects.aggregate(first=Min("day"), last=Max("day"))
    if ends["first"] is None:
        return
    first = max(ends["first"], since) if since else ends["first"]
    end = min(ends["last"] + timedelta(days=1), until) if until else ends["last"] + timedelta(days=1)
    while end > first:
        start = max(end - timedelta(days=STRETCH), first)
        found = DayTotal.objects.filter(day__gte=start, day__lt=end)
        for row in summed(found, "day", column):
            yield sums_of(f"{row['day']:%Y-%m-%d}", row[column], row)
        end = start


def months(column: str, since: date | None, until: date | None) -> Iterator[Sums]:
    if (since is None or since.day == 1) and (until is None or until.day == 1):
        found = MonthTotal.objects.all()
        if since:
            found = found.filter(month__gte=f"{since:%Y-%m}")
        if until:
            found = found.filter(month__lt=f"{until:%Y-%m}")
        for row in summed(found, "month", column):
            yield sums_of(row["month"], row[column], row)
        return
    days = DayTotal.objects.all()
    if since:
        days = days.filter(day__gte=since)
    if until:
        days = days.filter(day__lt=until)
    for row in summed(days.annotate(of_month=TruncMonth("day")), "of_month", column):
        yield sums_of(f"{row['of_month']:%Y-%m}", row[column], row)


def summed(found: QuerySet[Any], period: str, column: str) -> Iterable[dict[str, Any]]:
    grouped = found.order_by().values(period, column).annotate(**{f"sum_{name}": Sum(name) for name in MEASURES})
    ordered: Iterable[dict[str, Any]] = grouped.filter(sum_calls__gt=0).order_by(f"-{period}", column)
    return ordered


def sums_of(period: str, name: str, row: dict[str, Any]) -> Sums:
    def of(measure: str) -> int:
        return int(row[f"sum_{measure}"])  # PostgreSQL sums bigints as decimals

    return Sums(
        period=period,
        name=name,
        calls=of("calls"),
        failed=of("failed"),
        input_tokens=of("input_tokens"),
        output_tokens=of("output_tokens"),
        cache_read_tokens=of("cache_read_tokens"),
        cache_write_tokens=of("cache_write_tokens"),
        reasoning_tokens=of("reasoning_tokens"),
        estimated=of("estimated"),
        cost_pusd=None if of("unpriced") == of("calls") else of("cost_pusd"),
        unpriced=of("unpriced"),
    )


def page(by: str, group: str, since: date | None, until: date | None, limit: int, page_token: str) -> Page[Sums]:
    """Reads one page of `each`, and no further back than that takes. Errors: CallerError for a token that is not of this list."""
    after: list[str] | None = None
    if page_token:
        after = read_token(page_token, None)
        if group == "day" and after and (day := day_of_key(after[0])) is not None:
            # What lies after it has been shown.
            until = min(until, day + timedelta(days=1)) if until else day + timedelta(days=1)
    found: list[Sums] = []
    for one in each(by, group, since, until):
        if after is None or list(newest_first(one)) > after:
            found.append(one)
        if len(found) > limit and group == "day" and one.period != found[limit].period:
            break
    return sliced(found, newest_first, limit, page_token)


LAST = 99_999_999


def newest_first(one: Sums) -> tuple[str, str]:
    """A key whose rising order has the newest period first."""
    return str(LAST - int(one.period.replace("-", "").ljust(8, "0"))), one.name


def day_of_key(key: str) -> date | None:
    try:
        digits = str(LAST - int(key))
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def attempts_of_panels(panels: Sequence[str]) -> tuple[Row, ...]:
    """The ledger's rows of several panels, first ones first. One query."""
    return rows(Attempt.objects.filter(panel__in=panels))
