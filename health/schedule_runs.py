"""Runs of schedules as rows: what was due, what began, what was passed over. Each is done by an errand in a lane of its schedule's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from health import errands
from health.models import ScheduleRun

BY_CLOCK = "schedule"
ERRAND = "schedule"
KEEP = timedelta(days=180)
OPEN = ("waiting", "running")


@dataclass(frozen=True, slots=True)
class Run:
    """One run. Shape: `state` is waiting, running, done, failed or skipped."""

    id: int
    schedule: str
    slot: datetime
    by: str
    made_up: bool
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    failures: int
    interruptions: int
    error: str
    report: Mapping[str, Any]


def run_view(row: ScheduleRun) -> Run:
    return Run(
        row.pk,
        row.schedule,
        row.slot,
        row.by,
        row.made_up,
        row.state,
        row.started_at,
        row.finished_at,
        row.failures,
        row.interruptions,
        row.error,
        row.report,
    )


def skipped(name: str, slot: datetime, now: datetime, why: str) -> ScheduleRun:
    return ScheduleRun(schedule=name, slot=slot, state="skipped", finished_at=now, error=why)


def skip(rows: QuerySet[ScheduleRun], why: str) -> int:
    """Ends runs that have not begun, and their errands."""
    found = list(rows.values_list("pk", flat=True))
    errands.cancel(kind=ERRAND, once__in=[once(pk) for pk in found])
    return int(ScheduleRun.objects.filter(pk__in=found, state="waiting").update(state="skipped", finished_at=timezone.now(), error=why))


def once(run_id: int) -> str:
    return f"{ERRAND}:{run_id}"


def begin(name: str, slot: datetime, by: str = BY_CLOCK, made_up: bool = False) -> ScheduleRun:
    """Writes down a run and queues what does it, in the caller's transaction."""
    row = ScheduleRun.objects.create(schedule=name, slot=slot, by=by[:200], made_up=made_up)
    # A lane of its own, under a name that no endpoint can have.
    errands.queue([errands.New(once=once(row.pk), kind=ERRAND, subject=name, endpoint=f" schedule {name}", details={"run": row.pk})])
    return row


def forget(now: datetime) -> None:
    """Deletes what was run long ago."""
    ScheduleRun.objects.filter(slot__lt=now - KEEP).exclude(state__in=OPEN).delete()
