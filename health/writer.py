"""The one thread of a worker process that writes to the database: reservations as they come, outbox lines within 50 ms, both in one transaction.

The event loop never waits for it but in `reserve` and `flush`. With the database away lines wait in the outbox, and reservations are refused
at once until a try that is made now and then succeeds.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from health import ledger, rollups
from health.database import Database, DatabaseAway, Unsure
from health.lines import Line, has_work
from health.outbox import BATCH_LINES, Outbox
from health.reserve import Ask, Denied, Permit, Request, Reserved

__all__ = ["Ask", "DatabaseAway", "Denied", "Permit", "Reserved", "State", "Writer"]

log = logging.getLogger(__name__)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
SOON, NOW = False, True


@dataclass(frozen=True, slots=True)
class State:
    """How far the writer is, for status pages and readiness. Units: `outbox_bytes` bytes, `oldest_s` seconds since all was committed."""

    is_away: bool
    is_behind: bool
    in_flight: int
    outbox_bytes: int
    oldest_s: float


Waiting = tuple[Request, "asyncio.Future[Reserved]"]


class Writer:
    """One a worker process, made in it. Units: `coalesce_s` and `reserve_timeout_s` seconds, `keep_bytes` of lines held in memory besides the file."""

    def __init__(self, outbox: Outbox, *, coalesce_s: float = 0.05, reserve_timeout_s: float = 5.0, keep_bytes: int = 16 * 1024 * 1024) -> None:
        self.outbox = outbox
        self._coalesce_s, self._reserve_timeout_s, self._keep_bytes = coalesce_s, reserve_timeout_s, keep_bytes
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._rung_soon = self._rung_now = False
        self._lines: deque[tuple[int, Line]] = deque()
        self._batch: list[tuple[int, Line]] = []  # taken from the lines and not committed yet
        self._spilled = False  # lines are only in the file
        self._recorded = 0  # position after the last line that needs a commit
        self._done = 0  # position up to which all lines are committed
        self._done_at = time.monotonic()
        self._asks: deque[Waiting] = deque()
        self._flushes: list[tuple[int, asyncio.Future[bool]]] = []
        self._pause_s = 0.0
        self._away_until = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ for the event loop

    async def reserve(self, first: Ask | None, rest: Sequence[Ask] = ()) -> Reserved:
        """Reserves what a request may use. Whoever gives up waiting for it holds nothing.

        Errors: DatabaseAway.
        """
        if self._stopping or self._away_until > time.monotonic():
            raise DatabaseAway("The database is away. Calls with limits are refused until it is back.")
        future: asyncio.Future[Reserved] = asyncio.get_running_loop().create_future()
        self._asks.append((Request(first, rest), future))
        self._ring_now()
        timer = future.get_loop().call_later(self._reserve_timeout_s, self._too_late, future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._give_back(future.result())  # it came in the moment the caller went
            raise
        finally:
            timer.cancel()

    def record(self, line: Line) -> None:
        """Writes a line to the outbox and has it committed soon. Never fails: what the disk has no room for is committed from memory."""
        with self._lock:
            try:
                position = self.outbox.append(line)
                is_kept = True
            except OSError as error:
                log.error("The outbox %s takes no lines: %s. Calls are recorded from memory only; make room on the disk.", self.outbox.path.name, error)
                position, is_kept = self.outbox.position, False
            if not has_work(line):
                return
            if self._recorded <= self._done:
                self._done_at = time.monotonic()
            self._recorded = position
            if is_kept and (self._spilled or position - self._done > self._keep_bytes):
                self._spilled = True
            else:
                self._lines.append((position, line))
        if not self._rung_soon:
            self._rung_soon = True
            self._bell.put(SOON)

    def release(self, permit: Permit | str) -> None:
        """Gives a reservation back whose call never went out."""
        self.record({"settle": [{"permit": permit if isinstance(permit, str) else permit.id, "unused": True}]})

    async def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until all that was recorded so far is committed; tells whether it is."""
        with self._lock:
            if not self._waits():
                return True
            future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._flushes.append((self._recorded, future))
        self._ring_now()
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            return False

    async def stop(self, timeout_s: float = 30.0) -> None:
        """Commits what it can and ends the thread. What is left stays in the outbox for a drain."""
        self._stopping = True
        self._ring_now()
        await asyncio.to_thread(self._thread.join, timeout_s)
        if self._thread.is_alive():
            log.error("The ledger's writer did not end within %g s; its outbox %s is drained at the next start.", timeout_s, self.outbox.path.name)
        else:
            self.outbox.close()

    def state(self) -> State:
        """How far it is."""
        waits = self._waits()
        return State(self._pause_s > 0, waits, self.outbox.in_flight, self.outbox.size, time.monotonic() - self._done_at if waits else 0.0)

    @property
    def behind(self) -> int:
        """Bytes of lines that are not committed yet."""
        return max(0, self._recorded - self._done)

    def _ring_now(self) -> None:
        if not self._rung_now:
            self._rung_now = True
            self._bell.put(NOW)

    def _too_late(self, future: asyncio.Future[Reserved]) -> None:
        if not future.done():
            future.set_exception(DatabaseAway("The database did not answer in time."))

    def _waits(self) -> bool:
        return bool(self._lines or self._batch or self._spilled)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        db = Database()
        try:
            while True:
                self._wait()
                asks = self._taken_asks()
                more = bool(asks) or not self._stopping
                try:
                    self._turn(db, asks)
                except DatabaseAway as error:
                    self._away(asks, error)
                    more = not self._stopping
                except Exception:
                    log.exception("The ledger's writer met what it should not have; it tries again.")
                    self._away(asks, DatabaseAway("The reservation failed."))
                    more = not self._stopping
                if not more and (self._pause_s or not self._waits()):
                    break
        finally:
            db.close()
            self._answer([(future, DatabaseAway("The server is stopping.")) for _, future in self._taken_asks()])

    def _wait(self) -> None:
        """Waits for something to do: a reservation, or lines for a little while."""
        if self._stopping or (not self._pause_s and (self._batch or self._spilled or len(self._lines) >= BATCH_LINES)):
            return
        # Under load nobody rings for a line: this thread looks by itself, and only once there was nothing does it sleep until it is rung for.
        deadline: float | None = self._away_until if self._pause_s else time.monotonic() + self._coalesce_s
        while True:
            try:
                if self._bell.get(timeout=None if deadline is None else max(deadline - time.monotonic(), 0.0)) is NOW:
                    break
                deadline = deadline or time.monotonic() + self._coalesce_s
            except queue.Empty:
                self._rung_soon = bool(self._pause_s or self._waits())
                if self._rung_soon or self._lines:  # again, since who added one before the bell was freed did not ring
                    break
                deadline = None
        self._rung_soon = True
        while not self._bell.empty():
            self._bell.get()
        # Freed before anything is taken and after the bell is silent: who asks for something from now on rings again.
        self._rung_now = False

    def _taken_asks(self) -> list[Waiting]:
        asks: list[Waiting] = []
        while self._asks:
            request, future = self._asks.popleft()
            if not future.done():
                asks.append((request, future))
        return asks

    def _turn(self, db: Database, asks: list[Waiting]) -> None:
        """One transaction."""
        if not self._batch:
            self._take_lines()
        lines = [line for _, line in self._batch]
        if not lines and not asks and not self._pause_s:
            return
        try:
            answers: list[Reserved | Exception] = list(ledger.transact(db, lines, [request for request, _ in asks]))
        except DatabaseAway:
            raise
        except Exception:
            # A bad line or a bad reservation: each by itself, then.
            if lines:
                ledger.commit(lines, self.outbox.path.parent, db)
            answers = [self._alone(db, request) for request, _ in asks]
        self._pause_s = self._away_until = 0.0
        if lines:
            self._committed(self._batch[-1][0])
        if asks:
            self._answer([(future, answer) for (_, future), answer in zip(asks, answers, strict=True)])
        if rollups.is_due():
            db.transaction(lambda db: rollups.fold(db.django_cursor()))

    def _alone(self, db: Database, request: Request) -> Reserved | Exception:
        try:
            return ledger.transact(db, [], [request])[0]
        except Exception as error:
            if isinstance(error, Unsure):
                self._let_go(request)
            return error

    def _take_lines(self) -> None:
        with self._lock:
            while self._lines and len(self._batch) < BATCH_LINES:
                self._batch.append(self._lines.popleft())
            if self._batch or not self._spilled:
                return
            if self._done >= self._recorded:
                self._spilled = False
                return
        read = self.outbox.read(self._done)
        if not read:
            log.error("The outbox %s lost lines that were not committed yet: someone changed the file.", self.outbox.path.name)
            self._done = self._recorded
        self._batch = [(position, line if has_work(line) else {}) for position, line in read]

    def _committed(self, position: int) -> None:
        self._batch = []
        self._done = max(self._done, position)
        self._done_at = time.monotonic()
        self.outbox.committed(self._done)
        if self._flushes:
            with self._lock:
                # With nothing left to wait for, lines that never got into the file count as done too.
                over = [one for one in self._flushes if one[0] <= self._done and not (self._lines and self._lines[0][0] <= one[0])]
                self._flushes = [one for one in self._flushes if one not in over]
            for _, future in over:
                call(future.get_loop(), resolve, future, True)

    def _away(self, asks: list[Waiting], error: DatabaseAway) -> None:
        """Refuses the reservations and waits longer each time."""
        if not self._pause_s:
            log.warning("The database is away; calls with limits are refused and what happened waits in the outbox: %s", error)
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self._away_until = time.monotonic() + self._pause_s
        if isinstance(error, Unsure):
            for request, _ in asks:
                self._let_go(request)
        self._answer([(future, DatabaseAway(str(error))) for _, future in asks])

    def _answer(self, answers: list[tuple[asyncio.Future[Reserved], Reserved | Exception]]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[Any]] = {}
        for future, answer in answers:
            by_loop.setdefault(future.get_loop(), []).append((future, answer))
        for loop, some in by_loop.items():
            if not call(loop, self._resolve, some):
                self._resolve(some)

    def _resolve(self, answers: list[tuple[asyncio.Future[Reserved], Reserved | Exception]]) -> None:
        for future, answer in answers:
            if not future.done() and not future.get_loop().is_closed():
                resolve(future, answer)
            elif isinstance(answer, Reserved):
                self._give_back(answer)  # its request has gone meanwhile

    def _give_back(self, answer: Reserved) -> None:
        for permit in (answer.first, *answer.rest):
            if isinstance(permit, Permit):
                self.release(permit)

    def _let_go(self, request: Request) -> None:
        """A reservation that may have been made, and that nobody will use."""
        for ask in (request.first, *request.rest):
            if ask:
                self.release(ask.id)


def call(loop: asyncio.AbstractEventLoop, what: Any, *arguments: Any) -> bool:
    """Calls on a loop's own thread; False where the loop is no more."""
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:
        return False
    return True


def resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
