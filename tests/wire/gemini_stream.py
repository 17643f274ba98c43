"""The grammar of Gemini's streams, as far as its clients rely on it: what may stand in a stream, in which order, and how it ends."""

from __future__ import annotations

import json
from typing import Any

KEEPALIVE: dict[str, Any] = {"candidates": []}


def events(data: bytes) -> list[Any]:
    """The JSON of each event. Nothing else may stand in the stream: a comment breaks clients."""
    found = []
    for block in data.decode().split("\n\n"):
        if block:
            assert block.startswith("data: "), block
            assert "\n" not in block
            found.append(json.loads(block[6:]))
    return found


def elements(data: bytes, whole: bool) -> list[Any]:
    """The elements of an array, also of one that is still being written."""
    text = data.decode()
    found = json.loads(text if whole else f"{text}]" if text.strip() else "[]")
    assert isinstance(found, list)
    return found


def check(found: list[Any], ended: bool, failed: bool = False) -> list[dict[str, Any]]:
    """Holds chunks against the grammar: one finish reason at most and that in the last chunk, whole calls, an error last. Gives the parts."""
    parts: list[dict[str, Any]] = []
    chunks = [c for c in found if c != KEEPALIVE]
    for place, chunk in enumerate(chunks):
        last = place == len(chunks) - 1
        assert isinstance(chunk, dict)
        if "error" in chunk:
            assert last
            assert failed
            assert next(iter(chunk)) == "error"  # the Python SDK knows one by its first words
            assert {"code", "message", "status"} <= chunk["error"].keys()
            continue
        assert chunk["modelVersion"]
        assert chunk["responseId"] == chunks[0]["responseId"]
        for candidate in chunk.get("candidates", []):
            assert ("finishReason" in candidate) <= last, "a finish reason before the last chunk"
            assert candidate["content"]["role"] == "model"
            for part in candidate["content"]["parts"]:
                if call := part.get("functionCall"):
                    assert call["name"]
                    assert call["id"]
                    assert isinstance(call["args"], dict)
                parts.append(part)
        if "bench" in chunk:
            assert last
    if ended:
        assert "finishReason" in chunks[-1]["candidates"][0] or "promptFeedback" in chunks[-1]
        assert chunks[-1]["usageMetadata"]["totalTokenCount"] >= 0
    else:
        assert not any("finishReason" in c for chunk in chunks for c in chunk.get("candidates", []))
    return parts


def said(parts: list[dict[str, Any]]) -> str:
    return "".join(p.get("text", "") for p in parts if not p.get("thought"))
