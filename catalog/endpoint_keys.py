"""An endpoint's key: from the environment, else from the database, where it is encrypted. Read here and nowhere else.

KeyUnreadable   there is a key, and it cannot be used
KeyAtStake      a key that is there already would go to another address, which only an admin may decide
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from access import audit, secrets
from catalog.models import Endpoint


class KeyUnreadable(Exception):
    """Shape: the message names the endpoint and where its key is kept, never the key."""

    code = "key_unreadable"


class KeyAtStake(PermissionError):
    code = "not_allowed"


AT_STAKE = "A key that is there already would go to another address. Only an admin may do that; or give the new address a key of its own in the same change."


def is_at_stake(before: Endpoint | None, after: Endpoint) -> bool:
    """Whether a write would send a key that exists already to an address that it did not go to before.

    Shape: a key typed in with the change is the writer's own and no matter; one from a variable or stored earlier is.
    """
    moved = before is None or origin(before.base_url) != origin(after.base_url)
    variable = variable_of(after)
    if variable:
        return moved or (before is not None and variable_of(before) != variable)
    return before is not None and moved and bool(after.key_sealed) and after.key_sealed == before.key_sealed


def origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


def variable_of(endpoint_row: Endpoint) -> str | None:
    """The variable that holds the endpoint's key: the one it names, else the one of its own name, None where neither is set."""
    own: str = settings.ENVIRONMENT_KEY_PREFIX + re.sub(r"[^A-Z0-9]", "_", endpoint_row.name.upper())
    return next((name for name in (endpoint_row.key_env, own) if name in settings.ENVIRONMENT_KEYS), None)


def key_of(endpoint_row: Endpoint) -> str:
    """Gives the key in the clear, empty where there is none. Errors: KeyUnreadable."""
    if variable := variable_of(endpoint_row):
        try:
            return secrets.clean_key(settings.ENVIRONMENT_KEYS[variable])
        except ValueError as error:
            raise KeyUnreadable(f"Endpoint {endpoint_row.name}: the key in variable {variable} cannot be used. {error}") from None
    if not endpoint_row.key_sealed:
        return ""
    try:
        return secrets.unseal(endpoint_row.key_sealed)
    except secrets.SecretsMismatch as error:
        raise KeyUnreadable(f"Endpoint {endpoint_row.name}: its stored key cannot be read. {error}") from None


def where_key_comes_from(endpoint_row: Endpoint) -> str:
    """Says "variable BENCHWARMERS_KEY_…", "stored" or "none"."""
    if variable := variable_of(endpoint_row):
        return f"variable {variable}"
    return "stored" if endpoint_row.key_sealed else "none"


def set_key(endpoint_row: Endpoint, raw: str, actor: str | None = None) -> None:
    """Stores a key, encrypted; an empty one is forgotten.

    Shape: without an actor the row changes in memory only, for a form that saves and records it itself.
    Errors: ValueError (access.secrets.UnusableKey) where it holds what no header carries.
    """
    key = secrets.clean_key(raw)
    before = audit.is_set(endpoint_row.key_sealed)
    endpoint_row.key_sealed = secrets.seal(key) if key else ""
    if actor is None:
        return
    with transaction.atomic():
        endpoint_row.save(update_fields=["key_sealed"])
        audit.record(actor, "endpoint.key", endpoint_row.name, {"key": [before, audit.is_set(key)]})


def set_key_of(name: str, raw: str, actor: str) -> None:
    """Stores the key of the endpoint of this name. Errors: Endpoint.DoesNotExist, and as `set_key`."""
    set_key(Endpoint.objects.get(name=name), raw, actor)


def every_source() -> list[tuple[str, str, str]]:
    """Gives each endpoint's name, where its key comes from, and what is wrong with the key, empty where nothing is."""
    found = []
    for row in Endpoint.objects.order_by("name"):
        problem = ""
        try:
            key_of(row)
        except KeyUnreadable as error:
            problem = str(error)
        found.append((row.name, where_key_comes_from(row), problem))
    return found
