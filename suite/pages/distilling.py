"""A subset made of what runs failed, or of what tells them apart: counted first, then made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from access.models import User
from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import number
from panels.pages.frame import framed, page, scopes_of
from suite.pages.forms import refusal
from suite.pages.people import may

RULES = {
    "failed_by_all": "Tasks that all of them failed",
    "k_of_n": "Tasks that at least so many of them failed",
    "discriminating": "Tasks that tell them apart: at least so many passed, and as many failed",
}
TEXTS = ("name", "slug", "benchmark")
MOST_BENCHMARKS = 200


def offered(request: HttpRequest, *, runs: Sequence[str] = (), sweep: str = "", said: QueryDict | None = None) -> dict[str, Any] | None:
    """What the form of runs, or of a sweep, needs; None for who may make no subset."""
    if not may(request, "registry:publish") or not (runs or sweep):
        return None
    assert isinstance(request.user, User)
    owner = None if "admin" in scopes_of(request) else request.user.get_username()
    typed = said or QueryDict()
    return {
        "runs": runs,
        "sweep": sweep,
        "rules": RULES,
        "said": {**typed.dict(), "rule": typed.get("rule") or "failed_by_all", "k": typed.get("k") or "1"},
        "benchmarks": door.read(request, "/v1/registry/benchmarks", limit=MOST_BENCHMARKS, sort="name", owner=owner)["data"],
        "once": typed.get("once") or uuid4().hex,
    }


@page("registry:publish", "POST")
def distil(request: HttpRequest) -> HttpResponse:
    """The form, with how many tasks it would be; asked for by htmx that alone; by POST the subset is made."""
    said = request.POST if request.method == "POST" else request.GET
    sweep = said.get("sweep", "")
    runs = [] if sweep else list(dict.fromkeys(name for name in said.getlist("runs") if name))
    body = body_of(said, runs, sweep)
    form = offered(request, runs=runs, sweep=sweep, said=said)
    context: dict[str, Any] = {"title": "Make a subset of what runs came to", "form": form}
    if form is None:
        return framed(request, "pages/suite/distil.html", context)
    if request.method != "POST":
        return framed(request, "pages/suite/distil.html", {**context, **counted(request, body)})
    try:
        made = door.call(
            request, "POST", "/v1/subsets:distill", {**body, **{name: said[name].strip() for name in TEXTS if said.get(name, "").strip()}}, once(said)
        )
    except Refused as refused:
        if refused.status not in (409, 422):
            raise
        return framed(request, "pages/suite/distil.html", {**context, **refusal(refused)}, status=refused.status)
    told = made["distilled"]
    messages.success(request, f"It holds {told['taken']} of the {told['looked_at']} tasks that every run scored.")
    return redirect("pages:subset", made["benchmark"], made["id"])


def once(said: QueryDict) -> dict[str, str]:
    return {"Idempotency-Key": said.get("once") or uuid4().hex}


def body_of(said: QueryDict, runs: list[str], sweep: str) -> dict[str, Any]:
    """Writes what is asked for as the API takes it."""
    rule = said.get("rule") or "failed_by_all"
    source: dict[str, Any] = {"sweep": sweep} if sweep else {"runs": runs}
    return {**source, "rule": rule, **({} if rule == "failed_by_all" else {"k": number(said.get("k", ""))})}


def counted(request: HttpRequest, body: dict[str, Any]) -> dict[str, Any]:
    """How many tasks it would be, or why it would be none."""
    try:
        found = door.call(request, "POST", "/v1/subsets:distill", body, dry_run=1)
    except Refused as refused:
        if refused.status not in (404, 409, 422):
            raise
        return {"why": refused.detail}
    return {"counted": found}


urlpatterns = [path("suite/distil", distil, name="distil")]
