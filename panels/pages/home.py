"""The first page: where somebody who just signed in wants to be."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.frame import page, scopes_of


@page("read")
def home(request: HttpRequest) -> HttpResponse:
    """Leads to the first steps while there is nothing to ask, else to asking, or to the bench for who only reads."""
    scopes = scopes_of(request)
    if "operate" in scopes and not door.read(request, "/bench/collections", limit=1)["data"]:
        return redirect("pages:start")
    return redirect("pages:ask" if "ask" in scopes else "pages:models")


urlpatterns = [path("", home, name="home")]
