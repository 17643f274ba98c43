"""Ollama's answers, whole and as streams of one JSON object a line, read from providers and written for callers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from wire.blame import upstream_error
from wire.conversation import Chunk, Part, Stop, Text, Thinking, ToolCall, ToolPiece, Usage
from wire.dialects import StreamReader, StreamWriter
from wire.dialects._ollama_out import call_out
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_upstream

STOPS = {"stop": Stop.END, "length": Stop.LENGTH}
LONGEST_LINE = 32 * 1024 * 1024
COUNTS = ("prompt_eval_count", "eval_count")
LAST_ONLY = ("done_reason", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration", *COUNTS)


# ------------------------------------------------------------------ an answer


def head(model: str, created_s: int) -> dict[str, Any]:
    return {"model": model, "created_at": datetime.fromtimestamp(created_s, UTC).isoformat().replace("+00:00", "Z")}


def tail(stop: Stop | None, usage: Usage) -> dict[str, Any]:
    return {"done": True, "done_reason": "length" if stop is Stop.LENGTH else "stop", "prompt_eval_count": usage.input, "eval_count": usage.output}


def error_out(error: CallerError) -> dict[str, Any]:
    found: dict[str, Any] = {"error": error.message, "code": error.code}
    if error.seats:
        found["seats"] = error.seats
    return found


def raise_error(body: Mapping[str, Any]) -> None:
    """Errors: UpstreamError where a body or a line is an error."""
    said = body.get("error")
    if not said:
        return
    inner = said if isinstance(said, dict) else {}
    words = said if isinstance(said, str) else inner.get("message")
    status = next((s for s in (body.get("status_code"), body.get("code"), inner.get("code")) if isinstance(s, int) and 400 <= s < 600), None)
    error = upstream_error(status, words if isinstance(words, str) and words else "an error without a message")
    error.usage = usage_in(body)
    raise error


def read_line(body: Mapping[str, Any], calls_before: int, custom: frozenset[str]) -> Chunk:
    """What one line says. `custom` names the free-form tools, whose input was asked for as a field."""
    message = body.get("message")
    message = message if isinstance(message, dict) else {"content": body.get("response"), "thinking": body.get("thinking")}
    pieces: list[ToolPiece] = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(name := function.get("name"), str) and name:
            # Where it gives no id one is minted: every other format needs them, and each must differ from all others of its conversation.
            given = call.get("id")
            call_id = given if isinstance(given, str) and given else f"call_{secrets.token_hex(12)}"
            arguments = function.get("arguments")
            if name in custom:
                inside = arguments.get("input") if isinstance(arguments, dict) else arguments
                raw = inside if isinstance(inside, str) else orjson.dumps(arguments).decode()
                pieces.append(ToolPiece(calls_before + len(pieces), call_id, name, raw, "custom"))
                continue
            written = arguments if isinstance(arguments, str) else orjson.dumps(arguments if arguments is not None else {}).decode()
            pieces.append(ToolPiece(calls_before + len(pieces), call_id, name, written or "{}"))
    said, thought = message.get("content"), message.get("thinking")
    return Chunk(text=said if isinstance(said, str) else "", thinking=thought if isinstance(thought, str) else "", tools=tuple(pieces))


def parts_of(chunk: Chunk) -> tuple[Part, ...]:
    parts: list[Part] = []
    if chunk.thinking:
        parts.append(Thinking(text=chunk.thinking))
    if chunk.text:
        parts.append(Text(chunk.text))
    parts += [ToolCall(t.id, t.name, t.arguments, t.kind) for t in chunk.tools]
    return tuple(parts)


def stop_of(body: Mapping[str, Any], called: bool) -> Stop:
    """Why it ended. It says "stop" after calls too."""
    stop = STOPS.get(str(body.get("done_reason") or "stop"), Stop.END)
    return Stop.TOOLS if called and stop is Stop.END else stop


def usage_in(body: Mapping[str, Any]) -> Usage | None:
    counts = [c if isinstance(c, int) and not isinstance(c, bool) and 0 <= c < 2**53 else None for c in (body.get(f) for f in COUNTS)]
    return None if counts == [None, None] else Usage(input=counts[0] or 0, output=counts[1] or 0)


# ------------------------------------------------------------------ reading


class LineReader(StreamReader):
    """Reads a provider's lines."""

    def __init__(self, keep_raw: bool, custom: frozenset[str] = frozenset()) -> None:
        self.keep_raw, self.custom = keep_raw, custom
        self.buffer = b""
        self.done = False
        self.content = False
        self.calls = 0
        self.stop: Stop | None = None
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        if self.error is not None:
            raise self.error
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        chunks: list[Chunk] = []
        try:
            for line in lines:
                self.line(line, chunks)
            if len(self.buffer) > LONGEST_LINE:
                raise Garbage("The endpoint streamed a line without an end.")
        except UpstreamError as error:
            if not chunks:
                raise
            self.error = error  # what came before it in the same packet came first
        return chunks

    def close(self) -> list[Chunk]:
        if self.error is not None:
            raise self.error
        chunks: list[Chunk] = []
        if not self.done:
            line, self.buffer = self.buffer, b""
            try:
                parse_upstream(line)
            except ValueError:
                pass  # half a line: the sign of a cut
            else:
                self.line(line, chunks)
        if not self.done:
            if self.content:
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        if not self.content and self.stop is Stop.END:
            raise Empty("The endpoint's stream held no answer.")
        return chunks

    def line(self, line: bytes, chunks: list[Chunk]) -> None:
        if self.done or not line.strip():
            return
        try:
            body = parse_upstream(line)
        except ValueError:
            raise Garbage("The endpoint streamed a line that is no JSON.") from None
        if not isinstance(body, dict):
            return
        raise_error(body)
        chunk = read_line(body, self.calls, self.custom)
        self.calls += len(chunk.tools)
        self.content = self.content or chunk.has_content
        raw = body if self.keep_raw else None
        if body.get("done") is True:
            self.done = True
            # A call may stand lines before the end, and the end then says "stop" as if nothing had been called.
            self.stop = stop_of(body, self.calls > 0)
            chunk = replace(chunk, stop=self.stop, finish=str(body.get("done_reason") or "stop"), usage=usage_in(body))
        chunks.append(replace(chunk, raw=raw))


