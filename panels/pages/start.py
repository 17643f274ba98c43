"""First steps: from a server with nothing to the first question. Each step knows whether it is done, and can be done again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, path, reverse

from panels.pages import door, picks
from panels.pages.door import Refused
from panels.pages.forms import wrong
from panels.pages.frame import framed, page, scopes_of
from panels.pages.onboarding import OPEN, STAGES, step, with_counts

# What most people have a key for, in this order; the rest stands in a list.
FAVOURITES = ("openai", "anthropic", "google", "openrouter", "groq", "mistral", "deepseek", "xai", "cerebras", "togetherai")
MOST_SHOWN = 500
MOST_MEMBERS = 200
STEPS = {"1": "endpoint", "2": "models", "3": "collection", "4": "ask"}
DEMO_BUSY = ("waiting", "downloading", "starting")


@page("operate", "POST")
def start(request: HttpRequest) -> HttpResponse:
    """Shows all four steps, the one that is due opened; takes the form of whichever was sent."""
    if request.method == "POST":
        act = ACTS.get(request.POST.get("do", ""))
        if act is not None:
            try:
                return act(request)
            except Refused as refused:
                opened = OPENED.get(request.POST["do"], "1")
                said = wrong(refused)
                return draw(request, opened, status=refused.status, form=request.POST, at_field=bool(said["wrong"].keys() & AT_FIELD), **said)
    return draw(request, request.GET.get("step", ""))


def draw(request: HttpRequest, opened: str = "", status: int = 200, **more: Any) -> HttpResponse:
    endpoints = door.everything(request, "/bench/endpoints", most=MOST_SHOWN)
    models = [model for model in door.everything(request, "/bench/models", most=MOST_SHOWN) if model["status"] != "retired"]
    collections = [one for one in door.everything(request, "/bench/collections", most=MOST_SHOWN) if one["members"]]
    panels = door.read(request, "/bench/panels", limit=1)["data"]
    demo = door.read(request, "/bench/demo")
    done = {"1": bool(endpoints), "2": bool(models), "3": bool(collections), "4": bool(panels)}
    asked = request.GET.get("endpoint", "") or (request.POST.get("endpoint", "") if opened == "2" else "")
    batch = request.GET.get("batch", "")
    if opened not in STEPS:
        opened = "2" if asked or batch else next((number for number, is_done in done.items() if not is_done), "4")
    if demo["stage"] in DEMO_BUSY and not request.GET.get("step") and not asked:
        opened = "1"
    context: dict[str, Any] = {
        "title": "First steps",
        "steps": [{"number": n, "is_done": done[n], "is_open": n == opened} for n in STEPS],
        "opened": opened,
        "endpoints": endpoints,
        "models": models,
        "collections": collections,
        "demo": with_progress(demo),
        "mb": 130,
        "form": {},
    }
    if opened == "1":
        context |= ways(request, more.get("form") or request.GET)
    elif opened == "2":
        context |= choosing(request, asked or (endpoints[-1]["name"] if endpoints else ""), batch)
        context["at"] = next((one for one in endpoints if one["name"] == context["endpoint"]), None)
    elif opened == "3":
        context |= collecting(models, collections)
        if more.get("form"):
            context["ticked"] = set(more["form"].getlist("members"))
    else:
        context["collection"] = named_first(collections, request.GET.get("collection", ""))
    return framed(request, "pages/start.html", context | more, status=status)


# ------------------------------------------------------------------ 1: an endpoint


def ways(request: HttpRequest, given: Any) -> dict[str, Any]:
    """What step 1 offers. A provider that was chosen fills the form in."""
    told = door.read(request, "/bench/providers")
    known = {one["provider"]: one for one in told["data"]}
    chosen = known.get(given.get("provider", ""), {})
    own = "${" in chosen.get("base_url", "")
    filled = {
        "name": given.get("name") or given.get("provider", ""),
        "kind": given.get("kind") or chosen.get("kind", "openai"),
        "base_url": given.get("base_url") or chosen.get("base_url", ""),
        "provider": given.get("provider", ""),
    }
    may_sign_in = "admin" in scopes_of(request)
    return {
        "presets": [known[name] for name in FAVOURITES if name in known],
        "others": [one for one in told["data"] if one["provider"] not in FAVOURITES],
        "kinds": told["kinds"],
        "filled": filled,
        "chosen": chosen,
        "own_parts": own,
        "way": given.get("way") or WAYS.get(given.get("do", "")) or ("key" if given.get("provider") else ""),
        "signins": [one for one in door.read(request, "/bench/signins/providers")["data"]] if may_sign_in else [],
    }


def add_endpoint(request: HttpRequest) -> HttpResponse:
    """Adds an endpoint, asks it at once what it serves, and goes on to its models, or says why it does not answer."""
    post = request.POST
    body: dict[str, Any] = {"name": post.get("name", "").strip(), "kind": post.get("kind", ""), "base_url": post.get("base_url", "").strip()}
    if key := post.get("key", "").strip():
        body["key"] = key
    door.call(request, "POST", "/bench/endpoints", body)
    return tried(request, body["name"])


def change_endpoint(request: HttpRequest) -> HttpResponse:
    """Gives an endpoint that did not answer another address or key, and asks it again; or takes it away."""
    name = request.POST.get("endpoint", "")
    if request.POST.get("how") == "remove":
        door.call(request, "DELETE", f"/bench/endpoints/{name}")
        messages.success(request, f"Endpoint {name} is gone.")
        return redirect(f"{reverse('pages:start')}?step=1")
    change = {field: said for field in ("base_url", "key") if (said := request.POST.get(field, "").strip()) and said != request.POST.get(f"was_{field}")}
    if change:
        door.call(request, "PATCH", f"/bench/endpoints/{name}", change)
    return tried(request, name)


def tried(request: HttpRequest, name: str) -> HttpResponse:
    """Asks an endpoint for its list: the connection's test. The next page says how it went."""
    found = door.read(request, "/bench/candidates", endpoint=name, refresh=1, limit=1)
    if not found["listings"][0]["error"]:
        count = found["listings"][0]["models"]
        messages.success(request, f"{name} answers, and lists {count:,} model{'' if count == 1 else 's'}.")
    return redirect(f"{reverse('pages:start')}?{urlencode({'endpoint': name})}")


