"""Budgets of owners, teams and collections, each with what is spent of it this month. A key's own stands on the key."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import budgets
from access.budgets import Limit
from access.pages import sliced
from health import budgets as money
from health.budgets import Standing
from health.costs import usd_text
from panels.api import shapes, usage_shapes
from panels.api.view import View, answer, listed, not_found
from wire.errors import CallerError


class BudgetPaths(View):
    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case budgets.UnknownBudget():
                exc = not_found("budget", str(exc))
            case budgets.BudgetTaken():
                exc = CallerError("in_use", str(exc), status=409, field="name")
        return super().handle_exception(exc)


class Budgets(BudgetPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_budgets", parameters=shapes.PAGE, responses=shapes.page_of(usage_shapes.Budget))
    def get(self, request: Request) -> Response:
        """Lists budgets by kind and name, with what is spent, reserved and left this month."""
        page = sliced(budgets.load().by_name.values(), lambda one: (one.kind, one.name), *self.page_wanted())
        stand = {(one.limit.kind, one.limit.name): one for one in money.standings(page.data, timezone.now())}
        return listed(page.mapped(lambda one: as_json(stand[one.kind, one.name])))

    @shapes.described(operation_id="add_budget", request=usage_shapes.BudgetAsked, responses={201: usage_shapes.Budget})
    def post(self, request: Request) -> Response:
        """Sets a budget, from the next request on. What was spent this month before counts."""
        return answer(shown(budgets.make(self.body(budgets.FIELDS), self.actor)), status=201)


class Budget(BudgetPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_budget", responses=usage_shapes.Budget)
    def get(self, request: Request, kind: str, name: str) -> Response:
        """Shows a budget."""
        return answer(shown(budgets.find(kind, name)))

    @shapes.described(operation_id="change_budget", request=usage_shapes.BudgetChanged, responses=usage_shapes.Budget)
    def patch(self, request: Request, kind: str, name: str) -> Response:
        """Changes the amount or the percents that alert, from the next request on."""
        return answer(shown(budgets.change(kind, name, self.body(budgets.FIELDS), self.actor)))

    @shapes.described(operation_id="delete_budget", request=None, responses={204: None})
    def delete(self, request: Request, kind: str, name: str) -> Response:
        """Takes a budget away, from the next request on."""
        budgets.delete(kind, name, self.actor)
        return Response(status=204)


def shown(limit: Limit) -> dict[str, Any]:
    (found,) = money.standings([limit], timezone.now())
    return as_json(found)


def as_json(one: Standing) -> dict[str, Any]:
    return {
        "kind": one.limit.kind,
        "name": one.limit.name,
        "budget_usd": one.limit.budget_usd,
        "alert_at": one.limit.alert_at,
        "spent_usd": usd_text(one.spent_pusd),
        "reserved_usd": usd_text(one.reserved_pusd),
        "left_usd": usd_text(one.left_pusd),
        "resets_at": one.resets_at,
        "created_at": one.limit.created_at,
    }
