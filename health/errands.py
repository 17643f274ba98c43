"""Background work with models: rows that are queued once, done once, one at a time a connection, by whichever process has the connection's lane.

    queue ─▶ waiting ─▶ running ─▶ done | failed | cancelled
                ▲           │ Later, or its process died (an interruption, not a failure)
                └───────────┘

django-q2 only rings (`work`). A lane is a lease on one connection; who holds it works through its errands, lower priority numbers first, and renews
it meanwhile. Who is killed renews nothing: the next holder finds the errand running without a holder and begins it again. What an errand must not do
twice, such as a paid call, it keeps in rows of its own.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import F, Min
from django.utils import timezone

from access.ids import new_id
from health.models import Errand, Lane

log = logging.getLogger(__name__)

LEASE_S = 60.0
# A ring's worth of work. With the longest single call it must stay under the queue's timeout.
SLICE_S = 60.0
LANES_AT_ONCE = 8
# Whatever kills its process each time is not tried for ever.
MOST_INTERRUPTIONS = 20


class Later(Exception):
    """Raised by an errand that cannot be done now: it waits on, and nothing of it counts as a failure."""

    def __init__(self, until: datetime, why: str = "") -> None:
        super().__init__(why)
        self.until, self.why = until, why


class Failed(Exception):
    """Raised by an errand that is over and came to nothing. The message says why."""


@dataclass(frozen=True, slots=True)
class Task:
    """One errand in the hands of whoever does it. `stop` is set once it should come to an end soon; raise Later then, or finish."""

    id: int
    kind: str
    subject: str
    endpoint: str
    batch: str
    details: Mapping[str, Any]
    failures: int
    interruptions: int
    stop: threading.Event

    def is_cancelled(self) -> bool:
        return Errand.objects.filter(pk=self.id, state=Errand.State.CANCELLED).exists()


@dataclass(frozen=True, slots=True)
class New:
    """One errand to be queued. Shape: `once` names it for good: the same word is queued once."""

    once: str
    kind: str
    subject: str
    endpoint: str
    batch: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 50
    due_at: datetime | None = None


Do = Callable[[Task], Mapping[str, Any] | None]
registered: dict[str, Do] = {}
# What is done before the lanes at each ring, such as schedules that are due. Each gets the monotonic time by which it should be over.
first: list[Callable[[float], object]] = []


def register(kind: str, function: Do) -> None:
    """Says what does a kind of errand, in an app's `ready`. The function gives what came of it, plain JSON. Errors it may raise: Later, Failed."""
    registered[kind] = function


def queue(errands: Iterable[New]) -> int:
    """Queues what is not queued yet; gives how many were new."""
    now = timezone.now()
    rows = [
        Errand(
            once=e.once[:300],
            kind=e.kind,
            subject=e.subject,
            endpoint=e.endpoint,
            batch=e.batch,
            details=dict(e.details),
            priority=e.priority,
            due_at=e.due_at or now,
            queued_at=now,
        )
        for e in errands
    ]
    known = set(Errand.objects.filter(once__in=[r.once for r in rows]).values_list("once", flat=True))
    Errand.objects.bulk_create(rows, ignore_conflicts=True)
    return len({r.once for r in rows} - known)


def cancel(**of: Any) -> int:
    """Cancels what waits or runs, by fields of the errand (batch, once, kind …). What runs sees it at its next step."""
    open_ones = Errand.objects.filter(**of, state__in=[Errand.State.WAITING, Errand.State.RUNNING])
    return open_ones.update(state=Errand.State.CANCELLED, finished_at=timezone.now())


# ------------------------------------------------------------------ working


