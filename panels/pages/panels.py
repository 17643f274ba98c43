"""Panels on record: the list with its search and filters, and one panel whole."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import door, seats
from panels.pages.door import Refused
from panels.pages.frame import framed, page, scopes_of

FILTERS = ("find", "collection", "mode", "status", "model", "judge", "since", "until", "verdict")
SHOWN = 50


def wanted(request: HttpRequest) -> dict[str, str]:
    return {name: value for name in FILTERS if (value := request.GET.get(name, "").strip())}


@page("read")
def listed(request: HttpRequest) -> HttpResponse:
    """Lists panels, newest first. What the filters refuse stands at its field, above an empty list."""
    filters, refused = wanted(request), None
    found: dict[str, Any] = {"data": [], "next": None}
    try:
        found = door.read(request, "/bench/panels", limit=SHOWN, page_token=request.GET.get("page_token"), **filters)
    except Refused as error:
        if error.status != 400 or error.field not in (*FILTERS, "page_token"):
            raise
        refused = error
    scopes, me = scopes_of(request), request.user.get_username()
    for panel in found["data"]:
        panel["is_open"] = "operate" in scopes or ("ask" in scopes and panel["judge"] == me)
        panel["answered"] = sum(seat["status"] in seats.ANSWERED for seat in panel["seats"])
        panel["judged"] = sum(bool(seat["judges"]) for seat in panel["seats"])
        panel["models"] = list(dict.fromkeys(seat["model"] for seat in panel["seats"]))
    context = {
        "title": "Panels",
        "filters": filters,
        "refused": refused,
        "modes": seats.MODES,
        "statuses": ("running", "complete", "degraded", "failed"),
        "panels": found["data"],
        "next": found["next"],
        "searched": found.get("searched"),
    }
    if request.headers.get("HX-Request") != "true":
        context["collections"] = [c["name"] for c in door.read(request, "/bench/collections", limit=500)["data"]]
    return framed(request, "pages/panels.html", context, status=400 if refused else 200)


# ------------------------------------------------------------------ one panel


@page("ask", "POST")
def one(request: HttpRequest, panel_id: str) -> HttpResponse:
    """Shows a panel with all that is on record of it; by POST keeps a verdict or deletes the texts."""
    address = f"/bench/panels/{panel_id}"
    wrong: Refused | None = None
    if request.method == "POST":
        if request.POST.get("action") == "delete":
            door.call(request, "DELETE", address)
            messages.success(request, "The prompt and the answers are deleted. Figures and verdicts stay.")
            return redirect("pages:panel", panel_id)
        if request.POST.get("action") == "task" and seats.task_maker:
            return kept_as_task(request, panel_id)
        try:
            door.call(request, "POST", "/bench/verdict", seats.verdict_of(request.POST))
        except Refused as refused:
            if refused.status != 400:
                raise
            wrong = refused
        else:
            return redirect(f"{reverse('pages:panel', args=[panel_id])}{'?blind=1' if request.GET.get('blind') else ''}#{request.POST.get('call', '')}")
    panel = door.read(request, address)
    blind = request.GET.get("blind") == "1"
    shown = seats.laid_out(request, panel["seats"], blind)
    if wrong:
        seats.typed(shown, request.POST, wrong.detail)
    is_under_way = panel["status"] == "running" or any(seat["is_under_way"] for seat in shown)
    context = {
        "title": f"Panel of {panel['collection']}" if panel["collection"] else "Panel",
        "panel": panel,
        "turns": seats.turns(panel["prompt"]),
        "seats": shown,
        **seats.frame(request, reverse("pages:panel", args=[panel_id])),
        "keeps_tasks": bool(seats.task_maker),
        "is_own": panel["judge"] == request.user.get_username(),
        "has_texts": panel["prompt"] is not None or any(seat["text"] is not None for seat in shown),
        "is_under_way": is_under_way,
        "can_be_compared": panel["mode"] in ("panel", "merged") and len(shown) > 1,
        "comparison": comparison(panel.get("comparison"), shown),
        "calls": [] if is_under_way or "read" not in scopes_of(request) else door.read(request, "/bench/calls", panel=panel_id, limit=200)["data"],
    }
    return framed(request, "pages/panel.html", context, status=400 if wrong else 200)


def kept_as_task(request: HttpRequest, panel_id: str) -> HttpResponse:
    """Keeps a verdict of the reader's as private tasks."""
    try:
        kept = door.call(request, "POST", seats.task_maker[0], {"call": request.POST.get("call", "")})
    except Refused as refused:
        messages.error(request, refused.detail)
    else:
        count = kept["added"]
        control = "" if kept["has_control"] else " Name a claim of the other kind, too, and they have a control."
        messages.success(request, f"{count} private task{'s' if count != 1 else ''} kept.{control}" if count else "It was kept as tasks before.")
    return redirect(f"{reverse('pages:panel', args=[panel_id])}#{request.POST.get('call', '')}")


def comparison(kept: Any, shown: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Groups the claims of a comparison by kind, each quote beside the letter of its seat."""
    if not kept:
        return None
    of = {seat["call"]: seat for seat in shown}
    kinds = []
    for kind, title in (("contradicted", "Contradicted"), ("unique", "Said by one"), ("shared", "Shared")):
        claims = [
            {**claim, "seats": [{**said, "seat": of[said["call"]]} for said in claim["seats"] if said["call"] in of]}
            for claim in kept["claims"]
            if claim["kind"] == kind
        ]
        if claims:
            kinds.append({"kind": kind, "title": title, "claims": claims})
    return {**kept, "kinds": kinds}


urlpatterns = [path("panels", listed, name="panels"), path("panels/<str:panel_id>", one, name="panel")]
