"""What one worker process holds for all its requests: connections, the snapshot, the writer, and the seats that outlive their panels."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError

from catalog.roster import Model
from catalog.upstream import Upstream
from health import ledger
from health.attempt import Attempt
from health.learned import notes
from health.learned import rest_of as rest_of_told
from health.outbox import Outbox
from health.resting import Resting, line_of, line_of_success, rest_after
from health.writer import Writer
from panels.evidence import Evidence
from panels.mcp.cancels import Cancels
from panels.memory import Known, Memory, look_up
from panels.snapshot import Snapshot, Snapshots
from panels.stops import Stops
from wire.errors import UpstreamError

log = logging.getLogger("bench.gateway")

READ_THREADS = 2
# Nobody waits for a late seat: a stop gives it so long, then what has come is recorded as cancelled.
LATE_AT_STOP_S = 15.0
WRITTEN_AFTER = timedelta(seconds=2)  # by then what was recorded is in the database, unless that is away


class Gateway:
    """Made in the worker when it starts, never at import: what it holds does not survive a fork."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="reader")
        self.upstream = Upstream()
        self.writer = Writer(Outbox(settings.OUTBOX_FOLDER, f"worker-{os.getpid()}"))
        self.snapshots = Snapshots(self.executor)
        self.late: set[asyncio.Task[Any]] = set()
        self.seated: dict[str, datetime] = {}
        self.memory = Memory()
        self.cancels = Cancels(self)
        self.stops = Stops(self)
        self.rests: dict[str, Resting] = {}  # what this process learned and the snapshot does not know yet
        self.over: dict[str, datetime] = {}
        self.evidence = Evidence(self.executor)

    async def open(self) -> None:
        await self.upstream.open()

    async def close(self) -> None:
        """Waits for late seats (the server has waited for its open calls), then writes down what it knows."""
        until = time.monotonic() + LATE_AT_STOP_S
        while self.late and (rest := until - time.monotonic()) > 0:
            await asyncio.wait(self.late, timeout=rest)
        for task in self.late:
            task.cancel()
        if self.late:
            await asyncio.wait(self.late, timeout=5)
        self.stops.close()
        await self.upstream.close()
        await self.writer.stop()
        self.executor.shutdown(wait=False, cancel_futures=True)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Lets a seat go on after its panel: its answer is still worth a verdict."""
        self.late.add(task)
        task.add_done_callback(self.forget)

    def forget(self, task: asyncio.Task[Any]) -> None:
        self.late.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a late seat failed", exc_info=error)

    async def last_seated(self) -> dict[str, datetime]:
        """When each model was last seated: the database's word, and what this process seated since."""
        try:
            uses = await asyncio.get_running_loop().run_in_executor(self.executor, ledger.uses_of_models)
            known = {alias: at for alias, (_, at) in uses.items()}
        except DatabaseError:
            known = {}  # what this process seated itself is still a fair turn
        for alias, at in list(self.seated.items()):
            if (seen := known.get(alias)) is None or seen < at:
                known[alias] = at
        return known

    def note_seated(self, aliases: list[str]) -> None:
        now = datetime.now(UTC)
        for alias in aliases:
            self.seated[alias] = now

    # ------------------------------------------------------------------ rests

    async def snapshot(self) -> Snapshot:
        """A fresh snapshot, with the rests that this process learned meanwhile."""
        found = await self.snapshots.fresh()
        if not self.rests and not self.over:
            return found
        rests = dict(found.rests)
        for scope, ended in list(self.over.items()):
            if (rest := rests.get(scope)) is None or rest.since > ended:
                del self.over[scope]
            else:
                del rests[scope]
        for scope, mine in list(self.rests.items()):
            theirs = rests.get(scope)
            # Written some time ago and not there any more: another process saw a call go through.
            is_over = theirs is None and not self.snapshots.away and datetime.now(UTC) - mine.since > WRITTEN_AFTER
            if is_over or (theirs is not None and theirs.until >= mine.until):
                del self.rests[scope]
            else:
                rests[scope] = mine
        return replace(found, rests=rests)

    def rest_of(self, model: Model) -> Resting | None:
        """A rest that this process learned of, perhaps after the snapshot of a turn was taken."""
        now = datetime.now(UTC)
        found = [r for scope in (f"model:{model.alias}", f"endpoint:{model.endpoint.name}") if (r := self.rests.get(scope)) and r.until > now]
        return max(found, key=lambda r: r.until) if found else None

    def learn(self, attempt: Attempt, error: UpstreamError, every_kind: bool) -> bool:
        """Lets rest whom a failure says to; tells whether anybody has to. Outside route mode only a limit does, with a time or without."""
        if not every_kind and error.code != "rate_limit_exceeded":
            return False
        model, now = attempt.order.model, datetime.now(UTC)
        standing = {**(self.snapshots.last.rests if self.snapshots.last else {}), **self.rests}
        rest = rest_after(error, model.endpoint.name, model.alias, standing, now)
        if rest is not None and ((before := standing.get(rest.scope)) is None or before.until < rest.until):
            self.rests[rest.scope] = rest
            self.over.pop(rest.scope, None)
            self.writer.record(line_of(rest))
            return True
        return False

    def heard(self, attempt: Attempt) -> bool:
        """Writes down what an answer told of its provider's limits, where that is new; lets rest who has nothing left, and tells whether anybody has to."""
        now = datetime.now(UTC)
        told = notes.told_by(attempt, now)
        if not told:
            return False
        line, rested = notes.line_of(attempt.order.model, told, now), False
        if attempt.failure is None and (rest := rest_of_told(attempt.order.model, told, now)) is not None:
            standing = self.rests.get(rest.scope) or (self.snapshots.last.rests.get(rest.scope) if self.snapshots.last else None)
            if standing is None or standing.until < rest.until:
                self.rests[rest.scope] = rest
                self.over.pop(rest.scope, None)
                line |= line_of(rest)
                rested = True
        if line:
            self.writer.record(line)
        return rested

    def succeeded(self, attempt: Attempt) -> None:
        """A call that went through ends the rests of its model and endpoint that began before it, and the counting of their steps."""
        model = attempt.order.model
        known = self.snapshots.last.rests if self.snapshots.last else {}
        scopes = [s for s in (f"model:{model.alias}", f"endpoint:{model.endpoint.name}") if s in known or s in self.rests]
        if scopes:
            at = attempt.started_at
            for scope in scopes:
                if (mine := self.rests.get(scope)) is None or mine.since <= at:
                    self.rests.pop(scope, None)
                    self.over[scope] = at
            self.writer.record(line_of_success(scopes, at))

    # ------------------------------------------------------------------ conversations

    async def known(self, digests: Sequence[str], now: datetime) -> dict[str, Known]:
        """What is remembered under digests, by all processes. With the database away, what this one knows."""
        try:
            stored = await asyncio.get_running_loop().run_in_executor(self.executor, look_up, digests)
        except DatabaseError:
            stored = {}
        return self.memory.known(digests, stored, now)
