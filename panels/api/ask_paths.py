"""The paths that the gateway's own entry answers before Django does, for the description; where there is no such entry they say so."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from panels.api import ask_shapes, panel_shapes, shapes
from panels.api.view import View
from wire.errors import CallerError


class Elsewhere(View):
    scopes = {"POST": ("ask",)}

    def refuse(self) -> Response:
        raise CallerError("not_served", "This path is answered by the gateway's own entry. Start the server with manage.py serve.", status=501)


class Ask(Elsewhere):
    @shapes.described(operation_id="ask", request=ask_shapes.Asked, responses={(200, "text/event-stream"): str})
    def post(self, request: Request) -> Response:
        """Asks a panel, a route or a model, and answers as server-sent events in which seats interleave: panel, seat_started, delta, seat, done or error."""
        return self.refuse()


class Estimate(Elsewhere):
    @shapes.described(operation_id="estimate", request=ask_shapes.Asked, responses=ask_shapes.QuestionEstimate)
    def post(self, request: Request) -> Response:
        """Tells what a question would cost, seat by seat, and spends nothing."""
        return self.refuse()


class CancelCall(Elsewhere):
    @shapes.described(operation_id="cancel_call", request=None, responses={202: ask_shapes.CallCancelled})
    def post(self, request: Request, call: str) -> Response:
        """Stops one seat, or a direct or routed call, wherever it runs. What had come is kept."""
        return self.refuse()


class CancelPanel(Elsewhere):
    @shapes.described(operation_id="cancel_panel", request=None, responses={202: ask_shapes.PanelCancelled})
    def post(self, request: Request, panel_id: str) -> Response:
        """Stops all of a panel that still runs."""
        return self.refuse()


class Compare(Elsewhere):
    @shapes.described(operation_id="compare_panel", request=ask_shapes.CompareAsked, responses=panel_shapes.Comparison)
    def post(self, request: Request, panel_id: str) -> Response:
        """Has a merger list what the answers of a panel claim, each claim with quotes that stand in them. It costs what the call costs."""
        return self.refuse()
