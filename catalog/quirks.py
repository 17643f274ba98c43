"""What a server needs said differently. A few quirks are known by name; others are flags that a dialect may look at."""

from __future__ import annotations

import difflib
import re
from typing import Any

from catalog.shape import ShapeError, kind_of, mapping, truth

# What the known ones may say; None: true or false.
KNOWN: dict[str, tuple[str, ...] | None] = {
    "token_param": ("max_tokens", "max_completion_tokens"),
    "system_role": ("system", "developer", "user"),
    "stream_options": None,
}
# Request fields that are added where the caller did not say: {"temperature": 0.2}.
DEFAULTS = "defaults"
# What a call is about is the caller's alone.
NEVER_DEFAULTS = ("model", "messages", "stream", "stream_options", "tools", "tool_choice", "n")
FLAG_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
LONGEST_TEXT = 500
MOST_FLAGS = 40


def checked(value: Any, field: str = "quirks") -> dict[str, Any]:
    """Gives the quirks with nulls left out.

    Shape: {"token_param": "max_completion_tokens", "system_role": "developer", "stream_options": false, "any_flag": true}.
    Errors: ShapeError that names the field; a name that is nearly a known one is taken for a mistake, not for a flag.
    """
    quirks = mapping(value, field)
    if len(quirks) > MOST_FLAGS:
        raise ShapeError(field, f"must hold at most {MOST_FLAGS} values, not {len(quirks)}.")
    return {name: checked_one(name, said, f"{field}.{name}") for name, said in quirks.items() if said is not None}


def checked_defaults(said: Any, path: str) -> dict[str, Any]:
    found = dict(mapping(said, path))
    for name in found:
        if name in NEVER_DEFAULTS:
            raise ShapeError(f"{path}.{name}", "must come from the caller; it cannot have a default here.")
    return found


def checked_one(name: str, said: Any, path: str) -> Any:
    if name == DEFAULTS:
        return checked_defaults(said, path)
    if name in KNOWN:
        choices = KNOWN[name]
        if choices is None:
            return truth(said, path)
        if said not in choices or not isinstance(said, str):
            raise ShapeError(path, f"must be one of {', '.join(choices)}, not {kind_of(said)}.")
        return said
    if close := difflib.get_close_matches(name, [*KNOWN, DEFAULTS], n=1, cutoff=0.75):
        raise ShapeError(path, f"is not known. Did you mean {close[0]}?")
    if not FLAG_NAME.fullmatch(name):
        raise ShapeError(path, "must be named in lower-case letters, digits and _.")
    if isinstance(said, bool | int | float) or (isinstance(said, str) and len(said) <= LONGEST_TEXT):
        return said
    raise ShapeError(path, f"must be true, false, a number or a short text, not {kind_of(said)}.")
