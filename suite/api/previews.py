"""A launch looked at before it is made."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.runs import launch_of
from suite.api.view import View
from suite.running.preview import preview


class Preview(View):
    scopes = {"POST": ("runs:write",)}

    def post(self, request: Request) -> Response:
        """Tells what a launch would send, to whom, and what it would cost; nothing is kept and nothing is sent. The body is a launch's."""
        return Response(preview(self.caller, launch_of(self)))
