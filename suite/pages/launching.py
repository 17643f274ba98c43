"""Launching: what is asked of whom, within which limits; looked at with its price and its prompts first, launched then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import number, texts
from panels.pages.frame import framed, page
from suite.pages.forms import amount, labels, refusal
from suite.pages.registry import to_run

FIELDS = (
    "benchmark",
    "subset",
    "impl",
    "sut",
    "from_run",
    "only",
    "task_ids",
    "cost",
    "tasks",
    "minutes",
    "attempts",
    "trials",
    "tags",
    "temperature",
    "max_tokens",
)
MODES = ("", ":merged", ":route")
MOST_NAMES = 500
# What the API calls each field of this form.
NAMES = {
    "limits_run_cost": "cost",
    "limits_run_tasks": "tasks",
    "limits_run_duration": "minutes",
    "limits_task_attempts": "attempts",
    "replay_task_ids": "task_ids",
}


@page("runs:write", "POST")
def launch(request: HttpRequest) -> HttpResponse:
    """The form; with ?look= what it would come to; by POST the run is made."""
    if request.method == "POST":
        return launched(request)
    said = {name: request.GET.get(name, "").strip() for name in FIELDS}
    context = {**form(request, said)}
    if "look" in request.GET:
        try:
            context |= {"preview": door.call(request, "POST", "/v1/runs:preview", body_of(said)), "once": uuid4().hex}
        except Refused as refused:
            if refused.status not in (404, 409, 410, 422):
                raise
            return framed(request, "pages/suite/launch.html", {**context, **refusal(refused, **NAMES)}, status=refused.status)
    return framed(request, "pages/suite/launch.html", context)


def launched(request: HttpRequest) -> HttpResponse:
    """Makes the run, once however often the button is pressed."""
    said = {name: request.POST.get(name, "").strip() for name in FIELDS}
    try:
        run = door.call(request, "POST", "/v1/runs", body_of(said), {"Idempotency-Key": request.POST.get("once") or uuid4().hex})
    except Refused as refused:
        if refused.status not in (402, 404, 409, 410, 422):
            raise
        return framed(request, "pages/suite/launch.html", {**form(request, said), **refusal(refused, **NAMES)}, status=refused.status)
    messages.success(request, "The run is on its way. You may close the page; it goes on.")
    return redirect("pages:run", run["id"])


def form(request: HttpRequest, said: Mapping[str, str]) -> dict[str, Any]:
    """What the form offers."""
    parent = door.read(request, f"/v1/runs/{said['from_run']}") if said["from_run"] else None
    benchmarks = [] if parent else door.read(request, "/v1/registry/benchmarks", limit=200, sort="name")["data"]
    chosen = said["benchmark"] or (benchmarks[0]["id"] if len(benchmarks) == 1 else "")
    return {
        "title": "Run again" if parent else "Launch a run",
        "said": {**said, "benchmark": chosen},
        "fields": FIELDS,
        "parent": parent,
        "benchmarks": benchmarks,
        **to_run(request, "" if parent else chosen),
        "names": names(request),
    }


def names(request: HttpRequest) -> list[str]:
    """Whom a run can test: models that are not retired, and collections in each mode."""
    models = [one["alias"] for one in door.everything(request, "/bench/models", MOST_NAMES) if one["status"] != "retired"]
    collections = [f"bench/{one['name']}{mode}" for one in door.everything(request, "/bench/collections", MOST_NAMES) for mode in MODES]
    return [*models, *collections]


def body_of(said: Mapping[str, str]) -> dict[str, Any]:
    """Writes a launch as the API takes it; what was left empty is not in it."""
    params = {"temperature": amount(said["temperature"]), "max_tokens": number(said["max_tokens"])}
    sut: dict[str, Any] = {"model": said["sut"] or None, "params": {name: value for name, value in params.items() if value is not None}}
    minutes = amount(said["minutes"])
    run = {"cost": amount(said["cost"]), "tasks": number(said["tasks"]), "duration": minutes * 60 if isinstance(minutes, float) else minutes}
    limits = {
        "run": {name: value for name, value in run.items() if value is not None},
        "task": {} if not said["attempts"] else {"attempts": number(said["attempts"])},
    }
    found: dict[str, Any] = {
        "limits": {level: each for level, each in limits.items() if each} or None,
        "trials": number(said["trials"]),
        "tags": labels(said["tags"]) or None,
        "sut": {name: value for name, value in sut.items() if value} if sut["model"] else None,
    }
    if said["from_run"]:
        found["replay"] = {"from_run": said["from_run"]}
        if said["only"] == "failed":
            found["replay"]["only_failed"] = True
        elif said["only"] == "ids":
            found["replay"]["task_ids"] = texts(said["task_ids"])
    else:
        found |= {"benchmark": said["benchmark"] or None, "subset": said["subset"] or None, "impl": said["impl"] or None}
    return {name: value for name, value in found.items() if value is not None}


urlpatterns = [path("suite/launch", launch, name="launch")]
