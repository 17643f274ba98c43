"""What is no path below /bench: said clearly, and in the shape of every other refusal."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from panels.api.view import View
from wire.errors import CallerError


class Unknown(View):
    """Every other path below /bench. It needs no right: that there is nothing is no secret."""

    permission_classes = []
    schema = None

    def refuse(self, request: Request, **kwargs: object) -> Response:
        raise CallerError("not_found", "There is no such path. GET /bench/schema lists those there are.", status=404)

    get = post = put = patch = delete = refuse
