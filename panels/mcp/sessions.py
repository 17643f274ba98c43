"""Session ids that every worker knows without having met them: signed tokens, valid for whoever opened the session, also after a restart."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from django.core.signing import BadSignature, Signer

from access.caller import Caller

SALT = "panels.mcp.session"
LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Session:
    """Shape: `version` is the protocol's, as agreed when the session was opened."""

    token: str
    version: str


def open_session(caller: Caller, version: str) -> Session:
    return Session(Signer(salt=SALT).sign(f"{os.urandom(12).hex()}.{version}.{mark_of(caller)}"), version)


def find_session(token: str, caller: Caller) -> Session | None:
    """None for what is not of ours, or is somebody else's."""
    if len(token) > LENGTH_MAX:
        return None
    try:
        _, version, mark = Signer(salt=SALT).unsign(token).split(".")
    except (BadSignature, ValueError):
        return None
    return Session(token, version) if mark == mark_of(caller) else None


def mark_of(caller: Caller) -> str:
    return hashlib.sha256(f"{caller.kind}|{caller.key_id or caller.judge}".encode()).hexdigest()[:16]
