"""Which lists go out as sheets."""

from __future__ import annotations

from rest_framework.request import Request

from wire.errors import CallerError


def is_wanted(request: Request) -> bool:
    """Reads ?format=. Errors: CallerError for a form that there is not."""
    wanted = request.query_params.get("format", "") or "json"
    if wanted not in ("json", "csv"):
        raise CallerError("invalid_request", "format must be json or csv.", field="format")
    return wanted == "csv"
