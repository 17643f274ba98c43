"""Who is calling, as DRF's authentication and permission classes; `request.user` becomes a `Caller`, `request.auth` a key's id.

They serve Django's own requests and the gateway's lean ones alike. A lean request carries `keyring`, the keys of its snapshot: then
no database is asked, the origins of BENCH_ALLOWED_ORIGINS may write, and there is a session only where `access.sessions` looked it up before.

    MissingKey   401 missing_key
    InvalidKey   401 invalid_key, one text for unknown, expired and revoked
    NotAllowed   403 not_allowed
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from access import door
from access.caller import LOOPBACK, Caller
from access.door import client_address, extract_key
from access.keys import find_in_database
from access.models import User
from access.people import caller_of_user
from wire.errors import CallerError

__all__ = [
    "InvalidKey",
    "KeyAuthentication",
    "LoopbackAuthentication",
    "MayAdmin",
    "MayAsk",
    "MayJudge",
    "MayOperate",
    "MayRead",
    "MissingKey",
    "Needs",
    "NobodyMay",
    "NotAllowed",
    "UserAuthentication",
    "as_caller_error",
    "client_address",
    "extract_key",
]


class MissingKey(exceptions.NotAuthenticated):
    code = "missing_key"
    default_code = code
    default_detail = (
        "No key was sent. Send one as Authorization: Bearer, x-api-key or x-goog-api-key. "
        "Without a key only callers on the server's own machine may ask, and not through a proxy."
    )


class InvalidKey(exceptions.AuthenticationFailed):
    code = "invalid_key"
    default_code = code
    default_detail = "The key that was sent is not valid here: it is unknown, has expired or was revoked. Where several are sent, they must be the same."


class NotAllowed(exceptions.PermissionDenied):
    code = "not_allowed"
    default_code = code
    default_detail = "The caller may not do this."


def as_caller_error(error: exceptions.APIException) -> CallerError:
    """Gives what these classes raise as a pure error, which a dialect can write. A 401 goes out with `WWW-Authenticate: Bearer`."""
    return CallerError(getattr(error, "code", "invalid_request"), str(error.detail), status=error.status_code)


# ------------------------------------------------------------------ authentication


def refuse_foreign_page(request: Request, own_only: bool = False) -> None:
    """Errors: NotAllowed for a write from a page of another origin, whatever it carries. `own_only`: from those of BENCH_ALLOWED_ORIGINS too."""
    inner = request._request
    allowed = settings.ALLOWED_ORIGINS if hasattr(inner, "keyring") and not own_only else ()
    if door.refused_origin(inner.method or "", inner.META, inner.scheme or "http", settings.PUBLIC_ORIGIN, allowed):
        raise NotAllowed(
            "A page of another origin may not do this. Behind a proxy, BENCH_PUBLIC_URL says which origin is this server's own; "
            "BENCH_ALLOWED_ORIGINS names others that may call the gateway."
        )


class Door(BaseAuthentication):
    def authenticate_header(self, request: Request) -> str:
        return "Bearer"  # without it DRF would answer 403 where 401 is meant


class KeyAuthentication(Door):
    """Whoever sends a key is that key, or nobody."""

    def authenticate(self, request: Request) -> tuple[Caller, int | None] | None:
        refuse_foreign_page(request)
        inner = request._request
        secret = extract_key(inner.META, inner.META.get("QUERY_STRING", ""))
        if secret is None:
            return None
        ring = getattr(inner, "keyring", None)
        now = timezone.now()
        caller = ring.find(secret, now) if ring is not None else find_in_database(secret, now)
        if caller is None:
            raise InvalidKey
        return caller, caller.key_id


class UserAuthentication(Door, SessionAuthentication):
    """Whoever signed in is that user, with the rights of the role; writes need Django's CSRF token."""

    def authenticate(self, request: Request) -> tuple[Caller, int | None] | None:
        refuse_foreign_page(request)
        inner = request._request
        user = getattr(inner, "user", None)
        if not isinstance(user, User) or not user.is_active:
            return None
        refuse_foreign_page(request, own_only=True)
        try:
            self.enforce_csrf(inner if hasattr(inner, "keyring") else request)  # type: ignore[arg-type]  # a lean request's body is nobody's to parse
        except exceptions.PermissionDenied:
            raise NotAllowed("The CSRF token is missing or wrong. Reload the page and try again.") from None
        return caller_of_user(user), None


class LoopbackAuthentication(Door):
    """Whoever sits at the server's own machine may ask and judge."""

    def authenticate(self, request: Request) -> tuple[Caller, int | None] | None:
        refuse_foreign_page(request)
        return (LOOPBACK, None) if door.needs_no_key(settings.ON_LOOPBACK, request._request.META) else None


# ------------------------------------------------------------------ permission


class NobodyMay(BasePermission):
    """What a view has that forgot to say who may use it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        raise NotAllowed


class Needs(BasePermission):
    """Lets through who has a scope. Errors: MissingKey for nobody in particular, NotAllowed for somebody without it."""

    scope: str

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = request.user
        if not isinstance(caller, Caller):
            raise MissingKey
        if not caller.may(self.scope):
            raise NotAllowed(f"This needs the scope {self.scope}, which {DESCRIBED[caller.kind]} does not have.")
        return True


DESCRIBED = {"user": "the signed-in user's role", "key": "this key", "loopback": "a caller without a key"}


class MayRead(Needs):
    scope = "read"


class MayAsk(Needs):
    scope = "ask"


class MayJudge(Needs):
    scope = "judge"


class MayOperate(Needs):
    scope = "operate"


class MayAdmin(Needs):
    scope = "admin"
