"""OpenAI chat completions, as a provider speaks them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.fake.dialects import FakeDialect
from tests.fake.script import Call, Said

CREATED_S = 1_760_000_000


def usage_of(said: Said) -> dict[str, Any] | None:
    if said.usage is None or isinstance(said.usage, dict):
        return said.usage
    given, made = said.usage
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def finish_of(said: Said) -> str:
    return said.finish or ("tool_calls" if said.tools else "stop")


class OpenAIChat(FakeDialect):
    name = "openai-chat"

    def asks(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith("/chat/completions")

    def body(self, said: Said, call: Call) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if said.reasoning:
            message["reasoning_content"] = said.reasoning
        if said.refusal:
            message["refusal"] = said.refusal
        if said.tools:
            message["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in said.tools]
        out = {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": CREATED_S,
            "model": call.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_of(said), "logprobs": None}],
            **said.extra,
        }
        usage = usage_of(said)
        return {**out, "usage": usage} if usage is not None else out

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        base = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": CREATED_S, "model": call.model, **said.extra}

        def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        out = [event({"role": "assistant", "content": ""})]
        if said.reasoning:
            out.append(event({"reasoning_content": said.reasoning}))
        out += [event({"content": piece}) for piece in said.pieces if piece]
        if said.refusal:
            out.append(event({"refusal": said.refusal}))
        for n, (i, name, arguments) in enumerate(said.tools):
            half = len(arguments) // 2
            out.append(event({"tool_calls": [{"index": n, "id": i, "type": "function", "function": {"name": name, "arguments": ""}}]}))
            out += [event({"tool_calls": [{"index": n, "function": {"arguments": part}}]}) for part in (arguments[:half], arguments[half:]) if part]
        out.append(event({}, finish_of(said)))
        wanted = isinstance(call.json, dict) and isinstance(call.json.get("stream_options"), dict) and call.json["stream_options"].get("include_usage")
        if wanted and (usage := usage_of(said)) is not None:
            out.append(data({**base, "choices": [], "usage": usage}))
        return [*out, b"data: [DONE]\n\n"]

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": {"message": message, "type": "api_error", "param": None, "code": code or None}}

    def model_list(self, path: str, models: Sequence[str]) -> Any | None:
        if not path.endswith("/models"):
            return None
        return {"object": "list", "data": [{"id": m, "object": "model", "created": CREATED_S, "owned_by": "fake"} for m in models]}


def data(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


DIALECT = OpenAIChat()
