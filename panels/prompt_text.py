"""A kept conversation as plain words, for searching it and for writing it out."""

from __future__ import annotations

import json
from typing import Any


def messages_of(kept: str | None) -> list[dict[str, Any]]:
    """Reads a conversation as it is kept; empty where none is, or where it cannot be read."""
    try:
        found = json.loads(kept) if kept else []
    except ValueError:
        return []
    return [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []


def plain_of(kept: str | None) -> str:
    """All its words; images and files have none."""
    return "\n".join([words_of(m.get("content")) for m in messages_of(kept)])


def words_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join([part_words(p) for p in content if isinstance(p, dict)])


def part_words(part: dict[str, Any]) -> str:
    if part.get("type") == "tool_result":
        return words_of(part.get("content"))
    if part.get("type") == "tool_call":
        return f"{part.get('name', '')} {part.get('arguments', '')}"
    return str(part.get("text") or part.get("name") or "")
