"""Collections: who sits together, in which order and how long they have; how each member did, what that suggests, and how independent they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import number
from panels.pages.frame import framed, page
from panels.pages.models import rate_of

PLACES = {"members": "Members", "mergers": "Mergers"}
# Fields of the settings: title, what the form takes, what it means.
SETTINGS: dict[str, tuple[str, str, str]] = {
    "description": ("Description", "text", "What to ask it, for those who choose."),
    "shape": ("Shape of the answers", "text", "A word that its answers have in common, for example review."),
    "picking": ("Who sits, and who takes a turn", "choice", "fixed: the first in order. record: by what verdicts say, with room for who is still unknown."),
    "seats": ("Members that sit", "number", "Of those below. Empty: all."),
    "explorers": ("Explorers", "number", "Seats for active models that went unused longest. 0: none."),
    "quorum": ("Quorum", "number", "Once so many seats have answered, the rest have the grace. Empty: wait for all."),
    "grace_s": ("Grace, s", "number", "How long the others may take once the quorum has answered."),
    "timeout_s": ("Longest wait, s", "number", "For a whole answer."),
    "first_token_timeout_s": ("Until the first token, s", "number", "Of calls that are streamed."),
    "idle_timeout_s": ("Silence in a stream, s", "number", "After that a seat counts as timed out."),
    "wait_max_s": ("Wait for our limits, s", "number", "How long a seat may wait for room in its own or its endpoint's minute."),
    "shadow_share": ("Shadow share", "share", "Share of route turns that other members answer too, unseen: 0 to 1."),
    "failover_on_refusal": ("Next member on a refusal", "truth", "In route mode."),
    "keep_text": ("Keep texts of turns", "maybe", "Texts of route and direct turns. As the server does: only where the key says so."),
    "merge_prompt": ("Merge prompt", "long", "What the merger is told, in place of the usual text. Empty: the usual text."),
}
MOVES = ("up", "down", "remove", "add")


@page("read", "POST")
def collections(request: HttpRequest) -> HttpResponse:
    """Lists collections, and makes one."""
    typed, refused = {"name": "", "description": "", "shape": "review"}, None
    if request.method == "POST":
        typed = {name: request.POST.get(name, "").strip() for name in typed}
        try:
            door.call(request, "POST", "/bench/collections", {**typed, "shape": typed["shape"] or None})
        except Refused as error:
            if error.status == 403:
                raise
            refused = error
        else:
            messages.success(request, f"{typed['name']} is there. Now say who sits in it.")
            return redirect("pages:collection", typed["name"])
    found = door.read(request, "/bench/collections", limit=50, page_token=request.GET.get("page_token"))
    context = {
        "collections": [{**one, "wrong": rate_of(one["record"]["confidently_wrong"])} for one in found["data"]],
        "next": found["next"],
        "is_new": "new" in request.GET or refused is not None,
        "typed": typed,
        "refused": refused,
        "wrong": wrong_of(refused),
    }
    return framed(request, "pages/collections.html", context, status=400 if refused else 200)


def wrong_of(refused: Refused | None) -> dict[str, str]:
    return {} if refused is None or not refused.field else {refused.field.partition("[")[0]: refused.detail}


# ------------------------------------------------------------------ one


@page("read", "POST")
def collection(request: HttpRequest, name: str) -> HttpResponse:
    """Shows a collection; by POST changes it."""
    if request.method == "POST":
        return change(request, name)
    return draw(request, name)


def draw(
    request: HttpRequest, name: str, refused: Refused | None = None, typed: Mapping[str, str] | None = None, edit: str = "", focus: str = ""
) -> HttpResponse:
    """Draws the page; after a refusal with what was typed; `focus` names the button that the keyboard was at."""
    found = door.read(request, f"/bench/collections/{name}")
    models = {one["alias"]: one for one in door.read(request, "/bench/models", limit=500, collection=name)["data"]}
    edit = edit or request.GET.get("edit", "")
    records = recorded(found, models)
    context: dict[str, Any] = {
        "name": name,
        "collection": found,
        "wrong_rate": rate_of(found["record"]["confidently_wrong"]),
        "lists": [
            {"place": place, "title": title, "was": json.dumps(found[place]), "seats": seated(found[place], models, place)} for place, title in PLACES.items()
        ],
        "settings": [{"name": field, "title": said[0], "value": found[field], "kind": said[1]} for field, said in SETTINGS.items()],
        "suggestions": [{**one, "sure": "over 99%" if one["probability"] > 0.99 else f"{one['probability']:.0%}"} for one in found["suggestions"]],
        "records": sorted(records, key=lambda one: not one["is_member"]),
        "has_scores": any(one["score"] is not None for one in records),
        "edit": edit == "settings",
        "refused": refused,
        "wrong": wrong_of(refused),
        "typed": typed or {},
        "focus": focus or request.GET.get("focus", ""),
    }
    if context["edit"]:
        context["fields"] = [field_of(field, said, found[field], typed) for field, said in SETTINGS.items()]
    return framed(request, "pages/collection.html", context, status=400 if refused else 200)


def recorded(collection: Mapping[str, Any], models: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everybody's record here, with the suite's score; who has a score and no verdict yet has a line as well."""
    scores = {alias: model["record"]["score"] for alias, model in models.items()}
    judged = {one["model"] for one in collection["records"]}
    unjudged = {"judged": 0, "judges": 0, "useful": None, "confidently_wrong": None, "real": 0, "false": 0}
    rows = [*collection["records"], *({"model": alias, **unjudged} for alias, score in scores.items() if score is not None and alias not in judged)]
    members = collection["members"]
    return [{**one, "wrong": rate_of(one["confidently_wrong"]), "is_member": one["model"] in members, "score": scores.get(one["model"])} for one in rows]


