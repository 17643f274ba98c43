"""The suite's first page: what goes on, what there is to measure by, what runs by itself, what money is left."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.people import may
from suite.pages.runs import shown

NEWEST, MOST_BENCHMARKS = 8, 12


@page("runs:read")
def suite(request: HttpRequest) -> HttpResponse:
    """Shows the newest runs, benchmarks, the schedule; asked for by htmx the runs alone."""
    runs = [shown(run) for run in door.read(request, "/v1/runs", limit=NEWEST, expand="summary")["data"]]
    context: dict[str, Any] = {"title": "Suite", "runs": runs, "is_going": any(run["is_open"] for run in runs)}
    if request.headers.get("HX-Request") != "true":
        benchmarks = door.read(request, "/v1/registry/benchmarks", limit=MOST_BENCHMARKS, expand=None)["data"]
        context |= {"benchmarks": benchmarks, "schedule": schedule(request), "balance": balance(request), "passes": passes(request, benchmarks)}
    return framed(request, "pages/suite/home.html", context)


def schedule(request: HttpRequest) -> dict[str, Any] | None:
    """The clock's entry for the suite."""
    found: list[dict[str, Any]] = door.read(request, "/bench/schedules")["data"]
    return next((one for one in found if one["name"] == "suite"), None)


def passes(request: HttpRequest, benchmarks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The subsets that onboarding and the schedule run: their recipe says so."""
    whole = [door.read(request, f"/v1/registry/benchmarks/{one['id']}", expand="subsets") for one in benchmarks]
    return [
        {"benchmark": one, "subset": subset}
        for one in whole
        for subset in one["subsets"]
        if subset["recipe"].get("passes") is True and subset["retired_at"] is None and subset["version"]
    ]


def balance(request: HttpRequest) -> dict[str, Any] | None:
    """What the team may still spend, for who may see it."""
    if not may(request, "billing:read"):
        return None
    try:
        found: dict[str, Any] = door.read(request, "/v1/billing/balance")
    except Refused as refused:
        if refused.status not in (404, 501):
            raise
        return None
    return found


urlpatterns = [path("suite", suite, name="suite")]
