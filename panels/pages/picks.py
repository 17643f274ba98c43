"""Models that somebody ticked in a list, before they are on the roster: which endpoint would serve each, under what name.

Shape: a tick's value is JSON, `["endpoint", "served name"]`, since both may hold any character.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

# What a list shows of a model, in this order, and the word for it.
CAPABILITIES = {
    "tools": "tools",
    "vision": "images",
    "reasoning": "thinking",
    "structured_output": "JSON schema",
    "audio": "audio",
    "files": "files",
}
MOST = 500


def written(endpoint: str, served_name: str) -> str:
    return json.dumps([endpoint, served_name], ensure_ascii=False)


def by_endpoint(values: Iterable[str]) -> dict[str, list[str]]:
    """Reads ticks back, by endpoint, each once. What is no tick is left out."""
    found: dict[str, list[str]] = {}
    for value in values:
        try:
            endpoint, name = json.loads(value)
        except (ValueError, TypeError):
            continue
        if isinstance(endpoint, str) and isinstance(name, str) and name not in (names := found.setdefault(endpoint, [])):
            names.append(name)
    return found


def told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a list shows of a model's facts. Shape: `prices` are those per million tokens, None where unknown; `can` words."""
    value = {name: fact["value"] for name, fact in facts.items()}
    return {
        "context": value.get("context_window"),
        "went": value.get("input_usd_per_mtok"),
        "came": value.get("output_usd_per_mtok"),
        "can": [word for name, word in CAPABILITIES.items() if value.get(name) is True],
    }
