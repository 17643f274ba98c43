"""Sweeps: many subjects through the same tasks, and what of their differences is more than chance."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import number
from panels.pages.frame import framed, page
from suite.pages.comparing import VERDICTS
from suite.pages.distilling import offered
from suite.pages.forms import amount, refusal
from suite.pages.launching import names
from suite.pages.registry import board, to_run


@page("runs:read")
def sweeps(request: HttpRequest) -> HttpResponse:
    """Lists sweeps that the one who looks may read."""
    found = door.read(request, "/v1/sweeps", limit=50, page_token=request.GET.get("page_token"))
    return framed(request, "pages/suite/sweeps.html", {"title": "Sweeps", "sweeps": found["data"], "next": found["next"]})


@page("runs:read")
def sweep(request: HttpRequest, sweep: str) -> HttpResponse:
    """Shows a sweep: how its runs go, the board, and each compared with the baseline."""
    found = door.read(request, f"/v1/sweeps/{sweep}")
    subjects = {row["run"]: row["subject"] for row in found["runs"]} | {row["run"]: row["subject"] for one in found["boards"] for row in one["rows"]}
    context: dict[str, Any] = {
        "sweep": found,
        "is_open": found["status"] == "running",
        "boards": [board(one) for one in found["boards"]],
        "pairs": [
            {**one, "first_name": subjects.get(one["first"]), "second_name": subjects.get(one["second"]), "says": VERDICTS[one["verdict"]]}
            for one in found["pairs"]
        ],
    }
    if not context["is_open"] and found["runs"]:
        context["form"] = offered(request, sweep=found["id"])
    return framed(request, "pages/suite/sweep.html", context)


@page("runs:write", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """The form of a sweep; by POST its runs are launched, once however often the button is pressed."""
    said = request.POST if request.method == "POST" else request.GET
    benchmarks = door.read(request, "/v1/registry/benchmarks", limit=200, sort="name")["data"]
    chosen = said.get("benchmark") or (benchmarks[0]["id"] if len(benchmarks) == 1 else "")
    context: dict[str, Any] = {
        "title": "Sweep",
        "benchmarks": benchmarks,
        "said": {**said.dict(), "benchmark": chosen},
        "chosen": said.getlist("models"),
        **to_run(request, chosen),
        "names": names(request),
        "once": said.get("once") or uuid4().hex,
    }
    if request.method != "POST":
        return framed(request, "pages/suite/sweep_new.html", context)
    cost = amount(said.get("cost", ""))
    run = {"cost": cost, "tasks": number(said.get("tasks", ""))}
    body: dict[str, Any] = {
        "benchmark": chosen or None,
        "subset": said.get("subset") or None,
        "models": said.getlist("models"),
        "name": said.get("name", ""),
        "limits": {"run": kept} if (kept := {name: value for name, value in run.items() if value is not None}) else None,
    }
    try:
        made = door.call(
            request, "POST", "/v1/sweeps", {name: value for name, value in body.items() if value is not None}, {"Idempotency-Key": str(context["once"])}
        )
    except Refused as refused:
        if refused.status not in (402, 404, 409, 410, 422):
            raise
        return framed(request, "pages/suite/sweep_new.html", {**context, **refusal(refused), "once": uuid4().hex}, status=refused.status)
    messages.success(request, f"{len(made['runs'])} runs are on their way.")
    return redirect("pages:sweep", made["id"])


urlpatterns = [
    path("suite/sweeps", sweeps, name="sweeps"),
    path("suite/sweeps/new", new, name="sweep_new"),
    path("suite/sweeps/<str:sweep>", sweep, name="sweep"),
]
