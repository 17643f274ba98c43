"""Conversations as plain JSON for keeping: one object a message, `content` a string where it is text only, else a list of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wire.conversation import File, Image, Message, Part, Refusal, Text, Thinking, ToolCall, ToolResult


def dump(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": m.role.value, "content": content(m.parts)} for m in messages]


def content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    if all(isinstance(p, Text) for p in parts):
        return "".join(p.text for p in parts if isinstance(p, Text))
    return [part(p) for p in parts]


def part(value: Part) -> dict[str, Any]:
    if isinstance(value, Text):
        return {"type": "text", "text": value.text}
    if isinstance(value, Image):
        return {"type": "image", "url": value.url} if value.url else {"type": "image", "media_type": value.media_type, "data": value.data}
    if isinstance(value, File):
        return {"type": value.kind, "media_type": value.media_type, "name": value.name, "data": value.data, "url": value.url}
    if isinstance(value, Thinking):
        return {"type": "thinking", "text": value.text}
    if isinstance(value, Refusal):
        return {"type": "refusal", "text": value.text}
    if isinstance(value, ToolCall):
        return {"type": "tool_call", "id": value.id, "name": value.name, "arguments": value.arguments}
    if isinstance(value, ToolResult):
        return {"type": "tool_result", "call_id": value.call_id, "content": content(value.parts), "is_error": value.is_error}
    raise TypeError(type(value).__name__)
