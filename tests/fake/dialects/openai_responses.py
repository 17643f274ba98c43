"""OpenAI Responses, as a provider speaks them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fake.dialects import FakeDialect
from tests.fake.script import Call, Said

CREATED_S = 1_760_000_000


def usage_of(said: Said) -> dict[str, Any] | None:
    if said.usage is None or isinstance(said.usage, dict):
        return said.usage
    given, made = said.usage
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def items_of(said: Said) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.reasoning:
        thought = [{"type": "summary_text", "text": said.reasoning}]
        items.append({"type": "reasoning", "id": "rs_fake", "summary": thought, "encrypted_content": "gAAAAA-fake=="})
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}] if said.text else []
    parts += [{"type": "refusal", "refusal": said.refusal}] if said.refusal else []
    if parts:
        items.append({"type": "message", "id": "msg_fake", "status": "completed", "role": "assistant", "content": parts})
    for name_id, name, arguments in said.tools:
        items.append({"type": "function_call", "id": f"fc_{name_id}", "call_id": name_id, "name": name, "arguments": arguments, "status": "completed"})
    return items


def response_of(said: Said, call: Call) -> dict[str, Any]:
    cut = {"status": "incomplete", "incomplete_details": {"reason": said.finish}} if said.finish else {"status": "completed", "incomplete_details": None}
    out = {
        "id": "resp_fake",
        "object": "response",
        "created_at": CREATED_S,
        "model": call.model,
        **cut,
        "output": items_of(said),
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **said.extra,
    }
    usage = usage_of(said)
    return {**out, "usage": usage} if usage is not None else out


class OpenAIResponses(FakeDialect):
    name = "openai-responses"

    def asks(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith("/responses")

    def body(self, said: Said, call: Call) -> Any:
        return response_of(said, call)

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        whole = response_of(said, call)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[tuple[str, dict[str, Any]]] = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
        for index, item in enumerate(whole["output"]):
            here = {"output_index": index}
            empty = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}}[item["type"]]
            events.append(("response.output_item.added", {**here, "item": {**item, **empty, "status": "in_progress"}}))
            events += sections(item, {**here, "item_id": item["id"]}, said)
            events.append(("response.output_item.done", {**here, "item": item}))
        events.append(("response.incomplete" if said.finish else "response.completed", {"response": whole}))
        return [event(kind, {"type": kind, "sequence_number": n, **fields}) for n, (kind, fields) in enumerate(events)]

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": {"message": message, "type": "api_error", "param": None, "code": code or None}}


def sections(item: dict[str, Any], at: dict[str, Any], said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
    if item["type"] == "function_call":
        half = len(item["arguments"]) // 2
        for piece in (item["arguments"][:half], item["arguments"][half:]):
            if piece:
                yield "response.function_call_arguments.delta", {**at, "delta": piece}
        yield "response.function_call_arguments.done", {**at, "arguments": item["arguments"]}
        return
    summary = item["type"] == "reasoning"
    number, prefix = ("summary_index", "response.reasoning_summary_part") if summary else ("content_index", "response.content_part")
    for n, part in enumerate(item["summary"] if summary else item["content"]):
        place = {**at, number: n}
        field = "refusal" if part["type"] == "refusal" else "text"
        text = {"summary_text": "response.reasoning_summary_text", "refusal": "response.refusal", "output_text": "response.output_text"}[part["type"]]
        yield f"{prefix}.added", {**place, "part": {**part, field: ""}}
        for piece in said.pieces if part["type"] == "output_text" else (part[field],):
            if piece:
                yield f"{text}.delta", {**place, "delta": piece}
        yield f"{text}.done", {**place, field: part[field]}
        yield f"{prefix}.done", {**place, "part": part}


def event(kind: str, body: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


DIALECT = OpenAIResponses()
