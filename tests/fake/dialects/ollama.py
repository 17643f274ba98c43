"""Ollama's own API, as a server of it speaks: one JSON object a line, calls with arguments as objects, streaming unless told not to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.fake.dialects import FakeDialect
from tests.fake.script import Call, Said

CREATED = "2026-01-01T00:00:00.5Z"


def counts(said: Said) -> dict[str, Any]:
    if said.usage is None or isinstance(said.usage, dict):
        return dict(said.usage or {})
    given, made = said.usage
    return {"prompt_eval_count": given, "eval_count": made, "total_duration": 5}


def calls_of(said: Said) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": json.loads(arguments or "{}")}} for _, name, arguments in said.tools]


class Ollama(FakeDialect):
    name = "ollama"
    stream_type = "application/x-ndjson"

    def asks(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith("/api/chat")

    def wants_stream(self, call: Call) -> bool:
        return not (isinstance(call.json, dict) and call.json.get("stream") is False)

    def end(self, said: Said, call: Call, message: dict[str, Any]) -> dict[str, Any]:
        head = {"model": call.model, "created_at": CREATED, "message": {"role": "assistant", **message}}
        return {**head, "done": True, "done_reason": said.finish or "stop", **counts(said), **said.extra}

    def body(self, said: Said, call: Call) -> Any:
        message: dict[str, Any] = {"content": said.text or said.refusal}
        if said.reasoning:
            message["thinking"] = said.reasoning
        if said.tools:
            message["tool_calls"] = calls_of(said)
        return self.end(said, call, message)

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        messages: list[dict[str, Any]] = [{"content": "", "thinking": said.reasoning}] if said.reasoning else []
        messages += [{"content": piece} for piece in said.pieces if piece]
        if said.refusal:
            messages.append({"content": said.refusal})
        messages += [{"content": "", "tool_calls": [c]} for c in calls_of(said)]
        lines = [{"model": call.model, "created_at": CREATED, "message": {"role": "assistant", **m}, "done": False} for m in messages]
        return [line(body) for body in [*lines, self.end(said, call, {"content": ""})]]

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": message}

    def model_list(self, path: str, models: Sequence[str]) -> Any | None:
        if not path.endswith("/api/tags"):
            return None
        return {"models": [{"name": m, "model": m, "modified_at": CREATED, "size": 1, "digest": "d", "details": {}} for m in models]}


def line(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


DIALECT = Ollama()
