"""The names of the Responses format's stream events.

response.created ─▶ response.in_progress ─▶ item ─▶ item … ─▶ response.completed | incomplete | failed
    item:     output_item.added ─▶ section … ─▶ output_item.done
    section:  (part added) ─▶ delta … ─▶ done ─▶ (part done)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wire.dialects._responses_items import content_part


@dataclass(frozen=True, slots=True)
class Section:
    """What one kind of text in an item is called on the wire. A call's arguments have no part around them, and no number."""

    delta: str
    done: str
    value: str
    home: str  # the type of item that holds it
    part_added: str = ""
    part_done: str = ""
    number: str = ""


CONTENT = ("response.content_part.added", "response.content_part.done", "content_index")
SUMMARY = ("response.reasoning_summary_part.added", "response.reasoning_summary_part.done", "summary_index")
SECTIONS = {
    "text": Section("response.output_text.delta", "response.output_text.done", "text", "message", *CONTENT),
    "refusal": Section("response.refusal.delta", "response.refusal.done", "refusal", "message", *CONTENT),
    "thought": Section("response.reasoning_text.delta", "response.reasoning_text.done", "text", "reasoning", *CONTENT),
    "summary": Section("response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "text", "reasoning", *SUMMARY),
    "arguments": Section("response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments", "function_call"),
    "input": Section("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input", "custom_tool_call"),
}
# The last of each are older names that some servers kept.
DELTAS = {s.delta: kind for kind, s in SECTIONS.items()} | {"response.reasoning_summary.delta": "summary", "response.reasoning.delta": "thought"}
DONES = {s.done: kind for kind, s in SECTIONS.items()} | {"response.reasoning_summary.done": "summary", "response.reasoning.done": "thought"}
PARTS = {"output_text": "text", "text": "text", "refusal": "refusal", "reasoning_text": "thought", "summary_text": "summary"}
NUMBERED = frozenset({"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index"})
BEGINNINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
ENDS = frozenset({"response.completed", "response.incomplete"})
FAILURES = frozenset({"response.failed", "response.cancelled"})
ADDED, DONE = "response.output_item.added", "response.output_item.done"


def sections_of(item: Mapping[str, Any]) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    """What a whole item holds: kind, number, text, and the part as it stands there."""
    kind = item.get("type")
    if kind in ("function_call", "custom_tool_call"):
        section = "arguments" if kind == "function_call" else "input"
        if isinstance(said := item.get(section), str):
            yield section, 0, said, {}
        return
    for parts in (item.get("content"), item.get("summary")):
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            section = PARTS.get(str(part.get("type")), "") if isinstance(part, dict) else ""
            if section and SECTIONS[section].home == kind and isinstance(said := part.get(SECTIONS[section].value), str):
                yield section, number, said, part


def part_of(section: str, text: str) -> dict[str, Any]:
    if section in ("summary", "thought"):
        return {"type": "summary_text" if section == "summary" else "reasoning_text", "text": text}
    return content_part("refusal" if section == "refusal" else "output_text", text)


def number_of(event: Mapping[str, Any], name: str) -> int | None:
    value = event.get(name) if name else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000 else None


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else ""
