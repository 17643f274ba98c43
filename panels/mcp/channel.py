"""The way back to one MCP client: one JSON body where the answer comes at once, an event stream once there is something to say before it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from django.conf import settings

from panels.turn import Out

KEEPALIVE = b": keepalive\n\n"
Headers = Callable[[], Sequence[tuple[str, str]]]


class Channel:
    """One answer on its way. `takes_json` and `takes_stream` are what the client accepts, at least one of them; `headers` are read when they go out."""

    def __init__(self, out: Out, headers: Headers, *, takes_json: bool, takes_stream: bool) -> None:
        self.out, self.headers = out, headers
        self.takes_json, self.takes_stream = takes_json, takes_stream
        self.lock = asyncio.Lock()  # two tasks write: the call, and the beat beside it
        self.is_over = False

    async def say(self, message: dict[str, Any] | None) -> None:
        """Sends a message before the answer, or with None a sign of life. Lost where the client takes no stream."""
        async with self.lock:
            if self.takes_stream and not self.is_over:
                await self.begin()
                await self.out.write(KEEPALIVE if message is None else event(message))

    async def finish(self, message: dict[str, Any], status: int = 200, more: Sequence[tuple[str, str]] = ()) -> None:
        """Sends the answer. A stream that has begun keeps the status it began with."""
        async with self.lock:
            self.is_over = True
            if self.out.started or not self.takes_json:
                await self.begin(status, more)
                await self.out.write(event(message))
                await self.out.end()
            else:
                await self.out.whole(status, [*self.headers(), *more], message)

    async def begin(self, status: int = 200, more: Sequence[tuple[str, str]] = ()) -> None:
        if not self.out.started:
            headers = [*self.headers(), *more, ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
            await self.out.start(status, headers, "text/event-stream")

    @contextmanager
    def kept_alive(self, beat: Callable[[], Awaitable[None]]) -> Iterator[None]:
        """Calls `beat` whenever nothing has been said for half of the time that a silence may last."""
        loop, pause, began = asyncio.get_running_loop(), settings.KEEPALIVE_S / 2, time.monotonic()
        beating: asyncio.Future[None] | None = None  # a task that nobody holds may vanish
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal beating, timer
            if time.monotonic() - max(began, self.out.last_write) >= pause:
                beating = asyncio.ensure_future(beat())
            timer = loop.call_later(pause, look)

        timer = loop.call_later(pause, look)
        try:
            yield
        finally:
            timer.cancel()
            self.is_over = True  # only the answer follows, or the client has left


def event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"
