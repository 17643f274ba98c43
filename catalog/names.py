"""What endpoints, models and collections may be called. Names are any script's printable characters; they are unique ignoring case, matched with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from django.conf import settings

from catalog.shape import ShapeError, kind_of

LONGEST = 200
LONGEST_SERVED = 300
COLLECTION_PREFIX = "bench/"
MODE_SUFFIXES = (":merged", ":route")

# Joiners are invisible, yet Persian, Hindi and many emoji cannot be written without them.
JOINERS = "\u200c\u200d"

VARIABLE_END = re.compile(r"[A-Z0-9_]{1,100}")


def folded(name: str) -> str:
    """What two names that differ only in case share. SQLite's LOWER knows ASCII only, so constraints alone do not hold this."""
    return unicodedata.normalize("NFC", name).casefold()


def check_name(name: object, field: str = "name", longest: int = LONGEST) -> str:
    """Errors: ShapeError where it is not 1 to 200 printable characters without space around them."""
    if not isinstance(name, str):
        raise ShapeError(field, f"must be text, not {kind_of(name)}. Write it in quotes.")
    if not name:
        raise ShapeError(field, "must not be empty.")
    if len(name) > longest:
        raise ShapeError(field, f"must have at most {longest} characters, not {len(name)}.")
    if name != name.strip():
        raise ShapeError(field, "must not begin or end with a space.")
    for position, char in enumerate(name, 1):
        if not char.isprintable() and not (char in JOINERS and 1 < position < len(name)):
            raise ShapeError(field, f"holds a character that cannot be printed (U+{ord(char):04X}, place {position}).")
    return name


def check_endpoint_name(name: object, field: str = "name") -> str:
    return check_name(name, field)


def check_served_name(name: object, field: str = "served_name") -> str:
    return check_name(name, field, LONGEST_SERVED)


def check_alias(name: object, field: str = "alias") -> str:
    """Errors: ShapeError; besides check_name's, where it begins with bench/, which is how collections are asked for."""
    checked = check_name(name, field)
    if folded(checked).startswith(COLLECTION_PREFIX):
        raise ShapeError(field, f"must not begin with {COLLECTION_PREFIX}, which names collections.")
    return checked


def check_collection_name(name: object, field: str = "name") -> str:
    """Errors: ShapeError; besides check_name's, where it holds a slash or ends in :merged or :route."""
    checked = check_name(name, field)
    if "/" in checked:
        raise ShapeError(field, 'must not hold "/".')
    for suffix in MODE_SUFFIXES:
        if folded(checked).endswith(suffix):
            raise ShapeError(field, f"must not end in {suffix}, which asks for that mode.")
    return checked


def check_unique(name: str, others: Iterable[str], field: str) -> str:
    """Errors: ShapeError that names the other one which is the same ignoring case."""
    mine = folded(name)
    for other in others:
        if folded(other) == mine:
            raise ShapeError(field, f'is taken: "{other}" is the same name{"" if other == name else " ignoring case"}.')
    return name


def check_key_env(name: object, field: str = "key_env") -> str:
    """Errors: ShapeError where a variable is named that is no endpoint's key: an endpoint's server would receive what it holds."""
    prefix: str = settings.ENVIRONMENT_KEY_PREFIX
    if not isinstance(name, str):
        raise ShapeError(field, f"must be text, not {kind_of(name)}.")
    if name and not (name.startswith(prefix) and VARIABLE_END.fullmatch(name[len(prefix) :])):
        raise ShapeError(field, f"must name a variable that begins with {prefix} and goes on in capitals, digits and _, like {prefix}LOCAL.")
    return name
