"""Writes a Responses stream for a caller: items from whatever was understood, or a provider's own events, put in order where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from wire import sse
from wire.conversation import Chunk, Stop, ToolPiece, Usage
from wire.dialects import StreamWriter
from wire.dialects._responses_events import ADDED, BEGINNINGS, DELTAS, DONE, DONES, ENDS, NUMBERED, PARTS, SECTIONS, name_of, number_of, part_of, sections_of
from wire.dialects._responses_items import item_id, message_item, reasoning_item, sealed
from wire.dialects._responses_reply import ending, usage_out
from wire.dialects._responses_tools import Shown, call_item, id_prefix, is_whole
from wire.errors import CallerError

# How an item is announced: with nothing of what its sections will say.
ANNOUNCED: Mapping[str, Mapping[str, Any]] = {
    "message": {"role": "assistant", "content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


@dataclass(slots=True)
class Part:
    """One section of an item as the caller has seen it. `is_told`: its whole text was."""

    said: list[str] = field(default_factory=list)
    is_told: bool = False
    is_done: bool = False


@dataclass(slots=True)
class Item:
    """One item. Shape: `body` as it was announced, and once closed as it is; `parts` by section and number."""

    type: str
    index: int = -1
    body: dict[str, Any] = field(default_factory=dict)
    parts: dict[tuple[str, int], Part] = field(default_factory=dict)
    is_closed: bool = False

    @property
    def is_open(self) -> bool:
        return self.index >= 0


@dataclass(slots=True)
class Made(Item):
    """An item of ours. Shape: `waiting` is what may be written only when it is its turn; the rest is a call's, or what proves a thought."""

    waiting: list[tuple[str, str]] = field(default_factory=list)
    call_id: str = ""
    name: str = ""
    kind: str = "function"
    arguments: str = ""
    signature: str = ""
    redacted: str = ""


@dataclass(slots=True)
class Told(Item):
    """An item of a provider's. Shape: the id and index it goes by there."""

    given_id: str = ""
    given_index: int | None = None


