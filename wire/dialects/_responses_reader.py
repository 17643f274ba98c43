"""Reads a provider's Responses stream. Indexes, ids and whole events may be missing: what comes later makes up for what did not come before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire import sse
from wire.conversation import Chunk, Stop, ToolPiece
from wire.dialects import StreamReader
from wire.dialects._responses_events import ADDED, BEGINNINGS, DELTAS, DONE, DONES, ENDS, FAILURES, SECTIONS, name_of, number_of, sections_of
from wire.dialects._responses_items import read_call, read_reasoning
from wire.dialects._responses_reply import error_in, error_of, stop_of, usage_in
from wire.dialects._responses_tools import CALLS, is_whole
from wire.errors import Empty, Garbage, Truncated
from wire.jsontext import parse_upstream

NAMED_CALLS = ("function_call", "custom_tool_call")


@dataclass(slots=True)
class Seen:
    """One item so far. `call` is its place among the calls, -1 for what is none, or not known by name yet."""

    type: str
    call: int = -1
    said: dict[tuple[str, int], str] = field(default_factory=dict)
    is_proven: bool = False


class ResponsesReader(StreamReader):
    def __init__(self, keep_raw: bool = True, names: Mapping[str, str] | None = None) -> None:
        self.keep_raw = keep_raw
        self.names = names or {}
        self.parser = sse.Parser()
        self.done = False
        self.content = self.refused = False
        self.calls = 0
        self.items: list[Seen] = []
        self.by_index: dict[int, Seen] = {}
        self.by_id: dict[str, Seen] = {}
        self.stop: Stop | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            events = self.parser.feed(data)
        except sse.TooLong as error:
            raise Garbage(f"The endpoint streamed {error}.") from None
        for event in events:
            self.read(event, chunks)
        return chunks

    def close(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        if not self.done:
            for event in self.parser.close():
                if is_whole(event.data.decode("utf-8", "replace")):
                    self.read(event, chunks)
        if not self.done:
            if self.content:
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        if not self.content and self.stop is Stop.END:
            raise Empty("The endpoint's stream held no answer.")
        return chunks

    def read(self, event: sse.ServerEvent, chunks: list[Chunk]) -> None:
        if self.done or event.data[:1] != b"{":
            return  # a heartbeat in disguise, [DONE], or what comes after the end
        try:
            found = parse_upstream(event.data)
        except ValueError:
            raise Garbage("The endpoint streamed an event that is no JSON.") from None
        kind = found.get("type")
        if not isinstance(kind, str):
            kind = event.event
            found = {**found, "type": kind}
        if kind == "error" or (not kind and found.get("error")):
            raise error_of(found)
        if not kind.startswith("response."):
            return
        response = found.get("response")
        response = response if isinstance(response, dict) else {}
        if kind in FAILURES:
            raise error_of(response)
        if (kind in ENDS or kind in BEGINNINGS) and (failed := error_in(response)):
            raise failed
        fields = self.end(kind, response) if kind in ENDS else self.step(kind, found)
        chunk = Chunk(**fields, raw=found if self.keep_raw else None)
        if chunk.has_content:
            self.content = True
        if fields or self.keep_raw:
            chunks.append(chunk)

    # ------------------------------------------------------------------ one event: what of a chunk it makes

    def step(self, kind: str, event: Mapping[str, Any]) -> dict[str, Any]:
        if (section := DELTAS.get(kind)) is not None:
            said = event.get("delta")
            return self.say(self.find(event, section), section, event, said) if isinstance(said, str) and said else {}
        if (section := DONES.get(kind)) is not None:
            said = event.get(SECTIONS[section].value)
            return self.catch_up(self.find(event, section), section, event, said) if isinstance(said, str) else {}
        item = event.get("item")
        if kind == ADDED and isinstance(item, dict):
            return self.whole(self.add(event, item), item, is_done=False)
        if kind == DONE and isinstance(item, dict):
            return self.whole(self.known(event, item) or self.add(event, item), item, is_done=True)
        return {}

    def end(self, kind: str, response: Mapping[str, Any]) -> dict[str, Any]:
        self.done = True
        made: list[dict[str, Any]] = []
        output = response.get("output")
        for number, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                seen = self.known({}, item) or (self.items[number] if number < len(self.items) else None)
                if seen is None or seen.type == item.get("type"):
                    made.append(self.whole(seen or self.add({}, item), item, is_done=True))
        fields = merged(made)
        told = {**response, "status": "incomplete"} if kind == "response.incomplete" else response
        self.stop, finish = stop_of(told, self.calls > 0, self.refused)
        return {**fields, "stop": self.stop, "finish": finish, "usage": usage_in(response.get("usage"))}

    # ------------------------------------------------------------------ items

    def known(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> Seen | None:
        name, index = name_of(event.get("item_id")) or name_of(item.get("id")), number_of(event, "output_index")
        if name and name in self.by_id:
            return self.by_id[name]
        return self.by_index.get(index) if index is not None else None

    def find(self, event: Mapping[str, Any], section: str) -> Seen:
        """The item that an event belongs to: by id, by index, else the last of its kind; made where it was never announced."""
        if seen := self.known(event, {}):
            return seen
        home = SECTIONS[section].home
        if number_of(event, "output_index") is None and not event.get("item_id") and (last := next((s for s in reversed(self.items) if s.type == home), None)):
            return last
        return self.add(event, {"type": home, "id": event.get("item_id")})

    def add(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> Seen:
        seen = Seen(name_of(item.get("type")))
        self.items.append(seen)
        if (index := number_of(event, "output_index")) is not None:
            self.by_index[index] = seen
        if name := name_of(item.get("id")):
            self.by_id[name] = seen
        return seen

    def whole(self, seen: Seen, item: Mapping[str, Any], is_done: bool) -> dict[str, Any]:
        """What an item holds that was not said yet. A call is told from its name on; one that a client runs by other items only once it is whole."""
        if seen.type in NAMED_CALLS or seen.type in CALLS:
            if seen.call < 0:
                return self.begin_call(seen, item, is_done)
        elif is_done and seen.type == "reasoning" and not seen.is_proven:
            thought = read_reasoning(item)
            seen.is_proven = bool(thought.signature or thought.redacted)  # the end repeats items; what is proven twice would be two thoughts
            proof = {"signature": thought.signature, "redacted": thought.redacted if not thought.text else ""}
            return merged([*self.sections(seen, item), {k: v for k, v in proof.items() if v}])
        return merged(self.sections(seen, item))

    def sections(self, seen: Seen, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [self.catch_up(seen, section, {SECTIONS[section].number: number}, said) for section, number, said, _ in sections_of(item)]

    def begin_call(self, seen: Seen, item: Mapping[str, Any], is_done: bool) -> dict[str, Any]:
        call = read_call(item) if is_done or seen.type in NAMED_CALLS else None
        if call is None:
            return {}
        seen.call = self.calls
        self.calls += 1
        given = call.arguments
        if not is_done and given == "{}":
            given = ""  # some announce this for what is still to come
        section = ("input" if call.kind == "custom" else "arguments", 0)
        earlier = seen.said.get(section, "")
        if given.startswith(earlier):
            seen.said[section] = given
        else:
            given = earlier
        return {"tools": (ToolPiece(seen.call, call.id, self.names.get(call.name, call.name), given, call.kind),)}

    def say(self, seen: Seen, section: str, event: Mapping[str, Any], said: str) -> dict[str, Any]:
        at = (section, number_of(event, SECTIONS[section].number) or 0)
        before = seen.said.get(at, "")
        seen.said[at] = before + said
        if section == "text":
            return {"text": said}
        if section == "refusal":
            self.refused = True
            return {"refusal": said}
        if section in ("thought", "summary"):
            # A model's own words and their summary are the same thought: the kind that came first counts.
            if next(iter(seen.said))[0] != section:
                return {}
            return {"thinking": f"\n\n{said}" if not before and at[1] > 0 else said}
        if seen.call < 0:
            return {}  # which tool it is for is not known yet; the whole item will tell
        return {"tools": (ToolPiece(seen.call, arguments=said, kind="custom" if section == "input" else "function"),)}

    def catch_up(self, seen: Seen, section: str, event: Mapping[str, Any], whole: str) -> dict[str, Any]:
        before = seen.said.get((section, number_of(event, SECTIONS[section].number) or 0), "")
        rest = whole[len(before) :] if whole.startswith(before) else ""
        return self.say(seen, section, event, rest) if rest else {}


def merged(made: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for one in made:
        for name, value in one.items():
            out[name] = out[name] + value if name in out else value
    return out
