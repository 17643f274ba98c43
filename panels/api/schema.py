"""The OpenAPI description of this API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView

from panels.api.view import OneForm, PerMethod, View


class Schema(SpectacularAPIView):  # type: ignore[misc]
    """GET /bench/schema, as JSON."""

    authentication_classes = View.authentication_classes
    permission_classes = [PerMethod]
    renderer_classes = [OpenApiJsonRenderer]
    content_negotiation_class = OneForm
    scopes: dict[str, Any] = {"GET": ("read", "ask", "judge")}


# What may follow a model's alias: the operation, the status it answers with, the one field it takes and what that is.
VERBS = {
    "retire": ("retire_model", "200", "reason", "Takes it out of play; it keeps its seats and its record."),
    "restore": ("restore_model", "200", "reason", "Brings it back."),
    "probe": ("probe_model", "202", "kind", "Queues a probe: word (without a kind), perf or drift."),
    "baseline": ("accept_baseline", "200", "", "Takes what answers now as the new baseline of drift."),
}


# And of what is read: the operation, the number under which the description of the view keeps its answer, its parameters, what it is.
STORIES = {
    "history": ("get_model_history", "290", ("days",), "Tells a model's days, for charts; they cost the same however many calls there were."),
    "evidence": ("list_model_evidence", "291", ("limit", "page_token"), "Lists what happened to a model, newest first: probes, retirement, alerts, rests."),
}


def verbs_apart(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describes what follows a model's alias as paths of their own, though one view takes them: an alias may end in any of these words itself."""
    paths = result["paths"]
    one = "/bench/models/{alias}"
    if "post" not in paths.get(one, {}):
        return result
    whole = paths[one]["get"]
    apart = ("days", "limit", "page_token")
    for word, (operation, number, takes, tells) in STORIES.items():
        own = {**whole, "operationId": operation, "description": tells, "responses": {"200": whole["responses"].pop(number)}}
        own["parameters"] = [p for p in whole["parameters"] if p["name"] not in apart or p["name"] in takes]
        paths[f"{one}/{word}"] = {"get": own}
    whole["parameters"] = [p for p in whole["parameters"] if p["name"] not in apart]
    said = paths[one].pop("post")
    for verb, (operation, status, field, tells) in VERBS.items():
        own = {**said, "operationId": operation, "description": tells, "responses": {status: said["responses"][status]}}
        own["parameters"] = [p for p in paths[one]["get"]["parameters"] if p["in"] == "path"]
        body = {"type": "object", "properties": {field: {"type": "string", "maxLength": 500}} if field else {}}
        body |= {"required": [field]} if field == "reason" else {}
        own["requestBody"] = {"content": {"application/json": {"schema": body}}, "required": field == "reason"}
        paths.setdefault(f"{one}/{verb}", {})["post"] = own
    result["paths"] = dict(sorted(paths.items()))
    return result


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    target_class = "access.auth.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A gateway key. x-api-key and x-goog-api-key carry one too."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    target_class = "access.auth.UserAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME, "description": "A signed-in user; writes send X-CSRFToken too."}


class LoopbackScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    """No scheme at all: what needs no key has nothing to send."""

    target_class = "access.auth.LoopbackAuthentication"
    name: list[str] = []

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return []

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[str]]:
        return {}
