"""Gemini's streams: read from providers, and written for callers as events or as one JSON array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from wire import sse
from wire.conversation import Chunk, Request, Stop, Text, Thinking, ToolCall, ToolPiece, Usage
from wire.dialects import StreamReader, StreamWriter
from wire.dialects._gemini_reply import (
    FAILURES,
    FINISHES,
    block_in,
    call_out,
    candidate_out,
    count,
    error_in,
    error_out,
    named,
    names_of,
    part_in,
    shows_thoughts,
    stop_in,
    usage_in,
    usage_out,
)
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_upstream

OURS = frozenset({"candidates", "promptFeedback", "usageMetadata"})


class GeminiReader(StreamReader):
    """Reads a provider's stream. Nothing marks its end but the connection's; a finish reason only says that it may come."""

    def __init__(self, request: Request, keep_raw: bool) -> None:
        self.keep_raw = keep_raw
        self.names = names_of(request, same=keep_raw)
        self.parser = sse.Parser()
        self.done = False
        self.content = False
        self.finish = ""
        self.stop: Stop | None = None
        self.calls: dict[int, int] = {}
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        if self.error is not None:
            raise self.error
        chunks: list[Chunk] = []
        try:
            for event in self.parser.feed(data):
                self.read(event.data, chunks)
        except sse.TooLong as error:
            raise Garbage(f"The endpoint streamed {error}.") from None
        except UpstreamError as error:
            if not chunks:
                raise
            self.error = error  # what came before it in the same packet came first
        return chunks

    def close(self) -> list[Chunk]:
        if self.error is not None:
            raise self.error
        chunks: list[Chunk] = []
        for event in self.parser.close():
            try:
                parse_upstream(event.data)
            except ValueError:
                continue  # half an event: the sign of a cut
            self.read(event.data, chunks)
        if not self.finish:
            if self.content:
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        if self.finish in FAILURES and not (self.keep_raw and self.content):
            raise Garbage(f"The model ended with {self.finish}.")
        if not self.content and self.stop in (None, Stop.END, Stop.TOOLS):
            raise Empty("The endpoint's stream held no answer.")
        return chunks

    def read(self, data: bytes, chunks: list[Chunk]) -> None:
        if data[:1] not in (b"{", b"[") or data == b"[DONE]":
            return  # a heartbeat in disguise, or the end as other formats mark it
        try:
            body = parse_upstream(data)
        except ValueError:
            raise Garbage("The endpoint streamed a chunk that is no JSON.") from None
        for one in body if isinstance(body, list) else [body]:
            if isinstance(one, dict):
                chunks += self.body(one)

    def body(self, body: dict[str, Any]) -> list[Chunk]:
        if error := error_in(body):
            raise error
        usage = usage_in(body.get("usageMetadata"))
        listed = body.get("candidates")
        candidates = [c for c in listed if isinstance(c, dict)] if isinstance(listed, list) else []
        if not candidates:
            reason = block_in(body)
            if reason:
                self.finish, self.stop = self.finish or reason, Stop.FILTER
            elif not usage and not body.keys() - {"candidates", "modelVersion", "responseId", "usageMetadata"}:
                return []  # a heartbeat
            return [Chunk(stop=Stop.FILTER if reason else None, finish=reason, usage=usage, raw=body if self.keep_raw else None)]
        chunks = []
        for candidate in candidates:
            chunks += self.candidate(candidate, {**body, "candidates": [candidate]} if len(candidates) > 1 else body, usage)
            usage = None
        return chunks

    def candidate(self, candidate: Mapping[str, Any], body: dict[str, Any], usage: Usage | None) -> list[Chunk]:
        choice = count(candidate.get("index"))
        if self.keep_raw and (whole := named(candidate)) is not candidate:
            candidate, body = whole, {**body, "candidates": [whole]}
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        chunks: list[Chunk] = []
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                # Media is an answer, though only a client of this format gets it.
                self.content = self.content or ("inlineData" in part and self.keep_raw)
                if (chunk := self.part(part, choice)) is not None:
                    chunks.append(chunk)
        finish = candidate.get("finishReason")
        finish = finish if isinstance(finish, str) else ""
        if self.keep_raw:
            chunks = [replace(together(chunks, choice), raw=body)]
        if finish or usage or not chunks:
            last = chunks.pop() if chunks else Chunk(choice=choice)
            stop = stop_in(finish, bool(self.calls.get(choice))) if finish else None
            chunks.append(replace(last, stop=stop, finish=finish, usage=usage))
            if finish and choice == 0:
                self.finish, self.stop = finish, stop
        self.content = self.content or any(c.has_content for c in chunks)
        return chunks

    def part(self, part: Mapping[str, Any], choice: int) -> Chunk | None:
        found = part_in(part, self.names)
        if isinstance(found, Text):
            return Chunk(text=found.text, choice=choice)
        if isinstance(found, Thinking):
            return Chunk(thinking=found.text, signature=found.signature, choice=choice)
        if isinstance(found, ToolCall):
            index = self.calls.get(choice, 0)
            self.calls[choice] = index + 1
            return Chunk(tools=(ToolPiece(index, found.id, found.name, found.arguments, found.kind, found.signature),), choice=choice)
        return None


def together(chunks: list[Chunk], choice: int) -> Chunk:
    """Several steps as one: a client of the same format gets the provider's own event, which holds them all."""
    if len(chunks) == 1:
        return chunks[0]
    return Chunk(
        text="".join(c.text for c in chunks),
        thinking="".join(c.thinking for c in chunks),
        signature="".join(c.signature for c in chunks),
        tools=tuple([t for c in chunks for t in c.tools]),
        choice=choice,
    )


