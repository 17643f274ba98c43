"""Personal tokens: keys that people make for their own tools, in the one key table. What a token begins with says what it is.

bw_live_pat_…   does what its owner ticked, as far as the owner's role allows that at the time
bw_test_pat_…   the same, dry: no call that it sets off reaches a model

Nobody but a person in a browser makes, renews or ends one (`TokenRefused`), and whoever is disabled or demoted takes the tokens' rights along.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from access import audit, fields, keys
from access.caller import DRY_SCOPES, SCOPES, Caller
from access.fields import FieldError
from access.keys import LIVE, TEST
from access.models import Key

LONGEST_LABEL = 48  # a token's name is its owner's, a slash and this, and a key's name has 200 characters
MOST_TOKENS = 50
CODE = "pat_cannot_manage_tokens"
REFUSED = "Keys and tokens do not make, renew or end personal tokens. Sign in to the pages and do it there, under Keys."


class TokenRefused(Exception):
    """Somebody other than a person in a browser is at a token."""

    code = CODE

    def __init__(self) -> None:
        super().__init__(REFUSED)


class UnknownToken(LookupError):
    code = "not_found"


def grantable(role_scopes: Iterable[str], is_test: bool) -> tuple[str, ...]:
    """Gives the scopes that somebody's token may have."""
    held = frozenset(role_scopes)
    return tuple(scope for scope in SCOPES if scope in held and (not is_test or scope in DRY_SCOPES))


def name_of(owner: str, label: str) -> str:
    return f"{owner}/{label}"


def label_of(key: Key) -> str:
    return key.name.removeprefix(f"{key.owner}/")


def mint(caller: Caller, label: object, scopes: object, expires_at: object = None, is_test: bool = False) -> tuple[Key, str]:
    """Makes a token of the caller's own and gives its row and, this once, its secret. Errors: FieldError, TokenRefused."""
    refuse_all_but_people(caller)
    said = fields.text("name", label, least=1, most=LONGEST_LABEL)
    may = grantable(caller.scopes, is_test)
    asked = fields.scopes("scopes", scopes if scopes is not None else ())
    if wrong := [scope for scope in asked if scope not in may]:
        raise FieldError("scopes", f"{', '.join(wrong)} cannot be given: a {'test token' if is_test else 'token'} of yours may have {', '.join(may)}.")
    ends = fields.moment("expires_at", expires_at)
    if ends is not None and ends <= timezone.now():
        raise FieldError("expires_at", "must lie in the future.")
    secret = minted(is_test)
    with transaction.atomic():
        if live(caller.owner).count() >= MOST_TOKENS:
            raise FieldError("name", f"cannot be another: you have {MOST_TOKENS} tokens. Revoke one first.")
        with keys.name_kept_unique():
            row = Key.objects.create(
                name=name_of(caller.owner, said), owner=caller.owner, team="", digest=keys.digest(secret), hint=hint_of(secret), scopes=asked, expires_at=ends
            )
        audit.record(caller.judge, "token.create", row.name, audit.diff({}, {"scopes": asked, "expires_at": ends}))
    return row, secret


def renew(caller: Caller, key: Key) -> tuple[Key, str]:
    """Gives a token another secret; the old one ends with the next request. Errors: TokenRefused."""
    refuse_all_but_people(caller)
    secret = minted(key.hint.startswith(TEST))
    with transaction.atomic():
        Key.objects.filter(pk=key.pk, revoked_at=None).update(digest=keys.digest(secret), hint=hint_of(secret))
        audit.record(caller.judge, "token.rotate", key.name)
    key.refresh_from_db()
    return key, secret


def revoke(caller: Caller, key: Key) -> None:
    """Ends a token. Errors: TokenRefused."""
    refuse_all_but_people(caller)
    keys.revoke(key, caller.judge)


def refuse_all_but_people(caller: Caller) -> None:
    if caller.kind != "user":
        raise TokenRefused


def minted(is_test: bool) -> str:
    return (TEST if is_test else LIVE) + secrets.token_urlsafe(32)


def hint_of(secret: str) -> str:
    """How a token is told apart: what it begins with and its last four characters."""
    return f"{secret[: len(LIVE)]}…{secret[-4:]}"


# ------------------------------------------------------------------ finding


def every() -> Q:
    return Q(hint__startswith=LIVE) | Q(hint__startswith=TEST)


def live(owner: str = "") -> QuerySet[Key]:
    rows = Key.objects.select_related("use").filter(every(), revoked_at=None)
    return rows.filter(owner=owner) if owner else rows


def find(caller: Caller, number: int) -> Key:
    """Finds a token of the caller's own; an admin finds everybody's. Errors: UnknownToken."""
    rows = live("" if caller.kind == "user" and caller.may("admin") else caller.owner)
    found = rows.filter(pk=number).first()
    if found is None:
        raise UnknownToken(str(number))
    return found
