"""OpenAI's chat completions: streams, read from providers and written for callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from wire import sse
from wire.conversation import (
    Chunk,
    Stop,
    ToolPiece,
    Usage,
)
from wire.dialects import StreamReader, StreamWriter
from wire.dialects._openai_chat_reply import FINISHES, STOPS, count, error_inside, error_out, usage_in, usage_out
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_upstream

STREAM_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier"})


class ChatReader(StreamReader):
    """Reads a provider's stream. A finish reason is only noted: text may follow it, and it holds once the stream has ended."""

    def __init__(self, keep_raw: bool = True, names: Mapping[str, str] | None = None) -> None:
        self.keep_raw = keep_raw
        self.names = names  # the caller's tool names by those that were sent
        self.parser = sse.Parser()
        self.done = False
        self.finished = False
        self.content = False
        self.stop: Stop | None = None
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
        if not self.done:
            for event in self.parser.close():
                if event.data == b"[DONE]" or is_whole(event.data):
                    self.read(event.data, chunks)
        if not (self.done or self.finished):
            if self.content or any(c.has_content for c in chunks):
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        if not self.content and self.stop in (None, Stop.END, Stop.TOOLS) and not any(c.has_content for c in chunks):
            raise Empty("The endpoint's stream held no answer.")
        return chunks

    def read(self, data: bytes, chunks: list[Chunk]) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        if data[:1] != b"{":
            return  # a heartbeat in disguise
        try:
            obj = parse_upstream(data)
        except ValueError:
            raise Garbage("The endpoint streamed a chunk that is no JSON.") from None
        if error := error_inside(obj):
            raise error
        usage = usage_in(obj.get("usage"))
        choices = obj.get("choices")
        if not isinstance(choices, list) or not choices:
            chunks.append(Chunk(usage=usage, raw=obj if self.keep_raw else None))
            return
        several = len(choices) > 1
        for choice in choices:
            if isinstance(choice, dict):
                chunks.append(self.choice(choice, {**obj, "choices": [choice]} if several else obj, usage))
                usage = None

    def choice(self, choice: dict[str, Any], raw: dict[str, Any], usage: Usage | None) -> Chunk:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
            delta = delta if isinstance(delta, dict) else {}
        said = delta.get("content")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        refused = delta.get("refusal")
        pieces: tuple[ToolPiece, ...] = ()
        if calls := delta.get("tool_calls"):
            pieces = read_pieces(calls)
            if self.names:
                pieces = tuple([replace(p, name=self.names.get(p.name, p.name)) for p in pieces])
        finish = choice.get("finish_reason")
        if finish:
            self.finished = True
            finish = str(finish)
            self.stop = STOPS.get(finish, Stop.END)
        chunk = Chunk(
            text=said if isinstance(said, str) else "",
            thinking=thought if isinstance(thought, str) else "",
            refusal=refused if isinstance(refused, str) else "",
            tools=pieces,
            stop=STOPS.get(finish, Stop.END) if finish else None,
            finish=finish or "",
            usage=usage,
            choice=count(choice.get("index")),
            raw=raw if self.keep_raw else None,
        )
        if not self.content and chunk.has_content:
            self.content = True
        return chunk


def is_whole(data: bytes) -> bool:
    """A last event without its blank line counts if its JSON is whole; half of one is the sign of a cut."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def read_pieces(calls: Any) -> tuple[ToolPiece, ...]:
    out = []
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = orjson.dumps(arguments).decode()
        index = call.get("index")
        out.append(ToolPiece(index if isinstance(index, int) else position, str(call.get("id") or ""), str(function.get("name") or ""), arguments or ""))
    return tuple(out)


def piece_out(piece: ToolPiece) -> dict[str, Any]:
    """Id, type and name stand on a call's first piece only."""
    kind, value = ("custom", "input") if piece.kind == "custom" else ("function", "arguments")
    said = {"name": piece.name, value: piece.arguments} if piece.name else {value: piece.arguments}
    first = {"id": piece.id, "type": kind} if piece.id else {}
    return {"index": piece.index, **first, kind: said}


class ChatWriter(StreamWriter):
    """Writes a stream for a caller: one id throughout, the role first, one finish reason a choice and that last, usage only where asked for."""

    def __init__(self, model: str, answer_id: str, created_s: int, usage_wanted: bool) -> None:
        self.head = {"id": answer_id, "object": "chat.completion.chunk", "created": created_s, "model": model}
        self.usage_wanted = usage_wanted
        self.roles: set[int] = set()
        self.held: dict[int, dict[str, Any]] = {}

    def start(self) -> bytes:
        self.roles.add(0)
        return self.write({**self.head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}]})

    def chunk(self, chunk: Chunk) -> bytes:
        raw = chunk.raw
        if not (isinstance(raw, dict) and "choices" in raw):
            return self.made(chunk)
        body = {**raw, **self.head}
        body.pop("usage", None)
        choices = raw["choices"]
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            # A chunk of usage only is held back; one that says something else (a content filter's result) goes on.
            return self.write({**body, "choices": []}) if raw.keys() - STREAM_FIELDS else b""
        choice = choices[0]
        if chunk.finish:
            if chunk.has_content or choice.get("logprobs"):
                self.held[chunk.choice] = {**body, "choices": [{"index": chunk.choice, "delta": {}, "finish_reason": chunk.finish}]}
                choice = {**choice, "finish_reason": None}
            else:
                self.held[chunk.choice] = {**body, "choices": [{**choice, "delta": {}, "finish_reason": chunk.finish}]}
                return b""
        if chunk.choice not in self.roles:
            self.roles.add(chunk.choice)
            delta = choice.get("delta")
            choice = {**choice, "delta": {"role": "assistant", **(delta if isinstance(delta, dict) else {})}}
        if choice is not choices[0]:
            body["choices"] = [choice]
        return self.write(body)

    def made(self, chunk: Chunk) -> bytes:
        """A chunk of ours, from what was understood."""
        delta: dict[str, Any] = {}
        if chunk.choice not in self.roles:
            self.roles.add(chunk.choice)
            delta = {"role": "assistant", "content": ""}
        if chunk.text:
            delta["content"] = chunk.text
        if chunk.thinking:
            delta["reasoning_content"] = chunk.thinking
        if chunk.refusal:
            delta["refusal"] = chunk.refusal
        if chunk.tools:
            delta["tool_calls"] = [piece_out(t) for t in chunk.tools]
        if chunk.stop:
            self.held[chunk.choice] = {**self.head, "choices": [{"index": chunk.choice, "delta": {}, "logprobs": None, "finish_reason": FINISHES[chunk.stop]}]}
        if not delta:
            return b""
        return self.write({**self.head, "choices": [{"index": chunk.choice, "delta": delta, "logprobs": None, "finish_reason": None}]})

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        held = self.held or {0: {**self.head, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]}}
        out = []
        for number, index in enumerate(sorted(held)):
            body = held[index]
            if bench is not None and number == 0:
                body = {**body, "bench": bench}
            out.append(self.write(body))
        if self.usage_wanted:
            out.append(self.write({**self.head, "choices": [], "usage": usage_out(usage)}))
        return b"".join(out) + sse.DONE

    def error(self, error: CallerError) -> bytes:
        return self.write(error_out(error))

    def keepalive(self) -> bytes:
        return sse.KEEPALIVE

    @staticmethod
    def write(body: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps(body) + b"\n\n"
