"""Ids that sort by time and tell what they name: `pan_01J…`, `call_01J…` (ULIDs)."""

from __future__ import annotations

import os
import re
import time
from functools import lru_cache

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# One random byte gives one character: 256 is a multiple of 32, so all are equally likely.
RANDOM_TO_CHARACTER = bytes(ord(ALPHABET[byte % 32]) for byte in range(256))


@lru_cache(maxsize=4)
def stamp(milliseconds: int) -> str:
    """The ten characters of a moment."""
    return "".join([ALPHABET[(milliseconds >> shift) & 31] for shift in range(45, -1, -5)])


def new_id(prefix: str) -> str:
    """26 characters after the prefix: 48 bits of milliseconds, 80 random bits."""
    return f"{prefix}_{stamp(time.time_ns() // 1_000_000)}{os.urandom(16).translate(RANDOM_TO_CHARACTER).decode('ascii')}"


SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,79}")


def request_id(given: str | None) -> str:
    """The id that a client or proxy gave a request, where it is fit for headers and logs, else a new one."""
    return given if given and SANE_REQUEST_ID.fullmatch(given) else new_id("req")
