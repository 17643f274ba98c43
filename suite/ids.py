"""Ids of the suite: a prefix that says what it is and a ULID, or for impls a digest. A bare UUID is taken for the same 128 bits."""

from __future__ import annotations

import re
from uuid import UUID

from access.ids import ALPHABET, new_id

__all__ = ["content_id", "new_id", "read"]

TYPED = re.compile(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}")


def read(given: str, prefix: str) -> str:
    """Gives an id in its typed form, "" where it cannot be one: typed already, or a bare UUID as some clients keep them."""
    if TYPED.fullmatch(given):
        return given if given.startswith(f"{prefix}_") else ""
    try:
        return f"{prefix}_{characters(UUID(given).int)}"
    except ValueError:
        return ""


def content_id(prefix: str, digest: str) -> str:
    """Makes the id of something that is addressed by its content. Shape: `digest` is a SHA-256 in hex; 130 of its bits stand in the id."""
    return f"{prefix}_{characters(int(digest[:33], 16) >> 2)}"


def characters(number: int) -> str:
    return "".join([ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5)])
