"""Models side by side: facts, price, speed and record in one table, and how they did over the last days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from panels.pages.model import draw
from panels.pages.models import MOST_COMPARED, shown

DAYS = 30


@page("read")
def compare(request: HttpRequest) -> HttpResponse:
    """Lays models side by side, `?models=` each. A model whose alias is `compare` has its own page here while none are named."""
    asked = list(dict.fromkeys(name for name in request.GET.getlist("models") if name))
    if not asked and "models" not in request.GET:
        try:
            return draw(request, "compare")
        except Refused as refused:
            if refused.status != 404:
                raise
    found = []
    for alias in asked[:MOST_COMPARED]:
        try:
            found.append(shown(door.read(request, f"/bench/models/{alias}")))
        except Refused as refused:
            if refused.status != 404:
                raise
            messages.warning(request, f"There is no model {alias}.")
    if len(asked) > MOST_COMPARED:
        messages.warning(request, f"At most {MOST_COMPARED} models stand side by side; the first ones do.")
    aliases = [model["alias"] for model in found]
    context = {
        "models": [{**model, "others": [alias for alias in aliases if alias != model["alias"]]} for model in found],
        "aliases": aliases,
        "groups": groups(found),
        "charts": charts(request, aliases) if len(found) > 1 else [],
        "days": DAYS,
        "most": MOST_COMPARED,
    }
    return framed(request, "pages/compare.html", context)


# ------------------------------------------------------------------ the table


def row(title: str, kind: str, cells: Sequence[Any], best: Callable[[list[float]], float] | None = None) -> dict[str, Any]:
    """One line. Shape: `kind` says how the template writes a cell; of at least two known numbers the best one is marked."""
    numbers = [float(cell) for cell in cells if cell is not None] if best else []
    top = best(numbers) if best and len(set(numbers)) > 1 else None
    return {"title": title, "kind": kind, "cells": [{"value": cell, "is_best": top is not None and cell is not None and float(cell) == top} for cell in cells]}


def groups(models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    def fact(name: str) -> list[Any]:
        return [(model["facts"].get(name) or {}).get("value") for model in models]

    def price(name: str) -> list[Any]:
        return [model["price"][name] for model in models]

    found = [
        {
            "title": "Record",
            "rows": [
                row("Useful", "good", [m["useful"] for m in models]),
                row("Confidently wrong", "wrong", [m["wrong"] for m in models]),
                row("Answers judged", "count", [m["record"]["judged"] for m in models]),
                row("Seats played", "count", [m["record"]["seats"] for m in models]),
                row("Suite", "percent", [m["record"]["score"] for m in models], max),
            ],
        },
        {"title": "Useful, by collection", "rows": by_collection(models)},
        {
            "title": "Price, $ per million tokens",
            "rows": [
                row("Input", "usd", price("input_usd_per_mtok"), min),
                row("Output", "usd", price("output_usd_per_mtok"), min),
                row("Cache read", "usd", fact("cache_read_usd_per_mtok"), min),
            ],
        },
        {
            "title": "Speed",
            "rows": [
                row("First token", "seconds", [m["ttft_s"] for m in models], min),
                row("Tokens a second", "count", [rounded(m["tokens_per_s"]) for m in models], max),
            ],
        },
        {
            "title": "What it can do",
            "rows": [
                row("Context window", "count", fact("context_window"), max),
                row("Longest answer", "count", fact("output_limit"), max),
                row("Tools", "truth", fact("tools")),
                row("Vision", "truth", fact("vision")),
                row("Structured output", "truth", fact("structured_output")),
                row("Reasoning", "truth", fact("reasoning")),
            ],
        },
    ]
    return [group for group in found if group["rows"]]


def rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def by_collection(models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each collection in which two of them or more were judged."""
    records = [{one["collection"]: one["useful"] for one in model["records"] if one["judged"]} for model in models]
    names = sorted({name for of_model in records for name in of_model if name and sum(name in other for other in records) > 1})
    return [row(name, "good", [of_model.get(name) for of_model in records]) for name in names]


# ------------------------------------------------------------------ the charts


def charts(request: HttpRequest, aliases: Sequence[str]) -> list[dict[str, Any]]:
    """A line for each model over the last days; a chart that would be empty is left out."""
    days = [door.read(request, f"/bench/models/{alias}/history", days=DAYS)["days"] for alias in aliases]

    def of(title: str, unit: str, read: Callable[[dict[str, Any]], float | None]) -> dict[str, Any]:
        rows = [[same_day[0]["day"], *(read(day) for day in same_day)] for same_day in zip(*days, strict=True)]
        return {"title": title, "unit": unit, "columns": ["Day", *aliases], "rows": rows}

    found = [
        of("Calls a day", "", lambda day: day["calls"]),
        of("Cost a day", "$", lambda day: None if day["cost_usd"] is None else float(day["cost_usd"])),
        of("Time a call took, mean", "s", lambda day: None if day["latency_ms"] is None else round(day["latency_ms"] / 1000, 3)),
        of("First token, speed probes", "s", lambda day: None if day["ttft_ms"] is None else round(day["ttft_ms"] / 1000, 3)),
    ]
    return [one for one in found if any(cell for line in one["rows"] for cell in line[1:])]


# Before `models/<alias>`, which would take it for a model: modules are walked in the order of their names.
urlpatterns = [path("models/compare", compare, name="compare")]
