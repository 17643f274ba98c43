"""Background work with models: rows that are queued once, done once, one at a time a connection, by whichever process has the connection's lane.

    queue ─▶ waiting ─▶ running ─▶ done | failed | cancelled
                ▲           │ Later, or its process died (an interruption, not a failure)
                └───────────┘

django-q2 only rings (`work`). A lane is a lease on one connection; who holds it works through its errands, lower priority numbers first, and renews
it meanwhile. Who is killed renews nothing: the next holder finds the errand running without a holder and begins it again. What an errand must not do
twice, such as a paid call, it keeps in rows of its own. Errands of a kind that nobody registered wait, for a process that knows it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, Min
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.tasks import async_task

from access.ids import new_id
from health.alerts import short
from health.database import DatabaseAway
from health.lines import clean
from health.models import Errand, Lane

log = logging.getLogger(__name__)

LEASE_S = 60.0
# A ring's worth of work. With the longest single call it must stay under the queue's timeout.
SLICE_S = 60.0
LANES_AT_ONCE = 8
LOOK_S = 1.0
# How long a server that is being stopped waits for calls under way, unless open streams have less; what is cut then is done again.
CLOSE_S = min(20.0, float(settings.GRACEFUL_TIMEOUT_S))
MOST_RINGS = 4
NEVER = threading.Event()
# What says that the database cannot be had just now.
AWAY = (DatabaseAway, OperationalError, InterfaceError)
KEEP = timedelta(days=90)
KIND_LENGTH, ONCE_LENGTH, SAID_LENGTH = 20, 300, 500
# As long as the columns are: SQLite would take more, PostgreSQL refuses it.
LENGTHS = {"kind": KIND_LENGTH, "subject": 300, "endpoint": 200, "batch": 80}
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
    # Whether it was another data folder's before, perhaps another host's: what that one wrote last may still be in its own outbox.
    was_elsewhere: bool = False

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


class Flag(Protocol):
    def is_set(self) -> bool: ...


# Set once the queue is to end. `manage.py queue` puts one here that its workers share with it.
closing: Flag = threading.Event()


@dataclass(frozen=True, slots=True)
class Kind:
    """What does a kind of errand. Shape: `gave_up` is told of one that is not tried again, because its process died under it too often."""

    function: Callable[[Task], Mapping[str, Any] | None]
    gave_up: Callable[[Task, str], object] | None = None


registered: dict[str, Kind] = {}
doing = threading.local()


def register(kind: str, function: Callable[[Task], Mapping[str, Any] | None], gave_up: Callable[[Task, str], object] | None = None) -> None:
    """Says what does a kind of errand, in an app's `ready`. The function gives what came of it, plain JSON. Errors it may raise: Later, Failed.

    Errors: ValueError for a kind that is too long for its column.
    """
    check_length("kind", kind)
    registered[kind] = Kind(function, gave_up)


def check_length(name: str, value: str) -> None:
    """Refuses what does not fit on either database, so that no kind works on the one and is lost on the other."""
    if len(value) > LENGTHS[name]:
        raise ValueError(f"An errand's {name} has {len(value)} characters, at most {LENGTHS[name]} are kept: {value[:60]!r}.")


def once_of(once: str) -> str:
    """The word under which an errand is kept: itself, or with a digest where it is too long."""
    return short(once, ONCE_LENGTH)


def queue(errands: Iterable[New]) -> int:
    """Queues what is not queued yet; gives how many were new. Errors: ValueError where a name is too long for its column; then nothing is queued."""
    now = timezone.now()
    errands = list(errands)
    for e in errands:
        for name in LENGTHS:
            check_length(name, getattr(e, name))
    rows = [
        Errand(
            once=once_of(e.once),
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


def ring() -> None:
    """Has the queue look at once, where somebody waits for what was queued. Without a broker the next ring of the clock does."""
    try:
        broker = get_broker()
        if (broker.queue_size() or 0) < MOST_RINGS:
            async_task("health.errands.work", broker=broker, save=False)
    except Exception as error:  # whatever the broker's library raises
        log.info("The queue could not be rung at once (%s); it looks within half a minute anyway.", type(error).__name__)


def work(slice_s: float = SLICE_S) -> int:
    """Works through what is due for a while, in several lanes at once; gives how many errands ended.

    At most one call of this runs in a data folder, so that a worker of its queue is left for what must not wait.
    """
    until, count, broken = time.monotonic() + slice_s, 0, set[str]()
    while (done := work_alone(until, broken)) is not None:
        count += done
        # Who rang while this one was on its way out found the lock held and went. What they rang for must not wait for the clock's next ring.
        if closing.is_set() or time.monotonic() >= until or not due_lanes(broken, 1):
            break
    return count


def work_alone(until: float, broken: set[str]) -> int | None:
    """Works while it holds the data folder's lock; gives how many errands ended, None where somebody else holds it."""
    with (Path(settings.HOME) / settings.ERRANDS_LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        lock.seek(0)
        if not (folder := lock.read(40)):
            folder = new_id("fol")
            lock.write(folder)
            lock.flush()
        # Whoever holds a lane under this folder's name had the lock that is held here: it died.
        Lane.objects.filter(worker__startswith=f"{folder}:").update(leased_until=timezone.now(), worker="")
        return work_lanes(folder, until, broken)


def work_lanes(folder: str, until: float, broken: set[str]) -> int:
    """Gives each lane with something due a thread, also those that come up meanwhile, until nothing is due or the time is over.

    Shape: `broken` gets the lanes whose work broke off, which are left alone from then on.
    """
    count = 0
    busy: dict[Future[int], tuple[str, threading.Event]] = {}
    closing_until = None
    pool = ThreadPoolExecutor(LANES_AT_ONCE, thread_name_prefix="lane")
    try:
        while True:
            now = time.monotonic()
            if closing.is_set() and closing_until is None:
                closing_until = now + CLOSE_S
            if now >= until or closing_until is not None:
                for _, stop in busy.values():
                    stop.set()
            else:
                held = {endpoint for endpoint, _ in busy.values()}
                for endpoint in due_lanes(held | broken, LANES_AT_ONCE - len(busy)):
                    stop = threading.Event()
                    busy[pool.submit(work_lane, endpoint, folder, stop)] = (endpoint, stop)
            if not busy:
                return count
            if closing_until is not None and now >= closing_until:
                raise SystemExit(f"{len(busy)} errands did not come to an end within {CLOSE_S:.0f} s of a stop.")
            ended, _ = wait(busy, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            for future in ended:
                endpoint, _ = busy.pop(future)
                try:
                    count += future.result()
                except Exception:
                    log.exception("Work for %s broke off; the next ring takes it up again.", endpoint)
                    broken.add(endpoint)
    except SystemExit as reason:
        # The queue's own limit of time, or a stop. Threads cannot be ended; left alone they would go on beside whoever takes their lanes.
        log.warning("%s What it was doing is taken up again.", reason)
        os._exit(1)
    finally:
        for _, stop in busy.values():
            stop.set()
        pool.shutdown()


def due_lanes(but: Collection[str], most: int) -> list[str]:
    """Names the lanes that have something to do and nobody who does it, the longest due first."""
    if most <= 0:
        return []
    now = timezone.now()
    due = Errand.objects.filter(state__in=[Errand.State.WAITING, Errand.State.RUNNING], due_at__lte=now, kind__in=registered)
    held = Lane.objects.filter(leased_until__gt=now).values("endpoint")
    found = due.exclude(endpoint__in=but).exclude(endpoint__in=held).order_by()
    return list(found.values("endpoint").annotate(first=Min("due_at")).order_by("first").values_list("endpoint", flat=True)[:most])


def work_lane(endpoint: str, folder: str, stop: threading.Event) -> int:
    """Works through one connection's errands while it holds the lane."""
    claim = f"{folder}:{os.getpid()}:{new_id('lane')}"[:120]
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
                    log.warning("The lane of endpoint %s is somebody else's by now; it is given up.", endpoint)
                    stop.set()
                    return
            except Exception:
                log.warning("The lane of endpoint %s could not be renewed; it is tried again.", endpoint)
                connection.close()
    finally:
        connection.close()


def orphans(endpoint: str) -> None:
    """What runs in a lane that has just been taken runs no more: its process died."""
    running = Errand.objects.filter(endpoint=endpoint, state=Errand.State.RUNNING)
    for row in running.filter(interruptions__gte=MOST_INTERRUPTIONS, kind__in=registered):
        why = f"Its process ended {MOST_INTERRUPTIONS} times while it ran."
        if tell := registered[row.kind].gave_up:
            tell(task_of(row, NEVER), why)
        running.filter(pk=row.pk).update(state=Errand.State.FAILED, finished_at=timezone.now(), error=why)
    running.update(state=Errand.State.WAITING, interruptions=F("interruptions") + 1)


def said(text: str) -> str:
    """What an errand or a library said, as its column takes it."""
    return str(clean(text))[:SAID_LENGTH]


def is_over() -> bool:
    """Tells whether what is being done in this thread should come to an end soon: for work that is handed no task. It raises Later then."""
    stop: threading.Event | None = getattr(doing, "stop", None)
    return stop is not None and stop.is_set()


def task_of(row: Errand, stop: threading.Event, claim: str = "") -> Task:
    """Shape: `row` as it was before `claim` took it."""
    was_elsewhere = bool(row.worker and claim) and folder_of(row.worker) != folder_of(claim)
    return Task(row.pk, row.kind, row.subject, row.endpoint, row.batch, row.details, row.failures, row.interruptions, stop, was_elsewhere)


def folder_of(claim: str) -> str:
    return claim.partition(":")[0]


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
    mine = Errand.objects.filter(pk=row.pk, state=Errand.State.RUNNING, worker=claim)
    try:
        doing.stop = stop
        task = task_of(row, stop, claim)
        outcome = registered[row.kind].function(task)
    except Later as later:
        soonest = timezone.now() + timedelta(seconds=0 if stop.is_set() else 1)
        # Whose it was before stays known: whoever waits for that one's books must not forget that it does.
        worker = row.worker if task.was_elsewhere else claim
        mine.update(state=Errand.State.WAITING, worker=worker, due_at=max(later.until, soonest), error=said(later.why))
        return 0
    except AWAY:
        # No fault of the errand's: it stays as it is, and is taken up again as after a death of its process.
        raise
    except Failed as failure:
        return mine.update(state=Errand.State.FAILED, finished_at=timezone.now(), failures=F("failures") + 1, error=said(str(failure)))
    except Exception as failure:
        log.exception("The errand %s failed.", row.once)
        return mine.update(
            state=Errand.State.FAILED, finished_at=timezone.now(), failures=F("failures") + 1, error=said(f"{type(failure).__name__}: {failure}")
        )
    finally:
        doing.stop = None
    return mine.update(state=Errand.State.DONE, finished_at=timezone.now(), outcome=clean(outcome or {}), error="")


def forget(now: datetime) -> None:
    """Deletes what ended long ago, and lanes of connections that nobody uses any more."""
    ended = [Errand.State.DONE, Errand.State.FAILED, Errand.State.CANCELLED]
    Errand.objects.filter(state__in=ended, finished_at__lt=now - KEEP).delete()
    Lane.objects.filter(leased_until__lt=now - KEEP).delete()
