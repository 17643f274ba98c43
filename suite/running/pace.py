"""The connections that runs ask, one for all runs of this process that ask it, and what other processes found of them.

A call takes a place and gives it back; who finds none waits in line, so that runs of one connection take turns, and one place stays free for each run that
has none: calls that hang take no more than that from the others. What was found stands in a row that all
processes look at once a second, and each takes its share. A restarted server and another host therefore begin where it was left.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from suite.models import Connection, Run
from suite.running.concurrency import MOST, Controller, Found
from suite.running.concurrency import together as put_together
from suite.running.subjects import Subject, connection_of

# So many more samples than calls: while some are graded or wait for their next try, the connection stays in use, and no run piles up tasks without end.
SAMPLES_BESIDES = 5
# What was found so long ago is where trying begins, and no more.
STALE = timedelta(hours=1)

Changed = Callable[[int, int, str], None]


def silent(before: int, after: int, why: str) -> None:
    """Tells nobody."""


class Pace:
    """One connection's places in this process."""

    def __init__(self, name: str, most: int = MOST) -> None:
        self.name = name
        self.controller = Controller(most=min(most, MOST), changes=self.tell)
        self.held: Counter[str] = Counter()  # places by run
        self.waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self.watchers: dict[str, Changed] = {}
        self.seen: Found | None = None  # what the row held when it was last looked at

    @property
    def samples(self) -> int:
        """How many samples one run may have under way."""
        return self.controller.share + SAMPLES_BESIDES

    @property
    def under_way(self) -> int:
        return self.held.total()

    def has_place(self, run: str) -> bool:
        """Whether a run may take one more, with one left for each other run that has none.

        One that has none, since it came when all were taken, may have one beyond what was found to be right: not while the provider says that it is too much,
        and never more than a person allows.
        """
        free = self.controller.share - self.under_way
        if not self.held[run]:
            return free > 0 or (self.under_way < self.controller.most and now() >= self.controller.found.cool_until)
        return free > self.without_a_place()

    def without_a_place(self) -> int:
        return sum(1 for run in self.watchers if not self.held[run])

    @asynccontextmanager
    async def place(self, run: str) -> AsyncIterator[None]:
        """Holds one place for a run. Of those who may have the next free one it is whoever came first."""
        if self.waiting or not self.has_place(run):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append((run, turn))
            self.admit()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.leave(run)
                raise
        else:
            self.enter(run)
        try:
            yield
        finally:
            self.leave(run)

    def allow(self, most: int | None) -> None:
        """Takes over what a person allows at once, which may change while runs go on; None where nobody said."""
        self.controller.most = min(most or MOST, MOST)
        if self.controller.found.limit > self.controller.most:
            self.controller.adopt(self.controller.found, "as its endpoint allows")

    def enter(self, run: str) -> None:
        self.held[run] += 1
        self.controller.started(self.under_way)

    def leave(self, run: str) -> None:
        self.held[run] -= 1
        if not self.held[run]:
            del self.held[run]
        self.admit()

    def admit(self) -> None:
        """Lets in who may come, in the order of their coming."""
        later: deque[tuple[str, asyncio.Future[None]]] = deque()
        while self.waiting and (self.under_way < self.controller.share or self.without_a_place()):
            run, turn = self.waiting.popleft()
            if turn.done():
                continue
            if self.has_place(run):
                self.enter(run)
                turn.set_result(None)
            else:
                later.append((run, turn))
        self.waiting.extendleft(reversed(later))

    def tell(self, before: int, after: int, why: str) -> None:
        for changed in self.watchers.values():
            changed(before, after, why)
        self.admit()


class Paces:
    """The connections of one process that works on runs."""

    def __init__(self) -> None:
        self.found: dict[str, Pace] = {}

    def enter(self, run: str, subject: Subject, most: int | None) -> Pace:
        """Gives a run its connection's, and the run's place among its watchers. `most` is what a person allows at once there."""
        name = connection_of(subject)
        pace = self.found.get(name)
        if pace is None:
            pace = self.found[name] = Pace(name, most or MOST)
        pace.watchers[run] = silent
        return pace

    def leave(self, run: str, pace: Pace) -> None:
        pace.watchers.pop(run, None)
        pace.admit()  # what was kept for it
        if not pace.watchers and not pace.under_way:
            self.found.pop(pace.name, None)

    def exchange(self) -> list[tuple[Pace, Found, Found, int]]:
        """Reads what others found, and writes what this process did. In a thread. Shape: what each held, what holds now, among how many processes."""
        if not self.found:
            return []
        counts = processes()
        return [(pace, pace.controller.found, *exchanged(pace, counts.get(pace.name, 1))) for pace in list(self.found.values())]

    def adopt(self, exchanged: list[tuple[Pace, Found, Found, int]]) -> None:
        """Takes over what was read, on the loop. What a connection taught meanwhile is the next exchange's."""
        for pace, before, now, count in exchanged:
            pace.controller.processes = max(1, count)
            pace.controller.adopt(put_together(before, pace.controller.found, now), "as other processes found")
            pace.seen = now
            pace.admit()


def exchanged(pace: Pace, count: int) -> tuple[Found, int]:
    """Brings one connection's row and this process together."""
    mine, now = pace.controller.found, timezone.now()
    row = Connection.objects.filter(name=pace.name).first()
    if row is None:
        Connection.objects.bulk_create([Connection(name=pace.name, changed_at=now, **fields_of(mine))], ignore_conflicts=True)
        return mine, count
    theirs = found_of(row)
    if pace.seen is None:  # the first look: go on where it was left
        return (Found(theirs.limit) if now - row.changed_at > STALE else theirs), count
    merged = put_together(pace.seen, mine, theirs)
    if merged != theirs:
        # Whoever wrote in between is heard at the next look: what was seen is then no longer what is there.
        kept = Connection.objects.filter(name=pace.name, changed_at=row.changed_at).update(changed_at=now, **fields_of(merged))
        if not kept:
            return mine, count
    return merged, count


def fields_of(found: Found) -> dict[str, Any]:
    cool_until = datetime.fromtimestamp(found.cool_until, UTC) if found.cool_until else None
    return {"at_once": found.limit, "is_slow_start": found.is_slow_start, "cool_until": cool_until}


def found_of(row: Connection) -> Found:
    return Found(row.at_once, row.is_slow_start, row.cool_until.timestamp() if row.cool_until else 0.0)


def processes() -> dict[str, int]:
    """Counts who works on runs of each connection just now."""
    held: dict[str, set[str]] = {}
    rows = Run.objects.filter(leased_until__gt=timezone.now(), status__in=[Run.Status.RUNNING, Run.Status.HALTING]).exclude(worker="")
    for worker, sut in rows.values_list("worker", "sut"):
        held.setdefault(connection_of(Subject.kept(sut)), set()).add(worker)
    return {name: len(workers) for name, workers in held.items()}


def now() -> float:
    """The time as controllers are told it."""
    return time.time()
