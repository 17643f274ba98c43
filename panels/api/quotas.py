"""Quotas: what is left of everything that is limited, and when it begins anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rest_framework.request import Request

from access.pages import sliced
from access.sheets import Money, Sheet
from health import rests
from health.costs import usd_text
from health.quotas import USD, Quota, quotas
from health.resting import Resting
from panels.api import shapes, sheets, usage_shapes
from panels.api.view import View, listed
from wire.errors import CallerError

SCOPES = ("endpoint", "model", "key", "owner", "team", "collection")
AMOUNTS = ("limit", "used", "left")
COLUMNS = tuple(usage_shapes.Quota().get_fields())


class Quotas(View):
    scopes = {"GET": ("read",)}

    @shapes.described(
        operation_id="list_quotas",
        parameters=[*shapes.PAGE, usage_shapes.SCOPE, usage_shapes.NAME, usage_shapes.FORMAT],
        responses=shapes.page_of(usage_shapes.Quota),
    )
    def get(self, request: Request) -> Any:
        """Lists every limit and budget with what is used, what is left, when it resets, and what the provider itself last said."""
        is_wanted = wanted(request)
        found = [one for one in quotas(timezone.now()) if is_wanted(one)]
        if sheets.is_wanted(request):
            return Sheet("quotas", COLUMNS, (as_cells(one) for one in sorted(found, key=in_order)))
        return listed(sliced(found, in_order, *self.page_wanted()).mapped(as_json))


class Rests(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_rests", parameters=shapes.PAGE, responses=shapes.page_of(usage_shapes.Rest))
    def get(self, request: Request) -> Any:
        """Lists who is left alone now, until when and why."""
        found = rests.resting(timezone.now()).values()
        return listed(sliced(found, lambda one: (one.scope,), *self.page_wanted()).mapped(rest_as_json))


def rest_as_json(one: Resting) -> dict[str, Any]:
    scope, _, name = one.scope.partition(":")
    return {"scope": scope, "name": name, "kind": one.kind, "until": one.until, "reason": one.reason, "since": one.since}


def wanted(request: Request) -> Callable[[Quota], bool]:
    """Reads ?scope= and ?find=. Errors: CallerError."""
    scopes = [said for said in request.query_params.get("scope", "").split(",") if said]
    if not set(scopes) <= set(SCOPES):
        raise CallerError("invalid_request", f"scope must be out of {', '.join(SCOPES)}.", field="scope")
    find = request.query_params.get("find", "").casefold()
    return lambda one: (not scopes or one.scope in scopes) and find in one.name.casefold()


def in_order(one: Quota) -> tuple[str, ...]:
    return one.scope, one.name, one.measure, one.window, one.direction, one.source


def as_json(one: Quota) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(one, name) for name in COLUMNS}
    row["direction"] = one.direction or None
    if one.measure == USD:
        row |= {name: usd_text(row[name]) for name in AMOUNTS}
    return row


def as_cells(one: Quota) -> list[Any]:
    row = as_json(one)
    return [Money(row[name]) if one.measure == USD and name in AMOUNTS else row[name] for name in COLUMNS]
