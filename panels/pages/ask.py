"""Asking: whom, in which mode, what, with which files; the answers stream into the same page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse

from panels.pages import door, seats
from panels.pages.door import Refused
from panels.pages.frame import framed, page, scopes_of

FIELDS = ("name", "description", "members", "mergers", "seats", "explorers")


@page("ask")
def ask(request: HttpRequest) -> HttpResponse:
    """Shows the form. `?collection=`, `?model=`, `?mode=` and `?prompt=` fill it in, `?again=` takes a panel on record."""
    collections = [{name: c.get(name) for name in FIELDS} for c in door.everything(request, "/bench/collections")]
    models = [m["alias"] for m in door.everything(request, "/bench/models") if m["status"] != "retired"] if "read" in scopes_of(request) else []
    again, refused = earlier(request)
    context = {
        "title": "Ask",
        "collections": collections,
        "models": models,
        "roster": {"collections": collections, "models": models},
        "wanted": again["wanted"]
        if again
        else f"c:{name}"
        if (name := request.GET.get("collection"))
        else f"m:{name}"
        if (name := request.GET.get("model"))
        else "",
        "mode": again["mode"] if again else request.GET.get("mode", ""),
        "prompt": again["prompt"] if again else request.GET.get("prompt", ""),
        "again": again,
        "refused": refused,
        "modes": (
            ("panel", "Panel", "all answers, side by side"),
            ("merged", "Merged", "one answer made of theirs"),
            ("route", "Route", "one of them answers"),
        ),
        "most_bytes": settings.MAX_BODY_BYTES,
        "panel_at": reverse("pages:panel", args=["PANEL"]),
        **seats.frame(request, ""),
        # What the script clones for each seat that comes.
        "seat": {"call": "CALL", "mine": None},
    }
    return framed(request, "pages/ask.html", context)


def earlier(request: HttpRequest) -> tuple[dict[str, Any] | None, str]:
    """Reads the panel that is to be asked again. Shape: `prompt` where it is one plain question, else None and the conversation goes as it was."""
    panel_id = request.GET.get("again", "")
    if not panel_id:
        return None, ""
    try:
        panel = door.read(request, f"/bench/panels/{panel_id}")
    except Refused as refused:
        return None, refused.detail
    turns = seats.turns(panel["prompt"])
    if turns is None:
        return None, "The prompt of that panel is not kept any more, so it cannot be asked again."
    sat = [seat["model"] for seat in panel["seats"] if seat["seat"] in ("member", "explorer", "route", "direct")]
    is_plain = len(turns) == 1 and turns[0]["role"] == "user" and all(part["kind"] == "text" for part in turns[0]["parts"])
    wanted = f"c:{panel['collection']}" if panel["collection"] else f"m:{sat[0]}" if sat else ""
    return {
        "panel": panel_id,
        "wanted": wanted,
        "mode": panel["mode"],
        "seats": list(dict.fromkeys(sat)),
        "prompt": "".join(part["said"] for part in turns[0]["parts"]) if is_plain else None,
        "turns": turns,
    }, ""


urlpatterns = [path("ask", ask, name="ask")]
