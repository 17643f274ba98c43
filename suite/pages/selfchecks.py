"""How often the comparison calls equals different: what its verdicts are worth on this server."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path

from panels.pages import door
from panels.pages.frame import framed, page


@page("registry:read")
def checks(request: HttpRequest) -> HttpResponse:
    found = door.read(request, "/v1/registry/self-checks", limit=50, page_token=request.GET.get("page_token"))
    rows = found["data"]
    trials, alarms = sum(row["trials"] for row in rows), sum(row["alarms"] for row in rows)
    context = {
        "title": "Self-check",
        "checks": rows,
        "next": found["next"],
        "trials": trials,
        "rate": alarms / trials if trials else None,
        "alpha": rows[0]["alpha"] if rows else None,
        "is_sound": all(row["sound"] for row in rows),
    }
    return framed(request, "pages/suite/selfchecks.html", context)


urlpatterns = [path("suite/self-checks", checks, name="self_checks")]
