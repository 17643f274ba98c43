"""Endpoints: the addresses that serve models. Their keys go in and never come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.auth import NotAllowed
from catalog import editing, listing
from catalog.endpoint_keys import KeyAtStake
from panels.api import roster_shapes, shapes
from panels.api.view import View, answer, listed, not_found, text_of
from panels.editing import read
from panels.roster_shape import ENDPOINT

FIELDS = (*ENDPOINT, "key")


def key_of(body: Mapping[str, Any]) -> str | None:
    """Gives the key that was sent: a null forgets the stored one, as an empty text does; None where none was sent. Errors: CallerError."""
    if "key" not in body:
        return None
    return "" if body["key"] is None else text_of(body, "key")


class EndpointPaths(View):
    def found(self, name: str) -> listing.EndpointView:
        endpoint = listing.endpoint(name) if "\0" not in name else None
        if endpoint is None:
            raise not_found("endpoint", name)
        return endpoint

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, editing.UnknownEndpoint):
            exc = not_found("endpoint", str(exc))
        elif isinstance(exc, KeyAtStake):
            exc = NotAllowed(str(exc))
        return super().handle_exception(exc)


class Endpoints(EndpointPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_endpoints", parameters=shapes.PAGE, responses=shapes.page_of(roster_shapes.Endpoint))
    def get(self, request: Request) -> Response:
        """Lists endpoints by name. Of a key it says only where it comes from."""
        return listed(listing.endpoints(*self.page_wanted()))

    @shapes.described(operation_id="add_endpoint", request=roster_shapes.EndpointAsked, responses={201: roster_shapes.Endpoint})
    def post(self, request: Request) -> Response:
        """Adds an endpoint; its key, if it is sent, is stored encrypted."""
        body = self.body(FIELDS)
        endpoint = read("endpoints", {"kind": "openai", **body}, making=True)
        editing.make_endpoint(endpoint, key_of(body) or "", self.actor, self.caller.may("admin"))
        return answer(self.found(endpoint["name"]), status=201)


class Endpoint(EndpointPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_endpoint", responses=roster_shapes.Endpoint)
    def get(self, request: Request, name: str) -> Response:
        """Shows an endpoint."""
        return answer(self.found(name))

    @shapes.described(operation_id="change_endpoint", request=roster_shapes.EndpointAsked, responses=roster_shapes.Endpoint)
    def patch(self, request: Request, name: str) -> Response:
        """Changes what is given. A key replaces the stored one; an empty one, or null, forgets it."""
        body = self.body(FIELDS)
        editing.change_endpoint(name, read("endpoints", body, making=False), key_of(body), self.actor, self.caller.may("admin"))
        return answer(self.found(name))

    @shapes.described(operation_id="delete_endpoint", request=None, responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Deletes an endpoint that serves no model any more."""
        editing.delete_endpoint(name, self.actor)
        return Response(status=204)
