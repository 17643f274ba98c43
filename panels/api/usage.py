"""Usage: the ledger's sums by month or day, and the ledger itself, as JSON or as a sheet. No prompt stands in either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from access.pages import LIMIT_MAX
from access.sheets import Money, Sheet
from health import call_sheet, history, sums
from health.costs import usd_text
from health.lines import Row
from panels.api import shapes, sheets, usage_shapes
from panels.api.view import View, listed
from wire.errors import CallerError

MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
DAY = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
MOST_TOP = 20
COUNTS = ("calls", "failed", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Usage(View):
    scopes = {"GET": ("read",)}

    @shapes.described(
        operation_id="list_usage",
        parameters=[
            *shapes.PAGE,
            usage_shapes.BY,
            usage_shapes.GROUP,
            usage_shapes.MONTH,
            usage_shapes.FROM,
            usage_shapes.TO,
            usage_shapes.TOP,
            usage_shapes.FORMAT,
        ],
        responses=shapes.page_of(usage_shapes.UsageRow),
    )
    def get(self, request: Request) -> Any:
        """Sums calls, tokens and costs by month (or day) and model (or key, endpoint, collection, purpose, judge, team), newest first."""
        by = one_of(request, "by", tuple(sums.BY), "model")
        group = one_of(request, "group", sums.GROUPS, "month")
        since, until = stretch(request)
        if sheets.is_wanted(request):
            columns = (group, by, *COUNTS, "estimated_calls", "cost_usd", "unpriced_calls")
            return Sheet(f"usage-by-{by}", columns, (as_cells(row) for row in sums.each(by, group, since, until)))
        if most := top_of(request):
            return Response({"data": [as_json(row, by, group) for row in sums.top(by, group, since, until, most)], "next": None})
        page = sums.page(by, group, since, until, *self.page_wanted())
        return listed(page.mapped(lambda row: as_json(row, by, group)))


def as_json(row: sums.Sums, by: str, group: str) -> dict[str, Any]:
    return {
        group: row.period,
        by: row.name,
        **{name: getattr(row, name) for name in COUNTS},
        "estimated_calls": row.estimated,
        "cost_usd": usd_text(row.cost_pusd),
        "unpriced_calls": row.unpriced,
    }


def as_cells(row: sums.Sums) -> Sequence[Any]:
    return (row.period, row.name, *(getattr(row, name) for name in COUNTS), row.estimated, Money(usd_text(row.cost_pusd)), row.unpriced)


class Calls(View):
    scopes = {"GET": ("read",)}

    @shapes.described(
        operation_id="list_calls",
        parameters=[*shapes.PAGE, usage_shapes.FROM, usage_shapes.TO, *usage_shapes.CALLS, usage_shapes.FORMAT],
        responses=shapes.page_of(usage_shapes.Call),
    )
    def get(self, request: Request) -> Any:
        """Lists the ledger, newest first: one row an upstream call, with who asked, tokens, cost and how it went. No texts."""
        since, until = (None if day is None else midnight(day) for day in stretch(request))
        of = {name: said for name in (*history.FOUND, *history.LOOKED_FOR) if (said := request.query_params.get(name, ""))}
        if any("\0" in said for said in of.values()):
            return Response({"data": [], "next": None})
        if sheets.is_wanted(request):
            return call_sheet.sheet(every_call(since, until, of))
        horizon = history.horizon(since, until, of)
        found = listed(history.calls(*self.page_wanted(), horizon or since, until, of).mapped(call_sheet.as_fields))
        if horizon is not None and isinstance(found.data, dict):
            found.data["searched"] = history.MOST_LOOKED_AT
        return found


def every_call(since: datetime | None, until: datetime | None, of: dict[str, str]) -> Iterator[Row]:
    """All of them, a page at a time: no query lasts as long as a slow reader does. A sheet looks at all there is, however long that takes."""
    page_token: str | None = ""
    while page_token is not None:
        page = history.calls(LIMIT_MAX, page_token, since, until, of)
        yield from page.data
        page_token = page.next


# ------------------------------------------------------------------ what is asked for


def one_of(request: Request, name: str, there: Sequence[str], usual: str) -> str:
    """Reads a parameter that has few values. Errors: CallerError."""
    said = str(request.query_params.get(name, "")) or usual
    if said not in there:
        raise CallerError("invalid_request", f"{name} must be one of {', '.join(there)}.", field=name)
    return said


def top_of(request: Request) -> int:
    """Reads ?top=, 0 without it. Errors: CallerError."""
    said = str(request.query_params.get("top", "")) or "0"
    if not (said.isascii() and said.isdigit() and len(said) <= 3 and int(said) <= MOST_TOP):
        raise CallerError("invalid_request", f"top must be a whole number from 1 to {MOST_TOP}.", field="top")
    return int(said)


def stretch(request: Request) -> tuple[date | None, date | None]:
    """Reads ?month=, or ?from= and ?to=. Shape: the first day, and the one after the last. Errors: CallerError."""
    month, first, last = (request.query_params.get(name, "") for name in ("month", "from", "to"))
    if month:
        if first or last:
            raise CallerError("invalid_request", "month and from or to say the same thing: send one of them.", field="month")
        found = MONTH.fullmatch(month)
        if found is None:
            raise CallerError("invalid_request", "month must be written like 2026-11.", field="month")
        start = date(int(found[1]), int(found[2]), 1)
        return start, (start + timedelta(days=32)).replace(day=1)
    since = day_of(first, "from")
    until = day_of(last, "to")
    if since and until and until < since:
        raise CallerError("invalid_request", "to must not lie before from.", field="to")
    return since, until + timedelta(days=1) if until else None


def day_of(text: str, field: str) -> date | None:
    if not text:
        return None
    try:
        if DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise CallerError("invalid_request", f"{field} must be a day like 2026-11-29.", field=field)


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(settings.BENCH_TIME_ZONE))
