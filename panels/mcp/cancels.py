"""What a session's client took back or ended, known to every worker: a row that the running call looks at, since the word may reach another one.

The protocol's newer generation needs none of this: there a client cancels by closing the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson
from django.db import Error as DatabaseError

from panels import memory

if TYPE_CHECKING:
    from panels.gateway import Gateway

LOOK_S = 1.0


class Cancelled(Exception):
    """The client took its request back."""


@dataclass(slots=True)
class Running:
    """One call under way. `before` is how often its task had been cancelled before it began."""

    task: asyncio.Task[object]
    before: int
    taken_back: bool = False

    def take_back(self) -> None:
        if not self.taken_back:
            self.taken_back = True
            self.task.cancel()


class Cancels:
    """One worker's calls under way, and its word to and from the others."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.running: dict[str, Running] = {}
        self.looking: asyncio.Task[None] | None = None

    @contextmanager
    def heeded(self, session: str, request: object) -> Iterator[None]:
        """Lets a call be taken back while it runs. Errors: Cancelled."""
        task = asyncio.current_task()
        assert task is not None
        name, mine = call_name(session, request), Running(task, task.cancelling())
        self.running[name] = mine
        if self.looking is None or self.looking.done():
            self.looking = asyncio.create_task(self.look())
        try:
            yield
        except asyncio.CancelledError:
            # Cancelled twice, the caller has left as well, and there is nobody to tell.
            if mine.taken_back and task.uncancel() <= mine.before:
                raise Cancelled from None
            raise
        finally:
            if self.running.get(name) is mine:
                del self.running[name]

    def cancel(self, session: str, request: object) -> None:
        name = call_name(session, request)
        if mine := self.running.get(name):
            mine.take_back()
        else:
            self.tell(name, "cancel")

    def end(self, session: str) -> None:
        """Ends a session: its id is not known any more, anywhere."""
        self.tell(session_name(session), "ended")

    async def is_ended(self, session: str) -> bool:
        name = session_name(session)
        return name in await self.gateway.known([name], datetime.now(UTC))

    def tell(self, name: str, kind: str) -> None:
        item = {"digest": name, "kind": kind, "model": "", "payload": "", "used_at": datetime.now(UTC).isoformat()}
        self.gateway.memory.note([item])
        self.gateway.writer.record({"pins": [item]})

    async def look(self) -> None:
        """Looks, as long as calls run, for what other workers were told."""
        loop = asyncio.get_running_loop()
        while self.running:
            await asyncio.sleep(LOOK_S)
            try:
                told = await loop.run_in_executor(self.gateway.executor, memory.look_up, list(self.running))
            except DatabaseError:
                continue
            for name in told:
                if mine := self.running.get(name):
                    mine.take_back()


def call_name(session: str, request: object) -> str:
    return memory.digest(session, "cancel", orjson.dumps(request).decode())


def session_name(session: str) -> str:
    return memory.digest(session, "ended", "")
