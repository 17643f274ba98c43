"""The suite's first page: what goes on, what there is to measure by, what runs by itself, what money is left."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.people import may
from suite.pages.runs import shown

NEWEST, MOST_BENCHMARKS, MOST_PASSES = 8, 12, 50
SAID = {
    True: "Passes are on: models that are onboarded in full are asked it, and all models by the schedule.",
    False: "Passes are off: nothing asks it by itself.",
}


@page("runs:read")
def suite(request: HttpRequest) -> HttpResponse:
    """Shows the newest runs, benchmarks, the schedule; asked for by htmx the runs alone."""
    runs = [shown(run) for run in door.read(request, "/v1/runs", limit=NEWEST, expand="summary")["data"]]
    context: dict[str, Any] = {"title": "Suite", "runs": runs, "is_going": any(run["is_open"] for run in runs)}
    if request.headers.get("HX-Request") != "true":
        benchmarks = door.read(request, "/v1/registry/benchmarks", limit=MOST_BENCHMARKS, expand=None)["data"]
        offered = packs(request)
        context |= {
            "packs": offered,
            "is_by_setting": any(one["passes_by"] == "setting" for one in offered),
            "benchmarks": benchmarks,
            "schedule": schedule(request),
            "balance": balance(request),
            "passes": passes(request),
        }
    return framed(request, "pages/suite/home.html", context)


def schedule(request: HttpRequest) -> dict[str, Any] | None:
    """The clock's entry for the suite."""
    found: list[dict[str, Any]] = door.read(request, "/bench/schedules")["data"]
    return next((one for one in found if one["name"] == "suite"), None)


def passes(request: HttpRequest) -> list[dict[str, Any]]:
    """The subsets that onboarding and the schedule run: their recipe says so."""
    subsets = door.read(request, "/v1/registry/subsets", passes="true", retired="false", limit=MOST_PASSES)["data"]
    names: dict[str, str] = {}
    for benchmark in dict.fromkeys(one["benchmark"] for one in subsets):
        names[benchmark] = door.read(request, f"/v1/registry/benchmarks/{benchmark}")["name"]
    return [{"benchmark": {"id": one["benchmark"], "name": names[one["benchmark"]]}, "subset": one} for one in subsets if one["version"]]


def packs(request: HttpRequest) -> list[dict[str, Any]]:
    """The packs that come with the server, for who may load them; for all others those that are here."""
    found = [
        {**one, "tasks": sum(told["rows"] for told in one["files"]), "by_slug": {row["slug"]: row for row in one["subsets"]}}
        for one in door.read(request, "/v1/packs")["data"]
    ]
    return [
        {**one, "files": [{**told, "here": one["by_slug"].get(told["slug"])} for told in one["files"]]}
        for one in found
        if one["subsets"] or may(request, "registry:publish")
    ]


@page("registry:publish", "POST")
def load(request: HttpRequest, pack: str) -> HttpResponse:
    """Loads a pack, or says whether passes run one that is loaded."""
    if request.method == "POST":
        asked = request.POST.get("passes", "")
        try:
            made = door.call(request, "POST", f"/v1/packs/{pack}/load", {"passes": asked == "on"} if asked else {})
        except Refused as refused:
            if refused.status not in (409, 422):
                raise
            messages.error(request, refused.detail)
        else:
            messages.success(request, f"{'The pack is loaded. ' if 'load' in request.POST else ''}{SAID[made['passes']]}")
    return redirect("pages:suite")


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


urlpatterns = [path("suite", suite, name="suite"), path("suite/packs/<str:pack>", load, name="pack_load")]
