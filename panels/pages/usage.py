"""Usage: what was spent, on what and when, and the calls themselves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.clock import today
from panels.pages.frame import framed, page
from panels.pages.sheets import sheet

BY = (
    ("model", "Model"),
    ("endpoint", "Connection"),
    ("collection", "Collection"),
    ("key", "Key"),
    ("owner", "Owner"),
    ("team", "Team"),
    ("purpose", "Purpose"),
)
# What a sum without a name is of.
NAMELESS = {"collection": "no collection", "key": "without a key", "owner": "nobody", "team": "no team"}
STATUSES = ("failed", "ok", "partial", "truncated", "error", "timeout", "rate_limited", "no_credit", "refused", "cancelled", "lost")
PURPOSES = ("panel", "merged", "route", "direct", "shadow", "probe", "onboard", "compare", "suite")
COUNTS = ("calls", "failed", "input_tokens", "output_tokens", "cache_read_tokens", "estimated_calls", "unpriced_calls")
# Of these there is a page with the whole panel.
OF_PANELS = ("panel", "merged", "route", "direct", "shadow", "compare")
TOP = 5
MOST_MONTHS = 36
ALL = "all"
MOST_NAMES = 500
FILTERS = ("model", "status", "endpoint", "key_name", "collection", "purpose", "judge", "panel", "from", "to")


@page("read")
def usage(request: HttpRequest) -> HttpResponse:
    """Shows a month's spend day by day and by what is asked about, or all months."""
    by = next((value for value, _ in BY if value == request.GET.get("by")), "model")
    months = door.read(request, "/bench/usage", by="purpose", limit=MOST_NAMES)["data"]
    there = sorted({row["month"] for row in months} | {f"{today():%Y-%m}"}, reverse=True)
    month = request.GET.get("month", "")
    month = month if month in {*there, ALL} else there[0]
    is_all = month == ALL
    only = {} if is_all else {"month": month}
    series = door.read(request, "/bench/usage", by=by, group="month" if is_all else "day", top=TOP, **only)["data"]
    names = door.read(request, "/bench/usage", by=by, limit=MOST_NAMES, **only)
    rows = summed(names["data"], by)
    total = add(rows)
    periods = months_of(there[-1]) if is_all else days_of(month)
    context = {
        "title": "Usage",
        "tab": "usage",
        "by": by,
        "bys": BY,
        "of": dict(BY)[by],
        "month": month,
        "months": there,
        "is_all": is_all,
        "rows": rows,
        "is_cut": names["next"] is not None,
        "total": total,
        "spend": charted(series, by, periods, "cost_usd"),
        "calls": counted(series, periods),
        "past_columns": ["Month", "Spend"],
        "past": [[one, spend_of(months, one)] for one in months_of(there[-1])],
        "sheet": sheet("usage", by=by, **only),
    }
    return framed(request, "pages/usage.html", context)


def summed(rows: Iterable[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    """One row a name, over all periods, what cost most first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[by], []).append(row)
    sums = [{"name": name, "title": name or NAMELESS.get(by, "without one"), **add(of)} for name, of in found.items()]
    return sorted(sums, key=lambda one: (-(one["cost"] or Decimal(0)), -one["calls"], one["name"]))


def add(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    rows = list(rows)
    costs = [Decimal(row["cost_usd"]) for row in rows if row.get("cost_usd") is not None]
    sums: dict[str, Any] = {name: sum(row[name] for row in rows) for name in COUNTS}
    cost = sum(costs, Decimal(0)) if costs else None
    return {
        **sums,
        "cost": cost,
        "cost_usd": None if cost is None else str(cost),
        "tokens": sums["input_tokens"] + sums["output_tokens"],
        "failed_share": sums["failed"] / sums["calls"] if sums["calls"] else None,
        "cached_share": sums["cache_read_tokens"] / sums["input_tokens"] if sums["input_tokens"] else None,
    }


# ------------------------------------------------------------------ charts


def days_of(month: str) -> list[str]:
    """A month's days up to today."""
    first = date.fromisoformat(f"{month}-01")
    end = min((first + timedelta(days=32)).replace(day=1), today() + timedelta(days=1))
    return [f"{first + timedelta(days=n)}" for n in range(max(1, (end - first).days))]


def months_of(first: str) -> list[str]:
    """Every month from the first to this one, those without calls too; the newest three dozen."""
    year, month = map(int, first.split("-"))
    now = today()
    count = max(1, (now.year - year) * 12 + now.month - month + 1)
    return [f"{year + (month - 1 + n) // 12}-{(month - 1 + n) % 12 + 1:02}" for n in range(count)][-MOST_MONTHS:]


def period_of(row: dict[str, Any]) -> str:
    return str(row.get("day") or row["month"])


def charted(series: list[dict[str, Any]], by: str, periods: list[str], what: str) -> dict[str, Any]:
    """A chart's table: a column for each of the dearest and one for all others. A day without calls cost nothing."""
    names = list(dict.fromkeys(row[by] for row in series if row[by] is not None))
    has_others = any(row[by] is None for row in series)
    cells = {(period_of(row), row[by]): row[what] for row in series}
    columns = [*names, *([None] if has_others else [])]
    return {
        "columns": ["Day" if len(periods[0]) > 7 else "Month", *((name or NAMELESS.get(by, "none")) if name is not None else "all others" for name in columns)],
        "rows": [[period, *(cells.get((period, name), "0") for name in columns)] for period in periods] if columns else [],
    }


def counted(series: list[dict[str, Any]], periods: list[str]) -> dict[str, Any]:
    good, bad = dict.fromkeys(periods, 0), dict.fromkeys(periods, 0)
    for row in series:
        period = period_of(row)
        good[period] = good.get(period, 0) + row["calls"] - row["failed"]
        bad[period] = bad.get(period, 0) + row["failed"]
    return {
        "columns": ["Day" if len(periods[0]) > 7 else "Month", "went well", "failed"],
        "rows": [[one, good[one], bad[one]] for one in periods] if series else [],
    }


def spend_of(months: list[dict[str, Any]], month: str) -> str:
    return str(sum((Decimal(row["cost_usd"] or 0) for row in months if row["month"] == month), Decimal(0)))


# ------------------------------------------------------------------ calls


@page("read")
def calls(request: HttpRequest) -> HttpResponse:
    """Lists upstream calls, newest first."""
    asked = {name: said for name in FILTERS if (said := request.GET.get(name, "").strip())}
    found = door.read(request, "/bench/calls", page_token=request.GET.get("page_token"), **asked)
    for call in found["data"]:
        call["has_panel"] = call["purpose"] in OF_PANELS
    context = {
        "title": "Usage",
        "tab": "calls",
        "calls": found["data"],
        "next": found["next"],
        "searched": found.get("searched"),
        "asked": asked | {"since": asked.get("from", ""), "until": asked.get("to", "")},
        "is_narrow": bool(asked),
        "statuses": STATUSES,
        "purposes": PURPOSES,
        "endpoints": [one["name"] for one in door.everything(request, "/bench/endpoints", most=500)],
        "sheet": sheet("calls", **asked),
    }
    return framed(request, "pages/usage/calls.html", context)


urlpatterns = [path("usage", usage, name="usage"), path("usage/calls", calls, name="calls")]