class ResponsesWriter(StreamWriter):
    """One stream. `whole` is the response that it amounted to, once it has ended well.

    Items of ours come one after another, however a provider mixed them: some clients take what two items say at once for one.
    """

    def __init__(self, head: dict[str, Any], known: Mapping[str, Shown]) -> None:
        self.head, self.known = head, known
        self.answer_id: str = head["id"]
        self.number = 0
        self.started = False
        self.items: list[Item] = []  # as they were announced
        self.line: list[Made] = []  # ours, written or not
        self.turn = 0  # whose turn it is in the line
        self.calls: dict[int, Made] = {}
        self.stop: Stop | None = None
        self.last: dict[str, Any] | None = None  # a provider's own end
        self.whole: dict[str, Any] | None = None

    def event(self, kind: str, **fields: Any) -> bytes:
        data = orjson.dumps({"type": kind, "sequence_number": self.number, **fields})
        self.number += 1
        return sse.event(data, kind)

    # ------------------------------------------------------------------ beginning and end

    def start(self) -> bytes:
        return b"" if self.started else self.begin(self.head) + self.progress()

    def begin(self, response: Mapping[str, Any]) -> bytes:
        self.started = True
        return self.event("response.created", response=response)

    def progress(self) -> bytes:
        slim = {**self.head, "tools": [], "instructions": None}
        return self.event("response.in_progress", response=slim)

    def keepalive(self) -> bytes:
        """An event, not a comment: it resets the clock of a client that waits for one."""
        return self.progress() if self.started else self.start()

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        out = self.start() + self.advance(final=True)
        response = {**self.head, **ending(self.stop)}
        if self.last is not None:
            out += self.complete(self.last.get("output"))
            status = "incomplete" if self.last.get("status") == "incomplete" else "completed"
            response = {**self.head, **self.last, **self.own(), "status": status}
        response["output"] = [item.body for item in self.items]
        if not isinstance(response.get("usage"), dict):
            response["usage"] = usage_out(usage)
        more = {} if bench is None else {"bench": bench}
        self.whole = {**response, **more}
        return out + self.event("response.incomplete" if response["status"] == "incomplete" else "response.completed", response=response, **more)

    def error(self, error: CallerError) -> bytes:
        """What is open stays open: the answer broke off there."""
        told: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.seats:
            told["seats"] = error.seats
        done = [item.body for item in self.items if item.is_closed]
        return self.start() + self.event("response.failed", response={**self.head, "status": "failed", "error": told, "output": done})

    def own(self) -> dict[str, Any]:
        """What of a response is ours whoever answered."""
        return {name: self.head[name] for name in ("id", "object", "created_at", "model", "previous_response_id", "store")}

    # ------------------------------------------------------------------ an item's life, whoever tells of it

    def open(self, item: Item, body: Mapping[str, Any]) -> bytes:
        item.index = len(self.items)
        item.body = {**body, **ANNOUNCED.get(item.type, {})}
        self.items.append(item)
        return self.event(ADDED, output_index=item.index, item=item.body)

    def place(self, item: Item, section: str, number: int) -> dict[str, Any]:
        name = SECTIONS[section].number
        return {"item_id": item.body["id"], "output_index": item.index, **({name: number} if name else {})}

    def part(self, item: Item, section: str, number: int, body: Mapping[str, Any] | None = None) -> bytes:
        """Opens a section, once."""
        if (section, number) in item.parts:
            return b""
        item.parts[section, number] = Part()
        if not (added := SECTIONS[section].part_added):
            return b""
        return self.event(added, **self.place(item, section, number), part={**(body or {}), **part_of(section, "")})

    def say(self, item: Item, section: str, number: int, text: str, more: Mapping[str, Any] | None = None) -> bytes:
        out = self.part(item, section, number)
        part = item.parts[section, number]
        if part.is_told or not text:
            return out
        part.said.append(text)
        fields = {"logprobs": [], **(more or {})} if section == "text" else more or {}
        return out + self.event(SECTIONS[section].delta, **{**fields, **self.place(item, section, number), "delta": text})

    def tell(self, item: Item, section: str, number: int, text: str | None = None, more: Mapping[str, Any] | None = None) -> bytes:
        """A section's whole text, once; what of it was not said goes before."""
        out = self.part(item, section, number)
        part = item.parts[section, number]
        if part.is_told:
            return out
        said = "".join(part.said)
        if text is not None and text != said and text.startswith(said):
            out += self.say(item, section, number, text[len(said) :])
        part.is_told = True
        fields = {"logprobs": [], **(more or {})} if section == "text" else more or {}
        if section == "arguments":
            fields = {"name": item.body.get("name"), **fields}
        return out + self.event(
            SECTIONS[section].done, **{**fields, **self.place(item, section, number), SECTIONS[section].value: said if text is None else text}
        )

    def end_part(self, item: Item, section: str, number: int, body: Mapping[str, Any] | None = None) -> bytes:
        text = (body or {}).get(SECTIONS[section].value)
        out = self.tell(item, section, number, text if isinstance(text, str) else None)
        part = item.parts[section, number]
        if part.is_done or not (done := SECTIONS[section].part_done):
            return out
        part.is_done = True
        return out + self.event(done, **self.place(item, section, number), part=body or part_of(section, "".join(part.said)))

    def close(self, item: Item, body: Mapping[str, Any], cut: bool = False) -> bytes:
        """Ends what is open in an item, then the item. `cut`: what it holds is not whole, and is not told as if it were."""
        out = b""
        if not cut:
            for section, number, text, part in sections_of(body):
                out += self.end_part(item, section, number, part or {SECTIONS[section].value: text})
            for section, number in list(item.parts):
                out += self.end_part(item, section, number)
        item.body, item.is_closed = {**body, "id": item.body["id"]}, True
        return out + self.event(DONE, output_index=item.index, item=item.body)

    # ------------------------------------------------------------------ items of ours

    def chunk(self, chunk: Chunk) -> bytes:
        if isinstance(chunk.raw, dict) and (kind := name_of(chunk.raw.get("type"))).startswith("response."):
            return self.relay(kind, chunk.raw)
        if chunk.choice:
            return b""
        if chunk.stop:
            self.stop = chunk.stop
        self.take(chunk)
        return self.start() + self.advance() if self.line else b""

    def take(self, chunk: Chunk) -> None:
        """Puts what a chunk says in line."""
        if chunk.thinking:
            self.current("reasoning").waiting.append(("summary", chunk.thinking))
        if chunk.signature:
            self.current("reasoning").signature = chunk.signature
        if chunk.redacted:
            self.line.append(Made("reasoning", redacted=chunk.redacted))
        if chunk.text:
            self.current("message").waiting.append(("text", chunk.text))
        if chunk.refusal:
            self.current("message").waiting.append(("refusal", chunk.refusal))
        for piece in chunk.tools:
            self.take_piece(piece)

    def current(self, kind: str) -> Made:
        """The line's last item where it is of this kind and may still grow, else a new one. A thought that is proven is over."""
        last = self.line[-1] if self.line else None
        if last is None or last.type != kind or last.is_closed or last.signature or last.redacted:
            self.line.append(last := Made(kind))
        return last

    def take_piece(self, piece: ToolPiece) -> None:
        call = self.calls.get(piece.index)
        if call is None:
            self.line.append(call := Made("call", kind=piece.kind))
            self.calls[piece.index] = call
        call.call_id, call.name = call.call_id or piece.id, call.name or piece.name
        if piece.arguments and not call.is_closed:
            call.arguments += piece.arguments
            call.waiting.append(("arguments", piece.arguments))

    def advance(self, final: bool = False) -> bytes:
        """Writes what the item whose turn it is has to say; once it is over, the next one's."""
        out = b""
        while self.turn < len(self.line):
            item = self.line[self.turn]
            out += self.let_say(item)
            followed = self.turn + 1 < len(self.line)
            if not (final or (followed and (item.type != "call" or is_whole(item.arguments)))):
                break
            out += self.end(item, last=not followed)
            self.turn += 1
        return out

    def let_say(self, item: Made) -> bytes:
        if item.type == "call":
            return self.let_call(item)
        if not (item.waiting or item.signature or item.redacted):
            return b""
        out = b""
        if not item.is_open:
            body = {"id": self.new_id(PREFIXES[item.type]), "type": item.type}
            out = self.open(item, {**body, "status": "in_progress"} if item.type == "message" else body)
        for section, text in item.waiting:
            at = next(reversed(item.parts), (section, 0))
            out += self.say(item, section, at[1] if at[0] == section else at[1] + 1, text)
        item.waiting.clear()
        return out

    def let_call(self, item: Made) -> bytes:
        """A call whose arguments the client gets in another form is written when it is whole."""
        if not item.name:
            return b""
        out = b""
        if not item.is_open:
            body = call_item(self.new_id(id_prefix(item.name, item.kind, self.known)), item.call_id, item.name, "", item.kind, self.known, "in_progress")
            kept, item.type = item.type, body["type"]
            out = self.open(item, body)
            item.type = kept
        if item.body["type"] == "function_call":
            for _, text in item.waiting:
                out += self.say(item, "arguments", 0, text)
            item.waiting.clear()
        return out

    def end(self, item: Made, last: bool) -> bytes:
        if not item.is_open:
            item.is_closed = True
            return b""
        name = item.body["id"]
        if item.type == "message":
            said = [part_of(section, "".join(part.said)) for (section, _), part in item.parts.items()]
            return self.close(item, message_item(name, said))
        if item.type == "reasoning":
            said_whole = ["".join(part.said) for part in item.parts.values()]
            return self.close(item, reasoning_item(name, said_whole, sealed(item.signature, item.redacted)))
        cut = self.stop in (Stop.LENGTH, Stop.FILTER) and (last if item.kind == "custom" else not is_whole(item.arguments))
        status = "incomplete" if cut else "completed"
        body = call_item(name, item.call_id, item.name, item.arguments, item.kind, self.known, status)
        if cut and body["type"] == "function_call":
            body["arguments"] = item.arguments
        return self.close(item, body, cut)

    def new_id(self, prefix: str) -> str:
        return item_id(prefix, self.answer_id, len(self.items))

    # ------------------------------------------------------------------ a provider's own events

    def relay(self, kind: str, event: Mapping[str, Any]) -> bytes:
        if kind in BEGINNINGS or kind in ENDS:
            return self.relay_response(kind, event.get("response"))
        out = self.start()
        if (section := DELTAS.get(kind) or DONES.get(kind)) is not None:
            return out + self.relay_text(kind, section, event)
        part, item = event.get("part"), event.get("item")
        if isinstance(part, dict) and (section := PARTS.get(name_of(part.get("type")))) and kind.endswith(("_part.added", "_part.done")):
            return out + self.relay_part(kind, section, event, part)
        if isinstance(item, dict) and kind in (ADDED, DONE):
            return out + self.relay_item(kind, event, item)
        found = self.find(event, {})
        here = {"output_index": found.index, "item_id": found.body["id"]} if found else {}
        rest = {k: v for k, v in event.items() if k not in ("type", "sequence_number")}
        return out + self.event(kind, **{**rest, **{k: v for k, v in here.items() if k in rest}})

    def relay_response(self, kind: str, value: Any) -> bytes:
        response = value if isinstance(value, dict) else {}
        if kind in ENDS:
            self.last = {**response, "status": "incomplete"} if kind == "response.incomplete" else response
            return b""
        told = {**self.head, **response, **self.own(), "status": name_of(response.get("status")) or "in_progress", "output": []}
        if not self.started:
            return self.begin(told) + (b"" if kind == "response.created" else self.event(kind, response=told))
        return self.event(kind, response=told) if kind != "response.created" else b""

    def relay_text(self, kind: str, section: str, event: Mapping[str, Any]) -> bytes:
        is_delta = kind in DELTAS
        text = event.get("delta" if is_delta else SECTIONS[section].value)
        item, out = self.home(event, section)
        if item is None or item.is_closed or not isinstance(text, str):
            return out
        more = {k: v for k, v in event.items() if k not in NUMBERED and k not in ("delta", SECTIONS[section].value)}
        number = number_of(event, SECTIONS[section].number) or 0
        return out + (self.say if is_delta else self.tell)(item, section, number, text, more)

    def relay_part(self, kind: str, section: str, event: Mapping[str, Any], part: Mapping[str, Any]) -> bytes:
        item, out = self.home(event, section)
        if item is None or item.is_closed:
            return out
        number = number_of(event, SECTIONS[section].number) or 0
        return out + (self.end_part if kind.endswith(".done") else self.part)(item, section, number, part)

    def relay_item(self, kind: str, event: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        item, out = self.find(event, body), b""
        if item is None:
            item = Told(name_of(body.get("type")), given_id=name_of(body.get("id")), given_index=number_of(event, "output_index"))
            out = self.open(item, self.named(body, item.type))
        if kind == ADDED or item.is_closed:
            return out
        return out + self.close(item, body, cut=body.get("status") == "incomplete" and item.type in ("function_call", "custom_tool_call"))

    def complete(self, output: Any) -> bytes:
        """Makes the items agree with a provider's end: what it never announced is told now, what it never closed is closed."""
        out = b""
        for number, body in enumerate(output if isinstance(output, list) else ()):
            if isinstance(body, dict) and (self.find({}, body) or number >= len(self.items)):
                out += self.relay_item(DONE, {}, body)
            elif isinstance(body, dict) and not (item := self.items[number]).is_closed and item.type == body.get("type"):
                out += self.close(item, body)
        for item in self.items:
            if not item.is_closed:
                out += self.close(item, self.as_told(item))
        return out

    def as_told(self, item: Item) -> dict[str, Any]:
        """An item that its provider never closed, as far as it was told."""
        said = [(section, "".join(part.said)) for (section, _), part in item.parts.items()]
        if item.type == "message":
            return {**item.body, "status": "completed", "content": [part_of(section, text) for section, text in said]}
        if item.type == "reasoning":
            return {**item.body, "summary": [part_of(section, text) for section, text in said if section == "summary"]}
        return {**item.body, "status": "completed", **{SECTIONS[section].value: text for section, text in said}}

    def find(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> Item | None:
        """The item that an event means: by the provider's id, else by its index."""
        name, index = name_of(event.get("item_id")) or name_of(body.get("id")), number_of(event, "output_index")
        told = [item for item in reversed(self.items) if isinstance(item, Told)]
        by_id = next((item for item in told if name and item.given_id == name), None)
        return by_id or next((item for item in told if index is not None and item.given_index == index), None)

    def home(self, event: Mapping[str, Any], section: str) -> tuple[Item | None, bytes]:
        """The item that a section belongs to; where it was never announced it is now, but for a call that nobody has named."""
        kind = SECTIONS[section].home
        item = self.find(event, {})
        if item is None and number_of(event, "output_index") is None and not event.get("item_id"):
            item = next((i for i in reversed(self.items) if i.type == kind and not i.is_closed), None)
        if item is not None:
            return (item, b"") if item.type == kind else (None, b"")
        if kind not in ("message", "reasoning"):
            return None, b""
        item = Told(kind, given_id=name_of(event.get("item_id")), given_index=number_of(event, "output_index"))
        return item, self.open(item, self.named({"id": item.given_id, "type": kind}, kind))

    def named(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        known = {"status": "in_progress", **body} if kind == "message" else dict(body)
        return {**known, "id": name_of(body.get("id")) or self.new_id(PREFIXES.get(kind, "itm"))}
