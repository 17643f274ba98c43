"""Keys as others may see them: by name, with everything but the secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from access import keys
from access.models import Key
from access.pages import Page, keyset


@dataclass(frozen=True, slots=True)
class KeyView:
    """One key. Shape: `kind` is key, token or test_token, `hint` how it begins; `models` and `collections` None mean all.

    Units: `budget_usd` a calendar month.
    """

    kind: str
    name: str
    owner: str
    team: str
    hint: str
    scopes: tuple[str, ...]
    collections: tuple[str, ...] | None
    models: tuple[str, ...] | None
    rpm: int | None
    tpm: int | None
    max_parallel: int | None
    budget_usd: Decimal | None
    keep_text: bool | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class UnknownKey(LookupError):
    """No live key of this name."""

    code = "not_found"


def view(key: Key) -> KeyView:
    use = getattr(key, "use", None)
    return KeyView(
        kind=keys.kind_of(key.hint),
        name=key.name,
        owner=key.owner,
        team=key.team,
        hint=key.hint,
        scopes=tuple(key.scopes),
        collections=None if key.collections is None else tuple(key.collections),
        models=None if key.models is None else tuple(key.models),
        rpm=key.rpm,
        tpm=key.tpm,
        max_parallel=key.max_parallel,
        budget_usd=key.budget_usd,
        keep_text=key.keep_text,
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=None if use is None else use.last_used_at,
    )


def page(limit: int, page_token: str) -> Page[KeyView]:
    """Lists keys, newest first, revoked ones too. One query."""
    return keyset(Key.objects.select_related("use"), ("created_at", "id"), limit, page_token, newest_first=True).mapped(view)


def limited() -> list[tuple[int, KeyView]]:
    """Lists the live keys that have a limit of their own, by name, each with its id. One query."""
    rows = Key.objects.select_related("use").filter(revoked_at=None).order_by("name")
    return [(k.pk, view(k)) for k in rows if k.rpm is not None or k.tpm is not None or k.max_parallel is not None or k.budget_usd is not None]


def find(name: str) -> KeyView:
    """Errors: UnknownKey."""
    return view(_live(name))


def change(name: str, changes: Mapping[str, object], actor: str) -> KeyView:
    """Changes a live key. Errors: UnknownKey, FieldError, KeyRevoked."""
    return view(keys.change(_live(name), changes, actor))


def revoke(name: str, actor: str, reason: str = "") -> None:
    """Ends a live key. Errors: UnknownKey."""
    keys.revoke(_live(name), actor, reason)


def _live(name: str) -> Key:
    # A name that cannot be stored (a null character) is none that anybody has.
    key = Key.objects.select_related("use").filter(name=name, revoked_at=None).first() if name.isprintable() else None
    if key is None:
        raise UnknownKey(name)
    return key
