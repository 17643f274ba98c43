"""Tool names as most APIs take them: letters, digits, _ and -, at most 64. A caller's other names go out changed and come back as they were."""

from __future__ import annotations

import hashlib
import re

from wire.conversation import Request, ToolCall

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def sent(request: Request) -> dict[str, str]:
    """The names that have to be changed, and what they are sent as."""
    given = {t.name for t in request.tools} | {p.name for m in request.messages for p in m.parts if isinstance(p, ToolCall)}
    return {name: changed(name) for name in given if not NAME.fullmatch(name)}


def back(request: Request) -> dict[str, str]:
    """The caller's names by those that were sent."""
    return {new: name for name, new in sent(request).items()} if request.tools else {}


def changed(name: str) -> str:
    """The same for the same name, and different for different ones."""
    tail = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{NOT_IN_NAMES.sub('_', name)[:55]}_{tail}"
