"""Jobs: what is due now and then, each slot once, however many hosts ring. The queue only rings; rows say what is to be done and who does it.

A slot is a row; who claims it holds a lease and renews it while the job runs. Who is killed renews nothing, and the slot is run again.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from access.ids import new_id
from health.models import Heartbeat, JobRun

log = logging.getLogger(__name__)
LEASE_S = 120.0
NAME_LENGTH = 40  # of the column
KEEP = timedelta(days=2)
FORGET = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Job:
    """Shape: `function` gets the time of the ring. Units: `period_s` seconds; slots begin at whole periods since 1970."""

    name: str
    period_s: int
    function: Callable[[datetime], object]

    def slot(self, now: datetime) -> datetime:
        return datetime.fromtimestamp(now.timestamp() // self.period_s * self.period_s, UTC)


registered: dict[str, Job] = {}


def register(name: str, period_s: int, function: Callable[[datetime], object]) -> None:
    """Adds a job. A name keeps its first period for its rows, so a job that changes its period changes its name. Errors: ValueError for a long name."""
    if len(name) > NAME_LENGTH:
        raise ValueError(f"A job's name has {len(name)} characters, at most {NAME_LENGTH} are kept: {name[:60]!r}.")
    registered[name] = Job(name, period_s, function)


def ring(now: datetime | None = None) -> list[str]:
    """Does what is due and nobody else does; returns the names of the jobs that were run."""
    now = now or timezone.now()
    beat(now)
    due = [JobRun(job=job.name, slot=job.slot(now)) for job in registered.values()]
    JobRun.objects.bulk_create(due, ignore_conflicts=True)
    done: list[str] = []
    open_runs = JobRun.objects.filter(job__in=registered, finished_at=None).exclude(leased_until__gt=timezone.now())
    for run_id, name in open_runs.order_by("slot", "job").values_list("id", "job"):
        claim = f"{socket.gethostname()}:{os.getpid()}:{new_id('claim')}"[:120]
        if claimed(run_id, name, claim):
            run(registered[name], run_id, claim, now)
            done.append(name)
            beat(timezone.now())
    forget(now)
    return done


def claimed(run_id: int, name: str, claim: str) -> bool:
    """Takes a slot unless someone has it, or still works on another slot of the same job."""
    now = timezone.now()
    elsewhere = JobRun.objects.filter(job=OuterRef("job"), finished_at=None, leased_until__gt=now)
    free = JobRun.objects.filter(Q(leased_until=None) | Q(leased_until__lte=now), ~Exists(elsewhere), pk=run_id, finished_at=None)
    return bool(free.update(leased_until=now + timedelta(seconds=LEASE_S), worker=claim))


def run(job: Job, run_id: int, claim: str, now: datetime) -> None:
    """Runs one slot under its lease and stamps how it ended. What kills the process stamps nothing."""
    over = threading.Event()
    renewal = threading.Thread(target=renew, args=(run_id, claim, over), name=f"lease-{job.name}", daemon=True)
    renewal.start()
    error = ""
    try:
        job.function(now)
    except Exception as failure:
        log.exception("The job %s failed; its next turn is in at most %d s.", job.name, job.period_s)
        error = f"{type(failure).__name__}: {failure}"[:500]
    finally:
        over.set()
        renewal.join()
    JobRun.objects.filter(pk=run_id, worker=claim).update(finished_at=timezone.now(), leased_until=None, error=error)


def renew(run_id: int, claim: str, over: threading.Event) -> None:
    """Renews a lease until its job is over."""
    try:
        while not over.wait(LEASE_S / 3):
            try:
                JobRun.objects.filter(pk=run_id, worker=claim, finished_at=None).update(leased_until=timezone.now() + timedelta(seconds=LEASE_S))
            except Exception:
                log.warning("The lease of job run %s could not be renewed; it is tried again.", run_id)
                connection.close()
    finally:
        connection.close()


def beat(now: datetime) -> None:
    """Says that this queue works. A cluster's workers share their parent's name."""
    Heartbeat.objects.update_or_create(name=f"{socket.gethostname()}:{os.getppid()}"[:120], defaults={"at": now})


def forget(now: datetime) -> None:
    """Deletes what was done long ago: never a job's present slot, which would be run again."""
    for job in registered.values():
        JobRun.objects.filter(job=job.name, slot__lt=job.slot(now) - max(KEEP, timedelta(seconds=job.period_s))).delete()
    JobRun.objects.filter(slot__lt=now - FORGET).exclude(job__in=registered).delete()
    Heartbeat.objects.filter(at__lt=now - KEEP).delete()
