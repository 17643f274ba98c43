"""Graded again, without asking any model: stored outputs under another grader, as a further scoring beside the old one, which stays.

    asked ─▶ few, and no sandbox needed ─▶ graded and written in one transaction      200
      └────▶ queued ─▶ regrader: rows of a scoring that nobody sees yet ─▶ the run's newest, in one transaction      202

One at a time a run; a row says which impl made which scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import BooleanField, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from access.caller import Caller
from suite import ids
from suite.api.problems import Conflict, Unprocessable, Wrong
from suite.models import Impl, Regrade, Rescoring, Run, Task
from suite.running import needs, regrading, retention
from suite.running.needs import Needs
from suite.running.regrading import OutputsGone

# More trials than that take longer than a request should.
MOST_AT_ONCE = 5000
MOST_SHOWN = 200
OVER = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)


class RunChanged(Exception):
    """The run is not what it was when its scoring was asked for."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks have another result than in the scoring before."""

    now_passed: int
    now_not: int


def ask(caller: Caller, run: Run, impl: Impl) -> Rescoring:
    """Adds a scoring by another impl: at once where that is short work, else it is queued. Errors: Conflict, Unprocessable."""
    needed = check(run, impl)
    now = timezone.now()
    row = Rescoring(
        id=ids.new_id("rsc"),
        run=run,
        impl=impl,
        scoring=run.scoring + 1,
        seq=run.last_seq,
        needs_sandbox=needed.sandbox,
        total=Task.objects.filter(run=run, scoring=1).count(),
        asked_by=caller.owner,
        created_at=now,
        worked_at=now,
    )
    if needed.sandbox or row.total * run.trials > MOST_AT_ONCE:
        begin(row)
    else:
        at_once(row)
    return row


def check(run: Run, impl: Impl) -> Needs:
    """Looks whether a run's outputs can be graded by an impl. Errors: Conflict, Unprocessable."""
    if run.status not in OVER:
        raise Conflict("run_not_over", "The run has not ended yet.")
    if retention.is_emptied(run.pk):
        raise gone()
    needs.check_kinds(impl, run.subset_id, run.version)
    needed = needs.of(impl, run.subset_id, run.version)
    if needed.judge:
        told = "A judge is a model, and here none is asked. Replay the run, or fork it with this grader."
        raise Unprocessable("rescore_unsupported", told, [Wrong("/grader", "rescore_unsupported", told)])
    if needed.sandbox:
        needs.check_sandbox()
    return needed


def gone() -> Conflict:
    return Conflict("outputs_gone", "The run's outputs are older than the team keeps them (retention_days), so they cannot be graded again.")


def begin(row: Rescoring) -> None:
    """Takes a run's next scoring. Errors: Conflict where somebody else has it, or the run is not as it was read."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            if not unchanged(row).exists():
                raise RunChanged
    except (IntegrityError, RunChanged):
        raise Conflict("rescoring", "Somebody else is scoring this run again just now, or it has changed meanwhile.") from None


def unchanged(row: Rescoring) -> QuerySet[Run]:
    """Selects the run while it is what it was when its scoring was asked for."""
    return Run.objects.filter(pk=row.run_id, scoring=row.scoring - 1, last_seq=row.seq, status__in=OVER)


def at_once(row: Rescoring) -> None:
    """Grades and writes in one go. Errors: Conflict."""
    plan = regrading.plan_of(row.run, row.impl, row.scoring)
    marking = regrading.marking_of(plan)
    # Graded first: nobody else's writing waits meanwhile.
    try:
        found = [regrading.graded(plan, marking, one) for some in regrading.batched(regrading.positions_of(plan.run)) for one in regrading.read(plan, some)]
    except OutputsGone:
        raise gone() from None
    row.status, row.total, row.done = Rescoring.Status.RUNNING, len(found), len(found)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            begin(row)
            regrading.insert(cursor, row.pk, found)
            finish(row)
    except RunChanged:
        raise Conflict("rescoring", "Somebody else is scoring this run again just now, or it has changed meanwhile.") from None


def finish(row: Rescoring) -> None:
    """Makes a scoring whose tasks are all there the run's newest, in its caller's transaction. Errors: RunChanged."""
    counts = counted(row.run_id, row.scoring)
    row.status, row.now_passed, row.now_not, row.finished_at = Rescoring.Status.OK, counts.now_passed, counts.now_not, timezone.now()
    row.worker, row.leased_until = "", None
    row.save(update_fields=["status", "now_passed", "now_not", "finished_at", "worker", "leased_until"])
    scorer = None if row.impl_id == row.run.impl_id else row.impl_id
    if not unchanged(row).update(scoring=row.scoring, scorer=scorer, etag=F("etag") + 1):
        raise RunChanged


def give_up(rescoring: str, error: str, message: str, status: str = Rescoring.Status.FAILED, **of: Any) -> bool:
    """Ends a rescoring without a scoring; what there was of it goes. Shape: `of` holds for its row as well. Gives whether it was open."""
    with transaction.atomic():
        ended = Rescoring.objects.filter(pk=rescoring, status__in=Rescoring.OPEN, **of).update(
            status=status, error=error, message=message[:500], worker="", leased_until=None, finished_at=timezone.now(), done=0
        )
        if ended:
            row = Rescoring.objects.get(pk=rescoring)
            Regrade.objects.filter(rescoring=row).delete()
            Task.objects.filter(run=row.run_id, scoring=row.scoring).delete()
    return bool(ended)


# ------------------------------------------------------------------ what is told of it


def changed_tasks(run: str, scoring: int) -> QuerySet[Any]:
    """Selects a scoring's tasks whose result is not that of the scoring before, which stands beside it as `was`."""
    before = Task.objects.filter(run_id=OuterRef("run_id"), scoring=scoring - 1, position=OuterRef("position")).values("passed")[:1]
    rows = Task.objects.filter(run_id=run, scoring=scoring).annotate(was=Subquery(before, output_field=BooleanField(null=True)))
    is_other = Q(passed=None, was__isnull=False) | Q(passed=True, was=False) | Q(passed=False, was=True) | Q(passed__isnull=False, was=None)
    return rows.filter(is_other)


def counted(run: str, scoring: int) -> Counts:
    found = changed_tasks(run, scoring)
    passed = found.filter(passed=True).count()
    return Counts(passed, found.count() - passed)


def changed_rows(row: Rescoring) -> list[Mapping[str, Any]]:
    """Lists the first tasks whose result is another now."""
    if row.status != Rescoring.Status.OK:
        return []
    return [
        {"task_id": task.task_id, "task": task.pk, "before": task.was, "after": task.passed, "outcome": task.outcome, "error_class": task.reason or None}
        for task in changed_tasks(row.run_id, row.scoring).order_by("position")[:MOST_SHOWN]
    ]
