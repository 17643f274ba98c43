"""Discover: models worth adding out of all catalogs, and what the endpoints here serve beyond the roster; ticked ones go on to onboarding."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import door, picks
from panels.pages.door import Refused
from panels.pages.frame import framed, page

SORTS = {"released": "Newest", "first_seen": "New here", "price": "Cheapest", "context": "Longest context", "name": "Name"}
FLAGS = {
    "free": "Free only",
    "reachable": "Only with a route here",
    "new": "New this week only",
    "missing": "Not on the bench yet",
    "open_weights": "Open weights only",
    "deprecated": "Deprecated too",
}
CONTEXTS = (("32000", "32k"), ("100000", "100k"), ("200000", "200k"), ("500000", "500k"), ("1000000", "1M"))
SHOWN_ROUTES = 12


@page("read")
def discover(request: HttpRequest) -> HttpResponse:
    """Lists models of all catalogs with the routes that this install has to each."""
    asked = request.GET
    query = {name: asked.get(name, "") for name in ("text", "provider", "min_context", "max_price", "sort", "page_token")}
    query |= {flag: asked.get(flag, "") for flag in FLAGS} | {"can": ",".join(asked.getlist("can"))}
    refused = None
    try:
        found = door.read(request, "/bench/discover", limit=50, **query)
    except Refused as why:
        if why.status != 400:
            raise
        refused, found = why, {"data": [], "next": None, "total": 0, "sources": []}
    endpoints = door.everything(request, "/bench/endpoints", most=500)
    is_part = request.headers.get("HX-Request") == "true"
    context = {
        "tab": "all",
        "asked": query,
        "can": asked.getlist("can"),
        "rows": [row_of(row) for row in found["data"]],
        "next": found["next"],
        "total": found["total"],
        "sources": found["sources"],
        "stale": [source for source in found["sources"] if source["on"] and source["error"]],
        "never_read": bool(found["sources"]) and all(source["read_at"] is None for source in found["sources"]),
        "sorts": SORTS,
        "contexts": CONTEXTS,
        "flags": FLAGS,
        "capabilities": picks.CAPABILITIES,
        "endpoints": [one["name"] for one in endpoints],
        "providers": [] if is_part else door.read(request, "/bench/providers")["data"],
        "is_filtered": any(query[name] for name in query if name not in ("sort", "page_token")),
        "refused": refused,
    }
    return framed(request, "pages/discover.html", context, status=refused.status if refused else 200)


def row_of(row: dict[str, Any]) -> dict[str, Any]:
    """One model as the list shows it: what it can, its best route here, and all routes, those that can be used first."""
    routes = [route_of(route) for route in row["routes"]]
    routes.sort(key=lambda route: (not route["reachable"], route["rank"]))
    here = [route for route in routes if route["reachable"]]
    return {
        **row,
        **picks.told(row["facts"]),
        "best": here[0] if here else None,
        "routes": routes[:SHOWN_ROUTES],
        "more_routes": max(0, len(routes) - SHOWN_ROUTES),
        "here": len(here),
        "own_app": any(route["own_app"] for route in routes),
    }


def route_of(route: dict[str, Any]) -> dict[str, Any]:
    prices = route["prices"]
    went, came = prices.get("input_usd_per_mtok"), prices.get("output_usd_per_mtok")
    cost = (3 * Decimal(went) + Decimal(came)) / 4 if went is not None and came is not None and not route["plan"] else None
    needs = route["needs"]
    add = ""
    if needs and needs["base_url"]:
        add = "?" + urlencode({"step": 1, "provider": route["provider"], "kind": needs["kind"], "base_url": needs["base_url"]})
    return {
        **route,
        "went": went,
        "came": came,
        # A dearer known price before an unknown one; what is free first.
        "rank": Decimal(-1) if route["free"] else Decimal(10**9) if cost is None else cost,
        "pick": picks.written(route["endpoint"], route["served_name"]) if route["reachable"] else "",
        "add": add,
    }


@page("read", "POST")
def served(request: HttpRequest) -> HttpResponse:
    """Lists what the endpoints here say that they serve and that is not on the bench. Operators have them asked again."""
    if request.method == "POST":
        return asked_again(request)
    asked = request.GET
    query = {name: asked.get(name, "") for name in ("text", "endpoint", "free", "all", "page_token")} | {"can": ",".join(asked.getlist("can"))}
    found = door.read(request, "/bench/candidates", limit=100, **query)
    rows = [{**one, **picks.told(one["facts"]), "pick": picks.written(one["endpoint"], one["served_name"])} for one in found["data"]]
    context = {
        "tab": "served",
        "asked": query,
        "can": asked.getlist("can"),
        "rows": rows,
        "next": found["next"],
        "total": found["total"],
        "listings": found["listings"],
        "endpoints": [one["name"] for one in door.everything(request, "/bench/endpoints", most=500)],
        "capabilities": picks.CAPABILITIES,
        "is_filtered": any(query[name] for name in ("text", "endpoint", "free", "can")),
    }
    return framed(request, "pages/served.html", context)


def asked_again(request: HttpRequest) -> HttpResponse:
    endpoint = request.POST.get("endpoint", "")
    found = door.read(request, "/bench/candidates", endpoint=endpoint, refresh=1, limit=1)
    for listing in found["listings"]:
        if listing["error"]:
            messages.warning(request, f"{listing['endpoint']}: {listing['error']}")
    if not any(listing["error"] for listing in found["listings"]):
        messages.success(request, f"Asked. {found['total']:,} models are not on the bench.")
    return redirect(f"{reverse('pages:served')}?{urlencode({'endpoint': endpoint})}" if endpoint else "pages:served")


@page("operate", "POST")
def read_now(request: HttpRequest) -> HttpResponse:
    """Has the public catalogs read at once."""
    if request.method == "POST":
        door.call(request, "POST", "/bench/schedules/catalog/run", {})
        messages.success(request, "The catalogs are being read. Load this page again in a moment.")
    return redirect("pages:discover")


urlpatterns = [
    path("discover", discover, name="discover"),
    path("discover/served", served, name="served"),
    path("discover/read", read_now, name="read_now"),
]
