"""Seats on their way to somebody who watches them: nothing waits for a slow reader, and what comes meanwhile is gathered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from panels.live import LiveSeats
from panels.outcome import SeatResult
from wire.conversation import Chunk
from wire.sse import Parser


class Reader:
    """A way back whose caller reads nothing until told to."""

    started, last_write = True, 0.0

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.reads = asyncio.Event()

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None:
        raise AssertionError

    async def write(self, data: bytes) -> None:
        self.got.append(data)
        await self.reads.wait()

    async def end(self) -> None:
        raise AssertionError

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = "") -> None:
        raise AssertionError

    def events(self) -> list[tuple[str, Any]]:
        return [(e.event, json.loads(e.data)) for e in Parser().feed(b"".join(self.got))]


def over(call: str, text: str = "") -> SeatResult:
    return SeatResult(call, 0, "mercury", "member", "ok", text=text)


def test_a_slow_reader_gets_what_came_meanwhile_in_one_piece() -> None:
    async def play() -> Reader:
        reader = Reader()
        live = LiveSeats(reader)
        live.over(over("first"))  # the reader hangs at this one
        await asyncio.sleep(0)
        for n in range(1000):
            await live.delta("a", [Chunk(text=f"{n} ")])
            await live.delta("b", [Chunk(thinking=f"{n} ")])
        reader.reads.set()
        await live.drain()
        return reader

    events = asyncio.run(play()).events()
    deltas = [data for name, data in events if name == "delta"]
    assert len(deltas) == 2
    whole = "".join(f"{n} " for n in range(1000))
    assert {d["call"]: d.get("text", d.get("reasoning")) for d in deltas} == {"a": whole, "b": whole}


def test_a_seats_end_comes_after_all_that_it_said_and_nothing_after_it() -> None:
    async def play() -> Reader:
        reader = Reader()
        reader.reads.set()
        live = LiveSeats(reader)
        await live.delta("a", [Chunk(text="one"), Chunk(text="other", choice=1)])
        live.over(over("a", "one"))
        await live.delta("a", [Chunk(text="late")])
        await live.drain()
        return reader

    assert [(name, data.get("text")) for name, data in asyncio.run(play()).events()] == [("delta", "one"), ("seat", "one")]


def test_nothing_is_written_once_it_is_closed() -> None:
    async def play() -> Reader:
        reader = Reader()
        reader.reads.set()
        live = LiveSeats(reader)
        await live.delta("a", [Chunk(text="one")])
        live.close()
        await live.delta("a", [Chunk(text="two")])
        live.over(over("a"))
        await live.drain()
        assert live.timer is None
        return reader

    assert asyncio.run(play()).got == []
