"""Runs side by side: who is better, how sure that is, and on which tasks they differ."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.distilling import offered
from suite.pages.runs import MOST_COMPARED, shown

VERDICTS = {"better": "is better than", "worse": "is worse than", "inconclusive": "cannot be told from"}


@page("runs:read")
def compare(request: HttpRequest) -> HttpResponse:
    """Compares the first run named with each other; with one, or none, it offers what to compare."""
    asked = list(dict.fromkeys(name for value in request.GET.getlist("runs") for name in value.split(",") if name))
    found = None
    if len(asked) > 1:
        try:
            found = door.read(request, "/v1/compare", runs=",".join(asked[:MOST_COMPARED]))
        except Refused as refused:
            if refused.status not in (404, 422):
                raise
            messages.error(request, refused.detail)
    context: dict[str, Any] = {"title": "Compare runs", "asked": asked, "most": MOST_COMPARED}
    if found:
        by_id = {run["id"]: {**shown(run), "others": [name for name in asked if name != run["id"]]} for run in found["runs"]}
        context |= {
            "runs": list(by_id.values()),
            "kinds": kinds_of(list(by_id.values())),
            "pairs": [pair(one, by_id) for one in found["pairs"]],
            "flips": found["flips"],
            "form": offered(request, runs=list(by_id)),
        }
    context["choices"] = choices(request, asked)
    return framed(request, "pages/suite/compare.html", context)


def pair(told: dict[str, Any], runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One comparison in words and figures."""
    return {**told, "one": runs[told["first"]], "other": runs[told["second"]], "says": VERDICTS[told["verdict"]]}


def kinds_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each kind of task, with each run's rate; none where all tasks are of one kind."""
    names = list(dict.fromkeys(kind for run in runs for kind in run["kinds"]))
    return [{"kind": kind, "cells": [run["kinds"].get(kind) for run in runs]} for kind in names] if len(names) > 1 else []


def choices(request: HttpRequest, asked: list[str]) -> list[dict[str, Any]]:
    """What could be compared besides: runs of the same subset that have ended."""
    only: dict[str, Any] = {"status": "ok,failed,halted"}
    if asked:
        try:
            only["subset"] = door.read(request, f"/v1/runs/{asked[0]}")["subset_id"]
        except (Refused, KeyError):
            return []
    found = door.read(request, "/v1/runs", limit=50, **only)["data"]
    return [shown(run) for run in found if run["id"] not in asked]


@page("runs:read")
def task(request: HttpRequest) -> HttpResponse:
    """One task as two runs answered it."""
    name, sides = request.GET.get("task_id", ""), []
    for run in request.GET.getlist("runs")[:2]:
        rows = door.read(request, f"/v1/runs/{run}/tasks", task_id=name, limit=1)["data"]
        told = door.read(request, f"/v1/runs/{run}")
        whole = door.read(request, f"/v1/runs/{run}/tasks/{rows[0]['id']}/payload") if rows else None
        sides.append({"run": told, "task": whole})
    return framed(request, "pages/suite/sides.html", {"title": name, "task_id": name, "sides": sides})


urlpatterns = [path("suite/compare", compare, name="compare_runs"), path("suite/compare/task", task, name="compare_task")]
