"""Who is signed in, for requests that Django's middleware does not see: the cookie's session and its user, read and never written."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.http import QueryDict
from django.http.cookie import parse_cookie

from access.models import User


def cookies_of(header: str) -> dict[str, str]:
    return parse_cookie(header) if header else {}


def user_of(session_key: str) -> User | None:
    """Reads whose session this is; None for one that is unknown, over, or of a user who may not sign in any more. Asks the database."""
    session = store(session_key)
    # What Django does with a session that has outlived a password is left to the pages, which can give the browser another cookie.
    session.flush = session.cycle_key = _leave  # type: ignore[method-assign]
    user = get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]  # it looks at nothing else
    return user if isinstance(user, User) and user.is_active else None


def store(session_key: str) -> SessionBase:
    found: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return found


def _leave(*_: Any) -> None:
    """Leaves a session as it is."""


def put_in(request: Any, cookies: dict[str, str], user: User | None) -> None:
    """Gives a lean request what authentication and Django's CSRF check read. A form's body it never has: the token comes in the header."""
    request.COOKIES, request.user, request.POST = cookies, user, QueryDict()
