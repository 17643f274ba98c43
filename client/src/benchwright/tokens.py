"""Personal tokens, made by the session of a browser that is signed in: no token may make another."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from benchwarmers_client.server import Server

from benchwright.objects import Object, wrapped
from benchwright.transport import Transport, path

SESSION_COOKIE, CSRF_COOKIE = "benchwarmers_session", "benchwarmers_csrf"


def create(base_url: str, session: str, body: Mapping[str, Any]) -> Object:
    """Makes a token and gives it with its secret, which nobody can show again. Errors: BenchwrightError."""
    transport = Transport(Server(base_url, ""))
    csrf = secrets.token_hex(16)  # the server wants the same word in a cookie and a header, whichever it is
    headers = {"cookie": f"{SESSION_COOKIE}={session}; {CSRF_COOKIE}={csrf}", "x-csrftoken": csrf, "origin": base_url, "referer": f"{base_url}/"}
    try:
        answer = transport.raw("POST", path("tokens"), dict(body), headers=headers)
    finally:
        transport.close()
    found: Object = wrapped(json.loads(answer.data))
    return found
