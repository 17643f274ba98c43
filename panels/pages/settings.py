"""Settings: what people change while the server runs, when background work runs, how the server is reached, and how its parts stand."""

from __future__ import annotations

import json
from itertools import groupby
from math import isfinite
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import texts
from panels.pages.frame import framed, page

# The parts that settings stand in, by the beginning of their names; the server's own facts are on another page.
GROUPS = {
    "records": "Verdicts",
    "retention": "How long things are kept",
    "health": "Probes and retirement",
    "catalog": "Public catalogs",
    "discover": "Discover",
    "nearby": "First steps",
    "signins": "Sign-ins at providers",
    "suite": "Benchmarks",
}
TITLES = {
    "records.half_life_days": "Half-life of a verdict",
    "retention.calls_days": "Calls in the ledger",
    "retention.probes_days": "Probes and drift answers",
    "retention.alerts_days": "Alerts that somebody has seen",
    "health.failed_probes": "Failing days before the last look",
    "health.confirm_after_minutes": "Wait before the last look",
    "catalog.sources": "Catalogs that are read",
    "discover.own_app": "Models free only to a provider's own app",
    "suite.starter": "Ask models the starter pack by itself",
    "nearby.addresses": "Addresses to look for model servers at",
}
SCHEDULES = {
    "catalog": "Read public catalogs",
    "probe": "Daily probe",
    "perf": "Speed",
    "drift": "Drift",
    "retention": "Delete what is old",
    "suite": "Benchmarks",
}
ON, OFF = "true", "false"


def unit_of(name: str) -> str:
    return next((unit for unit in ("days", "minutes", "hours", "seconds") if name.endswith(f"_{unit}")), "")


def kind_of(default: Any) -> str:
    """Which field a setting is changed by, told from its default."""
    match default:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "lines"
        case dict() if default and all(isinstance(said, bool) for said in default.values()):
            return "switches"
    return "json"


def typed(value: Any, kind: str) -> Any:
    """A value as its field shows it."""
    match kind:
        case "lines":
            return "\n".join(map(str, value))
        case "json":
            return json.dumps(value, ensure_ascii=False)
        case "number":
            return f"{value:g}"
    return value


def told(value: Any, kind: str) -> str:
    """A value in words."""
    match kind:
        case "truth":
            return "yes" if value else "no"
        case "switches":
            return ", ".join(name for name, is_on in value.items() if is_on) or "none"
        case "lines":
            return ", ".join(value) or "none"
        case "number":
            return f"{value:g}"
        case "json":
            return json.dumps(value, ensure_ascii=False) if value else "none"
    return str(value) or "none"


@page("read", "POST")
def settings(request: HttpRequest) -> HttpResponse:
    """Shows every setting with what it means, and changes one."""
    refused: Refused | None = None
    name = request.POST.get("name", "")
    if request.method == "POST":
        try:
            value = None if "default" in request.POST else sent(request, door.read(request, f"/bench/settings/{name}"))
            door.call(request, "PATCH", f"/bench/settings/{name}", {"value": value})
        except Refused as no:
            refused = no
        else:
            messages.success(request, f"{title_of(name)}: {'the default holds again' if value is None else 'saved'}.")
            return redirect(f"{reverse('pages:settings')}#{name}")
    found = [shown(one) for one in door.everything(request, "/bench/settings") if one["writable"]]
    order = list(GROUPS)
    found.sort(key=lambda one: (order.index(one["group"]) if one["group"] in GROUPS else len(order), one["group"], one["name"]))
    for one in found:
        if refused and one["name"] == name:
            one |= {"wrong": refused.detail, "typed": request.POST.get("value", one["typed"])}
    groups = [(GROUPS.get(group, group), list(of)) for group, of in groupby(found, key=lambda one: one["group"])]
    context = {"title": "Settings", "tab": "settings", "groups": groups, "refused": refused}
    return framed(request, "pages/settings.html", context, status=refused.status if refused else 200)


def title_of(name: str) -> str:
    _, _, last = name.partition(".")
    return TITLES.get(name) or last.replace("_client_id", ": client id").replace("_", " ").capitalize()


