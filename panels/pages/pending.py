"""Pending verdicts: answers that nobody has judged, oldest first, each judged where it stands."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import door, seats
from panels.pages.door import Refused
from panels.pages.frame import framed, page

SHOWN = 10


@page("judge", "POST")
def pending(request: HttpRequest) -> HttpResponse:
    """Shows the oldest panels that wait, with their answers; by POST keeps a verdict."""
    wrong: Refused | None = None
    if request.method == "POST":
        try:
            door.call(request, "POST", "/bench/verdict", seats.verdict_of(request.POST))
        except Refused as refused:
            if refused.status != 400:
                raise
            wrong = refused
        else:
            return redirect(f"{reverse('pages:pending')}{'?blind=1' if request.GET.get('blind') else ''}")
    blind = request.GET.get("blind") == "1"
    found = door.read(request, "/bench/verdicts/pending", texts=1, limit=SHOWN, page_token=request.GET.get("page_token"))
    for panel in found["data"]:
        panel["turns"] = seats.turns(panel.get("prompt"))
        panel["seats"] = seats.laid_out(request, panel["seats"], blind)
        if wrong:
            seats.typed(panel["seats"], request.POST, wrong.detail)
    context = {"title": "Pending verdicts", "panels": found["data"], "next": found["next"], **seats.frame(request, reverse("pages:pending"))}
    return framed(request, "pages/pending.html", context, status=400 if wrong else 200)


urlpatterns = [path("pending", pending, name="pending")]
