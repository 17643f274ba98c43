"""What there is not, below /v1."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.problems import Problem
from suite.api.view import View


class Unknown(View):
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def answer(self, request: Request) -> Response:
        raise Problem(
            404, "not_found", "There is nothing here. GET /v1/openapi.json describes what there is below /v1; the gateway's formats are in docs/GATEWAY.md."
        )

    get = post = put = patch = delete = answer
