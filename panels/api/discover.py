"""Discover: models worth adding, out of all catalogs and what endpoints here list."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access.pages import Page
from catalog import discover, facts, reading
from catalog.discover import CAPABILITIES, SORTS, Wanted
from catalog.routes import Route, Row
from panels.api import discover_shapes as found_shapes
from panels.api import shapes
from panels.api.view import View
from panels.api.wording import to_json
from wire.errors import CallerError

MOST_CONTEXT = 1_000_000_000


class Discover(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_discover", parameters=found_shapes.WANTED, responses=found_shapes.DiscoveredPage)
    def get(self, request: Request) -> Response:
        """Lists models worth adding, each with the routes that this install has to it. Catalogs that are a day old are read again meanwhile."""
        wanted = wanted_of(request)
        limit, page_token = self.page_wanted()
        now = timezone.now()
        reading.read_due(now)
        model = request.query_params.get("model", "")
        if model:
            row = discover.row_of(model)
            page, total = (Page([row], None), 1) if row else (Page([], None), 0)
        else:
            page, total = discover.find(wanted, now, limit, page_token)
        states = [
            {"name": s.name, "title": s.title, "on": s.is_on, "read_at": to_json(s.read_at), "error": s.error, "offers": s.offers} for s in reading.states()
        ]
        return Response({"data": [shown(row, now) for row in page.data], "next": page.next, "total": total, "sources": states})


# What was written of rows, by model: pages are asked for over and over, and rows stand until something changes.
_written: dict[str, tuple[Row, dict[str, Any]]] = {}


def shown(row: Row, now: datetime) -> dict[str, Any]:
    """One row in JSON; only whether it is new depends on the moment."""
    kept = _written.get(row.model)
    if kept is None or kept[0] is not row:
        kept = _written[row.model] = (row, written(row))
    return {**kept[1], "new": row.is_new(now)}


def written(row: Row) -> dict[str, Any]:
    cheapest = row.cheapest
    return {
        "model": row.model,
        "title": row.title,
        "maker": row.maker,
        "family": row.family,
        "facts": to_json(row.facts),
        "cheapest": None
        if cheapest is None
        else {
            "provider": cheapest.provider,
            "endpoint": cheapest.endpoint or None,
            "served_name": cheapest.served_name,
            "input_usd_per_mtok": cheapest.prices["input_usd_per_mtok"],
            "output_usd_per_mtok": cheapest.prices["output_usd_per_mtok"],
        },
        "free": row.is_free,
        "reachable": row.is_reachable,
        "new": False,
        "deprecated": row.is_deprecated,
        "released": row.released or None,
        "knowledge": row.knowledge or None,
        "open_weights": row.open_weights,
        "first_seen_at": to_json(row.first_seen_at),
        "notes": list(row.notes),
        "on_roster": list(row.on_roster),
        "routes": [route_shown(route) for route in row.routes],
    }


def route_shown(route: Route) -> dict[str, Any]:
    return {
        "kind": route.kind,
        "provider": route.provider,
        "title": route.title,
        "served_name": route.served_name,
        "endpoint": route.endpoint or None,
        "listed": route.is_listed,
        "reachable": route.is_reachable,
        "needs": to_json(route.needs),
        "context_window": route.context_window,
        "prices": to_json(route.prices),
        "free": route.free,
        "own_app": route.own_app,
        "plan": route.is_plan,
        "deprecated": route.is_deprecated,
        "limits": to_json(route.limits),
        "budget": route.budget,
        "sources": list(route.sources),
    }


# ------------------------------------------------------------------ what is asked for


def wanted_of(request: Request) -> Wanted:
    """Reads the filters. Errors: CallerError 400 naming the one that is wrong."""
    asked = request.query_params
    sort = asked.get("sort", "") or "released"
    if sort not in SORTS:
        raise CallerError("invalid_request", f"sort must be one of {', '.join(SORTS)}.", field="sort")
    return Wanted(
        text=asked.get("text", ""),
        provider=asked.get("provider", ""),
        can=can_of(request),
        min_context=whole(asked.get("min_context", ""), "min_context"),
        max_price=price(asked.get("max_price", "")),
        free=flag(request, "free"),
        open_weights=flag(request, "open_weights"),
        reachable=flag(request, "reachable"),
        new=flag(request, "new"),
        missing=flag(request, "missing"),
        with_deprecated=flag(request, "deprecated"),
        sort=sort,
    )


def can_of(request: Request) -> tuple[str, ...]:
    """Reads ?can=. Errors: CallerError 400."""
    can = tuple(name for name in request.query_params.get("can", "").split(",") if name)
    if wrong := next((name for name in can if name not in CAPABILITIES), None):
        raise CallerError("invalid_request", f"can holds {wrong[:40]!r}; it takes {', '.join(CAPABILITIES)}, with commas.", field="can")
    return can


def flag(request: Request, name: str) -> bool:
    """Reads ?name=1. Errors: CallerError 400."""
    said = request.query_params.get(name, "").lower()
    if said in ("", "0", "false"):
        return False
    if said in ("1", "true"):
        return True
    raise CallerError("invalid_request", f"{name} must be 1 or 0.", field=name)


def whole(text: str, field: str) -> int:
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MOST_CONTEXT:
        return int(text)
    raise CallerError("invalid_request", f"{field} must be a whole number of tokens, up to {MOST_CONTEXT:,}.", field=field)


def price(text: str) -> Decimal | None:
    if not text:
        return None
    try:
        amount = Decimal(text) if len(text) <= 20 and text.isascii() else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= facts.MOST_USD_PER_MTOK:
        raise CallerError("invalid_request", "max_price must be US dollars per million tokens, like 0.5.", field="max_price")
    return amount
