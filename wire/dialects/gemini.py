"""Google's Gemini API, both ways: generateContent, its two kinds of stream, and countTokens.

Source: https://ai.google.dev/api/generate-content. The model and the method stand in the path; a stream is events with `alt=sse`, else one JSON
array; calls may come without ids and bear signatures that must go back with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wire.conversation import Message, Reply, Request, Role, Stop, Text, Thinking, ToolCall, Usage
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.dialects import _gemini_in as inward
from wire.dialects import _gemini_out as outward
from wire.dialects import _gemini_reply as replies
from wire.dialects._gemini_stream import GeminiReader, GeminiWriter
from wire.errors import CallerError, Empty, Garbage


class Gemini(Dialect):
    name = "gemini"
    routes = tuple(Route("POST", place, "ask", prefix=True, endings=inward.ENDINGS if place in inward.SHARED else ()) for place in inward.PLACES)
    id_prefix = "gem"
    takes_image_urls = False

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        return inward.read_request(inbound, self.name)

    def write_count(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens}

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw, reply = answer.reply.raw, answer.reply
        if isinstance(raw, dict) and ("candidates" in raw or "promptFeedback" in raw):
            body = {**raw, "modelVersion": answer.model}
            body.setdefault("responseId", answer.id)
            if not isinstance(raw.get("usageMetadata"), dict):
                body["usageMetadata"] = replies.usage_out(answer.usage)
        else:
            parts = replies.parts_out(reply.parts, reply.stop, replies.shows_thoughts(answer.request))
            body = {
                "candidates": [replies.candidate_out(parts, replies.FINISHES.get(reply.stop or Stop.END, "STOP"))],
                "usageMetadata": replies.usage_out(answer.usage),
                "modelVersion": answer.model,
                "responseId": answer.id,
            }
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return GeminiWriter(request, answer_id)

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return replies.error_out(error)

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        if request.dialect == self.name and request.raw:
            return outward.same_format(request, served_name, quirks)
        return outward.from_understood(request, served_name, quirks)

    def write_count_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound | None:
        asked = self.write_request(request, served_name, quirks)
        if asked.body.keys() == {"contents"}:
            return asked
        return replace(asked, body={"generateContentRequest": {**asked.body, "model": outward.resource(served_name)}})

    def read_count(self, body: Any) -> int | None:
        return (replies.count(body.get("totalTokens")) or None) if isinstance(body, dict) else None

    def read_reply(self, body: Any, request: Request) -> Reply:
        if isinstance(body, list):
            return self.gathered(body, request)
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no Gemini reply.")
        if error := replies.error_in(body):
            raise error
        same = request.dialect == self.name
        usage = replies.usage_in(body.get("usageMetadata"))
        listed = body.get("candidates")
        candidates = [c for c in listed if isinstance(c, dict)] if isinstance(listed, list) else []
        if not candidates:
            if reason := replies.block_in(body):
                return Reply((), Stop.FILTER, reason, usage, raw=body if same else None)
            if listed is None and not usage:
                raise Garbage("The endpoint answered with JSON that is no Gemini reply.")
            raise Empty("The endpoint answered without a candidate.")
        if same:
            candidates = [dict(replies.named(c)) for c in candidates]
            body = {**body, "candidates": candidates}
        parts = tuple(replies.parts_in(candidates[0], replies.names_of(request, same)))
        finish = candidates[0].get("finishReason")
        finish = finish if isinstance(finish, str) and finish else "STOP"
        stop = replies.stop_in(finish, any(isinstance(p, ToolCall) for p in parts))
        if finish in replies.FAILURES and not (same and parts):
            raise Garbage(f"The model ended with {finish}.")
        if not parts and stop in (Stop.END, Stop.TOOLS) and not (same and has_media(candidates[0])):
            raise Empty("The endpoint answered with nothing in it.")
        return Reply(parts, stop, finish, usage, raw=body if same else None)

    def gathered(self, bodies: list[Any], request: Request) -> Reply:
        """A stream that came as an array where one reply was asked for: its parts in order, and what its last piece says."""
        whole: dict[str, Any] = {}
        parts: list[Any] = []
        first: dict[str, Any] = {}
        for body in bodies:
            if not isinstance(body, dict):
                raise Garbage("The endpoint answered with JSON that is no Gemini reply.")
            if error := replies.error_in(body):
                raise error
            whole |= {k: v for k, v in body.items() if k != "candidates"}
            listed = body.get("candidates")
            for candidate in listed if isinstance(listed, list) else ():
                if isinstance(candidate, dict) and not replies.count(candidate.get("index")):
                    first |= candidate
                    content = candidate.get("content")
                    more = content.get("parts") if isinstance(content, dict) else None
                    parts += more if isinstance(more, list) else []
        if first:
            whole["candidates"] = [{**first, "content": {"parts": parts, "role": "model"}}]
        return self.read_reply(whole, request)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return replies.usage_in(body.get("usageMetadata"))

    def stream_reader(self, request: Request) -> StreamReader:
        return GeminiReader(request, keep_raw=request.dialect == self.name)

    # ------------------------------------------------------------------ changes to a request

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw or not isinstance(request.raw.get("contents"), list):
            return cut
        contents = []
        for content in request.raw["contents"]:
            parts = content.get("parts")
            if isinstance(parts, list):
                kept = [p for p in parts if not is_foreign(p, foreign)]
                if len(kept) < len(parts):
                    if not kept:
                        continue
                    content = {**content, "parts": kept}
            contents.append(content)
        return replace(cut, raw={**request.raw, "contents": contents})

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = request.raw
        if raw:
            given = raw.get("contents")
            raw = {**raw, "contents": [*(given if isinstance(given, list) else [given]), {"role": "user", "parts": [{"text": text}]}]}
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = Gemini()


def is_foreign(part: Any, foreign: Callable[[Thinking], bool]) -> bool:
    box = inward.Box(part)
    return box.get("thought") is True and foreign(Thinking(box.text("text"), box.text("thoughtSignature")))


def has_media(candidate: Mapping[str, Any]) -> bool:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return isinstance(parts, list) and any(isinstance(p, dict) and "inlineData" in p for p in parts)