def look_nearby(request: HttpRequest) -> HttpResponse:
    return draw(request, "1", nearby=door.call(request, "POST", "/bench/nearby"), way="nearby")


def sign_in(request: HttpRequest) -> HttpResponse:
    """Starts a sign-in. The provider's page is shown in this answer alone: its address works once."""
    body = {field: said for field in ("provider", "flow", "client_id") if (said := request.POST.get(field, "").strip())}
    started = door.call(request, "POST", "/bench/signins", body)
    request.session["first_steps_signin"] = started["id"]
    return draw(request, "1", signin=started, way="signin")


@page("admin")
def signin_part(request: HttpRequest, signin: str) -> HttpResponse:
    """How a sign-in stands; leads on once it is done."""
    shown = door.read(request, f"/bench/signins/{signin}")
    if shown["state"] != "done":
        return framed(request, "pages/start/signin.html", {"title": "Signing in", "signin": shown})
    return led(request, f"{reverse('pages:start')}?{urlencode({'endpoint': shown['endpoint']})}")


def led(request: HttpRequest, address: str) -> HttpResponse:
    """Goes to another page, also from a part of one."""
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)


# ------------------------------------------------------------------ the demo model


def demo_on(request: HttpRequest) -> HttpResponse:
    door.call(request, "POST", "/bench/demo")
    return redirect(f"{reverse('pages:start')}?step=1&way=demo")


def demo_off(request: HttpRequest) -> HttpResponse:
    door.call(request, "DELETE", "/bench/demo", download=1 if request.POST.get("download") else None)
    messages.success(request, "The demo model is switched off.")
    return redirect(f"{reverse('pages:start')}?step=1")


@page("operate")
def demo_part(request: HttpRequest) -> HttpResponse:
    """How far the demo model is; leads on once it runs."""
    shown = door.read(request, "/bench/demo")
    if shown["stage"] == "running":
        messages.success(request, "The demo model runs.")
        return led(request, f"{reverse('pages:start')}?step=3")
    return framed(request, "pages/start/demo.html", {"title": "The demo model", "demo": with_progress(shown), "mb": 130})


