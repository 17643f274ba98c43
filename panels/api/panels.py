"""Panels on record: the list without texts, one with them, as a file, and taking its texts away."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from access.auth import NotAllowed
from panels import exporting, history, lookup, openings
from panels.api import panel_shapes, shapes
from panels.api.panel_lists import PARAMETERS, filters_of
from panels.api.view import View, answer, listed, not_found
from panels.api.wording import to_json
from panels.looking import LOOKED_THROUGH
from wire.errors import CallerError


class Panels(View):
    scopes = {"GET": ("read", "ask")}

    @shapes.described(operation_id="list_panels", parameters=[*shapes.PAGE, *PARAMETERS], responses=shapes.page_of(panel_shapes.PanelListed))
    def get(self, request: Request) -> Response:
        """Lists panels, newest first, with how their prompts begin and no answers. Whoever may not read sees what they asked themselves."""
        filters = filters_of(request)
        # Who may read no prompt learns nothing of it by looking for words either.
        sees_all = self.caller.may("operate") if filters.find else self.caller.may("read")
        page, is_cut_off = history.panels(None if sees_all else self.caller, filters, *self.page_wanted())
        mine = [p["panel"] for p in page.data if self.caller.may("operate") or lookup.is_own(self.caller, p["judge"], p["key_id"])]
        begins = openings.of_panels(mine)
        found = listed(page.mapped(lambda p: {**p, "opening": begins.get(p["panel"])}))
        if is_cut_off and isinstance(found.data, dict):
            found.data["searched"] = LOOKED_THROUGH
        return found


class PanelView(View):
    """What the paths of one panel share."""

    def found(self, panel_id: str) -> dict[str, Any]:
        """Errors: CallerError 404; NotAllowed 403 for somebody else's panel without `operate`."""
        panel = history.panel(panel_id) if panel_id.isprintable() else None
        if panel is None:
            raise not_found("panel", panel_id)
        if not self.caller.may("operate") and not lookup.is_own(self.caller, panel["judge"], panel["key_id"]):
            raise NotAllowed("This panel was asked by somebody else. Its texts are open to who asked it and to operators.")
        return panel


class Panel(PanelView):
    scopes = {"GET": ("operate", "ask"), "DELETE": ("operate", "ask")}

    @shapes.described(operation_id="get_panel", responses=panel_shapes.PanelWhole)
    def get(self, request: Request, panel_id: str) -> Response:
        """Shows a panel with its seats, their answers and verdicts. A direct or routed call is a panel of one seat."""
        return answer(self.found(panel_id))

    @shapes.described(operation_id="delete_panel_texts", request=None, responses={204: None})
    def delete(self, request: Request, panel_id: str) -> Response:
        """Takes a panel's prompt and answers away for good. Sums, seats and verdicts stay."""
        self.found(panel_id)
        history.delete_texts(panel_id, self.actor)
        return Response(status=204)


class PanelExport(PanelView):
    scopes = {"GET": ("operate", "ask")}

    @shapes.described(operation_id="export_panel", parameters=[shapes.EXPORT_FORMAT], responses=panel_shapes.PanelWhole)
    def get(self, request: Request, panel_id: str) -> Response | HttpResponse:
        """Gives a panel as a file: JSON, or Markdown in which no answer is markup."""
        form = request.query_params.get("format", "") or "json"
        if form not in ("json", "md"):
            raise CallerError("invalid_request", "format must be json or md.", field="format")
        panel = self.found(panel_id)
        name = f'attachment; filename="{re.sub(r"[^A-Za-z0-9_-]", "_", panel_id)[:80]}.{form}"'
        if form == "json":
            found = answer(panel)
            found["Content-Disposition"] = name
            return found
        return HttpResponse(exporting.markdown(to_json(panel)), content_type="text/markdown; charset=utf-8", headers={"Content-Disposition": name})