def work(slice_s: float = SLICE_S) -> int:
    """Works through what is due for a while; gives how many errands ended.

    At most one call of this runs in a data folder, so that a worker of its queue is left for what must not wait.
    """
    with (Path(settings.HOME) / "errands.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        until = time.monotonic() + slice_s
        for function in first:
            function(until)
        return work_lanes(until)


def work_lanes(until: float) -> int:
    now = timezone.now()
    due = Errand.objects.filter(state__in=[Errand.State.WAITING, Errand.State.RUNNING], due_at__lte=now, kind__in=registered)
    lanes = list(due.values("endpoint").annotate(first=Min("due_at")).order_by("first").values_list("endpoint", flat=True))
    if not lanes:
        return 0
    stop = threading.Event()
    timer = threading.Timer(max(until - time.monotonic(), 0.0), stop.set)
    timer.daemon = True
    timer.start()
    try:
        with ThreadPoolExecutor(min(LANES_AT_ONCE, len(lanes)), thread_name_prefix="lane") as pool:
            return sum(pool.map(lambda endpoint: work_lane(endpoint, stop), lanes))
    finally:
        timer.cancel()


def work_lane(endpoint: str, stop: threading.Event) -> int:
    """Works through one connection's errands while it holds the lane."""
    claim = f"{socket.gethostname()}:{os.getpid()}:{new_id('lane')}"[:120]
    count = 0
    over = threading.Event()
    try:
        if stop.is_set() or not take(endpoint, claim):
            return 0
        renewal = threading.Thread(target=renew, args=(endpoint, claim, over, stop), name=f"lane-{endpoint}"[:60], daemon=True)
        renewal.start()
        try:
            orphans(endpoint)
            while not stop.is_set() and (row := next_of(endpoint, claim)):
                count += do(row, claim, stop)
        finally:
            over.set()
            renewal.join()
            Lane.objects.filter(endpoint=endpoint, worker=claim).update(leased_until=timezone.now())
    finally:
        connection.close()
    return count


def take(endpoint: str, claim: str) -> bool:
    now = timezone.now()
    until = now + timedelta(seconds=LEASE_S)
    Lane.objects.bulk_create([Lane(endpoint=endpoint, leased_until=now - timedelta(seconds=1))], ignore_conflicts=True)
    return bool(Lane.objects.filter(endpoint=endpoint, leased_until__lte=now).update(leased_until=until, worker=claim))


def renew(endpoint: str, claim: str, over: threading.Event, stop: threading.Event) -> None:
    """Renews the lane until its work is over. A lane that somebody else has by now is given up."""
    try:
        while not over.wait(LEASE_S / 4 + random.random()):
            try:
                mine = Lane.objects.filter(endpoint=endpoint, worker=claim)
                if not mine.update(leased_until=timezone.now() + timedelta(seconds=LEASE_S)):
                    stop.set()
            except Exception:
                log.warning("The lane of endpoint %s could not be renewed; it is tried again.", endpoint)
                connection.close()
    finally:
        connection.close()


def orphans(endpoint: str) -> None:
    """What runs in a lane that has just been taken runs no more: its process died."""
    running = Errand.objects.filter(endpoint=endpoint, state=Errand.State.RUNNING)
    running.filter(interruptions__gte=MOST_INTERRUPTIONS).update(
        state=Errand.State.FAILED, finished_at=timezone.now(), error=f"Its process ended {MOST_INTERRUPTIONS} times while it ran."
    )
    running.update(state=Errand.State.WAITING, interruptions=F("interruptions") + 1)


def next_of(endpoint: str, claim: str) -> Errand | None:
    """Takes the errand that is next; None where none is due."""
    waiting = Errand.objects.filter(endpoint=endpoint, state=Errand.State.WAITING, due_at__lte=timezone.now(), kind__in=registered)
    for row in waiting.order_by("priority", "due_at", "id")[:10]:
        started = Errand.objects.filter(pk=row.pk, state=Errand.State.WAITING)
        if started.update(state=Errand.State.RUNNING, worker=claim, started_at=row.started_at or timezone.now()):
            return row
    return None


def do(row: Errand, claim: str, stop: threading.Event) -> int:
    """Does one errand and stamps how it ended; gives 1 where it did."""
    task = Task(row.pk, row.kind, row.subject, row.endpoint, row.batch, row.details, row.failures, row.interruptions, stop)
    mine = Errand.objects.filter(pk=row.pk, state=Errand.State.RUNNING, worker=claim)
    try:
        outcome = registered[row.kind](task)
    except Later as later:
        mine.update(state=Errand.State.WAITING, due_at=later.until, error=later.why[:500])
        return 0
    except Failed as failure:
        return mine.update(state=Errand.State.FAILED, finished_at=timezone.now(), failures=F("failures") + 1, error=str(failure)[:500])
    except Exception as failure:
        log.exception("The errand %s failed.", row.once)
        return mine.update(
            state=Errand.State.FAILED, finished_at=timezone.now(), failures=F("failures") + 1, error=f"{type(failure).__name__}: {failure}"[:500]
        )
    return mine.update(state=Errand.State.DONE, finished_at=timezone.now(), outcome=dict(outcome or {}), error="")
