"""The ledger at large: how many calls and tokens, and what they cost, by day or month and by what somebody asks about; the calls of many panels at once.

Read from the totals that `health.rollups` keeps, so that a million calls cost no more than their days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Min, QuerySet, Sum
from django.db.models.functions import Substr

from access.pages import Page, read_token, sliced
from health import rollups
from health.history import rows
from health.lines import Row
from health.models import Attempt, PartTotal
from health.rollups import MEASURES

# What sums are asked by, and the part of the totals.
BY = {
    "model": "model",
    "endpoint": "endpoint",
    "key": "key",
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

    Shape: `period` "2026-11" or "2026-11-29"; `name` None where it sums all others; `calls` are attempts; `cost_pusd` sums the calls whose price
    is known, None where none is; `unpriced` the others. Units: `cost_pusd` trillionths of a US dollar; `latency_ms` of all calls together.
    """

    period: str
    name: str | None
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
    latency_ms: int


def each(by: str, group: str = "month", since: date | None = None, until: date | None = None) -> Iterator[Sums]:
    """Sums the ledger up, newest period first, then by name; reads on only as far as somebody takes. Days are those of BENCH_TIME_ZONE.

    Shape: from `since` up to, not including, `until`. Errors: KeyError for a `by` that is none of BY.
    """
    rollups.fold()
    rows = PartTotal.objects.filter(part=BY[by], calls__gt=0)
    if group == "month" and (since is None or since.day == 1) and (until is None or until.day == 1):
        months = within(rows.filter(grain="month"), f"{since:%Y-%m}" if since else "", f"{until:%Y-%m}" if until else "")
        for row in months.order_by("-period", "name").values("period", "name", *MEASURES).iterator():
            yield sums_of(row)
        return
    days = within(rows.filter(grain="day"), f"{since}" if since else "", f"{until}" if until else "")
    if group == "month":
        grouped = days.order_by().annotate(of=Substr("period", 1, 7)).values("of", "name").annotate(**{f"of_{name}": Sum(name) for name in MEASURES})
        for row in grouped.order_by("-of", "name"):
            yield sums_of({name.removeprefix("of_"): value for name, value in row.items()} | {"period": row["of"]})
        return
    ends = days.aggregate(first=Min("period"), last=Max("period"))
    if ends["first"] is None:
        return
    first, end = date.fromisoformat(ends["first"]), date.fromisoformat(ends["last"]) + timedelta(days=1)
    while end > first:
        start = max(end - timedelta(days=STRETCH), first)
        for row in within(days, f"{start}", f"{end}").order_by("-period", "name").values("period", "name", *MEASURES):
            yield sums_of(row)
        end = start


def within(rows: QuerySet[PartTotal], since: str, until: str) -> QuerySet[PartTotal]:
    if since:
        rows = rows.filter(period__gte=since)
    return rows.filter(period__lt=until) if until else rows


def sums_of(row: Mapping[str, Any]) -> Sums:
    def of(measure: str) -> int:
        return int(row[measure])  # PostgreSQL sums bigints as decimals

    return Sums(
        period=row["period"],
        name=row["name"],
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
        latency_ms=of("latency_ms"),
    )


def days_of(by: str, name: str, days: Sequence[date]) -> list[Sums]:
    """Sums some days of one model, key, endpoint … One query, and by its index one row a day."""
    rollups.fold()
    rows = PartTotal.objects.filter(grain="day", part=BY[by], period__in=[f"{day}" for day in days], name=name, calls__gt=0)
    return [sums_of(row) for row in rows.values("period", "name", *MEASURES)]


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


def top(by: str, group: str, since: date | None, until: date | None, most: int) -> list[Sums]:
    """Sums up the names that cost most (of equal cost: were called most), a row for each and period, and all others as one. Oldest period first.

    Errors: KeyError for a `by` that is none of BY.
    """
    is_whole = group == "month" and (since is None or since.day == 1) and (until is None or until.day == 1)
    digits = 7 if is_whole else 10
    rows = PartTotal.objects.filter(part=BY[by], calls__gt=0, grain="month" if is_whole else "day").order_by()
    rows = within(rows, f"{since or ''}"[:digits], f"{until or ''}"[:digits])
    biggest = rows.values("name").annotate(cost=Sum("cost_pusd"), number=Sum("calls")).order_by("-cost", "-number", "name")
    names = [row["name"] for row in biggest[:most]]
    rows = rows.annotate(of=Substr("period", 1, 7 if group == "month" else 10))
    found = []
    for grouped in (rows.filter(name__in=names).values("of", "name"), rows.exclude(name__in=names).values("of")):
        for row in grouped.annotate(**{f"of_{name}": Sum(name) for name in MEASURES}):
            sums = {name.removeprefix("of_"): value for name, value in row.items()}
            found.append(sums_of({**sums, "period": row["of"], "name": row.get("name")}))
    return sorted(found, key=lambda one: (one.period, most if one.name is None else names.index(one.name)))


LAST = 99_999_999


def newest_first(one: Sums) -> tuple[str, str]:
    """A key whose rising order has the newest period first."""
    return str(LAST - int(one.period.replace("-", "").ljust(8, "0"))), one.name or ""


def day_of_key(key: str) -> date | None:
    try:
        digits = str(LAST - int(key))
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def attempts_of_panels(panels: Sequence[str]) -> tuple[Row, ...]:
    """The ledger's rows of several panels, first ones first. One query."""
    return rows(Attempt.objects.filter(panel__in=panels))


def costs_of_panels(panels: Sequence[str]) -> dict[str, int | None]:
    """Adds up what panels cost, without what was done with their answers later; None where a call's price is unknown. One query.

    Units: trillionths of a US dollar.
    """
    rows = Attempt.objects.filter(panel__in=panels, purpose__in=("panel", "merged")).order_by().values_list("panel")
    found = rows.annotate(cost=Sum("cost_pusd"), calls=Count("pk"), priced=Count("cost_pusd"))
    return {panel: cost if calls == priced else None for panel, cost, calls, priced in found}


def costs_of_requests(requests: Sequence[str], purpose: str, since: datetime, until: datetime) -> dict[str, int]:
    """Sums what calls for one purpose cost, by the request that they stand under, in a span of time that holds them. One query.

    Units: trillionths of a US dollar; calls of unknown price count as nothing.
    """
    rows = Attempt.objects.filter(request__in=requests, purpose=purpose, started_at__gte=since, started_at__lte=until)
    found = rows.order_by().values("request").annotate(cost=Sum("cost_pusd")).values_list("request", "cost")
    return {request: int(cost or 0) for request, cost in found}
