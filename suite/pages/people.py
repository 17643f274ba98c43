"""Whose a thing is, so that pages offer only what the API would let somebody do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from access.models import User
from panels.pages.frame import scopes_of


def is_theirs(request: HttpRequest, thing: Mapping[str, Any]) -> bool:
    """Tells whether the one who looks owns a thing, or administers all."""
    assert isinstance(request.user, User)
    return "admin" in scopes_of(request) or thing.get("owner") == request.user.get_username()


def may(request: HttpRequest, scope: str) -> bool:
    return scope in scopes_of(request)