# ------------------------------------------------------------------ writing


class LineWriter(StreamWriter):
    """Writes lines for a caller; a tool call is written once it is whole, since its arguments are an object here."""

    content_type = "application/x-ndjson"

    def __init__(self, model: str, created_s: int, generates: bool) -> None:
        self.head = head(model, created_s)
        self.generates = generates
        self.stop: Stop | None = None
        self.last: dict[str, Any] = {}
        self.calls: dict[int, ToolCall] = {}

    def start(self) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        if chunk.choice:
            return b""
        raw = chunk.raw
        if chunk.stop:
            self.stop = chunk.stop
        if isinstance(raw, dict) and isinstance(raw.get("message"), dict) and not self.generates:
            if raw.get("done") is True:
                self.last = {k: v for k, v in raw.items() if k != "message"}
                raw = {k: v for k, v in raw.items() if k not in LAST_ONLY}
            return self.line({**self.head, **raw, "model": self.head["model"], "done": False}) if chunk.has_content or not chunk.stop else b""
        for piece in chunk.tools:
            call = self.calls.get(piece.index) or ToolCall(piece.id, piece.name, "", piece.kind)
            self.calls[piece.index] = replace(call, id=call.id or piece.id, name=call.name or piece.name, arguments=call.arguments + piece.arguments)
        return self.line(self.words(chunk.text + chunk.refusal, chunk.thinking)) if chunk.text or chunk.thinking or chunk.refusal else b""

    def words(self, said: str, thought: str = "") -> dict[str, Any]:
        thinking = {"thinking": thought} if thought else {}
        body = {"response": said, **thinking} if self.generates else {"message": {"role": "assistant", "content": said, **thinking}}
        return {**self.head, **body, "done": False}

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        out = b""
        if self.calls and not self.generates:
            calls = [call_out(c, i) for i, (_, c) in enumerate(sorted(self.calls.items()))]
            out = self.line({**self.head, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False})
        end = tail(self.stop, usage)
        if said := self.last.get("done_reason"):
            end["done_reason"] = said
        last: dict[str, Any] = {**self.words(""), **self.last, **end, "model": self.head["model"]}
        if bench is not None:
            last["bench"] = bench
        return out + self.line(last)

    def error(self, error: CallerError) -> bytes:
        return self.line(error_out(error))

    def keepalive(self) -> bytes:
        """White space before the next line: JSON allows it there, while an empty line would break clients and a line without words would be an answer's."""
        return b" "

    @staticmethod
    def line(body: dict[str, Any]) -> bytes:
        return orjson.dumps(body) + b"\n"