def seated(aliases: Sequence[str], models: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    return [
        {
            "alias": alias,
            "model": models.get(alias),
            "useful": (models.get(alias) or {"record": {"usefulness": None}})["record"]["usefulness"] if place == "members" else None,
            "at": at,
            "key": str(at),
            "is_first": at == 0,
            "is_last": at == len(aliases) - 1,
        }
        for at, alias in enumerate(aliases)
    ]


def field_of(name: str, said: tuple[str, str, str], value: Any, typed: Mapping[str, str] | None) -> dict[str, Any]:
    title, kind, tells = said
    shown = {True: "yes", False: "no", None: ""}[value] if value is None or isinstance(value, bool) else str(value)
    return {"name": name, "title": title, "kind": kind, "tells": tells, "value": shown if typed is None else typed.get(name, "")}


# ------------------------------------------------------------------ what a form does


def change(request: HttpRequest, name: str) -> HttpResponse:
    """Does what a form on the page asks for, and shows the page again with what came of it."""
    do, address, focus = request.POST.get("do", ""), f"/bench/collections/{name}", ""
    place, _, move = do.partition(":")
    try:
        if do == "delete":
            door.call(request, "DELETE", address)
            messages.success(request, f"{name} is gone. Its panels and verdicts stay on record.")
            return redirect("pages:collections")
        if do == "settings":
            door.call(request, "PATCH", address, settings_typed(request.POST))
            messages.success(request, "Kept. It holds from the next request on.")
        elif do == "apply":
            messages.success(request, applied(request, name, address))
        elif place in PLACES:
            said, focus = moved(request, address, place, move)
            messages.success(request, said)
        else:
            raise Refused(400, "invalid_request", "This page has no such button.")
    except Refused as refused:
        if refused.status in (403, 404):
            raise
        return draw(request, name, refused, {field: str(value) for field, value in request.POST.items()}, do)
    if request.headers.get("HX-Request") == "true":
        return draw(request, name, focus=focus)
    return redirect(reverse("pages:collection", args=[name]) + (f"?focus={focus}#{place}" if focus else ""))


def settings_typed(given: QueryDict) -> dict[str, Any]:
    """Gives the settings of a form as the API takes them; what is no number goes on as text, so that the API says why not."""
    found: dict[str, Any] = {}
    for name, (_, kind, _) in SETTINGS.items():
        if name not in given:
            continue
        said = str(given[name])
        text = said.replace("\r\n", "\n") if kind == "long" else said.strip()
        match kind:
            case "number":
                found[name] = number(text)
            case "share":
                found[name] = share(text)
            case "truth" | "maybe":
                found[name] = {"yes": True, "no": False, "": None}.get(text, text)
            case "long":
                found[name] = text if text.strip() else None
            case _:
                found[name] = text or None
    return found


def share(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def moved(request: HttpRequest, address: str, place: str, move: str) -> tuple[str, str]:
    """Changes the order of a list, or who is in it. Shape: what was done, and the button that has the focus next. Errors: Refused."""
    now: list[str] = door.read(request, address)[place]
    if request.POST.get(f"{place}.was", "") != json.dumps(now):
        raise Refused(409, "invalid_request", "Somebody else changed this list meanwhile. Here it is as it stands now; nothing was changed.")
    verb, _, said_at = move.partition(":")
    noun = place.removesuffix("s")
    if verb == "add":
        alias = request.POST.get(f"{place}.add", "").strip()
        if not alias:
            raise Refused(400, "invalid_request", "Write the alias of the model that shall sit here.", f"{place}.add")
        try:
            door.call(request, "PATCH", address, {place: [*now, alias]})
        except Refused as refused:
            raise Refused(refused.status, refused.code, refused.detail, f"{place}.add" if refused.field.startswith(place) else refused.field) from None
        return f"{alias} is {noun} number {len(now) + 1}.", f"{place}-add"
    if verb not in MOVES or not said_at.isdigit() or int(said_at) >= len(now):
        raise Refused(400, "invalid_request", "This list has no such place.")
    at = int(said_at)
    alias = now[at]
    if verb == "remove":
        door.call(request, "PATCH", address, {place: now[:at] + now[at + 1 :]})
        return f"{alias} sits here no more.", f"{place}-remove-{min(at, len(now) - 2)}" if len(now) > 1 else f"{place}-add"
    to = max(0, at - 1) if verb == "up" else min(len(now) - 1, at + 1)
    now[at], now[to] = now[to], now[at]
    door.call(request, "PATCH", address, {place: now})
    # At an end the button that was pressed can do no more: the other one has the focus then.
    towards = "down" if to == 0 else "up" if to == len(now) - 1 else verb
    return f"{alias} is {noun} number {to + 1} of {len(now)}.", f"{place}-{towards}-{to}"


def applied(request: HttpRequest, name: str, address: str) -> str:
    """Does what the record suggests, if it still does. Errors: Refused."""
    found = door.read(request, address)
    kind, model = request.POST.get("kind", ""), request.POST.get("model", "")
    if not any((one["kind"], one["model"]) == (kind, model) for one in found["suggestions"]):
        raise Refused(409, "not_suggested", f"The record of {name} does not suggest that any more. Nothing was changed.")
    members = [*found["members"], model] if kind == "promote" else [alias for alias in found["members"] if alias != model]
    door.call(request, "PATCH", address, {"members": members})
    return f"{model} is a member now, the last in order." if kind == "promote" else f"{model} is no member any more."


urlpatterns = [path("collections", collections, name="collections"), path("collections/<str:name>", collection, name="collection")]
