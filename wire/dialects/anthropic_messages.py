"""Anthropic's Messages, both ways.

Source: https://platform.claude.com/docs/en/api/messages. Clients send more than it documents, and servers that call themselves compatible
less: whatever is not known passes where both sides speak this format, and is named as dropped where they do not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wire import tool_names
from wire.conversation import Message, Part, Refusal, Reply, Request, Role, Stop, Text, Thinking, ToolCall, Usage
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.dialects import _anthropic_in as inward
from wire.dialects import _anthropic_out as outward
from wire.dialects import _anthropic_words as words
from wire.dialects._anthropic_body import from_understood
from wire.dialects._anthropic_reader import MessagesReader
from wire.dialects._anthropic_turns import input_of
from wire.dialects._anthropic_writer import MessagesWriter
from wire.errors import CallerError, Empty, Garbage


class AnthropicMessages(Dialect):
    name = "anthropic-messages"
    routes = (Route("POST", "/v1/messages", "ask"), Route("POST", "/v1/messages/count_tokens", "count"))
    id_prefix = "msg"

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        return inward.read_request(inbound, self.name)

    def status_of(self, error: CallerError) -> int:
        return 529 if error.code == "upstream_overloaded" else error.status

    def write_count(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw = answer.reply.raw
        if isinstance(raw, dict) and isinstance(raw.get("content"), list):
            body = {**raw, "id": raw["id"] if isinstance(raw.get("id"), str) and raw["id"] else answer.id, "model": answer.model}
            counts = raw.get("usage")
            body["usage"] = {**(counts if isinstance(counts, dict) else {}), **words.usage_out(answer.usage)}
        else:
            parts = answer.reply.parts
            called, refused = any(isinstance(p, ToolCall) for p in parts), any(isinstance(p, Refusal) for p in parts)
            body = {
                "id": answer.id,
                "model": answer.model,
                "content": content_out(parts, answer.reply.stop),
                "stop_reason": words.stop_out(answer.reply.stop, called, refused),
                "usage": words.usage_out(answer.usage),
            }
        body = {**body, "type": "message", "role": "assistant", "stop_sequence": body.get("stop_sequence")}
        if not isinstance(body.get("stop_reason"), str):
            body["stop_reason"] = words.FINISHES[answer.reply.stop or Stop.END]
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return MessagesWriter(request, answer_id)

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return words.error_out(error)

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        if request.dialect == self.name and request.raw:
            return outward.same_format(request, served_name, quirks)
        return from_understood(request, served_name, quirks)

    def write_count_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound | None:
        asked = self.write_request(request, served_name, quirks)
        return replace(asked, body={k: v for k, v in asked.body.items() if k in outward.COUNTED})

    def read_count(self, body: Any) -> int | None:
        return (words.count(body.get("input_tokens")) or None) if isinstance(body, dict) else None

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no message.")
        if error := words.error_inside(body):
            raise error
        content = body.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise Garbage("The endpoint answered with JSON that is no message.")
        same = request.dialect == self.name
        names, custom = sent_back(request)
        parts = tuple(p for block in content if isinstance(block, dict) for p in block_back(block, names, custom))
        reason = body.get("stop_reason")
        stop = words.stop_in(reason, any(isinstance(p, ToolCall) for p in parts))
        if not parts and stop in (Stop.END, Stop.TOOLS) and not (same and content):
            raise Empty("The endpoint answered with nothing in it.")
        finish = reason if isinstance(reason, str) and reason else "end_turn"
        return Reply(parts, stop, finish, words.usage_in(body.get("usage")), raw=body if same else None)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return words.usage_in(body.get("usage"))

    def stream_reader(self, request: Request) -> StreamReader:
        names, custom = sent_back(request)
        return MessagesReader(names, custom, keep_raw=request.dialect == self.name)

    # ------------------------------------------------------------------ changes to a request

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw:
            return cut
        messages = []
        for message in request.raw["messages"]:
            content = message.get("content")
            if isinstance(content, list):
                blocks = [b for b in content if not is_foreign(b, foreign)]
                if len(blocks) < len(content):
                    if not blocks:
                        continue
                    message = {**message, "content": blocks}
            messages.append(message)
        return replace(cut, raw={**request.raw, "messages": messages or request.raw["messages"]})

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = {**request.raw, "messages": [*request.raw["messages"], {"role": "user", "content": text}]} if request.raw else request.raw
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = AnthropicMessages()


def is_foreign(block: Any, foreign: Callable[[Thinking], bool]) -> bool:
    kind = block.get("type")
    if kind == "thinking":
        return foreign(Thinking(text=words.word(block, "thinking"), signature=words.word(block, "signature")))
    return kind == "redacted_thinking" and foreign(Thinking(redacted=words.word(block, "data")))


def sent_back(request: Request) -> tuple[dict[str, str], frozenset[str]]:
    """The caller's tool names by those that were sent, and the sent names of free-form tools."""
    if request.dialect == DIALECT.name or not request.tools:
        return {}, frozenset()
    names = tool_names.sent(request)
    return tool_names.back(request), frozenset(names.get(t.name, t.name) for t in request.tools if t.kind == "custom")


def block_back(block: dict[str, Any], names: Mapping[str, str], custom: frozenset[str]) -> tuple[Part, ...]:
    """One block of an answer as a part. What only this format knows (a search's results) is left to those who read this format."""
    kind = block.get("type")
    if kind == "text" and (said := words.word(block, "text")):
        return (Text(said),)
    if kind == "thinking":
        return (Thinking(text=words.word(block, "thinking"), signature=words.word(block, "signature")),)
    if kind == "redacted_thinking" and (data := words.word(block, "data")):
        return (Thinking(redacted=data),)
    if kind == "tool_use" and isinstance(name := block.get("name"), str):
        given = block.get("input")
        arguments = given if isinstance(given, str) else inward.dumped(given if given is not None else {})
        if name in custom:
            return (ToolCall(words.word(block, "id"), names.get(name, name), words.custom_input(arguments), kind="custom"),)
        return (ToolCall(words.word(block, "id"), names.get(name, name), arguments),)
    return ()


def content_out(parts: tuple[Part, ...], stop: Stop | None) -> list[dict[str, Any]]:
    """An answer's blocks. A call that the output limit cut off is left out: nobody may take it for a whole one."""
    out: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Thinking) and part.redacted:
            out.append({"type": "redacted_thinking", "data": part.redacted})
        elif isinstance(part, Thinking):
            out.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
        elif isinstance(part, ToolCall) and not (stop is Stop.LENGTH and part.kind == "function" and not words.is_whole((part.arguments or "{}").encode())):
            out.append({"type": "tool_use", "id": part.id or f"toolu_{secrets.token_hex(12)}", "name": part.name, "input": input_of(part)})
        elif isinstance(part, Text | Refusal) and part.text:
            out.append({"type": "text", "text": part.text})
    return out
