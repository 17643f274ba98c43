"""The list of what can be asked, in the shapes that clients of each API expect. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Listing:
    """One name that can be asked. Units: `context_window`, `output_limit` tokens, 0 where unknown; `created_s` Unix seconds."""

    name: str
    owner: str
    created_s: int = 0
    context_window: int = 0
    output_limit: int = 0
    tools: bool = False
    vision: bool = False
    thinking: bool = False


def openai(items: Sequence[Listing]) -> dict[str, Any]:
    return {"object": "list", "data": [openai_one(i) for i in items]}


def openai_one(item: Listing) -> dict[str, Any]:
    found: dict[str, Any] = {"id": item.name, "object": "model", "created": item.created_s, "owned_by": item.owner}
    if item.context_window:
        found["context_window"] = item.context_window
    return found


def anthropic(items: Sequence[Listing]) -> dict[str, Any]:
    data = [anthropic_one(i) for i in items]
    return {"data": data, "has_more": False, "first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}


def anthropic_one(item: Listing) -> dict[str, Any]:
    return {"type": "model", "id": item.name, "display_name": item.name, "created_at": "2025-01-01T00:00:00Z"}


def gemini(items: Sequence[Listing]) -> dict[str, Any]:
    return {"models": [gemini_one(i) for i in items]}


def gemini_one(item: Listing) -> dict[str, Any]:
    return {
        "name": f"models/{item.name}",
        "displayName": item.name,
        "description": item.owner,
        "version": "1",
        "inputTokenLimit": item.context_window or 131072,
        "outputTokenLimit": item.output_limit or 8192,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def ollama(items: Sequence[Listing]) -> dict[str, Any]:
    return {"models": [ollama_one(i) for i in items]}


def ollama_one(item: Listing) -> dict[str, Any]:
    details: Mapping[str, Any] = {"format": "", "family": item.owner, "families": None, "parameter_size": "", "quantization_level": ""}
    return {"name": item.name, "model": item.name, "modified_at": "2025-01-01T00:00:00Z", "size": 0, "digest": "", "details": details}


def ollama_show(item: Listing) -> dict[str, Any]:
    """What `/api/show` tells, capabilities truthfully."""
    capabilities = ["completion", *(["tools"] if item.tools else []), *(["vision"] if item.vision else []), *(["thinking"] if item.thinking else [])]
    info = {"general.architecture": item.owner, **({f"{item.owner}.context_length": item.context_window} if item.context_window else {})}
    return {"modelfile": "", "parameters": "", "template": "", "details": ollama_one(item)["details"], "model_info": info, "capabilities": capabilities}
