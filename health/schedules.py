"""Schedules: named work that is due by the clock, each moment once, however many workers and hosts look.

    tick ─▶ the schedule's row moves on to its next moment, which one process alone can do
         └▶ a run (unique by its moment) and the errand that does it

A moment that nobody looked at in time is made up for once, the newest one only and within a week; older ones are on record as skipped. The next moment
is always counted from now. What a run does is a function that plans (it queues errands) or reads something, and gives a report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import transaction

from access import audit
from health import cron, errands
from health.estimates import Estimate
from health.models import Schedule, ScheduleRun
from health.schedule_runs import BY_CLOCK, Run, begin, run_view, skip


class UnknownSchedule(LookupError):
    code = "not_found"


class ScheduleError(ValueError):
    """A change that cannot be made. `field` names what is wrong."""

    code = "invalid_request"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Kind:
    """One schedule that there is.

    Shape: `function` gets the moment that was due and the time now, and gives a report. `cost` tells what one run is expected to spend;
    `hindered` why it cannot be switched on or run now, "" where nothing hinders it.
    """

    name: str
    function: Callable[[datetime, datetime], Mapping[str, Any]]
    cron: str
    enabled: bool
    tells: str
    cost: Callable[[], Estimate] | None = None
    hindered: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class Shown:
    """One schedule as it stands. Shape: `next_runs` are the next five moments, empty while it is off; `hindered` says why it cannot be switched on."""

    name: str
    tells: str
    enabled: bool
    cron: str
    default_cron: str
    words: str
    time_zone: str
    next_run_at: datetime | None
    next_runs: tuple[datetime, ...]
    last_run: Run | None
    hindered: str
    changed_at: datetime | None


NAME_LENGTH = 20  # of the column
registered: dict[str, Kind] = {}


def register(
    name: str,
    function: Callable[[datetime, datetime], Mapping[str, Any]],
    default_cron: str,
    enabled_by_default: bool,
    tells: str,
    cost: Callable[[], Estimate] | None = None,
    hindered: Callable[[], str] = str,
) -> None:
    """Adds a schedule, in an app's `ready`; the same name again replaces it. Errors: cron.CronError; ValueError for a long name."""
    if len(name) > NAME_LENGTH:
        raise ValueError(f"A schedule's name has {len(name)} characters, at most {NAME_LENGTH} are kept: {name[:60]!r}.")
    registered[name] = Kind(name, function, cron.check_cron(default_cron), enabled_by_default, tells, cost, hindered)


# ------------------------------------------------------------------ what there is


def row_of(kind: Kind) -> Schedule:
    """Gives the schedule's row, or, unsaved, what it would hold: nobody changed anything, so it is as it is registered."""
    return Schedule.objects.filter(pk=kind.name).first() or Schedule(name=kind.name, enabled=kind.enabled)


def cron_of(row: Schedule) -> str:
    return row.cron or registered[row.name].cron


def zone_of(row: Schedule) -> str:
    return row.time_zone or settings.BENCH_TIME_ZONE


def next_of(row: Schedule, now: datetime) -> datetime:
    return cron.next_run(cron_of(row), zone_of(row), now)


def known(name: str) -> Kind:
    """Errors: UnknownSchedule."""
    if name not in registered:
        raise UnknownSchedule(name)
    return registered[name]


def shown(name: str, now: datetime) -> Shown:
    """Errors: UnknownSchedule."""
    kind = known(name)
    row = row_of(kind)
    last = ScheduleRun.objects.filter(schedule=name).exclude(state="skipped").first()
    text, zone = cron_of(row), zone_of(row)
    return Shown(
        name=name,
        tells=kind.tells,
        enabled=row.enabled,
        cron=text,
        default_cron=kind.cron,
        words=cron.words(text),
        time_zone=zone,
        next_run_at=(row.next_run_at or next_of(row, now)) if row.enabled else None,
        next_runs=tuple(islice(cron.runs(text, zone, now), 5)) if row.enabled else (),
        last_run=run_view(last) if last else None,
        hindered=kind.hindered(),
        changed_at=None if row._state.adding else row.changed_at,
    )


def every(now: datetime) -> list[Shown]:
    return [shown(name, now) for name in sorted(registered)]


def cost_of(name: str) -> Estimate | None:
    """What one run is expected to spend; None where it calls no model. Errors: UnknownSchedule."""
    reckon = known(name).cost
    return reckon() if reckon else None


def runs_of(name: str, most: int = 20) -> list[Run]:
    """The newest runs of one schedule, skipped ones too. Errors: UnknownSchedule."""
    known(name)
    return [run_view(row) for row in ScheduleRun.objects.filter(schedule=name)[:most]]


# ------------------------------------------------------------------ what people change


def change(name: str, given: Mapping[str, Any], actor: str, now: datetime) -> Shown:
    """Changes what is given of enabled, cron (None or "": the default) and time_zone (None or "": the server's). The next run is counted from now.

    Errors: UnknownSchedule, ScheduleError.
    """
    kind = known(name)
    wanted = {field: checked(kind, field, value) for field, value in given.items()}
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(pk=name).first() or Schedule(name=name, enabled=kind.enabled)
        before = {field: getattr(row, field) for field in wanted}
        changes = audit.diff(before, wanted)
        if wanted.get("enabled") and not row.enabled and (why := kind.hindered()):
            raise ScheduleError("enabled", f"cannot be true: {why}")
        if changes or row._state.adding:
            for field, value in wanted.items():
                setattr(row, field, value)
            row.next_run_at = next_of(row, now) if row.enabled else None
            row.save()
            if not row.enabled:
                skip(ScheduleRun.objects.filter(schedule=name, by=BY_CLOCK, state="waiting"), "It was switched off before it began.")
        if changes:
            audit.record(actor, "schedule.change", name, changes)
    return shown(name, now)


def checked(kind: Kind, field: str, value: Any) -> Any:
    """Errors: ScheduleError."""
    try:
        if field == "enabled":
            if not isinstance(value, bool):
                raise cron.CronError("must be true or false.")
            return value
        if value is None or value == "":
            return ""
        return cron.check_cron(value) if field == "cron" else cron.check_zone(value)
    except cron.CronError as error:
        raise ScheduleError(field, str(error)) from None


def run_now(name: str, actor: str, now: datetime) -> Run:
    """Queues a run besides those of the clock; one that waits already is that run. Errors: UnknownSchedule, ScheduleError."""
    kind = known(name)
    if why := kind.hindered():
        raise ScheduleError("name", f"{name} cannot be run: {why}")
    with transaction.atomic():
        waiting = ScheduleRun.objects.filter(schedule=name, state="waiting").first()
        row = waiting or begin(name, now, by=actor)
        audit.record(actor, "schedule.run", name, {"run": [None, row.pk]})
    errands.ring()
    return run_view(row)
