"""Benchmarks, made and changed: their words, their subsets with rows and graders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.grading import every
from suite.pages import rows
from suite.pages.forms import as_json, labels, refusal

LINES = {"content-type": "application/x-ndjson"}
TYPED = (400, 402, 409, 410, 413, 422)
EXAMPLE = '{"task_id": "one", "input": {"question": "What is 2 + 2?"}, "expected": {"value": 4}}'


@page("registry:publish", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """Makes a benchmark, and leads on to its first subset."""
    if request.method != "POST":
        return framed(request, "pages/suite/benchmark_form.html", {"title": "New benchmark", "said": {}})
    try:
        made = door.call(request, "POST", "/v1/benchmarks", words(request))
    except Refused as refused:
        return again(request, refused, "pages/suite/benchmark_form.html", {"title": "New benchmark", "said": request.POST})
    messages.success(request, "It is made. Give it tasks now.")
    return redirect("pages:subset_new", made["id"])


@page("registry:publish", "POST")
def edit(request: HttpRequest, benchmark: str) -> HttpResponse:
    """Changes a benchmark's words, or takes away one that nothing was measured by."""
    found = door.read(request, f"/v1/registry/benchmarks/{benchmark}")
    context = {"title": "Edit the benchmark", "benchmark": found, "said": {**found, "tags": ", ".join(found["tags"])}}
    if request.method != "POST":
        return framed(request, "pages/suite/benchmark_form.html", context)
    try:
        if "delete" in request.POST:
            door.call(request, "DELETE", f"/v1/benchmarks/{benchmark}")
            messages.success(request, f"{found['name']} is gone.")
            return redirect("pages:registry")
        door.call(request, "PATCH", f"/v1/benchmarks/{benchmark}", words(request))
    except Refused as refused:
        return again(request, refused, "pages/suite/benchmark_form.html", {**context, "said": request.POST})
    messages.success(request, "Kept.")
    return redirect("pages:benchmark", benchmark)


def words(request: HttpRequest) -> dict[str, Any]:
    post = request.POST
    return {**{name: post.get(name, "").strip() for name in ("name", "description", "category")}, "tags": labels(post.get("tags", ""))}


def again(request: HttpRequest, refused: Refused, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """Shows a form again with what the API found wrong. Errors: Refused, for what no typing mends."""
    if refused.status not in TYPED:
        raise refused
    return framed(request, template, {**context, **refusal(refused)}, status=refused.status)


# ------------------------------------------------------------------ a subset


@page("registry:publish", "POST")
def subset_new(request: HttpRequest, benchmark: str) -> HttpResponse:
    """Makes a subset out of rows that are pasted or uploaded."""
    parent = door.read(request, f"/v1/registry/benchmarks/{benchmark}")
    context = {"title": "Add a subset", "benchmark": parent, "kinds": tuple(every()), "example": EXAMPLE, "said": {"slug": "all", "by": "kind"}}
    if request.method != "POST":
        return framed(request, "pages/suite/subset_form.html", context)
    try:
        made = subset_made(request, benchmark)
    except Refused as refused:
        return again(request, refused, "pages/suite/subset_form.html", {**context, "said": request.POST})
    messages.success(request, f"{made['name']} has {made['tasks']} tasks.")
    return redirect("pages:subset", benchmark, made["slug"])


def subset_made(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    """Makes it in one request, or, where the rows are too many for that, empty first and then by lines. Errors: Refused."""
    post = request.POST
    new = rows.given(request)
    is_long = len(new) > rows.AT_ONCE
    is_rolling = "rolling" in post
    body = {
        "slug": post.get("slug", "").strip(),
        "name": post.get("name", "").strip(),
        "description": post.get("description", "").strip(),
        "grader": grader_of(post),
        "recipe": {"passes": True} if "passes" in post else {},
        "rolling": is_rolling or is_long,
        "tasks": [] if is_long else new,
    }
    made: dict[str, Any] = door.call(request, "POST", f"/v1/benchmarks/{benchmark}/subsets", json.dumps(body).encode())
    if is_long:
        try:
            made = door.call(request, "POST", f"/v1/subsets/{made['id']}/tasks", rows.lines(new), LINES)
            if not is_rolling:
                made = door.call(request, "PATCH", f"/v1/subsets/{made['id']}", {"rolling": False})
        except Refused:
            door.call(request, "DELETE", f"/v1/subsets/{made['id']}")
            raise
    return made


def grader_of(post: Mapping[str, str]) -> dict[str, Any] | None:
    """The grader that a form describes: one kind, each row's own, or none. Errors: Refused."""
    more = as_json(post.get("options", ""), "options") or {}
    if not isinstance(more, dict):
        raise Refused(422, "invalid_json", 'The options are an object, for example {"tolerance": 0.01}.', "options")
    match post.get("by", "kind"):
        case "code":
            return None
        case "rows":
            return more
        case _:
            return {"kind": post.get("kind", ""), **more}


urlpatterns = [
    path("suite/new", new, name="benchmark_new"),
    path("suite/benchmarks/<str:benchmark>/edit", edit, name="benchmark_edit"),
    path("suite/benchmarks/<str:benchmark>/new", subset_new, name="subset_new"),
]
