"""Ids that sort by time and tell what they name: `pan_01J…`, `call_01J…` (ULIDs)."""

from __future__ import annotations

import os
import re
import time

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PAIRS = [a + b for a in ALPHABET for b in ALPHABET]


def new_id(prefix: str) -> str:
    """26 characters after the prefix: 48 bits of milliseconds, 80 random bits."""
    value = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    return f"{prefix}_" + "".join([PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,79}")


def request_id(given: str | None) -> str:
    """The id that a client or proxy gave a request, where it is fit for headers and logs, else a new one."""
    return given if given and SANE_REQUEST_ID.fullmatch(given) else new_id("req")
