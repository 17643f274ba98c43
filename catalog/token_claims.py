"""What a token in JWT's form (RFC 7519) says of itself. It is read, never checked: the token is our own, and whoever takes it checks it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

LONGEST = 20_000


def claims_of(token: str) -> Mapping[str, Any]:
    """Gives the payload; empty for anything that is no such token."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def claim(token: str, space: str, name: str) -> str:
    """Gives one text out of a claim that is an object; empty where it is not there."""
    inner = claims_of(token).get(space)
    said = inner.get(name) if isinstance(inner, dict) else None
    return said if isinstance(said, str) else ""
