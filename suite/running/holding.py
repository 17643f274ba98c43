"""Whose a run is, and what of it is left: what the engine asks the database, in a thread.

A run is claimed with a lease. Who dies renews nothing, and what it had written is committed before another goes on.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from access.caller import Caller
from health import sweep
from suite import backends, teamsettings
from suite.grading.contract import Options
from suite.models import Run, Sample
from suite.running import needs, recording
from suite.running.limits import Limits
from suite.running.limits import read as read_limits
from suite.running.needs import Needs
from suite.running.rescoring import options_of
from suite.running.subjects import Subject

LEASE_S, ELSEWHERE_S = 60.0, 90.0
ROWS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """A run as it is worked on, read once. Frozen, so that nothing changes under it."""

    id: str
    subset: str
    kind: str
    grader: Mapping[str, Any]
    options: Options
    subject: Subject
    limits: Limits
    trials: int
    positions: tuple[int, ...] | None
    total: int
    caller: Caller
    phases: tuple[Mapping[str, Any], ...]
    started_at: datetime
    spent_pusd: int
    seed: int
    language: str
    code: str
    timeout_s: float
    needs: Needs
    caps: Mapping[str, int]
    most_at_once: int


def claimable() -> Any:
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lte=now)
    return Run.objects.filter(free, status__in=[Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.HALTING])


def claim(name: str) -> str | None:
    """Takes the next run that nobody holds. One whose worker died counts as interrupted; too often without a result, it fails.

    What a dead process had written is committed first, or its finished samples would be asked again. That is this host's outboxes; where another host's
    process died, its own queue gets some time for it.
    """
    host = socket.gethostname()
    for run_id, status, interruptions, worker, until in (
        claimable().order_by("priority", "created_at").values_list("id", "status", "interruptions", "worker", "leased_until")[:20]
    ):
        now = timezone.now()
        was_interrupted = bool(worker)
        if was_interrupted and worker.partition(":")[0] != host and until is not None and now < until + timedelta(seconds=ELSEWHERE_S):
            continue
        mine = claimable().filter(pk=run_id, status=status, interruptions=interruptions)
        count = interruptions + was_interrupted
        if not mine.update(worker=name, leased_until=now + timedelta(seconds=LEASE_S), interruptions=count):
            continue
        if was_interrupted:
            sweep.drain()
        return str(run_id)
    return None


def load(run_id: str) -> tuple[Plan, int]:
    row = Run.objects.select_related("impl", "subset").get(pk=run_id)
    grader = dict(row.impl.grader or {})
    options = options_of(grader)
    caller = Caller(kind="user", judge=row.owner, scopes=frozenset({"ask"}), key_name=f"run:{row.pk}"[:200], team=row.team, pat="test" if row.is_dry else "")
    positions = row.selection.get("positions")
    plan = Plan(
        id=row.pk,
        subset=row.subset_id,
        kind=str(grader.get("kind", "")),
        grader=grader,
        options=options,
        subject=Subject.kept(row.sut),
        limits=read_limits(row.limits),
        trials=row.trials,
        positions=tuple(positions) if positions is not None else None,
        total=row.total,
        caller=caller,
        phases=tuple(row.phases),
        started_at=row.started_at or timezone.now(),
        spent_pusd=row.cost_pusd,
        seed=row.seed,
        language=row.impl.language,
        code=row.impl.code,
        timeout_s=float(grader.get("run_timeout", row.subset.recipe.get("run_timeout", 300))),
        needs=needs.of(row.impl, row.subset_id, row.version),
        caps=backends.caps_of(row.backend),
        most_at_once=int(teamsettings.value(row.team, "default_concurrency")),
    )
    return plan, row.interruptions


def begin(run_id: str) -> None:
    """Marks a run as running, once."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE suite_run SET status = 'running', started_at = %s, phases = %s WHERE id = %s AND status = 'queued'",
            [recording.when(now.isoformat()), recording.as_json(phases_at("Materialize", now)), run_id],
        )
        if cursor.rowcount:
            recording.tell(cursor, run_id, [("PhaseStarted", {"phase": "Materialize"})])


def phases_at(current: str, now: datetime) -> list[dict[str, Any]]:
    """The phases of a pinned run or replay: what a language model would author is there already."""
    names = ("Find", "Analyze", "Atomize", "Materialize", "Report")
    found = []
    for name in names:
        status = "running" if name == current else "pending" if name == "Report" else "skipped"
        found.append(
            {"name": name, "status": status, "started_at": now.isoformat() if name == current else None, "finished_at": None, "cost": None, "model": None}
        )
    return found


def left(plan: Plan) -> Iterator[tuple[int, int]]:
    """Gives every trial that has no sample yet, by position. Numbers only, so that it is small for very many."""
    ended = set(Sample.objects.filter(run_id=plan.id, superseded=0).values_list("position", "trial").iterator(chunk_size=20_000))
    for position in plan.positions if plan.positions is not None else range(plan.total):
        for trial in range(1, plan.trials + 1):
            if (position, trial) not in ended:
                yield position, trial


def left_count(plan: Plan) -> int:
    return plan.total * plan.trials - Sample.objects.filter(run_id=plan.id, superseded=0).count()


def chunks(found: Iterator[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    chunk: list[tuple[int, int]] = []
    for one in found:
        chunk.append(one)
        if len(chunk) == ROWS_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def look_at(run_id: str, name: str, renews: bool) -> Mapping[str, Any] | None:
    """Reads what people want of a run, and renews its lease. None where it is not this worker's any more."""
    mine = Run.objects.filter(pk=run_id, worker=name)
    if renews:
        mine.update(leased_until=timezone.now() + timedelta(seconds=LEASE_S))
    return mine.values("status", "halt_reason", "halt_note").first()


def let_go(run_id: str, name: str) -> None:
    """Gives the lease back: what is left is for whoever rings next, and was no interruption."""
    Run.objects.filter(pk=run_id, worker=name).update(worker="", leased_until=None)
