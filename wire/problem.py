"""Errors as `application/problem+json` (RFC 9457), the form in which the server's own paths refuse."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from wire.errors import CallerError, redacted

CONTENT_TYPE = "application/problem+json"


def problem(error: CallerError) -> dict[str, Any]:
    """Writes one error: what went wrong, with which field, never a secret."""
    try:
        title = HTTPStatus(error.status).phrase
    except ValueError:
        title = "Error"
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": error.status, "detail": redacted(error.message), "code": error.code}
    if error.field:
        body["field"] = error.field
    if error.seats is not None:
        body["seats"] = error.seats
    return body
