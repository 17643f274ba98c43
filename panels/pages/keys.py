"""Keys: who may call with what, making one (shown this once), changing and revoking."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels import connecting
from panels.pages import door
from panels.pages.clock import zone
from panels.pages.connect import address_of
from panels.pages.door import Refused
from panels.pages.forms import number, texts, wrong
from panels.pages.frame import framed, page

# What each scope lets somebody do, in words.
SCOPES = (
    ("ask", "Ask", "Send prompts to the collections and models below."),
    ("judge", "Judge", "Keep verdicts on answers."),
    ("read", "Read", "See the bench: models, collections, figures, usage. No prompts and no answers of others."),
    ("operate", "Operate", "Change models, collections, budgets and schedules, and read every prompt and answer."),
    ("admin", "Administer", "Everything, keys and sign-ins too. Give it to no program that does not need it."),
)
TITLES = {scope: title for scope, title, _ in SCOPES}


@page("read")
def keys(request: HttpRequest) -> HttpResponse:
    """Lists keys, newest first, revoked ones too."""
    found = door.read(request, "/bench/keys", page_token=request.GET.get("page_token"))
    now = datetime.now(UTC)
    for key in found["data"]:
        key["state"] = state_of(key, now)
        key["says"] = [TITLES.get(scope, scope) for scope in key["scopes"]]
    return framed(request, "pages/keys.html", {"title": "Keys", "keys": found["data"], "next": found["next"]})


def state_of(key: dict[str, Any], now: datetime) -> str:
    if key["revoked_at"]:
        return "revoked"
    return "expired" if key["expires_at"] and datetime.fromisoformat(key["expires_at"]) <= now else "active"


@page("admin", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """Makes a key, and shows it this once: the answer is the page itself, so that the key is kept nowhere on its way."""
    if request.method != "POST":
        return form_page(request, {"scopes": ["ask", "judge"], "all": "1", "name": request.GET.get("name", "")})
    try:
        made = door.call(request, "POST", "/bench/keys", {"name": request.POST.get("name", ""), **sent(request)})
    except Refused as refused:
        return form_page(request, typed(request), refused=refused)
    address = address_of(request)
    first = next(iter(made["collections"] or [c["name"] for c in door.read(request, "/bench/collections", limit=1)["data"]]), "")
    model = f"bench/{first}" if first else next((m for m in made["models"] or () if not m.endswith("*")), "")
    tried = connecting.of("curl").write(address, model, made["key"]) if model and "ask" in made["scopes"] else ()
    return framed(request, "pages/keys/made.html", {"title": "The key is made", "key": made, "address": address, "snippets": tried})


@page("admin", "POST")
def edit(request: HttpRequest) -> HttpResponse:
    """Changes a key, or revokes it. It is named in the query: names may be anything, dots that a browser would resolve too."""
    name = request.GET.get("name", "")
    key = door.read(request, f"/bench/keys/{name}")
    if request.method != "POST":
        return form_page(request, as_typed(key), key)
    try:
        if "revoke" in request.POST:
            door.call(request, "DELETE", f"/bench/keys/{name}")
            messages.success(request, f"{name} is revoked. From its next request on it is refused.")
            return redirect("pages:keys")
        changes = sent(request)
        if request.POST.get("expires") == day_of(key["expires_at"]):
            del changes["expires_at"]  # it may end within the day
        changed = door.call(request, "PATCH", f"/bench/keys/{name}", {"name": request.POST.get("name", ""), **changes})
    except Refused as refused:
        return form_page(request, typed(request), key, refused)
    messages.success(request, f"{changed['name']} is changed. It holds from the next request on.")
    return redirect("pages:keys")


# ------------------------------------------------------------------ the form


def form_page(request: HttpRequest, form: dict[str, Any], key: dict[str, Any] | None = None, refused: Refused | None = None) -> HttpResponse:
    there = [c["name"] for c in door.everything(request, "/bench/collections", most=500)]
    chosen = form.get("collections") or []
    context = {
        "title": "Change a key" if key else "Make a key",
        "key": key,
        "form": form,
        "scopes": SCOPES,
        # Collections that are gone stay on the list of a key that names them.
        "there": there + [name for name in chosen if name not in there],
        **(wrong(refused, expires_at="expires") if refused else {}),
    }
    return framed(request, "pages/keys/form.html", context, status=refused.status if refused else 200)


def sent(request: HttpRequest) -> dict[str, Any]:
    """The form's fields as the API takes them, all but the name."""
    post = request.POST
    is_all = post.get("all", "1") == "1"
    return {
        "owner": post.get("owner", ""),
        "team": post.get("team", ""),
        "scopes": post.getlist("scopes"),
        "collections": None if is_all else post.getlist("collections"),
        "models": None if is_all else texts(post.get("models", "")),
        "rpm": number(post.get("rpm", "")),
        "tpm": number(post.get("tpm", "")),
        "max_parallel": number(post.get("max_parallel", "")),
        "budget_usd": post.get("budget_usd", "").strip() or None,
        "expires_at": end_of(post.get("expires", "")),
        "keep_text": {"yes": True, "no": False}.get(post.get("keep_text", "")),
    }


def typed(request: HttpRequest) -> dict[str, Any]:
    return {**request.POST.dict(), "scopes": request.POST.getlist("scopes"), "collections": request.POST.getlist("collections")}


def as_typed(key: dict[str, Any]) -> dict[str, Any]:
    return {
        **key,
        "all": "1" if key["collections"] is None and key["models"] is None else "0",
        "collections": key["collections"] or [],
        "models": "\n".join(key["models"] or []),
        "expires": day_of(key["expires_at"]),
        "keep_text": {True: "yes", False: "no", None: ""}[key["keep_text"]],
    }


def end_of(said: str) -> str | None:
    """The end of a day on this server's clock; what is no day goes on as it is: the API says what is wrong with it."""
    if not said.strip():
        return None
    try:
        return datetime.combine(date.fromisoformat(said) + timedelta(days=1), time(), zone()).isoformat()
    except (ValueError, OverflowError):
        return said


def day_of(moment: str | None) -> str:
    """The last day that is covered."""
    if not moment:
        return ""
    return f"{(datetime.fromisoformat(moment).astimezone(zone()) - timedelta(microseconds=1)).date()}"


urlpatterns = [path("keys", keys, name="keys"), path("keys/new", new, name="key_new"), path("keys/edit", edit, name="key_edit")]