def with_progress(demo: dict[str, Any]) -> dict[str, Any]:
    total = demo["total_bytes"]
    percent = round(100 * demo["done_bytes"] / total) if total else 0
    return {**demo, "is_busy": demo["stage"] in DEMO_BUSY, "percent": percent, "mb": demo["done_bytes"] // 1_000_000, "of_mb": total // 1_000_000}


# ------------------------------------------------------------------ 2: its models


def choosing(request: HttpRequest, endpoint: str, batch: str) -> dict[str, Any]:
    """What step 2 shows: the batch that is under way, else what the endpoint serves."""
    context: dict[str, Any] = {"endpoint": endpoint, "find": request.GET.get("find", "")}
    if batch:
        context |= batch_shown(request, batch)
    if not endpoint:
        return context
    try:
        found = door.read(request, "/bench/candidates", endpoint=endpoint, text=context["find"], all=1, limit=MOST_SHOWN)
        if found["listings"][0]["tried_at"] is None:
            found = door.read(request, "/bench/candidates", endpoint=endpoint, text=context["find"], all=1, limit=MOST_SHOWN, refresh=1)
    except Refused as refused:
        return context | {"endpoint": "", "refused": refused}
    rows = [{**one, **picks.told(one["facts"]), "pick": picks.written(one["endpoint"], one["served_name"])} for one in found["data"] if one["chat"]]
    new = [row for row in rows if not row["on_roster"]]
    for row in new:
        row["ticked"] = len(new) <= 3
    return context | {
        "listing": found["listings"][0],
        "rows": rows,
        "total": found["total"],
        "is_cut": found["next"] is not None,
        "there": len(rows) - len(new),
    }


def add_models(request: HttpRequest) -> HttpResponse:
    """Adds what was ticked: put on the roster as it is, or asked first whether it answers."""
    chosen = picks.by_endpoint(request.POST.getlist("pick"))
    endpoint = request.POST.get("endpoint", "")
    again = f"{reverse('pages:start')}?{urlencode({'endpoint': endpoint})}"
    if not chosen:
        messages.info(request, "Tick the models that you want first.")
        return redirect(again)
    if request.POST.get("do") == "add":
        added = [
            alias for at, names in chosen.items() for alias in door.call(request, "POST", "/bench/candidates", {"endpoint": at, "served_names": names})["added"]
        ]
        messages.success(request, f"Added {len(added)} model{'' if len(added) == 1 else 's'}.")
        return redirect(f"{reverse('pages:start')}?step=3")
    at, names = next(iter(chosen.items()))
    started = door.call(request, "POST", "/bench/onboard", {"endpoint": at, "served_names": names, "mode": "quick"})
    return redirect(f"{reverse('pages:start')}?{urlencode({'endpoint': at, 'batch': started['batch']})}")


def batch_shown(request: HttpRequest, batch: str) -> dict[str, Any]:
    shown = with_counts(door.read(request, f"/bench/onboard/{batch}"))
    for model in shown["models"]:
        model["steps"] = [step(model, name) for name in STAGES.get(shown["mode"], ("register",))]
    return {"batch": shown, "is_open": shown["state"] in OPEN, "failed": [model for model in shown["models"] if model["state"] == "failed"]}


@page("operate")
def batch_part(request: HttpRequest, batch: str) -> HttpResponse:
    """How far the models of step 2 are; leads on once all of them answered."""
    shown = batch_shown(request, batch)
    if shown["is_open"]:
        return framed(request, "pages/start/batch.html", {"title": "Adding models", **shown})
    where = {"step": "3"} if not shown["failed"] else {"endpoint": shown["batch"]["endpoint"], "batch": batch}
    if not shown["failed"]:
        messages.success(request, f"{shown['batch']['total']} model{' answers' if shown['batch']['total'] == 1 else 's answer'}.")
    return led(request, f"{reverse('pages:start')}?{urlencode(where)}")


# ------------------------------------------------------------------ 3: a collection, 4: asking


def collecting(models: list[dict[str, Any]], collections: list[dict[str, Any]]) -> dict[str, Any]:
    """What step 3 suggests: a free name, and who joined last."""
    taken = {one["name"].casefold() for one in collections}
    is_demo = bool(models) and all(model["endpoint"] == "demo" for model in models)
    names = ("demo", "demo-2", "demo-3") if is_demo else ("core", "second", "third")
    newest = sorted(models, key=lambda model: model["created_at"], reverse=True)[:MOST_MEMBERS]
    ticked = {model["alias"] for model in newest if not model["ad_hoc"]} if len(newest) <= 6 else {model["alias"] for model in newest[:4]}
    if is_demo:  # one of four explores, so that a panel shows that too
        ticked = {model["alias"] for model in newest[-3:]}
    newest.sort(key=lambda model: (model["alias"] not in ticked, model["alias"].casefold()))
    return {"suggested": next((name for name in names if name not in taken), ""), "newest": newest, "ticked": ticked}


def make_collection(request: HttpRequest) -> HttpResponse:
    members = request.POST.getlist("members")
    body = {"name": request.POST.get("name", "").strip(), "members": members, "mergers": members[:1]}
    if not members:
        raise Refused(400, "invalid_request", "Tick at least one model: a collection without members answers nothing.", "members")
    made = door.call(request, "POST", "/bench/collections", body)
    return redirect(f"{reverse('pages:start')}?{urlencode({'step': 4, 'collection': made['name']})}")


def named_first(collections: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The collection to ask: the one that was just made, else the first. With the address where it is asked, once that page is there."""
    found = next((one for one in collections if one["name"] == name), collections[0] if collections else None)
    if found is None:
        return {}
    try:
        address = f"{reverse('pages:ask')}?{urlencode({'collection': found['name']})}"
    except NoReverseMatch:
        address = ""
    return {**found, "address": address}


ACTS = {
    "endpoint": add_endpoint,
    "change": change_endpoint,
    "nearby": look_nearby,
    "signin": sign_in,
    "demo": demo_on,
    "demo_off": demo_off,
    "add": add_models,
    "check": add_models,
    "collect": make_collection,
}

# Fields that show what is wrong with them; all else is told above the step.
AT_FIELD = {"name", "kind", "base_url", "key", "members"}
# Where a form that was refused stands.
WAYS = {"endpoint": "key", "signin": "signin", "nearby": "nearby", "demo": "demo", "demo_off": "demo"}
OPENED = {"change": "2", "add": "2", "check": "2", "collect": "3"}

urlpatterns = [
    path("start", start, name="start"),
    path("start/demo", demo_part, name="start_demo"),
    path("start/signin/<str:signin>", signin_part, name="start_signin"),
    path("start/batch/<str:batch>", batch_part, name="start_batch"),
]
