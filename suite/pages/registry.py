"""The registry: benchmarks, their subsets, and who stands where on each version by each scorer."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, get_script_prefix, path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.people import is_theirs, may
from suite.pages.runs import shown

FILTERS = ("q", "category", "tag")
PAGE, MOST_OFFERED = 50, 200


@page("registry:read")
def registry(request: HttpRequest) -> HttpResponse:
    """Lists benchmarks that the one who looks may see."""
    asked = {name: said for name in FILTERS if (said := request.GET.get(name, "").strip())}
    found = door.read(request, "/v1/registry/benchmarks", limit=50, page_token=request.GET.get("page_token"), **asked)
    context = {"title": "Benchmarks", "benchmarks": found["data"], "next": found["next"], "asked": asked, "is_filtered": bool(asked)}
    return framed(request, "pages/suite/registry.html", context)


@page("registry:read")
def benchmark(request: HttpRequest, benchmark: str) -> HttpResponse:
    """Shows one benchmark: its subsets page by page, where its tasks come from, its newest runs, what they cover."""
    found, words = door.read(request, f"/v1/registry/benchmarks/{benchmark}"), request.GET.get("q", "").strip()
    subsets = door.read(request, "/v1/registry/subsets", benchmark=found["id"], limit=PAGE, q=words, page_token=request.GET.get("page_token"))
    context = {
        "benchmark": found,
        "subsets": subsets["data"],
        "next": subsets["next"],
        "words": words,
        "is_long": bool(words or subsets["next"] or request.GET.get("page_token")),
        "admission": tried(found["admission"], subsets["data"]),
        "parents": [named(request, parent) for parent in found["parents"]],
        "runs": [shown(run) for run in door.read(request, "/v1/runs", benchmark=found["id"], limit=10, expand="summary")["data"]],
        "may_change": is_theirs(request, found) and may(request, "registry:publish"),
        "range": request.GET.get("range", ""),
        **covering(request, found["id"]),
    }
    return framed(request, "pages/suite/benchmark.html", context)


def tried(admission: dict[str, Any] | None, subsets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How what stands published fared before: a line for each version and scorer, those of the subsets on this page by name."""
    names = {one["id"]: one for one in subsets}
    found = [
        {
            **one,
            "named": names[one["subset"]]["name"],
            "slug": names[one["subset"]]["slug"],
            "failed": [check for check in one["checks"] if check["ok"] is False],
        }
        for one in ((admission or {}).get("checked") or {}).values()
        if one["subset"] in names
    ]
    return sorted(found, key=lambda one: (one["slug"], -one["version"]))


def named(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    """A parent by name, where it may be seen."""
    try:
        return {"id": benchmark, "name": door.read(request, f"/v1/registry/benchmarks/{benchmark}")["name"], "is_there": True}
    except Refused as refused:
        if refused.status != 404:
            raise
        return {"id": benchmark, "name": benchmark, "is_there": False}


def covering(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    """Which runs cover a range of positions, where one is asked for."""
    asked = request.GET.get("range", "").strip()
    if not asked:
        return {}
    try:
        return {"coverage": door.read(request, f"/v1/benchmarks/{benchmark}/coverage", range=asked, subset=request.GET.get("subset"))}
    except Refused as refused:
        if refused.status != 422:
            raise
        return {"coverage_refused": refused.detail}


# ------------------------------------------------------------------ one subset


@page("registry:read")
def subset(request: HttpRequest, benchmark: str, slug: str) -> HttpResponse:
    """Shows one subset: its boards, one for each version, scorer and number of trials, which never mix."""
    parent = door.read(request, f"/v1/registry/benchmarks/{benchmark}")
    found = of_slug(request, parent, slug)
    boards = [board(one) for one in door.read(request, f"/v1/registry/subsets/{found['id']}/leaderboard")["data"]]
    context = {
        "benchmark": parent,
        "subset": found,
        "boards": boards,
        "versions": door.read(request, f"/v1/registry/subsets/{found['id']}/versions", limit=20)["data"],
        "runs": [shown(run) for run in door.read(request, "/v1/runs", subset=found["id"], limit=10, expand="summary")["data"]],
        "may_change": is_theirs(request, parent) and may(request, "registry:publish"),
        "api": f"{get_script_prefix()}v1",
    }
    return framed(request, "pages/suite/subset.html", context)


def of_slug(request: HttpRequest, benchmark: dict[str, Any], slug: str) -> dict[str, Any]:
    """Finds a subset by slug or id; of several with one slug the newest that is not retired. Errors: Refused."""
    there = door.everything(request, "/v1/registry/subsets", benchmark=benchmark["id"], slug=slug)
    if there:
        return dict(max(there, key=lambda one: (one["retired_at"] is None, one["created_at"])))
    try:
        found: dict[str, Any] = door.read(request, f"/v1/registry/subsets/{slug}")
    except (Refused, Resolver404):
        found = {}
    if found.get("benchmark") != benchmark["id"]:
        raise Refused(404, "subset_not_found", f"{benchmark['name']} has no subset {slug[:120]}.")
    return found


def to_run(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    """What a form offers to run of a benchmark. Shape: `subsets` in order; `are_many` where there are more, which are named by hand then."""
    if not benchmark:
        return {"subsets": [], "are_many": False}
    found = door.read(request, "/v1/registry/subsets", benchmark=benchmark, retired="false", limit=MOST_OFFERED)
    return {"subsets": [one for one in found["data"] if one["runnable"]], "are_many": found["next"] is not None}


def board(told: dict[str, Any]) -> dict[str, Any]:
    """A board as the template draws it: with the kinds that any of its rows has, where they are more than one."""
    kinds = list(dict.fromkeys(kind for row in told["rows"] for kind in row["kinds"]))
    rows = [{**row, "by_kind": [row["kinds"].get(kind) for kind in kinds]} for row in told["rows"]]
    return {**told, "rows": rows, "kinds": kinds if len(kinds) > 1 else []}


urlpatterns = [
    path("registry", registry, name="registry"),
    path("registry/<str:benchmark>", benchmark, name="benchmark"),
    path("registry/<str:benchmark>/<str:slug>", subset, name="subset"),
]
