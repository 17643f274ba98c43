"""Runs, newest first: how each stands, how it did, and several chosen to be compared."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.frame import framed, page

STATUSES = ("queued", "running", "halting", "ok", "failed", "halted")
OPEN = ("queued", "running", "halting")
SOURCES = ("manual", "ci", "onboarding", "scheduled")
FILTERS = ("status", "subject", "benchmark", "subset", "source", "tag", "owner", "sweep", "derived_from")
MOST_COMPARED = 20


def shown(run: dict[str, Any]) -> dict[str, Any]:
    """A run as lists draw it."""
    progress = run["progress"]
    return {
        **run,
        "is_open": run["status"] in OPEN,
        "percent": 100 * progress["done"] / progress["total"] if progress["total"] else 0,
        "cost_usd": run["cost"]["metered_usd"],
    }


@page("runs:read")
def runs(request: HttpRequest) -> HttpResponse:
    """Lists runs that the one who looks may read."""
    asked = {name: said for name in FILTERS if (said := request.GET.get(name, "").strip())}
    found = door.read(request, "/v1/runs", limit=25, expand="summary", page_token=request.GET.get("page_token"), **asked)
    context = {
        "title": "Runs",
        "runs": [shown(run) for run in found["data"]],
        "next": found["next"],
        "asked": asked,
        "is_filtered": bool(asked),
        "statuses": STATUSES,
        "sources": SOURCES,
        "most": MOST_COMPARED,
    }
    return framed(request, "pages/suite/runs.html", context)


urlpatterns = [path("runs", runs, name="runs")]
