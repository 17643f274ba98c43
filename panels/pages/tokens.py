"""Personal tokens: one's own, made here (shown this once), renewed and ended."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.connect import address_of
from panels.pages.door import Refused
from panels.pages.forms import wrong
from panels.pages.frame import framed, page
from panels.pages.keys import end_of
from panels.pages.rights import BENCH, STARTER, SUITE


@page("read", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """Makes a token, and shows it this once: the answer is the page itself, so that the token is kept nowhere on its way."""
    if request.method != "POST":
        return form_page(request, {"scopes": STARTER, "name": "", "expires": "", "test": ""})
    post = request.POST
    asked = {
        "name": post.get("name", ""),
        "scopes": post.getlist("scopes"),
        "expires_at": end_of(post.get("expires", "")),
        "test": post.get("test") == "1",
    }
    try:
        made = door.call(request, "POST", "/v1/tokens", asked)
    except Refused as refused:
        return form_page(request, {**post.dict(), "scopes": asked["scopes"]}, refused)
    return made_page(request, made, "The token is made")


@page("read", "POST")
def change(request: HttpRequest) -> HttpResponse:
    """Renews a token and shows the new secret this once, or ends it."""
    if request.method != "POST":
        return redirect("pages:keys")
    token = request.POST.get("token", "")
    if "revoke" in request.POST:
        door.call(request, "DELETE", f"/v1/tokens/{token}")
        messages.success(request, "The token is revoked. From its next request on it is refused.")
        return redirect("pages:keys")
    return made_page(request, door.call(request, "POST", f"/v1/tokens/{token}/rotate", {}), "The token is renewed")


def made_page(request: HttpRequest, made: dict[str, Any], title: str) -> HttpResponse:
    return framed(request, "pages/keys/token_made.html", {"title": title, "token": made, "address": address_of(request)})


def form_page(request: HttpRequest, form: dict[str, Any], refused: Refused | None = None) -> HttpResponse:
    may = door.read(request, "/v1/tokens")["grantable"]
    if refused is not None:
        refused.field = refused.field.lstrip("/")
    context = {
        "title": "Make a personal token",
        "form": form,
        "suite": [one for one in SUITE if one[0] in may["live"]],
        "bench": [one for one in BENCH if one[0] in may["live"]],
        "dry": may["test"],
        **(wrong(refused, expires_at="expires") if refused else {}),
    }
    return framed(request, "pages/keys/token.html", context, status=refused.status if refused else 200)


urlpatterns = [path("keys/token", new, name="token_new"), path("keys/token/change", change, name="token_change")]
