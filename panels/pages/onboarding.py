"""Onboarding: what it would cost before it begins, batches, and one batch while it goes on."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door, picks
from panels.pages.door import Refused
from panels.pages.frame import framed, page

# The modes as people choose them: what each does, in words.
MODES = (
    ("quick", "Quick", "Puts each model on the roster and asks it for one word, so that you know it answers."),
    ("full", "Full", "The same, then measures how fast it answers, short and long, and hands it to the benchmarks."),
    ("quick_ad_hoc", "Only register", "Asks nothing, now or later. Such a model is called only where somebody names it."),
)
TITLES = {mode: title for mode, title, _ in MODES}
STAGES = {"quick_ad_hoc": ("register",), "quick": ("register", "check"), "full": ("register", "check", "speed", "suite")}
OPEN = ("waiting", "running")


@page("read")
def onboarding(request: HttpRequest) -> HttpResponse:
    """Lists batches, the newest first."""
    found = door.read(request, "/bench/onboard", limit=30, page_token=request.GET.get("page_token"))
    batches = [with_counts(batch) for batch in found["data"]]
    return framed(
        request, "pages/onboarding.html", {"batches": batches, "next": found["next"], "is_running": any(b["state"] in OPEN for b in batches), "titles": TITLES}
    )


@page("read", "POST")
def batch(request: HttpRequest, batch: str) -> HttpResponse:
    """Shows one batch: where each model stands, what was said, what it cost so far. Operators cancel it, and try again what failed."""
    if request.method == "POST":
        return change(request, batch)
    shown = with_counts(door.read(request, f"/bench/onboard/{batch}"))
    stages = STAGES.get(shown["mode"], ("register",))
    for model in shown["models"]:
        model["steps"] = [step(model, name) for name in stages]
    # Those that are at work or failed first, then in the order that they were asked for in.
    order = {"running": 0, "failed": 1, "waiting": 2}
    shown["models"].sort(key=lambda model: order.get(model["state"], 3))
    context = {
        "batch": shown,
        "is_open": shown["state"] in OPEN,
        "mode_title": TITLES.get(shown["mode"], shown["mode"]),
        "to_retry": sum(model["state"] in ("failed", "cancelled") for model in shown["models"]),
        "aliases": [model["alias"] for model in shown["models"] if model["alias"] and model["state"] == "done"],
    }
    return framed(request, "pages/batch.html", context)


def with_counts(batch: dict[str, Any]) -> dict[str, Any]:
    counts = batch["counts"]
    total = sum(counts.values())
    ended = total - counts.get("waiting", 0) - counts.get("running", 0)
    return {**batch, "total": total, "ended": ended, "percent": round(batch["progress"] * 100)}


def step(model: dict[str, Any], name: str) -> dict[str, str]:
    """One stage of one model: its outcome, which stands in words too; or that it is at it; or that it is still to come."""
    if done := model["stages"].get(name):
        outcome = str(done.get("outcome", "ok"))
        return {"name": name, "outcome": outcome, "text": f"✓ {name}" if outcome == "ok" else f"{name}: {outcome}"}
    is_now = model["state"] == "running" and model["stage"] == name
    return {"name": name, "outcome": "running" if is_now else "", "text": f"{name} …"}


def change(request: HttpRequest, batch: str) -> HttpResponse:
    if request.POST.get("do") == "cancel":
        door.call(request, "POST", f"/bench/onboard/{batch}/cancel")
        messages.success(request, "The batch is cancelled. What is on the bench by now stays.")
        return redirect("pages:batch", batch)
    shown = door.read(request, f"/bench/onboard/{batch}")
    names = [model["served_name"] for model in shown["models"] if model["state"] in ("failed", "cancelled")]
    if not names:
        messages.info(request, "Nothing of this batch failed.")
        return redirect("pages:batch", batch)
    started = door.call(request, "POST", "/bench/onboard", {"endpoint": shown["endpoint"], "served_names": names, "mode": shown["mode"]})
    messages.success(request, f"{said(started['models'], 'model')} tried again in a new batch.")
    return redirect("pages:batch", started["batch"])


# ------------------------------------------------------------------ beginning one


@page("operate", "POST")
def onboard(request: HttpRequest) -> HttpResponse:
    """Shows what was ticked elsewhere, what each mode would do and cost, and begins."""
    asked = request.POST if request.method == "POST" else request.GET
    values = asked.getlist("pick")
    chosen = picks.by_endpoint(values)
    if not chosen:
        messages.info(request, "Tick the models that you want first.")
        return redirect("pages:discover")
    context: dict[str, Any] = {"chosen": chosen, "values": values, "count": sum(map(len, chosen.values())), "mode": asked.get("mode") or "quick"}
    if request.method == "POST" and request.POST.get("do") == "begin":
        try:
            return begun(request, chosen, context["mode"])
        except Refused as refused:
            if refused.code == "in_use":
                messages.info(request, refused.detail)
                return redirect("pages:onboarding")
            return framed(request, "pages/onboard.html", {**context, "refused": refused, "modes": modes(request, chosen)}, status=refused.status)
    return framed(request, "pages/onboard.html", {**context, "modes": modes(request, chosen)})


def begun(request: HttpRequest, chosen: dict[str, list[str]], mode: str) -> HttpResponse:
    """Begins a batch for each endpoint. Errors: Refused, where none could begin."""
    batches, models, done, refusals = list[str](), 0, 0, list[Refused]()
    for endpoint, names in chosen.items():
        for begin in range(0, len(names), picks.MOST):
            try:
                started = door.call(request, "POST", "/bench/onboard", {"endpoint": endpoint, "served_names": names[begin : begin + picks.MOST], "mode": mode})
            except Refused as refused:
                refusals.append(refused)
                continue
            batches.append(started["batch"])
            models += started["models"]
            done += len(started["done"])
    if not batches:
        raise refusals[0]
    if models:
        messages.success(request, f"{said(models, 'model')} on the way. You may close the page; it goes on.")
    if done:
        messages.info(request, f"{said(done, 'model')} brought as far before.")
    for refusal in refusals:
        messages.warning(request, refusal.detail)
    return redirect("pages:batch", batches[0]) if len(set(batches)) == 1 else redirect("pages:onboarding")


def modes(request: HttpRequest, chosen: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Each mode with what it would cost for what was chosen. `problem` is why that cannot be told."""
    found: list[dict[str, Any]] = []
    for mode, title, tells in MODES:
        calls, unpriced, cost, problem = 0, 0, None, ""
        for endpoint, names in chosen.items():
            try:
                body = {"endpoint": endpoint, "served_names": names[: picks.MOST], "mode": mode}
                told = door.call(request, "POST", "/bench/onboard", body, dry_run=1)
            except Refused as refused:
                problem = refused.detail
                continue
            calls, unpriced = calls + told["calls"], unpriced + told["unpriced"]
            cost = cost if told["cost_usd"] is None else (cost or Decimal(0)) + Decimal(told["cost_usd"])
        found.append({"mode": mode, "title": title, "tells": tells, "calls": calls, "unpriced": unpriced, "cost_usd": cost, "problem": problem})
    return found


def said(count: int, noun: str) -> str:
    """Says a count with its verb: "1 model is", "3 models are"."""
    return f"{count} {noun} is" if count == 1 else f"{count:,} {noun}s are"


urlpatterns = [
    path("onboarding", onboarding, name="onboarding"),
    path("onboarding/new", onboard, name="onboard"),
    path("onboarding/<str:batch>", batch, name="batch"),
]
