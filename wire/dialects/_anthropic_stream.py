"""Streams of Anthropic's Messages format, both ways.

A stream is one `message_start`, blocks one after the other (start, deltas, stop), one `message_delta` with the stop reason, one `message_stop`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from wire import sse
from wire.blame import upstream_error
from wire.conversation import Chunk, Request, Stop, ToolPiece, Usage
from wire.dialects import StreamReader, StreamWriter
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.estimate import request_tokens
from wire.jsontext import parse_upstream

STOPS = {
    "end_turn": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "stop_sequence": Stop.SEQUENCE,
    "tool_use": Stop.TOOLS,
    "pause_turn": Stop.END,
    "refusal": Stop.FILTER,
}
FINISHES = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.TOOLS: "tool_use",
    Stop.SEQUENCE: "stop_sequence",
    Stop.FILTER: "refusal",
    Stop.REFUSAL: "refusal",
}
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


# ------------------------------------------------------------------ what streams and whole bodies share


def stop_in(reason: Any, called: bool) -> Stop:
    """A call that was made is waited for, whatever else ended the turn; a reason that nobody knows yet is an end."""
    stop = STOPS.get(reason, Stop.END) if isinstance(reason, str) else Stop.END
    if called and stop in (Stop.END, Stop.SEQUENCE):
        return Stop.TOOLS
    return Stop.END if stop is Stop.TOOLS and not called else stop


def stop_out(stop: Stop | None, called: bool, refused: bool) -> str:
    if refused and stop in (None, Stop.END):
        return "refusal"
    if called and stop in (None, Stop.END, Stop.SEQUENCE):
        return "tool_use"
    if stop is Stop.TOOLS and not called:
        return "end_turn"
    return FINISHES[stop or Stop.END]


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def usage_in(value: Any) -> Usage | None:
    """`input_tokens` leaves the cache out here; the canonical count holds it."""
    if not isinstance(value, Mapping) or not any(count(value.get(name)) is not None for name in COUNTS):
        return None
    fresh, read, written, output = (count(value.get(name)) or 0 for name in COUNTS)
    details = value.get("output_tokens_details")
    thought = count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    return Usage(input=fresh + read + written, output=output, cache_read=read, cache_write=written, reasoning=min(thought or 0, output))


def usage_out(usage: Usage) -> dict[str, Any]:
    out: dict[str, Any] = {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        out["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return out


def error_inside(body: Mapping[str, Any]) -> UpstreamError | None:
    """An error that stands in a body or an event though the status said 200."""
    inner = body.get("error")
    if body.get("type") != "error" and not inner:
        return None
    found = inner if isinstance(inner, dict) else body
    kind = found.get("type") if isinstance(found.get("type"), str) else ""
    said = found.get("message") or (inner if isinstance(inner, str) else "") or body.get("message") or kind or "an error without a message"
    error = upstream_error(STATUSES.get(str(kind)), f"{kind}: {said}" if kind not in STATUSES and kind != "error" and kind else str(said))
    error.usage = usage_in(body.get("usage"))
    return error


def custom_input(arguments: str) -> str:
    """What a free-form tool is given: it went out as a tool with one field."""
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    return found["input"] if isinstance(found, dict) and isinstance(found.get("input"), str) else arguments


# ------------------------------------------------------------------ reading


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


def word(value: Mapping[str, Any], name: str) -> str:
    said = value.get(name)
    return said if isinstance(said, str) else ""


def dumped(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "{}"


def is_whole(data: bytes) -> bool:
    """A last event without its blank line counts if its JSON is whole; half of one is the sign of a cut."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return data == b"[DONE]"
    return True


# ------------------------------------------------------------------ writing


