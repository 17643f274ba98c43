"""Gateway keys: minted once, kept as digests, found by them.

KeyRevoked   a key that was revoked is to be changed
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import IntegrityError, transaction
from django.utils import timezone

from access import audit, budgets, fields
from access.caller import DRY_SCOPES, ROLE_SCOPES, Caller
from access.fields import FieldError
from access.models import Key, KeyUse, Role, User

PREFIX = "bw_live_"
# A personal token's, by which its row is known: `hint` holds them whole.
LIVE, TEST = "bw_live_pat_", "bw_test_pat_"
LONGEST_SECRET = 512
USE_NOTED = timedelta(minutes=1)


class KeyRevoked(Exception):
    code = "invalid_request"


def digest(secret: str) -> str:
    """A plain SHA-256: a secret has 256 random bits, so there is nothing to slow a guesser down for."""
    return hashlib.sha256(secret.encode()).hexdigest()


def mint(
    name: object,
    owner: object = "",
    scopes: object = None,
    collections: object = None,
    models: object = None,
    rpm: object = None,
    tpm: object = None,
    max_parallel: object = None,
    budget_usd: object = None,
    expires_at: object = None,
    keep_text: object = None,
    team: object = "",
    *,
    actor: str,
) -> tuple[Key, str]:
    """Makes a key and gives its row and, this once, its secret.

    Shape: fields as they came in JSON or in Python's own types. Errors: FieldError.
    """
    kept = fields.checked(
        {
            "name": name,
            "owner": owner,
            "team": team,
            "scopes": scopes,
            "collections": collections,
            "models": models,
            "rpm": rpm,
            "tpm": tpm,
            "max_parallel": max_parallel,
            "budget_usd": budget_usd,
            "expires_at": expires_at,
            "keep_text": keep_text,
        }
    )
    if kept["expires_at"] is not None and kept["expires_at"] <= timezone.now():
        raise FieldError("expires_at", "must lie in the future.")
    secret = PREFIX + secrets.token_urlsafe(32)
    while secret.startswith(LIVE):  # by chance, and it would pass for a token
        secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        with name_kept_unique():
            key = Key.objects.create(digest=digest(secret), hint=secret[:12], **kept)
        audit.record(actor, "key.create", key.name, audit.diff({}, kept))
    return key, secret


def change(key: Key, changes: Mapping[str, object], actor: str) -> Key:
    """Changes what a key may do, from the next request on. Errors: FieldError, KeyRevoked."""
    kept = fields.checked(changes)
    with transaction.atomic():
        row = Key.objects.select_for_update().get(pk=key.pk)
        if row.revoked_at is not None:
            raise KeyRevoked(f"The key {row.name} was revoked. Make another.")
        before = {field: getattr(row, field) for field in kept}
        moved = [field for field in kept if kept[field] != before[field]]
        if moved and kind_of(row.hint) != KEY and (fixed := next((f for f in moved if f in ("name", "owner", "team")), None)):
            raise FieldError(fixed, "of a personal token stays as it is: it is its owner's.")
        if moved:
            for field in moved:
                setattr(row, field, kept[field])
            with name_kept_unique():
                row.save(update_fields=moved)
            if "budget_usd" in moved and row.budget_usd is not None:
                budgets.begin("key", row.name, row.pk)
            audit.record(actor, "key.change", row.name, audit.diff(before, kept))
    return row


def revoke(key: Key, actor: str, reason: str = "") -> None:
    """Ends a key for good, from the next request on. A second time changes nothing."""
    with transaction.atomic():
        if Key.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
            audit.record(actor, "key.revoke", key.name, reason=reason)
    key.refresh_from_db(fields=["revoked_at"])


def refuse_taken_name(name: str) -> None:
    """Errors: FieldError where a live key has the name: two could not be told apart in an address or as a judge. For forms, before they write."""
    if Key.objects.filter(name=name, revoked_at=None).exists():
        raise name_taken()


@contextmanager
def name_kept_unique() -> Iterator[None]:
    """Says the same when the database finds it, which it does for two at once too."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise name_taken() from None


def name_taken() -> FieldError:
    return FieldError("name", "is the name of another key. Choose another, or revoke that key first.")


KEY, TOKEN, TEST_TOKEN = "key", "token", "test_token"


def kind_of(hint: str) -> str:
    """Tells what a row of the table is, by what its secret begins with."""
    return TOKEN if hint.startswith(LIVE) else TEST_TOKEN if hint.startswith(TEST) else KEY


def caller_of(key: Key, people: Mapping[str, User]) -> Caller | None:
    """The judge is the owner, else the key itself, marked so that a key named like a user does not judge in that user's name.

    Shape: `people` as `people_of` reads them. A token may at most what its owner's role may by now; None for one whose owner may not sign in any more.
    """
    kind, scopes, team = kind_of(key.hint), frozenset(key.scopes), key.team
    if kind != KEY:
        owner = people.get(key.owner)
        if owner is None:
            return None
        team = owner.team
        scopes &= ROLE_SCOPES[Role.ADMIN.value if owner.is_superuser else owner.role]
        if kind == TEST_TOKEN:
            scopes &= DRY_SCOPES
    return Caller(
        kind="key",
        judge=(key.owner or f"key:{key.name}")[:200],
        scopes=scopes,
        key_id=key.pk,
        key_name=key.name,
        collections=None if key.collections is None else tuple(key.collections),
        models=None if key.models is None else tuple(key.models),
        rpm=key.rpm,
        tpm=key.tpm,
        max_parallel=key.max_parallel,
        budget_usd=key.budget_usd,
        keep_text=key.keep_text,
        team=team,
        pat={TOKEN: "live", TEST_TOKEN: "test"}.get(kind, ""),
    )


def people_of(rows: Iterable[Key]) -> Mapping[str, User]:
    """Reads the people behind tokens, by name. One query, none where there is no token."""
    names = {row.owner for row in rows if kind_of(row.hint) != KEY}
    return {user.username: user for user in User.objects.filter(username__in=names, is_active=True)} if names else {}


def may_be_a_secret(secret: str) -> bool:
    """Whatever a header can hold comes here; only what could have been minted is looked up."""
    return 0 < len(secret) <= LONGEST_SECRET and secret.isascii()


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All keys that were not revoked, as one request's snapshot holds them. Shape: by digest, the caller and when the key ends."""

    by_digest: Mapping[str, tuple[Caller, datetime | None]]

    def find(self, secret: str, now: datetime) -> Caller | None:
        """None for unknown, expired and revoked alike."""
        found = self.by_digest.get(digest(secret)) if may_be_a_secret(secret) else None
        if found is None or (found[1] is not None and found[1] <= now):
            return None
        return found[0]


def load_ring() -> KeyRing:
    """Reads the ring in one query, or two where there are personal tokens."""
    rows = list(Key.objects.filter(revoked_at=None))
    people = people_of(rows)
    return KeyRing(MappingProxyType({key.digest: (caller, key.expires_at) for key in rows if (caller := caller_of(key, people)) is not None}))


def find_in_database(secret: str, now: datetime) -> Caller | None:
    """None for unknown, expired and revoked alike."""
    key = Key.objects.select_related("use").filter(digest=digest(secret), revoked_at=None).first() if may_be_a_secret(secret) else None
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        return None
    caller = caller_of(key, people_of([key]))
    use = getattr(key, "use", None)
    if caller is not None and (use is None or use.last_used_at < now - USE_NOTED):
        KeyUse.objects.update_or_create(key=key, defaults={"last_used_at": now})
    return caller
