"""A request whose caller watches each seat while it writes: the seats' own events, in the order in which things happen."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from panels.outcome import SeatResult, seat_data
from panels.plan import Plan, Seat
from panels.seating import Hindrance
from panels.turn import Out
from wire.bench_chat import said
from wire.conversation import Chunk

# What comes in smaller pieces is gathered for so long: an eye reads no faster, and each event costs the page a layout.
GATHER_S = 0.05


class LiveSeats:
    """The seats of one request on their way to its caller.

    Nobody here waits for a slow reader: one task writes, and what seats say meanwhile is gathered, so that it goes out in fewer pieces.
    """

    def __init__(self, out: Out) -> None:
        self.out = out
        self.queue: list[bytes] = []
        self.gathered: dict[str, dict[str, list[str]]] = {}  # by call: text and reasoning
        self.ended: set[str] = set()
        self.timer: asyncio.TimerHandle | None = None
        self.writing: asyncio.Task[None] | None = None
        self.closed = False

    def begun(self, plan: Plan, mode: str, waiting: Collection[str] = ()) -> None:
        """Says who sits. Shape: `waiting` are the calls that need a permit of the bench's own limits before they go out."""
        collection = plan.target.collection
        seats = [at_start(s, "waiting" if s.call in waiting else "running") for s in plan.seats]
        self.put(said("panel", {"panel": plan.panel, "collection": collection.name if collection else None, "mode": mode, "seats": seats}))

    def started(self, seat: Seat, status: str = "running") -> None:
        """Says that a seat begins which had not: a merger, one that waited, the next that a route tries."""
        self.put(said("seat_started", at_start(seat, status)))

    async def delta(self, call: str, chunks: list[Chunk]) -> None:
        """Takes what a seat has said."""
        if self.closed or call in self.ended:
            return
        for chunk in chunks:
            if chunk.choice:
                continue
            if chunk.text or chunk.refusal:
                self.gathered.setdefault(call, {}).setdefault("text", []).append(chunk.text or chunk.refusal)
            if chunk.thinking:
                self.gathered.setdefault(call, {}).setdefault("reasoning", []).append(chunk.thinking)
        if self.gathered and self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(GATHER_S, self.due)

    def over(self, result: SeatResult) -> None:
        """Says how a seat ended, after all that it said."""
        self.ended.add(result.call)
        self.gather([result.call])
        self.put(said("seat", {**seat_data(result), "position": result.position}))

    async def drain(self) -> None:
        """Waits until all that was said is written."""
        self.gather(list(self.gathered))
        self.write()
        if self.writing is not None:
            await self.writing

    def close(self) -> None:
        """Ends it: what seats say from here on, this caller does not hear."""
        self.closed = True
        self.queue.clear()
        self.gathered.clear()
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None

    # ------------------------------------------------------------------ writing

    def put(self, data: bytes) -> None:
        if not self.closed:
            self.queue.append(data)
            self.write()

    def due(self) -> None:
        self.timer = None
        if self.writing is not None and self.gathered:  # a slow reader gets more at once
            self.timer = asyncio.get_running_loop().call_later(GATHER_S, self.due)
            return
        self.gather(list(self.gathered))
        self.write()

    def gather(self, calls: Collection[str]) -> None:
        for call in calls:
            for field, pieces in self.gathered.pop(call, {}).items():
                self.queue.append(said("delta", {"call": call, field: "".join(pieces)}))

    def write(self) -> None:
        if self.queue and self.writing is None:
            self.writing = asyncio.get_running_loop().create_task(self.written())

    async def written(self) -> None:
        try:
            while self.queue:
                data = b"".join(self.queue)
                self.queue.clear()
                await self.out.write(data)
        finally:
            self.writing = None


def at_start(seat: Seat, status: str) -> dict[str, Any]:
    """A seat before it has said anything; one that is hindered is skipped."""
    hindered: Hindrance | None = seat.place.hindrance
    return {
        "call": seat.call,
        "model": seat.place.alias,
        "seat": seat.place.seat,
        "status": "skipped" if hindered else status,
        "position": seat.position,
        "error": {"code": hindered.code, "message": hindered.message} if hindered else None,
    }
