"""What one worker process holds for all its requests: connections, the snapshot, the writer, and the seats that outlive their panels."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError

from catalog.upstream import Upstream
from health import ledger
from health.outbox import Outbox
from health.writer import Writer
from panels.snapshot import Snapshots

log = logging.getLogger("bench.gateway")

READ_THREADS = 2


class Gateway:
    """Made in the worker when it starts, never at import: what it holds does not survive a fork."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="reader")
        self.upstream = Upstream()
        self.writer = Writer(Outbox(settings.OUTBOX_FOLDER, f"worker-{os.getpid()}"))
        self.snapshots = Snapshots(self.executor)
        self.late: set[asyncio.Task[Any]] = set()
        self.seated: dict[str, datetime] = {}
        self.calls = 0
        self.stopping = False

    async def open(self) -> None:
        await self.upstream.open()

    async def close(self) -> None:
        """Waits for late seats (the server has waited for its open calls), then writes down what it knows."""
        self.stopping = True
        until = time.monotonic() + settings.GRACEFUL_TIMEOUT_S
        while self.late and (rest := until - time.monotonic()) > 0:
            await asyncio.wait(self.late, timeout=rest)
        for task in self.late:
            task.cancel()
        if self.late:
            await asyncio.wait(self.late, timeout=5)
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
