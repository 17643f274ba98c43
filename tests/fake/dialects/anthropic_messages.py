"""Anthropic's Messages, as a provider speaks them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from tests.fake.dialects import FakeDialect
from tests.fake.script import Call, Said

NUMBERS = itertools.count(1)
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBmYWtl+/=="
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def usage_of(said: Said) -> dict[str, Any] | None:
    if said.usage is None or isinstance(said.usage, dict):
        return said.usage
    given, made = said.usage
    return {"input_tokens": given, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": made}


def finish_of(said: Said) -> str:
    return said.finish or ("refusal" if said.refusal else "tool_use" if said.tools else "end_turn")


def arguments_of(arguments: str) -> Any:
    return json.loads(arguments or "{}")


class AnthropicMessages(FakeDialect):
    name = "anthropic-messages"

    def asks(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith("/messages")

    def head(self, call: Call, said: Said) -> dict[str, Any]:
        # Claude Code takes two answers of one id for one answer.
        return {"id": f"msg_fake{next(NUMBERS)}", "type": "message", "role": "assistant", "model": call.model, "stop_sequence": None, **said.extra}

    def body(self, said: Said, call: Call) -> Any:
        content: list[dict[str, Any]] = []
        if said.reasoning:
            content.append({"type": "thinking", "thinking": said.reasoning, "signature": SIGNATURE})
        if said.text or said.refusal:
            content.append({"type": "text", "text": said.text or said.refusal})
        content += [{"type": "tool_use", "id": i, "name": n, "input": arguments_of(a)} for i, n, a in said.tools]
        out = {**self.head(call, said), "content": content, "stop_reason": finish_of(said)}
        usage = usage_of(said)
        return {**out, "usage": usage} if usage is not None else out

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        usage = usage_of(said)
        start = {**usage, "output_tokens": 1} if usage is not None else None
        message = {**self.head(call, said), "content": [], "stop_reason": None, **({"usage": start} if start else {})}
        out = [event("message_start", message=message), event("ping")]
        index = 0

        def block(content: dict[str, Any], deltas: Sequence[dict[str, Any]]) -> None:
            nonlocal index
            out.append(event("content_block_start", index=index, content_block=content))
            out.extend(event("content_block_delta", index=index, delta=d) for d in deltas)
            out.append(event("content_block_stop", index=index))
            index += 1

        if said.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": said.reasoning}, {"type": "signature_delta", "signature": SIGNATURE}]
            block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
        if said.text or said.refusal:
            pieces = [p for p in said.pieces if p] if said.text else [said.refusal]
            block({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces])
        for i, name, arguments in said.tools:
            half = len(arguments) // 2
            parts = [p for p in (arguments[:half], arguments[half:]) if p]
            block({"type": "tool_use", "id": i, "name": name, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in parts])
        delta = {"stop_reason": finish_of(said), "stop_sequence": None}
        out.append(event("message_delta", delta=delta, **({"usage": usage} if usage is not None else {})))
        return [*out, event("message_stop")]

    def error(self, status: int, message: str, code: str) -> Any:
        return {"type": "error", "error": {"type": code or ERROR_TYPES.get(status, "api_error"), "message": message}, "request_id": "req_fake"}


def event(name: str, **more: Any) -> bytes:
    return f"event: {name}\ndata: ".encode() + json.dumps({"type": name, **more}, ensure_ascii=False).encode() + b"\n\n"


DIALECT = AnthropicMessages()