def shown(one: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(one["default"])
    return {
        **one,
        "group": one["name"].partition(".")[0],
        "title": title_of(one["name"]),
        "unit": unit_of(one["name"]),
        "kind": kind,
        "typed": typed(one["value"], kind),
        "says": told(one["value"], kind),
        "default_says": told(one["default"], kind),
    }


def sent(request: HttpRequest, one: dict[str, Any]) -> Any:
    """A field's value as the API takes it; what does not read as what it should be goes on as typed: the API says what is wrong with it."""
    said = request.POST.get("value", "").strip()
    match kind_of(one["default"]):
        case "truth":
            return said == ON
        case "switches":
            return {name: name in request.POST.getlist("value") for name in one["default"]}
        case "lines":
            return texts(request.POST.get("value", ""))
        case "number" | "json":
            try:
                value = json.loads(said, parse_constant=float)
            except ValueError:
                return said
            return said if isinstance(value, float) and not isfinite(value) else value
    return said


# ------------------------------------------------------------------ schedules


@page("read", "POST")
def schedules(request: HttpRequest) -> HttpResponse:
    """Lists schedules; operators switch, change and run them."""
    refused: Refused | None = None
    name = request.POST.get("name", "")
    if request.method == "POST":
        try:
            said = change(request, name)
        except Refused as no:
            refused = no
        else:
            messages.success(request, said)
            return redirect(f"{reverse('pages:schedules')}#{name}")
    found = [one | {"title": SCHEDULES.get(one["name"], one["name"])} for one in door.everything(request, "/bench/schedules")]
    order = list(SCHEDULES)
    found.sort(key=lambda one: order.index(one["name"]) if one["name"] in SCHEDULES else len(order))
    for one in found:
        if refused and one["name"] == name:
            one |= {"wrong": {refused.field: refused.detail}, "typed": request.POST.dict()}
    context = {"title": "Settings", "tab": "schedules", "schedules": found, "refused": refused}
    return framed(request, "pages/settings/schedules.html", context, status=refused.status if refused else 200)


def change(request: HttpRequest, name: str) -> str:
    """Does what the form asks of one schedule, and says what was done. Errors: Refused."""
    title = SCHEDULES.get(name, name)
    match request.POST.get("do", ""):
        case "run":
            door.call(request, "POST", f"/bench/schedules/{name}/run")
            return f"{title}: it runs now. What came of it will stand here."
        case "switch":
            to = request.POST.get("enabled") == ON
            door.call(request, "PATCH", f"/bench/schedules/{name}", {"enabled": to})
            return f"{title} is {'on' if to else 'off'}."
    changes = {field: request.POST.get(field, "").strip() or None for field in ("cron", "time_zone")}
    changed = door.call(request, "PATCH", f"/bench/schedules/{name}", changes)
    return f"{title} now runs: {changed['words'][:1].lower()}{changed['words'][1:]}, {changed['time_zone']}."


@page("read")
def schedule(request: HttpRequest) -> HttpResponse:
    """Shows the newest runs of one schedule."""
    name = request.GET.get("name", "")
    found = door.read(request, f"/bench/schedules/{name}")
    for run in found["runs"]:
        run["told"] = [(key.replace("_", " "), len(said) if isinstance(said, list | dict) else said) for key, said in (run["report"] or {}).items()]
    return framed(request, "pages/settings/runs.html", {"title": SCHEDULES.get(name, name), "one": found})


# ------------------------------------------------------------------ the server

ACCESS = {
    "server.host": "Listens on",
    "server.port": "Port",
    "server.on_loopback": "Reached from this machine only",
    "server.public_url": "Public address",
    "server.allowed_hosts": "Names it answers to",
    "server.allowed_origins": "Web pages that may call it",
    "server.trusted_proxies": "Proxies it believes",
    "server.admin_token_is_set": "Admin's password is set",
    "server.secret_keys": "Keys that seal secrets",
}
RUNNING = {
    "server.version": "Version",
    "server.database": "Database",
    "server.broker": "Queue rung through",
    "server.workers": "Web processes",
    "server.max_calls": "Calls at once in each",
    "server.max_body_mb": "Largest request, MB",
    "server.keep_text_days": "Days prompts and answers are kept",
    "server.time_zone": "Time zone",
}


@page("read", "POST")
def server(request: HttpRequest) -> HttpResponse:
    """Shows how the server is reached and how its parts stand; operators read catalogs anew."""
    if request.method == "POST":
        door.call(request, "POST", "/bench/schedules/catalog/run")
        messages.success(request, "The catalogs are being read. Look again in a minute.")
        return redirect("pages:server")
    facts = {one["name"]: one for one in door.everything(request, "/bench/settings") if not one["writable"]}
    known = {*ACCESS, *RUNNING}
    context = {
        "title": "Settings",
        "tab": "server",
        "status": door.read(request, "/bench/status"),
        "access": in_order(facts, ACCESS),
        "running": in_order(facts, RUNNING) + in_order(facts, {name: title_of(name) for name in facts if name not in known}),
        "sources": door.read(request, "/bench/sources")["data"],
    }
    return framed(request, "pages/settings/server.html", context)


def in_order(facts: dict[str, Any], titles: dict[str, str]) -> list[dict[str, Any]]:
    return [{"title": title, "says": fact_told(facts[name]["value"]), "tells": facts[name]["tells"]} for name, title in titles.items() if name in facts]


def fact_told(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value)) or "none"
        case None | "":
            return "not set"
    return str(value)


urlpatterns = [
    path("settings", settings, name="settings"),
    path("settings/schedules", schedules, name="schedules"),
    path("settings/schedule", schedule, name="schedule"),
    path("settings/server", server, name="server"),
]
