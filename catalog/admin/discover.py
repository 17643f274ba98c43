"""The admin's page of Discover: models worth adding, the ways to them, and the way of one onto the bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from access.admin.audited import AuditedAdmin, ReadOnly, moment
from catalog import discover, reading
from catalog.admin import knobs
from catalog.discover import CAPABILITIES, SORTS, Wanted
from catalog.facts import MOST_TOKENS, MOST_USD_PER_MTOK
from catalog.models import Endpoint, Offer
from catalog.routes import Route, Row
from wire.errors import CallerError

A_PAGE = 25
MOST_ROUTES = 40
FLAGS = {
    "missing": "Not on the bench yet",
    "reachable": "Served by an endpoint here",
    "free": "Free tier",
    "open_weights": "Open weights",
    "new": "New this week",
    "deprecated": "With deprecated ones",
}
ABILITIES = {"tools": "Tools", "vision": "Vision", "reasoning": "Reasoning", "structured_output": "Structured output", "audio": "Audio", "files": "Files"}
ORDERS = {"released": "Newest first", "price": "Cheapest first", "context": "Longest context first", "name": "By name", "first_seen": "Last to appear first"}
WINDOWS = (32_000, 128_000, 200_000, 1_000_000)


@admin.register(Offer)
class DiscoverAdmin(ReadOnly, AuditedAdmin):
    """One page, made of what catalogs and endpoints' lists say; offers have no pages of their own."""

    noun = "offer"

    def get_urls(self) -> list[URLPattern]:
        return [path("", self.admin_site.admin_view(self.changelist_view), name="catalog_offer_changelist")]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = timezone.now()
        reading.read_due(now)
        wanted = wanted_of(request.GET)
        try:
            page, total = discover.find(wanted, now, A_PAGE, request.GET.get("page_token", ""))
        except CallerError:  # a page token of somebody's own
            return HttpResponseRedirect(request.path)
        kept = [(name, said) for name, values in request.GET.lists() for said in values if name != "page_token"]
        endpoints = {row.name: row.pk for row in Endpoint.objects.all()}
        return self.page(
            request,
            "admin/bench/discover.html",
            "Discover",
            opts=None,  # the frame would call the page by the table's name
            rows=[shown(row, now, endpoints) for row in page.data],
            total=total,
            next=f"?{urlencode([*kept, ('page_token', page.next)])}" if page.next else "",
            is_first=not request.GET.get("page_token"),
            clear=request.path if kept else "",
            wanted=wanted,
            min_price="" if wanted.max_price is None else f"{wanted.max_price:f}",
            providers=[{"name": name, "title": title, "on": name == wanted.provider} for name, title in places(endpoints)],
            abilities=[{"name": name, "title": title, "on": name in wanted.can} for name, title in ABILITIES.items()],
            flags=[{"name": name, "title": title, "on": request.GET.get(name) == "1"} for name, title in FLAGS.items()],
            windows=[{"size": size, "title": knobs.tokens(size), "on": size == wanted.min_context} for size in WINDOWS],
            orders=[{"name": name, "title": title, "on": name == wanted.sort} for name, title in ORDERS.items()],
            catalogs=reading.states(),
            may_add=request.user.has_perm("catalog.add_model"),
            may_add_endpoint=request.user.has_perm("catalog.add_endpoint"),
            sources_link=reverse("admin:catalog_source_changelist"),
        )


def places(endpoints: Mapping[str, int]) -> list[tuple[str, str]]:
    """What can be chosen as a provider: the endpoints here, then all that catalogs know."""
    return [(name, f"{name} (here)") for name in endpoints] + [(name, title) for name, title in discover.providers_here() if name not in endpoints]


def wanted_of(asked: QueryDict) -> Wanted:
    """Reads the form; what cannot be read is as if it was not filled in."""
    window, price = asked.get("min_context", ""), asked.get("max_price", "").strip()
    try:
        most = Decimal(price) if price and len(price) <= 20 else None
    except InvalidOperation:
        most = None
    return Wanted(
        text=asked.get("q", "").strip()[:200],
        provider=asked.get("provider", ""),
        can=tuple(name for name in asked.getlist("can") if name in CAPABILITIES),
        min_context=min(int(window), MOST_TOKENS) if window.isascii() and window.isdigit() and len(window) <= 10 else 0,
        max_price=most if most is not None and most.is_finite() and 0 <= most <= MOST_USD_PER_MTOK else None,
        free=asked.get("free") == "1",
        open_weights=asked.get("open_weights") == "1",
        reachable=asked.get("reachable") == "1",
        new=asked.get("new") == "1",
        missing=asked.get("missing") == "1",
        with_deprecated=asked.get("deprecated") == "1",
        sort=asked.get("sort", "") if asked.get("sort") in SORTS else "released",
    )


# ------------------------------------------------------------------ how a row is shown


def shown(row: Row, now: datetime, endpoints: Mapping[str, int]) -> dict[str, Any]:
    window = row.facts.get("context_window")
    return {
        "row": row,
        "is_new": row.is_new(now),
        "context": knobs.tokens(window.value) if window else "",
        "can": [title for name, title in ABILITIES.items() if (fact := row.facts.get(name)) and fact.value is True],
        "input": knobs.dollars(row.cheapest.prices.get("input_usd_per_mtok")) if row.cheapest else "",
        "output": knobs.dollars(row.cheapest.prices.get("output_usd_per_mtok")) if row.cheapest else "",
        "at": row.cheapest.title if row.cheapest else "",
        "facts": [
            {"name": name.replace("_", " "), "value": said(fact.value), "source": fact.source.replace("_", "."), "since": moment(fact.since)}
            for name, fact in row.facts.items()
        ],
        "routes": [route_shown(route, endpoints) for route in row.routes[:MOST_ROUTES]],
        "more": max(len(row.routes) - MOST_ROUTES, 0),
    }


def said(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else str(value)


def route_shown(route: Route, endpoints: Mapping[str, int]) -> dict[str, Any]:
    """A way to the model; `add` is where ticking it on the endpoint's own page of served models would go."""
    here = endpoints.get(route.endpoint)
    needs = route.needs
    new = (
        {"kind": needs.kind, "base_url": needs.base_url, "name": route.provider}
        if needs and needs.kind and needs.base_url and "${" not in needs.base_url
        else {}
    )
    return {
        "route": route,
        "input": "" if route.is_plan else knobs.dollars(route.prices.get("input_usd_per_mtok")),
        "output": "" if route.is_plan else knobs.dollars(route.prices.get("output_usd_per_mtok")),
        "context": knobs.tokens(route.context_window),
        "limits": knobs.said(route.limits),
        "marks": marks(route),
        "add": reverse("admin:catalog_endpoint_serves", args=[here]) if here is not None and route.is_reachable else "",
        "new_endpoint": f"{reverse('admin:catalog_endpoint_add')}?{urlencode(new)}" if new else "",
    }


def marks(route: Route) -> Iterable[str]:
    """What should be known before it is chosen, in a word or two each."""
    found = [
        ("free", route.free and not route.own_app),
        ("free only in its own app", route.own_app),
        ("subscription", route.is_plan),
        ("deprecated", route.is_deprecated),
        ("not in its list", route.is_listed is False),
    ]
    return [word for word, holds in found if holds]
