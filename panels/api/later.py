"""What the contract names and a later release brings: said clearly, instead of a path that seems not to exist."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from panels.api.view import View
from wire.errors import CallerError


class Later(View):
    """One feature that is not there yet. `feature` says what it will do."""

    scopes = {"GET": ("read",)}
    feature = ""
    schema = None  # the description promises only what works

    def refuse(self, request: Request, **kwargs: object) -> Response:
        raise CallerError("not_implemented", f"{self.feature} is not part of this release yet.", status=501)

    get = post = patch = delete = refuse


class Unknown(View):
    """Every other path below /bench. It needs no right: that there is nothing is no secret."""

    permission_classes = []
    schema = None

    def refuse(self, request: Request, **kwargs: object) -> Response:
        raise CallerError("not_found", "There is no such path. GET /bench/schema lists those there are.", status=404)

    get = post = put = patch = delete = refuse
