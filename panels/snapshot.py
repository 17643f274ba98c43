"""The roster, the keys and the rests as they stand, in one frozen value, and how a request gets one that is fresh.

Every request waits for one look at the roster's version that began after it came; all that wait share the look. If the version moved,
the snapshot is rebuilt before anything is planned. With the database away, the last snapshot serves for ten minutes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from access import budgets
from access.budgets import Budgets
from access.keys import KeyRing, load_ring
from catalog.load import load_models
from catalog.roster import Model
from health.learned import applied, in_force
from health.resting import KEY, LIMIT, OVERLOAD, Resting, load_rests
from panels.collections import Collection, load_collections
from wire.errors import CallerError

LOOK_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Shape: `rests` by scope (`endpoint:<name>`, `model:<alias>`), over or not."""

    version: int
    keyring: KeyRing
    models: Mapping[str, Model]
    collections: Mapping[str, Collection]
    rests: Mapping[str, Resting]
    budgets: Budgets = budgets.NONE

    def rest_of(self, model: Model, now: datetime, kinds: Container[str] = (LIMIT, KEY, OVERLOAD)) -> Resting | None:
        """The rest that keeps a model from being called now, the longer one where its endpoint rests too."""
        scopes = (f"model:{model.alias}", f"endpoint:{model.endpoint.name}")
        found = [r for scope in scopes if (r := self.rests.get(scope)) and r.until > now and r.kind in kinds]
        return max(found, key=lambda r: r.until) if found else None


def current_version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version FROM access_rosterversion WHERE id = 1")
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def load_snapshot() -> Snapshot:
    """Reads everything. The version is read first: what moves meanwhile is then seen as moved at the next look."""
    version = current_version()
    return Snapshot(
        version=version,
        keyring=load_ring(),
        models=applied(load_models(), in_force(datetime.now(UTC))),
        collections=load_collections(),
        rests=load_rests(),
        budgets=budgets.load(),
    )


class Glance:
    """The roster's version read on the event loop, where the database is a file on this machine: it is in memory, and readers of a WAL never wait.

    That is some 15 µs; a hop to a thread and back costs several times as much, more so under load.
    """

    def __init__(self) -> None:
        self.reader: sqlite3.Connection | None = None
        self.is_file = connection.vendor == "sqlite" and settings.DATABASES["default"].get("NAME") != ":memory:"

    def version(self) -> int | None:
        """None where it cannot be told at once; then a thread looks, and takes its time."""
        if not self.is_file:
            return None
        try:
            if self.reader is None:
                path = quote(str(settings.DATABASES["default"]["NAME"]))
                self.reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0, isolation_level=None, cached_statements=4)
            row = self.reader.execute("SELECT version FROM access_rosterversion WHERE id = 1").fetchone()
        except sqlite3.Error:
            if self.reader is not None:
                self.reader.close()
            self.reader = None
            return None
        return int(row[0]) if row else 0


class Snapshots:
    """Gives each request a fresh snapshot; one a process."""

    def __init__(self, executor: ThreadPoolExecutor, load: Callable[[], Snapshot] = load_snapshot, look: Callable[[], int] = current_version) -> None:
        self.executor, self.load, self.look = executor, load, look
        self.glance = Glance()
        self.last: Snapshot | None = None
        self.looked_at = 0.0
        self.running: asyncio.Future[Snapshot] | None = None
        self.next: asyncio.Future[Snapshot] | None = None
        self.away = False

    async def fresh(self) -> Snapshot:
        """Errors: CallerError 503 `database_unavailable` once the last snapshot is too old to go by."""
        if self.last is not None and self.glance.version() == self.last.version:
            self.looked_at = time.monotonic()
            return self.last
        if self.away and self.running and self.last and time.monotonic() - self.looked_at < settings.SNAPSHOT_GRACE_S:
            return self.last  # a look is under way; while the database is away nobody waits for it
        waiting = self.next
        if waiting is None:
            waiting = self.next = asyncio.get_running_loop().create_future()
            if self.running is None:
                self.begin()
        return await asyncio.shield(waiting)

    def begin(self) -> None:
        """Turns the waiting look into the running one."""
        self.running, self.next = self.next, None
        assert self.running is not None
        task = asyncio.get_running_loop().run_in_executor(self.executor, self.refresh)
        task.add_done_callback(self.finished)

    def refresh(self) -> Snapshot:
        try:
            if self.last is not None and self.look() == self.last.version:
                return self.last
            return self.load()
        except DatabaseError:
            connection.close()
            raise

    def finished(self, task: asyncio.Future[Snapshot]) -> None:
        waiting, self.running = self.running, None
        error = task.exception() if not task.cancelled() else asyncio.CancelledError()
        if error is None:
            self.last, self.looked_at, self.away = task.result(), time.monotonic(), False
            if waiting and not waiting.done():
                waiting.set_result(self.last)
        else:
            self.away = True
            if waiting and not waiting.done():
                if self.last is not None and time.monotonic() - self.looked_at < settings.SNAPSHOT_GRACE_S:
                    waiting.set_result(self.last)
                else:
                    waiting.set_exception(CallerError("database_unavailable", "The database cannot be reached.", status=503, retry_after_s=5))
                    waiting.exception()  # somebody may have left: an error that nobody fetched is no news
        if self.next is not None:
            self.begin()
