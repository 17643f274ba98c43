"""What a fake provider plays: answers as lists of steps, made by few words and bent by modifiers.

`reply`, `status`, `sse`, `whole`, `garbage`, `html`, `raw` and `hang` make an answer; its methods give a new one that stalls, drips, is cut, gzipped,
and so on. Steps are what happens on the socket, one after another.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fake.server import FakeProvider


# ------------------------------------------------------------------ steps


class Gate:
    """Something an answer waits for until the test opens it."""

    def __init__(self, provider: FakeProvider) -> None:
        self._provider = provider
        self.opened = threading.Event()

    def open(self) -> None:
        self.opened.set()
        self._provider.nudge()


@dataclass(frozen=True, slots=True)
class Head:
    """The status line and headers. `framing` is length, chunked, close (the end is the connection's) or none (the headers say it themselves)."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    framing: str = "length"


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of the body, one write."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes past any framing."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    gate: Gate


@dataclass(frozen=True, slots=True)
class End:
    """How the connection ends: close, reset (RST) or hang (silent until the peer goes)."""

    how: str


Step = Head | Data | Raw | Pause | Wait | End


# ------------------------------------------------------------------ what was received


@dataclass(slots=True)
class Call:
    """One request as it came. `closed_at` is when the caller hung up before the answer's end, `answered_at` when the answer was out whole.

    Units: monotonic seconds.
    """

    at: float
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    dialect: str = ""
    model: str = ""
    stream: bool = False
    json: Any = None
    begun_at: float | None = None
    closed_at: float | None = None
    answered_at: float | None = None


# ------------------------------------------------------------------ answers


@dataclass(frozen=True, slots=True)
class Said:
    """What a model says, before any dialect. `usage` is (input, output) or a mapping of the dialect's own; None: it sends none.

    `pieces` are the text as a stream delivers it.
    """

    pieces: tuple[str, ...] = ("hi",)
    reasoning: str = ""
    refusal: str = ""
    tools: tuple[tuple[str, str, str], ...] = ()  # id, name, arguments
    finish: str = ""
    usage: Any = (11, 7)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Answer:
    """Steps, made once the call is known."""

    make: Callable[[Call], Sequence[Step]]

    def steps(self, call: Call) -> list[Step]:
        return list(self.make(call))

    def _bent(self, bend: Callable[[list[Step]], Sequence[Step]]) -> Answer:
        return Answer(lambda call: bend(self.steps(call)))

    def after(self, what: Gate | float) -> Answer:
        """Stalls before the status line."""
        return self._bent(lambda steps: [pause(what), *steps])

    def then(self, *more: Step | Gate | float | str) -> Answer:
        """Goes on with more steps: a gate, a pause in seconds, or an end (close, reset, hang)."""
        return self._bent(lambda steps: [*steps, *[step_of(m) for m in more]])

    def holding(self, what: Gate | float, after: str | bytes | None = None) -> Answer:
        """Stalls inside the body: once `after` has been written (its event whole), or between head and body."""

        def bend(steps: list[Step]) -> list[Step]:
            at = position(steps, after)
            return [*steps[:at], pause(what), *steps[at:]]

        return self._bent(bend)

    def cut(self, after: str | bytes | None = None, how: str = "close", *, inside: bool = False) -> Answer:
        """Ends there: once `after` has been written (or right behind the head), with the lengths still promised.

        The event of a stream that holds it is whole, unless the cut is to fall `inside` it.
        """

        def bend(steps: list[Step]) -> list[Step]:
            steps = promised(steps)
            return [*steps[: position(steps, after, inside)], End(how)]

        return self._bent(bend)

    def dripping(self, size: int = 1, gap_s: float = 0.0005) -> Answer:
        """Writes `size` bytes at a time, so that characters and lines are split."""

        def bend(steps: list[Step]) -> list[Step]:
            out: list[Step] = []
            for step in steps:
                if isinstance(step, Data):
                    for at in range(0, len(step.data), size):
                        out += [Data(step.data[at : at + size]), Pause(gap_s)]
                else:
                    out.append(step)
            return out

        return self._bent(bend)

    def split(self, inside: str, gap_s: float = 0.02) -> Answer:
        """Cuts a packet inside the first occurrence of a text's encoding, after its first byte."""

        def bend(steps: list[Step]) -> list[Step]:
            out: list[Step] = []
            for step in steps:
                at = step.data.find(inside.encode()) if isinstance(step, Data) else -1
                out += [Data(step.data[: at + 1]), Pause(gap_s), Data(step.data[at + 1 :])] if isinstance(step, Data) and at >= 0 else [step]
            return out

        return self._bent(bend)

    def crlf(self) -> Answer:
        """Ends its lines in CRLF."""
        return self._bent(lambda steps: [Data(s.data.replace(b"\n", b"\r\n")) if isinstance(s, Data) else s for s in steps])

    def cr(self) -> Answer:
        """Ends its lines in CR alone."""
        return self._bent(lambda steps: [Data(s.data.replace(b"\n", b"\r")) if isinstance(s, Data) else s for s in steps])

    def gzipped(self) -> Answer:
        """One gzip stream, flushed after each write, whatever the caller said it accepts."""

        def bend(steps: list[Step]) -> list[Step]:
            packer = zlib.compressobj(wbits=31)
            out: list[Step] = []
            for step in steps:
                if isinstance(step, Head):
                    out.append(replace(step, headers=(*step.headers, ("content-encoding", "gzip"))))
                elif isinstance(step, Data):
                    out.append(Data(packer.compress(step.data) + packer.flush(zlib.Z_SYNC_FLUSH)))
                else:
                    out.append(step)
            return [*out, Data(packer.flush())]

        return self._bent(bend)

    def with_headers(self, **headers: str) -> Answer:
        """Adds headers (underscores become hyphens), replacing those of the same name."""
        named = {k.replace("_", "-").lower(): v for k, v in headers.items()}

        def bend(step: Step) -> Step:
            if not isinstance(step, Head):
                return step
            kept = tuple(h for h in step.headers if h[0].lower() not in named)
            return replace(step, headers=(*kept, *named.items()))

        return self._bent(lambda steps: [bend(s) for s in steps])

    def claiming(self, length: int) -> Answer:
        """Promises a Content-Length that may be a lie, then closes."""

        def bend(step: Step) -> Step:
            return replace(step, framing="none", headers=(*step.headers, ("content-length", str(length)))) if isinstance(step, Head) else step

        return self._bent(lambda steps: [*[bend(s) for s in steps], End("close")])

    def closing(self) -> Answer:
        """Marks the body's end by closing the connection, as old servers do."""
        return self._bent(lambda steps: [*[replace(s, framing="close") if isinstance(s, Head) else s for s in steps], End("close")])


def pause(what: Gate | float) -> Step:
    return Wait(what) if isinstance(what, Gate) else Pause(what)


def step_of(what: Any) -> Step:
    return End(what) if isinstance(what, str) else what if isinstance(what, Head | Data | Raw | Pause | Wait | End) else pause(what)


def position(steps: list[Step], after: str | bytes | None, inside: bool = False) -> int:
    """The index of the first step behind which `after` has been written whole; behind the head where it is None.

    A write that is no whole event, or is to be cut `inside`, is taken apart right behind it.
    """
    if after is None:
        return next((n for n, s in enumerate(steps) if isinstance(s, Head)), -1) + 1
    wanted = after.encode() if isinstance(after, str) else after
    written = b""
    for n, step in enumerate(steps):
        if isinstance(step, Data | Raw):
            before, written = len(written), written + step.data
            end = written.find(wanted) + len(wanted) if wanted in written else -1
            if end >= 0:
                if end < len(written) and (inside or not step.data.endswith(b"\n\n")):
                    kind = type(step)
                    steps[n : n + 1] = [kind(step.data[: end - before]), kind(step.data[end - before :])]
                return n + 1
    raise AssertionError(f"the answer never says {after!r}")


def promised(steps: list[Step]) -> list[Step]:
    """Writes the length of the whole body into the head before some of it is taken away."""
    total = sum(len(s.data) for s in steps if isinstance(s, Data))
    return [
        replace(s, framing="none", headers=(*s.headers, ("content-length", str(total)))) if isinstance(s, Head) and s.framing == "length" else s for s in steps
    ]


def said(text: str | Sequence[str], call: Call, **more: Any) -> Said:
    pieces = (text,) if isinstance(text, str) else tuple(text)
    return Said(pieces=tuple(p.replace("$MODEL", call.model) for p in pieces), **more)


def reply(text: str | Sequence[str] = "answer of $MODEL", *, stream: bool | None = None, **more: Any) -> Answer:
    """An ordinary answer in the dialect that was asked, streamed if the call wanted it (or as `stream` says against its wish).

    `text` as a list is streamed piece by piece. `more`: reasoning, refusal, tools, finish, usage, extra.
    """
    from tests.fake import dialects

    def make(call: Call) -> list[Step]:
        dialect = dialects.get(call.dialect or "openai-chat")
        what = said(text, call, **more)
        if call.stream if stream is None else stream:
            head = Head(200, (("content-type", dialect.stream_type), ("cache-control", "no-cache")), "chunked")
            return [head, *[Data(piece) for piece in dialect.stream(what, call)]]
        return [Head(200, (("content-type", "application/json"),)), Data(json.dumps(dialect.body(what, call), ensure_ascii=False).encode())]

    return Answer(make)


say = reply


def status(code: int, message: str = "", *, headers: Mapping[str, str] | None = None, error_code: str = "", body: Any = None) -> Answer:
    """A refusal with a status, in the dialect's shape of errors unless `body` says otherwise."""
    from tests.fake import dialects

    def make(call: Call) -> list[Step]:
        dialect = dialects.get(call.dialect or "openai-chat")
        what = body if body is not None else dialect.error(code, message or f"refused with {code}", error_code)
        data = what if isinstance(what, bytes) else json.dumps(what).encode()
        return [Head(code, (("content-type", "application/json"), *(headers or {}).items())), Data(data)]

    return Answer(make)


def whole(body: Any, *, code: int = 200, content_type: str = "application/json", headers: Mapping[str, str] | None = None) -> Answer:
    """Exactly this body (bytes, text or JSON) with its length."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Answer(lambda call: [Head(code, (("content-type", content_type), *(headers or {}).items())), Data(data)])


def sse(*writes: Any, content_type: str = "text/event-stream", done: bool = True) -> Answer:
    """A stream of exactly these writes: bytes and texts as they are, JSON as a data event, numbers and gates as pauses; then the usual end."""

    def make(call: Call) -> list[Step]:
        steps: list[Step] = [Head(200, (("content-type", content_type),), "chunked")]
        for item in writes:
            if isinstance(item, bytes | str):
                steps.append(Data(item if isinstance(item, bytes) else item.encode()))
            elif isinstance(item, dict | list):
                steps.append(Data(b"data: " + json.dumps(item, ensure_ascii=False).encode() + b"\n\n"))
            else:
                steps.append(step_of(item))
        return [*steps, Data(b"data: [DONE]\n\n")] if done else steps

    return Answer(make)


def raw(*writes: bytes | Gate | float | str) -> Answer:
    """Every byte of the answer, status line included. Texts are ends: close, reset, hang."""
    return Answer(lambda call: [Raw(w) if isinstance(w, bytes) else step_of(w) for w in writes])


def garbage(content_type: str = "application/json") -> Answer:
    """Bytes that are no format at all."""
    return whole(b"\x00\xff\xfe{]not json\x80\x81", content_type=content_type)


def html(code: int = 200) -> Answer:
    """A page, as captive portals and proxies in the way send."""
    return whole("<!doctype html><html><body><h1>Welcome</h1>token=page-secret-abc123</body></html>", code=code, content_type="text/html")


def hang() -> Answer:
    """Takes the request and never says a thing."""
    return Answer(lambda call: [End("hang")])
