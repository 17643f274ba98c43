"""One request under way: what all steps of the road share, the way back to the caller, and what a streamed reply does by itself."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from django.conf import settings

from access.caller import Caller
from health import budgets as money
from health.writer import Ask, DatabaseAway, Denied
from panels import asks
from panels.gateway import Gateway
from panels.outcome import SeatResult
from panels.plan import Plan, Seat
from panels.snapshot import Snapshot
from wire.conversation import Chunk, Request
from wire.dialects import Answer, Dialect, StreamWriter
from wire.errors import CallerError

UNFIT_FOR_HEADER = re.compile(r"[^A-Za-z0-9_.:\[\]$/ -]")


class Out(Protocol):
    """The way back to the caller. Errors: whatever the transport raises when the caller has left."""

    started: bool
    last_write: float

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None: ...
    async def write(self, data: bytes) -> None: ...
    async def end(self) -> None: ...
    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = ...) -> None: ...


class Live(Protocol):
    """Who watches each seat of a request while it writes; only `drain` waits for the caller's connection."""

    def begun(self, plan: Plan, mode: str, waiting: Collection[str] = ()) -> None: ...
    def started(self, seat: Seat, status: str = "running") -> None: ...
    async def delta(self, call: str, chunks: list[Chunk]) -> None: ...
    def over(self, result: SeatResult) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class Turn:
    """One request on the road, with all that its steps share. `upstream_s` is the time spent waiting for providers.

    `besides` are aliases seated at this one panel besides the members, `seats` those that sit in the members' place, where the caller named them. With
    `on_seat` a panel tells each seat by it and replies whole, though the request streams from providers; with `live` seats are told while they write, and
    the stream's writer says only the end. `purpose` is what the ledger says its calls are for, where that is not its mode; such a turn has its `results` in the
    end, and is nobody's panel. `beside` is asked, once there is an answer, for what is to stand in the very outbox line that records it: either both are kept
    or neither. `goes_out` is told when the call of a single seat really goes out, after all that it waited for.
    """

    gateway: Gateway
    dialect: Dialect
    caller: Caller
    request: Request
    snapshot: Snapshot
    request_id: str
    out: Out
    began: float
    headers_in: Mapping[str, str] = field(default_factory=dict)
    upstream_s: float = 0.0
    panel: str = ""
    purpose: str = ""
    results: Sequence[SeatResult] = ()
    besides: tuple[str, ...] = ()
    on_seat: Callable[[SeatResult], Awaitable[None]] | None = None
    seats: tuple[str, ...] | None = None
    live: Live | None = None
    detached: bool = False  # goes on when its caller leaves
    beside: Callable[[Answer], Mapping[str, Any]] | None = None
    goes_out: Callable[[], None] | None = None

    def headers(self, **more: str) -> list[tuple[str, str]]:
        overhead_ms = max(0.0, (time.monotonic() - self.began - self.upstream_s) * 1000)
        found = [("x-bench-overhead-ms", f"{overhead_ms:.2f}")]
        if self.panel:
            found.append(("x-bench-panel", self.panel))
        return found + [(k.replace("_", "-"), v) for k, v in more.items()]

    async def reply(self, body: dict[str, Any], **more: str) -> None:
        await self.out.whole(200, self.headers(**more), body)


def names_for_header(names: Sequence[str]) -> str:
    """Names out of a caller's own body as one header's value: only what a header may hold, and not without end."""
    return ", ".join([UNFIT_FOR_HEADER.sub("_", name)[:80] for name in names[:50]])


@contextmanager
def upstream_time(turn: Turn) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        turn.upstream_s += time.monotonic() - began


class Stream:
    """Headers and keepalives of one streamed reply: what has to happen by itself while the road waits for a provider."""

    def __init__(self, turn: Turn, writer: StreamWriter) -> None:
        self.turn, self.writer, self.out = turn, writer, turn.out
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.stopped = False

    async def begin(self, **more: str) -> None:
        headers = [*self.turn.headers(**more), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
        await self.out.start(200, headers, self.writer.content_type)
        self.watch()

    def begin_late(self) -> None:
        """Sends the headers after 10 s where nothing else did; who answers is not known by then."""
        self.timer = asyncio.get_running_loop().call_later(settings.HEADERS_WITHIN_S, self.alone)

    def alone(self) -> None:
        if not self.out.started:
            self.task = asyncio.get_running_loop().create_task(self.begin_and_say())

    async def begin_and_say(self) -> None:
        if not self.out.started and not self.stopped:  # an answer may have come in the moment this was due
            await self.begin()
            await self.keep_alive()

    async def keep_alive(self) -> None:
        if not self.stopped:
            await self.out.write(self.writer.keepalive())

    def watch(self) -> None:
        """One timer a stream that looks now and then, instead of one a chunk."""
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(settings.KEEPALIVE_S / 2, self.look)

    def look(self) -> None:
        # A reader who is so slow that the last one still waits needs no other.
        if time.monotonic() - self.out.last_write >= settings.KEEPALIVE_S / 2 and (self.task is None or self.task.done()):
            self.task = asyncio.get_running_loop().create_task(self.keep_alive())
        self.watch()

    def stop(self) -> None:
        """Nothing more by itself: what is written from here on is the end."""
        self.stopped = True
        if self.timer:
            self.timer.cancel()
        self.timer = None


async def reserve(turn: Turn, ask: Ask | None) -> None:
    """The key's own limits, for the whole request. Errors: CallerError 402, 429 or 503."""
    if ask is None:
        return
    try:
        reserved = await turn.gateway.writer.reserve(ask, [])
    except DatabaseAway:
        raise CallerError("database_unavailable", "The database cannot be reached, and this key has limits to keep.", status=503, retry_after_s=5) from None
    if isinstance(reserved.first, Denied):
        if line := money.refusal_line(reserved.first, turn.caller.key_name, datetime.now(UTC)):
            turn.gateway.writer.record(line)
        raise asks.key_refusal(reserved.first)


def release(turn: Turn, ask: Ask | None, results: Sequence[SeatResult]) -> dict[str, Any]:
    """What settles the key's permit."""
    return {"settle": [{"permit": ask.id, "truth": asks.key_truth(ask, results)}]} if ask else {}
