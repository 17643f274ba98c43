"""Verdicts: sending one, and what still waits for one."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from panels import verdicts, waiting
from panels.api import panel_shapes, shapes
from panels.api.view import View, answer, listed
from wire.errors import CallerError


class Verdict(View):
    scopes = {"POST": ("judge",)}

    @shapes.described(operation_id="send_verdict", request=panel_shapes.VerdictAsked, responses=panel_shapes.VerdictKept)
    def post(self, request: Request) -> Response:
        """Keeps what the caller found of one call; a second verdict by the same judge replaces the first."""
        body = self.body()
        kept = verdicts.record_verdict(
            self.caller.judge, body.get("call"), body.get("useful"), body.get("note"), body.get("real"), body.get("false"), timezone.now()
        )
        return answer(kept)


class Verdicts(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_verdicts", parameters=[*shapes.PAGE, *shapes.VERDICT_FILTERS], responses=shapes.page_of(panel_shapes.VerdictListed))
    def get(self, request: Request) -> Response:
        """Lists what judges say now, newest first: of a model, in a collection, by a judge. What somebody said before is not among it."""
        filters = {name: said for name in ("model", "collection", "judge") if (said := request.query_params.get(name)) and "\0" not in said}
        limit, page_token = self.page_wanted()
        return listed(verdicts.listed(filters, limit, page_token))


class Pending(View):
    scopes = {"GET": ("judge",)}

    @shapes.described(operation_id="list_pending_verdicts", parameters=[*shapes.PAGE, shapes.TEXTS], responses=shapes.page_of(panel_shapes.Pending))
    def get(self, request: Request) -> Response:
        """Lists panels with answers that nobody has judged, oldest first. Operators see everybody's, others what they asked themselves."""
        everybody = self.caller.kind == "user" and self.caller.may("operate")
        limit, page_token = self.page_wanted()
        whose = None if everybody else self.caller
        if request.query_params.get("texts", "") not in ("", "0", "1"):
            raise CallerError("invalid_request", "texts must be 1, or left out.", field="texts")
        if request.query_params.get("texts", "") == "1":
            return listed(waiting.with_texts(verdicts.pending(whose, min(limit, waiting.MOST), page_token)))
        return listed(verdicts.pending(whose, limit, page_token))
