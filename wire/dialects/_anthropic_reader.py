"""Reads streams of Anthropic's Messages format, as a provider sends them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from wire import sse
from wire.conversation import Chunk, Stop, ToolPiece, Usage
from wire.dialects import StreamReader
from wire.dialects._anthropic_words import custom_input, error_inside, is_whole, stop_in, usage_in, word
from wire.errors import Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_upstream


class Reading:
    """One call under way in a provider's stream."""

    __slots__ = ("began_with", "custom", "index", "said")

    def __init__(self, index: int, began_with: Any, custom: bool) -> None:
        self.index, self.began_with, self.custom = index, began_with, custom
        self.said: list[str] = []


class MessagesReader(StreamReader):
    """Reads a provider's stream; a missing start, stop or ping is no fault.

    Shape: `names` turns the tool names that were sent into the caller's, `custom` are those sent for free-form tools.
    """

    def __init__(self, names: Mapping[str, str], custom: frozenset[str], keep_raw: bool) -> None:
        self.names, self.custom, self.keep_raw = names, custom, keep_raw
        self.parser = sse.Parser()
        self.done = self.finished = self.content = False
        self.calls: dict[Any, Reading] = {}  # open ones, by the block's index
        self.called = 0
        self.counts: dict[str, Any] = {}
        self.stop: Stop | None = None
        self.failure: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            events = self.parser.feed(data)
        except sse.TooLong as error:
            raise Garbage(f"The endpoint streamed {error}.") from None
        try:
            for event in events:
                self.read(event, chunks)
        except UpstreamError as error:
            if not chunks:
                raise
            # What came before the error in the same packet still counts; `close` raises it.
            self.failure, self.done = error, True
        return chunks

    def close(self) -> list[Chunk]:
        if self.failure:
            raise self.failure
        chunks: list[Chunk] = []
        if not self.done:
            for event in self.parser.close():
                if is_whole(event.data):
                    self.read(event, chunks)
        if not (self.done or self.finished):
            if self.content or any(c.has_content for c in chunks):
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        if not self.content and self.stop in (None, Stop.END, Stop.TOOLS):
            raise Empty("The endpoint's stream held no answer.")
        return chunks

    def read(self, event: sse.ServerEvent, chunks: list[Chunk]) -> None:
        data = event.data
        if data == b"[DONE]":
            self.done = self.done or self.finished
            return
        if data[:1] != b"{":
            return  # a heartbeat in disguise
        try:
            obj = parse_upstream(data)
        except ValueError:
            raise Garbage("The endpoint streamed an event that is no JSON.") from None
        kind = obj.get("type")
        if not isinstance(kind, str):
            kind = event.event
        if (kind == "error" or "error" in obj) and (error := error_inside({"type": kind, **obj})):
            raise error
        raw = obj if self.keep_raw else None
        if kind == "content_block_delta":
            self.delta(obj, raw, chunks)
        elif kind == "content_block_start":
            self.block(obj, raw, chunks)
        elif kind == "content_block_stop":
            self.over(obj.get("index"), raw, chunks)
        elif kind == "message_start":
            message = obj.get("message")
            chunks.append(Chunk(usage=self.counted(message.get("usage") if isinstance(message, dict) else None), raw=raw))
        elif kind == "message_delta":
            self.ending(obj, raw, chunks)
        elif kind == "message_stop":
            self.finish(chunks)
            self.done = True
            if raw:
                chunks.append(Chunk(raw=raw))
        elif kind != "ping" and raw and kind:
            chunks.append(Chunk(raw=raw))  # something newer than this file

    def counted(self, told: Any) -> Usage | None:
        """Counts are totals so far: the last one holds, but nothing never takes back something."""
        if isinstance(told, dict):
            for name, value in told.items():
                if value or name not in self.counts:
                    self.counts[name] = value
        return usage_in(self.counts) if isinstance(told, dict) else None

    def block(self, obj: dict[str, Any], raw: Any, chunks: list[Chunk]) -> None:
        block = obj.get("content_block")
        block = block if isinstance(block, dict) else {}
        kind = block.get("type")
        if kind == "tool_use" and isinstance(block.get("name"), str):
            name = block["name"]
            call = Reading(self.called, block.get("input"), name in self.custom)
            self.called += 1
            self.calls[key_of(obj)] = call
            call_id = block["id"] if isinstance(block.get("id"), str) and block["id"] else f"toolu_{secrets.token_hex(12)}"
            piece = ToolPiece(call.index, call_id, self.names.get(name, name), kind="custom" if call.custom else "function")
            self.content = True
            chunks.append(Chunk(tools=(piece,), raw=raw))
            return
        if kind == "redacted_thinking" and isinstance(block.get("data"), str):
            chunk = Chunk(redacted=block["data"], raw=raw)
        else:
            chunk = Chunk(text=word(block, "text"), thinking=word(block, "thinking"), signature=word(block, "signature"), raw=raw)
        # A block that only this format knows (a search's results) is an answer to those who read this format.
        self.content = self.content or chunk.has_content or (kind not in ("text", "thinking") and isinstance(kind, str))
        if raw or chunk.has_content or chunk.signature:
            chunks.append(chunk)

    def delta(self, obj: dict[str, Any], raw: Any, chunks: list[Chunk]) -> None:
        delta = obj.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        kind = delta.get("type")
        if kind == "text_delta":
            chunk = Chunk(text=word(delta, "text"), raw=raw)
        elif kind == "thinking_delta":
            chunk = Chunk(thinking=word(delta, "thinking"), raw=raw)
        elif kind == "signature_delta":
            chunk = Chunk(signature=word(delta, "signature"), raw=raw)
        elif kind == "input_json_delta":
            said, call = word(delta, "partial_json"), self.calls.get(key_of(obj))
            if call is not None and said:
                call.said.append(said)
            chunk = Chunk(tools=(ToolPiece(call.index, arguments=said),) if call is not None and said and not call.custom else (), raw=raw)
        else:
            chunk = Chunk(raw=raw)
        if chunk.has_content:
            self.content = True
        elif not (raw or chunk.signature):
            return
        chunks.append(chunk)

    def over(self, index: Any, raw: Any, chunks: list[Chunk]) -> None:
        pieces = self.rest_of(self.calls.pop(index if isinstance(index, int) else 0, None))
        if raw or pieces:
            chunks.append(Chunk(tools=pieces, raw=raw))

    def rest_of(self, call: Reading | None) -> tuple[ToolPiece, ...]:
        """What a call still lacks at its end: its arguments where they came at its beginning or not at all, or a free-form input."""
        if call is None:
            return ()
        if call.custom:
            said = "".join(call.said) or dumped(call.began_with or {})
            return (ToolPiece(call.index, arguments=custom_input(said), kind="custom"),)
        if call.said:
            return ()
        return (ToolPiece(call.index, arguments=dumped(call.began_with) if isinstance(call.began_with, dict) and call.began_with else "{}"),)

    def ending(self, obj: dict[str, Any], raw: Any, chunks: list[Chunk]) -> None:
        delta = obj.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        usage = self.counted(obj.get("usage"))
        if not reason:
            chunks.append(Chunk(usage=usage, raw=raw))
            return
        self.finished = True
        self.finish(chunks)
        self.stop = stop_in(reason, self.called > 0)
        chunks.append(Chunk(stop=self.stop, finish=str(reason), usage=usage, raw=raw))

    def finish(self, chunks: list[Chunk]) -> None:
        """Ends the calls whose own end was not said."""
        for index in list(self.calls):
            if pieces := self.rest_of(self.calls.pop(index)):
                chunks.append(Chunk(tools=pieces))


def key_of(obj: Mapping[str, Any]) -> int:
    index = obj.get("index")
    return index if isinstance(index, int) else 0


def dumped(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "{}"