class GeminiWriter(StreamWriter):
    """Writes a stream for a caller. What ends it (finish reason, counts, `bench`) stands in the last chunk; calls are written once they are whole."""

    def __init__(self, request: Request, answer_id: str) -> None:
        self.head = {"modelVersion": request.model, "responseId": answer_id}
        self.thoughts = shows_thoughts(request)
        self.array = request.stream_form == "array"
        self.content_type = "application/json" if self.array else "text/event-stream"
        self.begun = False
        self.stop: Stop | None = None
        self.calls: dict[int, dict[str, str]] = {}
        self.held: dict[int, dict[str, Any]] = {}  # the provider's own last chunks
        self.counts: Any = None

    def start(self) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        raw = chunk.raw
        if isinstance(raw, dict) and raw.keys() & OURS:
            return self.passed(chunk, raw)
        if chunk.choice:
            return b""
        self.stop = chunk.stop or self.stop
        for piece in chunk.tools:
            call = self.calls.setdefault(piece.index, {"id": "", "name": "", "arguments": "", "kind": piece.kind})
            call["id"], call["name"] = call["id"] or piece.id, call["name"] or piece.name
            call["arguments"] += piece.arguments
        parts: list[dict[str, Any]] = []
        if chunk.thinking and self.thoughts:
            parts.append({"text": chunk.thinking, "thought": True})
        if said := chunk.text + chunk.refusal:
            parts.append({"text": said})
        return self.write({"candidates": [candidate_out(parts)], **self.head}) if parts else b""

    def passed(self, chunk: Chunk, raw: dict[str, Any]) -> bytes:
        """The provider's own chunk; its last one is held back."""
        if isinstance(raw.get("responseId"), str):
            self.head["responseId"] = raw["responseId"]
        body = {**raw, **self.head}
        if isinstance(raw.get("usageMetadata"), dict):
            self.counts = raw["usageMetadata"]
        before = self.held.get(chunk.choice)
        if chunk.finish:
            self.held[chunk.choice] = body
            return self.write(unfinished(before)) if before else b""
        if not raw.get("candidates") and not raw.keys() - {"candidates", "usageMetadata", "modelVersion", "responseId"}:
            return b""  # counts alone stand in the last chunk
        if before and chunk.has_content:
            # It goes on behind its finish reason, which then comes later.
            last = before["candidates"][0] if before.get("candidates") else {}
            self.held[chunk.choice] = {**before, "candidates": [{**last, "content": {"parts": [{"text": ""}], "role": "model"}}]}
            return self.write(unfinished(before)) + self.write(body)
        return self.write(body)

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        counts = self.counts if self.counts is not None else usage_out(usage)
        if self.held:
            last = [self.held[choice] for choice in sorted(self.held)]
        else:
            calls = [call_out(c["id"], c["name"], c["arguments"], c["kind"], self.stop) for _, c in sorted(self.calls.items())]
            parts = [c for c in calls if c is not None] or [{"text": ""}]
            last = [{"candidates": [candidate_out(parts, FINISHES.get(self.stop or Stop.END, "STOP"))], **self.head}]
        out = []
        for number, body in enumerate(last):
            body = {**body, "usageMetadata": counts}
            if bench is not None and number == 0:
                body["bench"] = bench
            out.append(self.write(body))
        return b"".join(out) + (b"\n]\n" if self.array else b"")

    def error(self, error: CallerError) -> bytes:
        return self.write(error_out(error)) + (b"\n]\n" if self.array else b"")

    def keepalive(self) -> bytes:
        """An event without candidates, since comments break clients; within an array white space, which JSON allows anywhere."""
        return b"\n" if self.array else b'data: {"candidates":[]}\n\n'

    def write(self, body: Mapping[str, Any]) -> bytes:
        if not self.array:
            return b"data: " + orjson.dumps(body) + b"\n\n"
        before, self.begun = b",\n" if self.begun else b"[", True
        return before + orjson.dumps(body)


def unfinished(body: dict[str, Any]) -> dict[str, Any]:
    """A chunk that was taken for the last and is not."""
    return {**body, "candidates": [{k: v for k, v in c.items() if k != "finishReason"} for c in body.get("candidates") or []]}
