"""The OpenAPI description of this API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView

from panels.api.view import PerMethod, View


class Schema(SpectacularAPIView):  # type: ignore[misc]
    """GET /bench/schema, as JSON."""

    authentication_classes = View.authentication_classes
    permission_classes = [PerMethod]
    renderer_classes = [OpenApiJsonRenderer]
    scopes: dict[str, Any] = {"GET": ("read", "ask", "judge")}


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
