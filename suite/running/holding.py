"""Whose a run is, and what of it is left: what the engine asks the database, in a thread.

A run is claimed with a lease. Who dies renews nothing, and what it had written is committed before another goes on.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from access.caller import Caller
from health import ledger, sweep
from suite import backends, teamsettings
from suite.api.problems import Problem
from suite.grading.contract import Options, options_of
from suite.grading.outcomes import Outcome
from suite.models import Event, Run, Sample
from suite.running import codehosts, launching, needs, recording, selection
from suite.running.limits import Limits
from suite.running.limits import read as read_limits
from suite.running.needs import Needs
from suite.running.subjects import Subject

LEASE_S, ELSEWHERE_S = 60.0, 90.0
ROWS_AT_ONCE = 200
# Of one subject a process has so many runs in hand: those of the others would wait behind a slow one's.
OF_A_SUBJECT = 4
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this process took. Shape: `subject` is whom it asks."""

    run: str
    subject: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A run as it is worked on, read once. Frozen, so that nothing changes under it.

    Shape: `changed` says what is not any more as it was launched, "" where all is; `halting` why somebody wanted it to stop before this process had it;
    `warned` the ceilings of which a warning was told.
    """

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
    interruptions: int
    changed: str
    halting: str
    halt_note: str
    warned: tuple[str, ...]


def here(lane: str = codehosts.ALL) -> str:
    """Names this data folder on this host: whoever holds its lock knows that every other of this name is dead. Whoever only runs code has a lock of its own."""
    own = "-code" if lane == codehosts.CODE else ""
    return f"{socket.gethostname()}:{hashlib.sha256(str(settings.HOME).encode()).hexdigest()[:8]}{own}"


def claimable(name: str = "", lane: str = codehosts.ALL) -> Any:
    """Finds the runs that nobody holds: none ever did, the lease ran out, or its holder was of this data folder, whose lock its caller has now."""
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lte=now)
    if name:
        free |= Q(worker__startswith=f"{here(lane)}:") & ~Q(worker=name)
    return Run.objects.filter(free, codehosts.of_lane(lane), status__in=[Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.HALTING])


def claim(name: str, besides: Collection[str] = (), lane: str = codehosts.ALL, held: Mapping[str, int] = MappingProxyType({})) -> Claimed | None:
    """Takes the next run that nobody holds, of the subject with the fewest in hand. One whose worker died counts as interrupted.

    What a dead process had written is committed first, or its finished samples would be asked again. That is this folder's outboxes; where a process died that
    had another one, its own queue gets some time for it. Shape: `held` is how many runs the caller has in hand by subject.
    """
    waiting = claimable(name, lane).exclude(pk__in=besides).order_by("priority", "created_at")[:LOOKED_AT]
    found = [*waiting.values("id", "priority", "status", "interruptions", "worker", "leased_until", "sut")]
    for row in sorted(found, key=lambda row: (row["priority"], held.get(row["sut"]["asked_as"], 0))):
        now, worker, until, subject = timezone.now(), row["worker"], row["leased_until"], row["sut"]["asked_as"]
        if held.get(subject, 0) >= OF_A_SUBJECT:
            continue
        is_ours = worker.startswith(f"{here(lane)}:")
        if worker and not is_ours and until is not None and now < until + timedelta(seconds=ELSEWHERE_S):
            continue
        mine = claimable(name, lane).filter(pk=row["id"], status=row["status"], interruptions=row["interruptions"], worker=worker)
        if not mine.update(worker=name, leased_until=now + timedelta(seconds=LEASE_S), interruptions=row["interruptions"] + bool(worker)):
            continue
        if worker:
            sweep.drain()
            ledger.catch_up(row["id"])
            if not Run.objects.filter(pk=row["id"], worker=name).exists():
                continue  # its end was among what the dead process had written
        return Claimed(str(row["id"]), subject)
    return None


def load(run_id: str) -> Plan:
    row = Run.objects.select_related("impl", "subset").get(pk=run_id)
    grader = dict(row.impl.grader or {})
    options = options_of(grader)
    caller = Caller(kind="user", judge=row.owner, scopes=frozenset({"ask"}), key_name=f"run:{row.pk}"[:200], team=row.team, pat="test" if row.is_dry else "")
    positions = row.selection.get("positions")
    return Plan(
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
        interruptions=row.interruptions,
        changed=changed(row),
        halting=(row.halt_reason or "user_requested") if row.status == Run.Status.HALTING else "",
        halt_note=row.halt_note,
        warned=tuple(warned(row)),
    )


def changed(row: Run) -> str:
    """Says what a run that has begun no longer shares with its launch: its rows, its grader or prompt, its trials. What came of both must not be mixed."""
    if not row.done:
        return ""
    if selection.digest_again(row) != row.selection.get("digest"):
        return "the tasks are not those that the run was launched with."
    try:
        is_same = launching.fingerprint(row) == row.fingerprint
    except Problem as error:  # a judge who was there is not any more
        return error.message
    return "" if is_same else "the grader, its judges, the subject or the number of trials is not what the run was launched with."


def warned(row: Run) -> Iterator[str]:
    if row.limits or row.last_seq > 1:
        for data in Event.objects.filter(run=row, type="LimitWarning").values_list("data", flat=True):
            yield str(data.get("limit", ""))


def spent_by_model(plan: Plan, models: Mapping[str, int]) -> dict[str, int]:
    return ledger.cost_of_request(plan.id, plan.started_at, list(models))


def begin(run_id: str) -> None:
    """Marks a run as running, once."""
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
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
    """Gives every trial that has no sample yet, by position. A byte for each that there is, so that it is small for very many."""
    last = max(plan.positions, default=-1) if plan.positions is not None else plan.total - 1
    ended = bytearray((last + 1) * plan.trials)
    for position, trial in Sample.objects.filter(run_id=plan.id, superseded=0).values_list("position", "trial").iterator(chunk_size=20_000):
        if position <= last and trial <= plan.trials:
            ended[position * plan.trials + trial - 1] = 1
    for position in plan.positions if plan.positions is not None else range(plan.total):
        for trial in range(1, plan.trials + 1):
            if not ended[position * plan.trials + trial - 1]:
                yield position, trial


def left_count(plan: Plan) -> int:
    return plan.total * plan.trials - Sample.objects.filter(run_id=plan.id, superseded=0).count()


def was_answered(plan: Plan) -> bool:
    """Whether any task of a run came to something else than a failure on the way. One without tasks did."""
    samples = Sample.objects.filter(run_id=plan.id, superseded=0)
    return samples.exclude(outcome=Outcome.INFRASTRUCTURE).exists() or not samples.exists()


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


def broke_off(run_id: str) -> None:
    """Counts work that ended by a fault as an interruption: a run that breaks off each time without a new result is not tried for ever."""
    Run.objects.filter(pk=run_id).update(interruptions=F("interruptions") + 1)
