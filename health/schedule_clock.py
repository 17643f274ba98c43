"""The clock's side of schedules: what is due begins, what was missed is made up for once, what a run does is done and put on record."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from django.db import transaction
from django.utils import timezone

from health import alerts, cron, errands, schedules
from health.models import Schedule, ScheduleRun
from health.schedule_runs import BY_CLOCK, OPEN, begin, forget, skip, skipped

log = logging.getLogger(__name__)

MADE_UP_WITHIN = timedelta(days=7)
# Later than this a run counts as made up for: a ring comes every 20 s.
IN_TIME = timedelta(minutes=5)
# More skipped moments than this are only counted.
MOST_SKIPPED = 20


def tick(now: datetime) -> list[str]:
    """Begins what is due; gives the names. Each moment is begun once, whoever looks at the same time."""
    begun = []
    for kind in list(schedules.registered.values()):
        if Schedule.objects.filter(pk=kind.name).exists() or kind.enabled:
            Schedule.objects.get_or_create(pk=kind.name, defaults={"enabled": kind.enabled})
        row = Schedule.objects.filter(pk=kind.name, enabled=True).first()
        if row is not None and look(row, now):
            begun.append(kind.name)
    forget(now)
    return begun


def look(row: Schedule, now: datetime) -> bool:
    """Begins a schedule's run if it is due; tells whether it did."""
    text, zone = schedules.cron_of(row), schedules.zone_of(row)
    soonest, after = islice(cron.runs(text, zone, now), 2)
    due = row.next_run_at
    same = Schedule.objects.filter(pk=row.pk, enabled=True, cron=row.cron, time_zone=row.time_zone, next_run_at=due)
    if due is None or due > now:
        # One run ahead of us: a host whose clock is a little ahead has begun it. Anything else is of another clock, or of a default that changed.
        if due not in (soonest, after):
            same.update(next_run_at=soonest)
        return False
    missed = list(islice(between(text, zone, due, now), MOST_SKIPPED + 1)) or [due]
    with transaction.atomic():
        if not same.update(next_run_at=soonest):
            return False
        newest, *older = missed
        ScheduleRun.objects.bulk_create([skipped(row.name, slot, now, "It was missed; a later one was made up for.") for slot in older], ignore_conflicts=True)
        late = now - newest
        if late > MADE_UP_WITHIN:
            ScheduleRun.objects.bulk_create([skipped(row.name, newest, now, "It was missed for more than a week.")], ignore_conflicts=True)
            begun = False
        else:
            begun = not ScheduleRun.objects.filter(schedule=row.name, slot=newest).exists()
            if begun:
                replaced = skip(ScheduleRun.objects.filter(schedule=row.name, by=BY_CLOCK, state="waiting"), "It had not begun when the next one was due.")
                begin(row.name, newest, made_up=late > IN_TIME)
                if replaced:
                    log.warning("Schedule %s had not begun its last run when the next was due.", row.name)
    # Counted in its own moments: so many were missed, whatever the clock did meanwhile.
    if len(missed) > 2:
        count = f"{len(missed)} times" if len(missed) <= MOST_SKIPPED else f"more than {MOST_SKIPPED} times"
        alerts.raise_alert(
            "schedule", row.name, f"schedule:{row.name}:missed:{due:%Y-%m-%dT%H:%M}", f"Schedule {row.name} was missed {count}, from {due:%d %b %H:%M} UTC on."
        )
    return begun


def between(text: str, zone: str, since: datetime, now: datetime) -> Iterator[datetime]:
    """The moments from `since` to now, newest first."""
    for slot in cron.runs_back(text, zone, now):
        if slot < since:
            return
        yield slot


# ------------------------------------------------------------------ doing it


def do(task: errands.Task) -> Mapping[str, Any]:
    """Does one run: what its errand calls. Errors: errands.Failed, errands.Later."""
    row = ScheduleRun.objects.filter(pk=task.details["run"], state__in=OPEN).first()
    if row is None:
        return {}
    mine = ScheduleRun.objects.filter(pk=row.pk, state__in=OPEN)
    kind = schedules.registered.get(row.schedule)
    if kind is None or (row.by == BY_CLOCK and not schedules.row_of(kind).enabled):
        mine.update(state="skipped", finished_at=timezone.now(), error="It was switched off before it began.")
        return {}
    mine.update(state="running", started_at=row.started_at or timezone.now(), interruptions=task.interruptions)
    try:
        report = dict(kind.function(row.slot, timezone.now()))
    except errands.Later as later:
        mine.update(state="waiting", error=later.why[:500])
        raise
    except errands.AWAY:
        raise
    except Exception as failure:
        log.exception("Schedule %s failed.", row.schedule)
        said = f"{type(failure).__name__}: {failure}"[:500]
        mine.update(state="failed", finished_at=timezone.now(), failures=row.failures + 1, error=said)
        tell_failure(row.schedule, said)
        raise errands.Failed(said) from None
    mine.update(state="done", finished_at=timezone.now(), error="", report=report)
    return {"run": row.pk}


def gave_up(task: errands.Task, why: str) -> None:
    """What ends its process each time is not tried for ever."""
    if ScheduleRun.objects.filter(pk=task.details["run"], state__in=OPEN).update(
        state="failed", finished_at=timezone.now(), interruptions=task.interruptions, error=why[:500]
    ):
        tell_failure(task.subject, why)


def tell_failure(name: str, said: str) -> None:
    """Raises an alert where a schedule failed twice in a row; one a row of failures."""
    ended = ScheduleRun.objects.filter(schedule=name, state__in=["done", "failed"]).order_by("-finished_at", "-pk")
    failures = list(takewhile(lambda row: row.state == "failed", ended[:50]))
    if len(failures) > 1:
        alerts.raise_alert("schedule", name, f"schedule:{name}:failed:{failures[-1].pk}", f"Schedule {name} failed twice in a row. The last time: {said}")
