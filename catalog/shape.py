"""Shape errors: what is wrong with a field that a person wrote, and where.

The admin and the roster file check names, limits, quirks and facts by the same functions; each turns a ShapeError into its own kind of message.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class ShapeError(ValueError):
    """A value that cannot stand where it was written.

    Shape: `field` is its path, "limits.requests.minute"; `message` begins with a lower-case verb phrase that the path goes before.
    """

    code = "invalid_field"
    status = 400

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field, self.message = field, message


def nearest(word: str, known: Iterable[str]) -> str:
    """Gives a hint for a mistyped name: " Did you mean context_window?", else what there is, else nothing."""
    names = list(known)
    if close := difflib.get_close_matches(word, names, n=1, cutoff=0.6):
        return f" Did you mean {close[0]}?"
    return f" Known: {', '.join(names)}." if 0 < len(names) <= 24 else ""


def mapping(value: Any, field: str) -> Mapping[str, Any]:
    """Errors: ShapeError where it is no object with text keys."""
    if not isinstance(value, Mapping):
        raise ShapeError(field, f"must be an object of named values, not {kind_of(value)}.")
    for key in value:
        if not isinstance(key, str):
            raise ShapeError(field, f"has {key!r} for a name, which must be text.")
    return value


def known_names(value: Mapping[str, Any], known: Iterable[str], field: str) -> None:
    """Errors: ShapeError for the first name that is not known."""
    names = list(known)
    for key in value:
        if key not in names:
            raise ShapeError(f"{field}.{key}", f"is not known.{nearest(key, names)}")


def whole(value: Any, field: str, least: int, most: int) -> int:
    """Errors: ShapeError where it is no whole number between the bounds. True is no number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ShapeError(field, f"must be a whole number, not {kind_of(value)}.")
    if not least <= value <= most:
        raise ShapeError(field, f"must be between {least:,} and {most:,}, not {value:,}.")
    return value


def truth(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise ShapeError(field, f"must be true or false, not {kind_of(value)}.")
    return value


def kind_of(value: Any) -> str:
    """Says what a value is without repeating a long one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value[:40]}{"…" if len(value) > 40 else ""}"'
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"{value}"[:40]
