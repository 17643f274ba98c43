"""Connect: what to type or write so that a program asks this server, with its real address, and a button that tries it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import get_script_prefix, path, reverse

from panels import connecting, trying
from panels.connecting import Client
from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page, scopes_of

MODES = (("panel", "every answer, side by side", ""), ("merged", "one merged answer", ":merged"), ("route", "one member, with tools", ":route"))
MARKS = {mode: mark for mode, _, mark in MODES}


def address_of(request: HttpRequest) -> str:
    """BENCH_PUBLIC_URL, else the address that the page itself was asked at, path prefix included; without a slash at its end."""
    return settings.PUBLIC_URL or own_address(request)


def own_address(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("pages:home")).removesuffix("/app/")


@page("read")
def connect(request: HttpRequest) -> HttpResponse:
    """Shows a client's snippets for a name to ask for; who may ask can try them."""
    chosen = connecting.of(request.GET.get("client", ""))
    collections = [c["name"] for c in door.everything(request, "/bench/collections", most=500)]
    models = [m["alias"] for m in door.everything(request, "/bench/models", most=1000) if m["status"] != "retired"]
    wanted = request.GET.get("name", "")
    name = wanted if wanted in {f"bench/{c}" for c in collections} | set(models) else next(iter([*(f"bench/{c}" for c in collections), *models]), "")
    is_collection = name.removeprefix("bench/") in collections and name.startswith("bench/")
    mode = request.GET.get("mode", "")
    # An agent needs a member with tools, whatever was chosen for the client before.
    mode = mode if mode in MARKS else chosen.suits or "panel"
    model = f"{name}{MARKS[mode]}" if is_collection else name
    context: dict[str, Any] = {
        "title": "Connect",
        "api": f"{get_script_prefix()}bench/",
        "address": address_of(request),
        "chosen": chosen,
        "groups": [(group, list(clients)) for group, clients in groupby(connecting.EVERY, key=lambda one: one.group)],
        "collections": collections,
        "models": models,
        "name": name,
        "is_collection": is_collection,
        "mode": mode,
        "modes": MODES,
        "model": model,
        "no_key": connecting.NO_KEY,
        "snippets": chosen.shown(address_of(request), model, connecting.NO_KEY, install(request, chosen)) if model else (),
        "unfit": is_collection and chosen.suits == connecting.ROUTE and mode != connecting.ROUTE,
        "on_loopback": settings.ON_LOOPBACK,
        **(test_of(request, chosen, model) if model else {}),
    }
    return framed(request, "pages/connect.html", context)


def install(request: HttpRequest, chosen: Client) -> str:
    """The line that installs our own command from this server; "" where the program is another or the server was put up without it."""
    if not chosen.is_ours:
        return ""
    try:
        return str(door.read(request, "/bench/client")["install"]["pipx"])
    except Refused:
        return ""


def test_of(request: HttpRequest, chosen: Client, model: str) -> dict[str, Any]:
    """What the page's script sends, and whether that may cost something."""
    asked = trying.tested(chosen, model)
    may_ask = "ask" in scopes_of(request)
    plan = {
        "base": own_address(request),
        "model": model,
        "tries": [asdict(trying.listing()), asdict(asked)],
        "priced": trying.priced(model) if may_ask else None,
    }
    return {"plan": plan, "spends": asked.spends}


urlpatterns = [path("connect", connect, name="connect")]
