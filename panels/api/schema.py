"""The OpenAPI description of this API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView

from panels.api.view import PerMethod, View


class Schema(SpectacularAPIView):  # type: ignore[misc]
    """GET /bench/schema, as JSON."""

    authentication_classes = View.authentication_classes
    permission_classes = [PerMethod]
    renderer_classes = [OpenApiJsonRenderer]
    scopes: dict[str, Any] = {"GET": ("read", "ask", "judge")}
