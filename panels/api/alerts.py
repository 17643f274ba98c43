"""Alerts: what somebody should know of, and that somebody does."""

from __future__ import annotations

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from health import alerts
from panels.api import shapes, usage_shapes
from panels.api.view import View, listed, not_found
from wire.errors import CallerError

NUMBER = re.compile(r"[0-9]{1,18}")
UNSEEN = OpenApiParameter("unseen", bool, description="true: only those that nobody has seen.")


class Alerts(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_alerts", parameters=[*shapes.PAGE, UNSEEN], responses=shapes.page_of(usage_shapes.Alert))
    def get(self, request: Request) -> Response:
        """Lists alerts, newest first."""
        wanted = request.query_params.get("unseen", "") or "false"
        if wanted not in ("true", "false", "1", "0"):
            raise CallerError("invalid_request", "unseen must be true or false.", field="unseen")
        return listed(alerts.alerts(*self.page_wanted(), unseen_only=wanted in ("true", "1")))


class Seen(View):
    scopes = {"POST": ("operate",)}

    @shapes.described(operation_id="see_alert", request=None, responses={204: None})
    def post(self, request: Request, alert_id: str) -> Response:
        """Notes that somebody has seen an alert; it stays on the list."""
        if not NUMBER.fullmatch(alert_id) or not alerts.see(int(alert_id), self.actor):
            raise not_found("alert", alert_id)
        return Response(status=204)
