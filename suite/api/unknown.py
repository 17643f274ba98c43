"""What there is not, below /v1."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.problems import NotYet, Problem
from suite.api.view import View

# What the contract names and a later version brings: the beginning of the path, the feature, and what to do meanwhile.
LATER = (
    ("/v1/webhooks", "Webhooks", "Follow a run's events, or wait for its end with ?wait=."),
    ("/v1/secrets", "The secrets proxy", "Keys of providers belong to endpoints: POST /bench/endpoints."),
    ("/v1/host-policy", "The host policy", "Sandboxes have no network but the model proxy."),
)


class Unknown(View):
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def answer(self, request: Request) -> Response:
        for begin, feature, instead in LATER:
            if request.path == begin or request.path.startswith(f"{begin}/"):
                raise NotYet(feature, instead)
        raise Problem(
            404, "not_found", "There is nothing here. GET /v1/openapi.json describes what there is below /v1; the gateway's formats are in docs/GATEWAY.md."
        )

    get = post = put = patch = delete = answer
