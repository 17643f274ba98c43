"""One subset, changed by whoever owns it: rows added, or mended with a note; how it is run; a scorer of its own; its end."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import number, texts
from panels.pages.frame import framed, page
from suite.pages import rows
from suite.pages.authoring import LINES, again
from suite.pages.forms import amount, as_json, uploaded

MOST_CODE = 2 * 1024 * 1024
CODE = """from bench_task import BenchTask


class Task(BenchTask):
    def extract(self, path, index):
        ...

    def solve(self, index, input):
        ...

    def score(self, index, output, expected):
        return 1.0 if output == expected else 0.0
"""


@page("registry:publish", "POST")
def edit(request: HttpRequest, benchmark: str, subset: str) -> HttpResponse:
    """The forms; by POST one of them is taken."""
    found = door.read(request, f"/v1/registry/subsets/{subset}")
    recipe = door.read(request, f"/v1/build/subsets/{subset}/recipe")
    context = {
        "title": f"Edit {found['name']}",
        "subset": found,
        "benchmark": benchmark,
        "recipe": recipe,
        "grader": recipe["config"]["grader"],
        "config": {name: value for name, value in recipe["config"].items() if name != "grader"},
        "code": CODE,
    }
    if request.method != "POST":
        return framed(request, "pages/suite/subset_edit.html", context)
    try:
        return done(request, benchmark, found)
    except Refused as refused:
        return again(request, refused, "pages/suite/subset_edit.html", {**context, "typed": request.POST, "do": request.POST.get("do")})


def done(request: HttpRequest, benchmark: str, subset: dict[str, Any]) -> HttpResponse:
    """Does what one of the forms asks for. Errors: Refused."""
    post, name = request.POST, subset["id"]
    match post.get("do", ""):
        case "words":
            door.call(request, "PATCH", f"/v1/subsets/{name}", {"name": post.get("name", ""), "description": post.get("description", "")})
            told = "Kept."
        case "append":
            made = door.call(request, "POST", f"/v1/subsets/{name}/tasks", rows.lines(rows.given(request)), LINES)
            told = f"{made['added']} new rows; {made['unchanged']} were there already. It is version {made['version']} now."
        case "freeze":
            door.call(request, "PATCH", f"/v1/subsets/{name}", {"rolling": False})
            told = "It is frozen for good."
        case "recipe":
            body = {"config": config_of(request), "note": post.get("note", "")}
            changed = door.call(request, "PATCH", f"/v1/build/subsets/{name}/recipe", body, {"If-Match": f'"{post.get("etag", "")}"'})["changed"]
            told = f"Changed: {', '.join(changed)}. The next run is scored so; what has run keeps its own." if changed else "Nothing was changed."
        case "mend":
            body = {"upsert": rows.given(request), "remove": texts(post.get("remove", "")), "note": post.get("note", "")}
            made = door.call(request, "PATCH", f"/v1/build/subsets/{name}/samples", json.dumps(body).encode())
            count = made["counts"]
            told = f"{count['changed']} changed, {count['added']} added, {count['removed']} removed. The old subset is retired; this one has taken its place."
        case "scorer":
            code = uploaded(request, "file", MOST_CODE) or post.get("code", "").replace("\r\n", "\n")
            made = door.call(request, "POST", "/v1/impls", json.dumps({"subset": name, "code": code, "label": post.get("label", "")}).encode())
            messages.success(request, "The scorer is kept. Try it on some rows before it is run.")
            return redirect("pages:impl", made["id"])
        case "delete":
            door.call(request, "DELETE", f"/v1/subsets/{name}")
            messages.success(request, f"{subset['name']} is gone.")
            return redirect("pages:benchmark", benchmark)
        case _:
            raise Refused(400, "invalid_request", "This page has no such button.")
    messages.success(request, told)
    return redirect("pages:subset", benchmark, subset["slug"])


def config_of(request: HttpRequest) -> dict[str, Any]:
    """The recipe as a form has it; what was emptied is taken away."""
    post = request.POST
    return {
        "trials": number(post.get("trials", "")),
        "run_timeout": amount(post.get("run_timeout", "")),
        "passes": True if "passes" in post else None,
        "impl": post.get("impl", "").strip() or None,
        "grader": as_json(post.get("grader", ""), "grader"),
    }


# ------------------------------------------------------------------ a scorer


@page("registry:read", "POST")
def impl(request: HttpRequest, impl: str) -> HttpResponse:
    """Shows a scorer with its code and its runs; by POST it is tried without any model."""
    found = door.read(request, f"/v1/impls/{impl}")
    context = {"impl": found, "code": code_of(request, found), "runs": door.read(request, f"/v1/impls/{impl}/runs", limit=10)["data"]}
    if request.method == "POST":
        try:
            context["tried"] = door.call(request, "POST", f"/v1/impls/{impl}/dry-run", {})
        except Refused as refused:
            return again(request, refused, "pages/suite/impl.html", context)
    return framed(request, "pages/suite/impl.html", context)


def code_of(request: HttpRequest, impl: dict[str, Any]) -> str:
    if impl["language"] == "builtin":
        return ""
    try:
        return str(door.read(request, f"/v1/impls/{impl['id']}/code"))
    except Refused as refused:
        if refused.status != 404:
            raise
        return ""


urlpatterns = [
    path("suite/benchmarks/<str:benchmark>/subsets/<str:subset>", edit, name="subset_edit"),
    path("suite/impls/<str:impl>", impl, name="impl"),
]
