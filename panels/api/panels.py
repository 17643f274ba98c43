"""Panels on record: the list without texts, one with them, and taking its texts away."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.auth import NotAllowed
from panels import history, lookup
from panels.api import shapes
from panels.api.view import View, answer, listed, not_found


class Panels(View):
    scopes = {"GET": ("read", "ask")}

    @shapes.described(operation_id="list_panels", parameters=[*shapes.PAGE, shapes.COLLECTION], responses=shapes.page_of(shapes.PanelListed))
    def get(self, request: Request) -> Response:
        """Lists panels, newest first, without prompts and answers. Whoever may not read sees what they asked themselves."""
        whose = None if self.caller.may("read") else self.caller
        return listed(history.panels(whose, request.query_params.get("collection", "").replace("\0", "\ufffd"), *self.page_wanted()))


class Panel(View):
    scopes = {"GET": ("operate", "ask"), "DELETE": ("operate", "ask")}

    def found(self, panel_id: str) -> dict[str, Any]:
        """Errors: CallerError 404; NotAllowed 403 for somebody else's panel without `operate`."""
        panel = history.panel(panel_id) if panel_id.isprintable() else None
        if panel is None:
            raise not_found("panel", panel_id)
        if not self.caller.may("operate") and not lookup.is_own(self.caller, panel["judge"], panel["key_id"]):
            raise NotAllowed("This panel was asked by somebody else. Its texts are open to who asked it and to operators.")
        return panel

    @shapes.described(operation_id="get_panel", responses=shapes.PanelWhole)
    def get(self, request: Request, panel_id: str) -> Response:
        """Shows a panel with its seats, their answers and verdicts. A direct or routed call is a panel of one seat."""
        return answer(self.found(panel_id))

    @shapes.described(operation_id="delete_panel_texts", request=None, responses={204: None})
    def delete(self, request: Request, panel_id: str) -> Response:
        """Takes a panel's prompt and answers away for good. Sums, seats and verdicts stay."""
        self.found(panel_id)
        history.delete_texts(panel_id, self.actor)
        return Response(status=204)
