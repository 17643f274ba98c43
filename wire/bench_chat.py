"""What the server's own pages ask with: OpenAI's chat body and a field `bench`; answered by events in which seats interleave.

No provider speaks it and no client's library knows it, so it is none of the dialects: towards providers a request is a chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from wire import dialects
from wire.conversation import Chunk, Request, Usage
from wire.dialects import Dialect, Inbound, StreamWriter
from wire.errors import CallerError, redacted
from wire.fields import array, missing, obj, optional_bool, optional_text, text
from wire.problem import CONTENT_TYPE, problem
from wire.sse import KEEPALIVE, event

CHAT = dialects.get("openai-chat")
FIELDS = ("seats", "with", "again", "reseat", "detached")
# As many as anybody reads side by side; each is a call that costs.
SEATS_MAX, BESIDES_MAX = 40, 20


@dataclass(frozen=True, slots=True)
class Wishes:
    """The field `bench`: who sits (None: as the collection seats), who sits besides, the panel that is asked again, with other seats or the same, and
    whether it goes on when its caller leaves."""

    seats: tuple[str, ...] | None = None
    besides: tuple[str, ...] = ()
    again: str = ""
    reseat: bool = False
    detached: bool = False


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is taken from a panel on record: its prompt as it is kept, and the name that it was asked by."""

    messages: Sequence[Mapping[str, Any]]
    model: str


def read_wishes(body: Any) -> Wishes:
    """Errors: CallerError 400 that names the field."""
    given = obj(body, "the body").get("bench")
    if given is None:
        return Wishes()
    given = obj(given, "bench")
    for name in given:
        if name not in FIELDS:
            raise CallerError("invalid_request", f"bench.{name[:60]} is no field here. There are: {', '.join(FIELDS)}.", field=f"bench.{name[:60]}")
    seats = None if given.get("seats") is None else aliases(given["seats"], "bench.seats", SEATS_MAX)
    if seats == ():
        raise CallerError("invalid_request", "bench.seats is empty. Name who sits, or leave it out for the collection's own seating.", field="bench.seats")
    besides = () if given.get("with") is None else aliases(given["with"], "bench.with", BESIDES_MAX)
    reseat, detached = (bool(optional_bool(given, name, "bench.")) for name in ("reseat", "detached"))
    return Wishes(seats, tuple(dict.fromkeys(besides)), optional_text(given, "again", "bench."), reseat, detached)


def aliases(given: Any, path: str, most: int) -> tuple[str, ...]:
    names = tuple([text(name, f"{path}[{i}]") for i, name in enumerate(array(given, path))])
    if len(names) > most:
        raise CallerError("invalid_request", f"{path} names {len(names)} models; at most {most} are seated.", field=path)
    return names


# ------------------------------------------------------------------ a kept conversation as a chat body


def chat_messages(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Writes a conversation as `wire.transcript` keeps it as messages of a chat body. Thinking is left out: it was another model's."""
    found: list[dict[str, Any]] = []
    for message in kept:
        role, content = message["role"], message["content"]
        if isinstance(content, str):
            found.append({"role": role, "content": content})
            continue
        results = [p for p in content if p["type"] == "tool_result"]
        found += [{"role": "tool", "tool_call_id": p["call_id"], "content": plain(p["content"])} for p in results]
        calls = [{"id": p["id"], "type": "function", "function": {"name": p["name"], "arguments": p["arguments"]}} for p in content if p["type"] == "tool_call"]
        parts = [chat_part(p) for p in content if p["type"] not in ("tool_result", "tool_call", "thinking")]
        if parts or calls:
            found.append({"role": role, "content": parts or None, **({"tool_calls": calls} if calls else {})})
    return found


def chat_part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image":
            url = part.get("url") or f"data:{part.get('media_type') or 'image/png'};base64,{part.get('data', '')}"
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio":
            return {"type": "input_audio", "input_audio": {"data": part.get("data", ""), "format": str(part.get("media_type", "")).rpartition("/")[2] or "wav"}}
        case "file":
            return {"type": "file", "file": {"file_data": part.get("data", ""), "filename": part.get("name", "")}}
        case _:
            return {"type": "text", "text": str(part.get("text", ""))}


def plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join([str(p.get("text", "")) for p in content])


# ------------------------------------------------------------------ the events


def said(name: str, data: Mapping[str, Any]) -> bytes:
    return event(orjson.dumps(data), name)


class Events(StreamWriter):
    """The frame around the seats' own events, which `panels.live` writes as they come."""

    def start(self) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        return b""  # an answer is its seat's `delta`

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        return said("done", bench or {})

    def error(self, error: CallerError) -> bytes:
        more = {} if error.retry_after_s is None else {"retry_after_s": error.retry_after_s}
        return said("error", {"code": error.code, "message": redacted(error.message), "status": error.status, "seats": error.seats or [], **more})

    def keepalive(self) -> bytes:
        return KEEPALIVE


class BenchChat(Dialect):
    """The pages' own form."""

    name = "bench"
    error_type = CONTENT_TYPE

    def read_request(self, inbound: Inbound) -> Request:
        """Shape: `inbound.earlier` is an Earlier or None."""
        body = {name: value for name, value in obj(inbound.body, "the body").items() if name != "bench"}
        earlier: Earlier | None = inbound.earlier
        if earlier is not None:
            if body.get("model") is None:
                body["model"] = earlier.model
            if body.get("messages") is None:
                body["messages"] = chat_messages(earlier.messages)
        if body.get("model") is None:
            raise missing("model")
        return replace(CHAT.read_request(replace(inbound, body=body)), stream=True)

    def with_user_turn(self, request: Request, text: str) -> Request:
        return CHAT.with_user_turn(request, text)

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return Events()

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return problem(error)


BENCH = BenchChat()
