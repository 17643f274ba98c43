"""Writes streams of Anthropic's Messages format, as a caller reads them.

A stream is one `message_start`, blocks one after the other (start, deltas, stop), one `message_delta` with the stop reason, one `message_stop`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from wire import sse
from wire.conversation import Chunk, Request, Stop, ToolPiece, Usage
from wire.dialects import StreamWriter
from wire.dialects._anthropic_words import error_out, stop_out, usage_in, usage_out
from wire.errors import CallerError
from wire.estimate import request_tokens

PING = b'event: ping\ndata: {"type": "ping"}\n\n'


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
