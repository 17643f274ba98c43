"""One file per wire format, both directions, found by walking this folder. No other file compares a dialect's name.

A file here holds one `DIALECT`, a subclass of `Dialect`. Towards our callers it reads requests and writes replies, streams and errors;
towards providers that speak it, it writes requests and reads replies and streams.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from wire.conversation import Chunk, Reply, Request, Thinking, Usage
from wire.errors import CallerError


@dataclass(frozen=True, slots=True)
class Route:
    """One path a dialect answers on. `operation` is "ask", "count", "get" or "delete"; `prefix` matches every path below it, with `endings` those alone that
    end so: other things live below it too.
    """

    method: str
    path: str
    operation: str
    prefix: bool = False
    endings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to a caller, whatever produced it.

    Shape: `model` is the name that was asked for, `id` unique; `bench` stands only in panel and merged replies; `request` is what was asked.
    Units: `created_s` Unix seconds.
    """

    id: str
    model: str
    created_s: int
    reply: Reply
    usage: Usage
    bench: Mapping[str, Any] | None = None
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """What came in on one of a dialect's paths.

    Shape: `path` without a proxy's prefix, percent-decoded; `headers` by lower-case names; `earlier` is what was kept under the id that
    `Dialect.refers_to` told, None where nothing was.
    """

    path: str
    query: str
    headers: Mapping[str, str]
    body: Any
    earlier: Any = None


@dataclass(frozen=True, slots=True)
class Outbound:
    """What goes to a provider. Shape: `dropped` names the caller's fields that only tune and that this provider has no word for."""

    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()


class StreamWriter:
    """Writes one stream in a dialect. Order: `start` once, then chunks, then `finish` or `error` once. Every method gives bytes, perhaps none.

    `keepalive` is legal between any two of them (also before `start`), and says nothing that a client would take for an answer.
    """

    content_type = "text/event-stream"
    whole: Any = None  # the reply that a stream amounted to, where the dialect keeps such; set by `finish`

    def start(self) -> bytes:
        raise NotImplementedError

    def chunk(self, chunk: Chunk) -> bytes:
        raise NotImplementedError

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        raise NotImplementedError

    def error(self, error: CallerError) -> bytes:
        raise NotImplementedError

    def keepalive(self) -> bytes:
        raise NotImplementedError


class StreamReader:
    """Reads one provider's stream.

    Errors: `feed` and `close` raise an UpstreamError where the stream says so or cannot be read; `close` raises Truncated where the
    stream ended before its end was said. `done` is set once the end was said: nothing more needs to be read.
    """

    done = False

    def feed(self, data: bytes) -> list[Chunk]:
        raise NotImplementedError

    def close(self) -> list[Chunk]:
        raise NotImplementedError


class Dialect:
    """What is particular to one wire format. Pure: no I/O, no clock of its own.

    `raw` of replies and chunks is set only where `request.dialect` is this dialect: then the writer of the same format loses nothing.
    """

    name: str
    routes: tuple[Route, ...] = ()
    id_prefix = "chatcmpl"
    stream_types: tuple[str, ...] = ("text/event-stream",)  # how a provider's stream calls itself
    error_type = "application/json"  # the content type of an error to our callers
    takes_image_urls = True  # else a provider of this format wants an image's bytes

    # towards our callers

    def refers_to(self, inbound: Inbound) -> str:
        """The id of something kept here that the request builds on; empty for none."""
        return ""

    def read_request(self, inbound: Inbound) -> Request:
        """Reads what came in. Errors: CallerError that names the field."""
        raise NotImplementedError

    def status_of(self, error: CallerError) -> int:
        """The HTTP status of an error, where this dialect has a word of its own."""
        return error.status

    def write_count(self, tokens: int) -> dict[str, Any]:
        """The answer to a request whose `operation` is "count"."""
        raise NotImplementedError

    def to_keep(self, request: Request, answer: Answer) -> tuple[str, Any] | None:
        """An id and what later requests may refer to by it; None where nothing is to be kept."""
        return None

    def marks_of(self, request: Request, answer_id: str) -> tuple[str, ...]:
        """The marks that a later request bears which goes on from this answer by its id."""
        return ()

    def write_kept(self, kept: Any, path: str) -> dict[str, Any]:
        """What a caller reads of something kept, at its path or one below it. Errors: CallerError 404 for a path that there is not."""
        raise NotImplementedError

    def write_forgotten(self, name: str) -> dict[str, Any]:
        """Says that nothing is kept under an id any more."""
        raise NotImplementedError

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raise NotImplementedError

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        raise NotImplementedError

    def write_error(self, error: CallerError) -> dict[str, Any]:
        """The body of an error in this dialect's own shape."""
        raise NotImplementedError

    # towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        """What a provider is sent: from `request.raw` where the request came in this dialect, else from what was understood.

        Errors: CallerError 400 naming the field, where leaving it out would change what the answer means.
        """
        raise NotImplementedError

    def write_count_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound | None:
        """Asks a provider to count a request's tokens; None where the format has no way to."""
        return None

    def read_count(self, body: Any) -> int | None:
        """The provider's count; None where the body tells none."""
        return None

    def read_reply(self, body: Any, request: Request) -> Reply:
        """Errors: UpstreamError where the body is an error in disguise or no reply of this format."""
        raise NotImplementedError

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        """The usage that a body of any status tells, None where it tells none."""
        raise NotImplementedError

    def stream_reader(self, request: Request) -> StreamReader:
        raise NotImplementedError

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        """The request without the thinking that `foreign` tells, in `messages` and in `raw`; itself where there is none.

        This one gives `raw` up where something goes, so the body is written from what was understood. A dialect whose `raw` can be cut does better.
        """
        messages = tuple([replace(m, parts=tuple([p for p in m.parts if not (isinstance(p, Thinking) and foreign(p))])) for m in request.messages])
        return request if messages == request.messages else replace(request, messages=messages, raw=None)

    def with_user_turn(self, request: Request, text: str) -> Request:
        """The same request with one more user turn at its end, in `messages` and in `raw`."""
        raise NotImplementedError


@cache
def every() -> tuple[Dialect, ...]:
    """All dialects, by name."""
    found: Iterable[Dialect] = [importlib.import_module(f"{__name__}.{m.name}").DIALECT for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda d: d.name))


@cache
def get(name: str) -> Dialect:
    """Errors: KeyError for a name that no file stands for."""
    return {d.name: d for d in every()}[name]