class Block:
    """One content block towards a caller. `waiting` is what came for it while another was open."""

    __slots__ = ("id", "index", "kind", "name", "said", "waiting")

    def __init__(self, kind: str, id: str = "", name: str = "") -> None:
        self.kind, self.id, self.name = kind, id, name
        self.index = -1
        self.said: list[str] = []  # of a call: its arguments so far
        self.waiting: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing more can belong to it: a call is over when its arguments are whole."""
        if self.kind != "tool_use":
            return True
        try:
            orjson.loads("".join(self.said))
        except orjson.JSONDecodeError:
            return False
        return True


class MessagesWriter(StreamWriter):
    """Writes a stream for a caller: one start, blocks that never overlap, one stop reason.

    Calls of which pieces come by turns wait for each other: the first is open, the others are written when it is over.
    """

    def __init__(self, request: Request, answer_id: str) -> None:
        self.request, self.answer_id = request, answer_id
        self.started = False
        self.blocks: list[Block] = []  # the first is open, the others wait
        self.calls: dict[int, Block] = {}
        self.next_index = 0
        self.relayed: Any = None  # the provider's index of the block that is relayed from it
        self.ended: dict[str, Any] = {}  # the provider's own message_delta
        self.usage: Usage | None = None
        self.stop: Stop | None = None
        self.called = self.refused = False

    # ---- the dialect's interface

    def start(self) -> bytes:
        return self.begin() if not self.started else b""

    def chunk(self, chunk: Chunk) -> bytes:
        if chunk.usage is not None:
            self.usage = chunk.usage
        if chunk.stop is not None:
            self.stop = chunk.stop
        raw = chunk.raw
        if isinstance(raw, dict) and isinstance(kind := raw.get("type"), str) and (out := self.relay(kind, raw)) is not None:
            return out
        return self.made(chunk)

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        if not self.started:
            self.usage = self.usage or usage
        out = [self.start(), *self.close_all()]
        told = self.ended.get("delta")
        delta = {"stop_reason": None, "stop_sequence": None, **(told if isinstance(told, dict) else {})}
        if not delta["stop_reason"]:
            delta["stop_reason"] = stop_out(self.stop, self.called, self.refused)
        counts = self.ended.get("usage")
        body = {**self.ended, "type": "message_delta", "delta": delta, "usage": {**(counts if isinstance(counts, dict) else {}), **usage_out(usage)}}
        if bench is not None:
            body["bench"] = bench
        return b"".join([*out, written("message_delta", body), written("message_stop", {"type": "message_stop"})])

    def error(self, error: CallerError) -> bytes:
        return written("error", error_out(error))

    def keepalive(self) -> bytes:
        return PING if self.started else sse.KEEPALIVE

    # ---- the provider's own events

    def relay(self, kind: str, raw: dict[str, Any]) -> bytes | None:
        """A provider's event of this format, in its place; None where it has to be made from what was understood."""
        if kind == "content_block_delta":
            if self.relayed is None or raw.get("index") != self.relayed or not isinstance(raw.get("delta"), dict):
                return None
            index = self.blocks[0].index
            return written(kind, raw if raw["index"] == index else {**raw, "index": index})
        if kind == "content_block_start":
            content = raw.get("content_block")
            if not (isinstance(content, dict) and isinstance(content.get("type"), str) and isinstance(raw.get("index"), int)):
                return None
            block = Block("relayed")
            out = [self.start(), *self.close_all()]
            self.open(block)
            self.relayed = raw["index"]
            self.called = self.called or content["type"] == "tool_use"
            return b"".join([*out, written(kind, {**raw, "index": block.index})])
        if kind == "content_block_stop":
            if self.relayed is None:
                return None
            return b"".join(self.close_all()) if raw.get("index") == self.relayed else b""
        if kind == "message_start":
            return b"" if self.started else self.begin(raw.get("message"))
        if kind == "message_delta":
            self.ended = merged(self.ended, raw)
            return b""
        if kind in ("message_stop", "ping", "error"):
            return b""
        if kind.startswith(("message_", "content_block_")) and kind.isidentifier():
            return b"".join([self.start(), written(kind, raw)])
        return None

    def begin(self, message: Any = None) -> bytes:
        self.started = True
        given = message if isinstance(message, dict) else {}
        counts = given.get("usage")
        known = usage_in(counts) or self.usage
        if known is None or not known.input:
            known = Usage(input=max(1, request_tokens(self.request)), output=1)
        head = {
            "stop_reason": None,
            "stop_sequence": None,
            **given,
            "id": given["id"] if isinstance(given.get("id"), str) and given["id"] else self.answer_id,
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": [],
            "usage": {**(counts if isinstance(counts, dict) else {}), **usage_out(known)},
        }
        return written("message_start", {"type": "message_start", "message": head})

    # ---- events of ours

    def made(self, chunk: Chunk) -> bytes:
        out: list[bytes] = []
        if chunk.has_content or chunk.signature:
            if not self.started:
                out.append(self.begin())
            if self.relayed is not None:
                out += self.close_all()
        if chunk.thinking:
            out += self.say("thinking", chunk.thinking)
        if chunk.signature:
            out += self.sign(chunk.signature)
        if chunk.redacted:
            out += self.add(Block("redacted_thinking", chunk.redacted))
        if chunk.text:
            out += self.say("text", chunk.text)
        if chunk.refusal:
            self.refused = True
            out += self.say("text", chunk.refusal)
        for piece in chunk.tools:
            out += self.call(piece)
        return b"".join(out)

    def say(self, kind: str, text: str) -> list[bytes]:
        """A piece of text or thinking: of the last block where that is its kind, else of a new one."""
        if self.blocks and self.blocks[-1].kind == kind:
            block = self.blocks[-1]
            if block is self.blocks[0]:
                return [text_event(block.index, kind, text)]
            block.waiting.append(text)
            return []
        block = Block(kind)
        block.waiting.append(text)
        return self.add(block)

    def sign(self, signature: str) -> list[bytes]:
        """A signature belongs to the thinking before it; without any it is that of thinking that is not shown."""
        out: list[bytes] = []
        if not (self.blocks and self.blocks[-1].kind == "thinking"):
            out = self.add(Block("thinking"))
        block = self.blocks[-1]
        if block is self.blocks[0]:
            return [*out, delta_event(block.index, {"type": "signature_delta", "signature": signature})]
        block.id = signature
        return out

    def call(self, piece: ToolPiece) -> list[bytes]:
        block = self.calls.get(piece.index)
        out: list[bytes] = []
        if block is None or (piece.id and piece.name and piece.id != block.id):
            self.called = True
            block = Block("tool_use", piece.id or f"toolu_{secrets.token_hex(12)}", piece.name)
            self.calls[piece.index] = block
            out += self.add(block)
        elif piece.name and not block.name:
            block.name = piece.name
            out += self.advance(last=False)
        if piece.arguments and block in self.blocks:
            block.said.append(piece.arguments)
            if block.index >= 0:
                out.append(text_event(block.index, "tool_use", piece.arguments))
        return out

    def add(self, block: Block) -> list[bytes]:
        """Puts a block at the end, and opens it as soon as those before it are over."""
        self.blocks.append(block)
        return self.advance(last=False)

    def advance(self, last: bool) -> list[bytes]:
        """Closes what is over and opens what comes next."""
        out: list[bytes] = []
        while self.blocks:
            block = self.blocks[0]
            if block.index < 0:
                if block.kind == "tool_use" and not last and not block.name:
                    return out
                if block.kind == "tool_use" and (not block.name or (self.stop is Stop.LENGTH and block.said and not block.is_over)):
                    self.blocks.pop(0)  # a call that never came whole, and of which nobody has seen anything
                    continue
                out += self.opened(block)
            if not last and (len(self.blocks) == 1 or not block.is_over):
                return out
            out += self.closed(block)
        return out

    def close_all(self) -> list[bytes]:
        out = self.advance(last=True)
        self.relayed = None
        return out

    def open(self, block: Block) -> None:
        block.index = self.next_index
        self.next_index += 1
        if block not in self.blocks:
            self.blocks.append(block)

    def opened(self, block: Block) -> list[bytes]:
        """A block's start, and what has waited for it."""
        self.open(block)
        if block.kind == "tool_use":
            content: dict[str, Any] = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            deltas = [text_event(block.index, "tool_use", "".join(block.said))] if block.said else []
        elif block.kind == "redacted_thinking":
            content, deltas = {"type": "redacted_thinking", "data": block.id}, []
        else:
            content = {"type": "text", "text": ""} if block.kind == "text" else {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [text_event(block.index, block.kind, t) for t in block.waiting]
            if block.id:
                deltas.append(delta_event(block.index, {"type": "signature_delta", "signature": block.id}))
        block.waiting = []
        return [written("content_block_start", {"type": "content_block_start", "index": block.index, "content_block": content}), *deltas]

    def closed(self, block: Block) -> list[bytes]:
        out = [text_event(block.index, "tool_use", "{}")] if block.kind == "tool_use" and not block.said else []
        self.blocks.pop(0)
        return [*out, written("content_block_stop", {"type": "content_block_stop", "index": block.index})]


def merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Several message_deltas as one."""
    out = {**before, **after}
    for name in ("delta", "usage"):
        if isinstance(was := before.get(name), dict) and isinstance(now := after.get(name), dict):
            out[name] = {**was, **{k: v for k, v in now.items() if v is not None}}
    return out


# ------------------------------------------------------------------ events

DELTAS = {
    "text": (b"text_delta", b"text"),
    "thinking": (b"thinking_delta", b"thinking"),
    "tool_use": (b"input_json_delta", b"partial_json"),
}


def written(name: str, body: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(body))


def text_event(index: int, kind: str, text: str) -> bytes:
    """The event that there are thousands of, put together by hand."""
    delta, field = DELTAS[kind]
    return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n' % (
        index,
        delta,
        field,
        orjson.dumps(text),
    )


def delta_event(index: int, delta: dict[str, Any]) -> bytes:
    return written("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})


# ------------------------------------------------------------------ errors

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


def error_out(error: CallerError) -> dict[str, Any]:
    kind = ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    if error.code in ("upstream_overloaded", "server_busy"):
        kind = "overloaded_error"
    inner: dict[str, Any] = {"type": kind, "message": error.message, "code": error.code}
    if error.field:
        inner["param"] = error.field
    if error.seats:
        inner["seats"] = error.seats
    return {"type": "error", "error": inner}
