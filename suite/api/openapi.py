"""GET /v1/openapi.json: every path below /v1, found by walking the routes, so that none is forgotten; doors that are not open yet, too."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.urls import URLPattern
from rest_framework.request import Request
from rest_framework.response import Response

from suite.api import doors
from suite.api.openapi_paths import PATHS, Told
from suite.api.openapi_shapes import COMPONENTS, INT, STR, ref
from suite.api.tasks import Events
from suite.api.unknown import Unknown
from suite.api.view import Deprecated, View

METHODS = ("get", "post", "put", "patch", "delete")
NAMED = re.compile(r"<(?:[a-z]+:)?([a-z_]+)>")
# Paths whose view is a function: the class that says what it does.
STAND_INS: dict[str, type[View]] = {"runs/{run}/events": Events}
LINES_TOO = ("make_subset", "append_tasks")
WORD = {"get": "get", "post": "do", "put": "set", "patch": "change", "delete": "delete"}
ABOUT = """The suite of Benchwarmers: benchmarks, runs, boards, money and settings. Errors are RFC 9457 problems with a stable `code`.

What makes something takes an `Idempotency-Key`: the same key and body is answered again with `Idempotent-Replayed: true`, another body is 422, a request
that is still being answered 409."""


class OpenApi(View):
    scopes = {"GET": ()}

    def get(self, request: Request) -> Response:
        """Describes every path below /v1, those that are not built yet too."""
        return Response(described())


class Schema(OpenApi):
    """By the name that the description of /bench has."""

    deprecated = Deprecated(datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC), "/v1/openapi.json")


@cache
def described() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for route, view in sorted(routes(), key=lambda item: item[0]):
        paths[f"/v1/{route}"] = {method: operation(route, method, view) for method in METHODS if hasattr(view, method)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Benchwarmers, the suite", "version": settings.VERSION, "description": ABOUT},
        "servers": [{"url": (settings.PUBLIC_URL or "").rstrip("/") or "/"}],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A personal token or a gateway key."},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": settings.SESSION_COOKIE_NAME,
                    "description": "Somebody signed in; writes send X-CSRFToken.",
                },
            },
            "responses": {
                "Refused": {"description": "Refused, and why.", "content": {"application/problem+json": {"schema": ref("Problem")}}},
            },
        },
    }


def routes() -> Iterator[tuple[str, type[View]]]:
    """Gives every route below /v1 as OpenAPI writes it, with its view."""
    from suite.urls import urlpatterns

    for pattern in urlpatterns:
        route = NAMED.sub(r"{\1}", str(pattern.pattern))
        view = STAND_INS.get(route) or view_of(pattern)
        if view is not Unknown:
            yield route, view


def view_of(pattern: URLPattern) -> type[View]:
    found: type[View] = pattern.callback.view_class  # type: ignore[attr-defined]
    return found


def operation(route: str, method: str, view: type[View]) -> dict[str, Any]:
    handler = getattr(view, method)
    told = PATHS.get((route, method)) or unnamed(route, method)
    scopes = tuple(view.scopes.get(method.upper(), ("admin",)))
    said = inspect.cleandoc((view.__doc__ if issubclass(view, doors.Shut) else handler.__doc__) or "").partition("\n\n")[0].replace("\n", " ")
    needs = f" Needs the scope {' or '.join(f'`{scope}`' for scope in scopes)}." if scopes else ""
    found: dict[str, Any] = {
        "operationId": told.id,
        "tags": [re.split("[/:]", route)[0]],
        "summary": re.split(r"(?<=[.:;])\s", said)[0].rstrip(".:;"),
        "description": said + needs,
        "parameters": [*in_path(route), *in_query(told, view, method), *in_headers(told, handler)],
        "security": [{"token": list(scopes)}, {"session": []}],
        "responses": answers(told, view),
    }
    if told.takes is not None and method != "get":
        content: dict[str, Any] = {"application/json": {"schema": told.takes}}
        if told.id in LINES_TOO:
            content["application/x-ndjson"] = {"schema": {"type": "string", "description": "A row a line."}}
        found["requestBody"] = {"required": bool(told.takes.get("required")), "content": content}
    if view.deprecated is not None:
        found["deprecated"] = True
    return found


def unnamed(route: str, method: str) -> Told:
    """Describes a path that the table does not name, from its route alone."""
    words = re.sub(r"[^a-z0-9]+", "_", NAMED.sub("", route).replace("{", "").replace("}", "")).strip("_")
    return Told(f"{WORD[method]}_{words}", status=204 if method == "delete" else 200, takes={"type": "object"} if method in ("post", "put", "patch") else None)


def in_path(route: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": STR} for name in re.findall(r"{([a-z_]+)}", route)]


def in_query(told: Told, view: type[View], method: str) -> list[dict[str, Any]]:
    if method != "get":
        return [{"name": name, "in": "query", "schema": schema} for name, schema in told.query.items()]
    found = [
        {"name": f"filter[{name}]", "in": "query", "description": f"Or {name}= for short.", "schema": STR}
        for name in view.filters
        if name not in told.query and name != "metadata"
    ]
    if "metadata" in view.filters:
        found.append({"name": "filter[metadata.<name>]", "in": "query", "description": "Runs with this value of their metadata.", "schema": STR})
    found += [{"name": name, "in": "query", "schema": schema} for name, schema in told.query.items()]
    if told.gives and "has_more" in told.gives.get("properties", {}):
        found += [
            {"name": "limit", "in": "query", "schema": {**INT, "minimum": 1, "maximum": 500, "default": 50}},
            {"name": "page_token", "in": "query", "description": "The `next` of the page before, with the same filters.", "schema": STR},
        ]
    return found


def in_headers(told: Told, handler: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if getattr(handler, "is_idempotent", False):
        found.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 255}})
    if told.if_match:
        found.append({"name": "If-Match", "in": "header", "description": "The ETag of the state that you have seen.", "schema": STR})
    return found


def answers(told: Told, view: type[View]) -> dict[str, Any]:
    refused = {"4XX": {"$ref": "#/components/responses/Refused"}, "5XX": {"$ref": "#/components/responses/Refused"}}
    if issubclass(view, doors.Shut):
        return {"501": {"$ref": "#/components/responses/Refused"}, "4XX": refused["4XX"]}
    good: dict[str, Any] = {"description": "Done." if told.gives is None else "The answer."}
    if told.gives is not None:
        good["content"] = {told.media: {"schema": told.gives}}
        if told.id == "list_events":
            good["content"]["text/event-stream"] = {"schema": {"type": "string", "description": "Events as they happen; goes on after Last-Event-ID."}}
    return {**{str(status): good for status in (told.status, *told.more)}, **refused}
