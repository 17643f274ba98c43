"""A run's work done again in part: another scorer, another look at what failed."""

from __future__ import annotations

import copy
from typing import Any

from django.db import connection, transaction
from django.db.models import F, OuterRef, Q, Subquery
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from panels.snapshot import load_snapshot
from suite.api.impls import find_impl
from suite.api.problems import Conflict, NotYet, Unprocessable, Wrong
from suite.api.repeats import idempotent
from suite.api.runs import mine, shown, there
from suite.api.view import View, text
from suite.authoring import graders, impls
from suite.grading.outcomes import Outcome
from suite.models import Impl, Run, Sample, Task
from suite.reporting import files
from suite.running import engine, holding, launching, needs, recording, selection, subjects, targets
from suite.running.limits import read as read_limits
from suite.running.subjects import Subject
from suite.running.targets import find_run

PHASES = ("find", "analyze", "atomize", "materialize")


class Fork(View):
    scopes = {"POST": ("runs:write",)}

    @idempotent
    def post(self, request: Request, run: str) -> Response:
        """Makes a run like its parent with another scorer: an impl by id, code, or a built-in grader. By a description in words later."""
        parent = find_run(self.caller, run)
        body = self.body(("description", "from_phase", "impl", "code", "grader", "label"))
        if parent.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED):
            raise Conflict("parent_not_forkable", f"The run is {parent.status}: it can be forked once it has ended.")
        if body.get("from_phase") is not None and str(body["from_phase"]).lower() not in PHASES:
            raise Unprocessable("invalid_request", f"from_phase is one of {', '.join(PHASES)}.", [Wrong("/from_phase", "invalid", "is no phase.")])
        impl = self.impl(parent, body)
        chosen = parent.selection.get("positions")
        picked = (
            selection.listed(parent.scope, parent.subset_id, parent.version, chosen)
            if chosen is not None
            else selection.choose(parent.subset_id, parent.version, parent.total if parent.scope != "full" else None)
        )
        needs.check(impl, parent.subset_id, parent.version)
        target = targets.Target("fork", parent.benchmark, parent.subset, parent.version, impl, str(body.get("impl") or ""), parent, picked)
        made = launching.kept(
            self.caller,
            {"request": text(body, "description", most=20_000), "source": "manual" if parent.is_dry else parent.source},
            target,
            self.subject(parent),
            read_limits(parent.limits),
            parent.trials,
            parent.metadata,
            parent.backend,
            "",
        )
        audit.record(self.actor, "run.fork", made.pk, reason=parent.pk)
        engine.ring()
        return Response(shown(made), status=201)

    def subject(self, parent: Run) -> Subject:
        """Finds whom the parent asked, as a replay does. Errors: Unprocessable where it is there no longer, Conflict where it is retired."""
        snapshot = load_snapshot()
        found = subjects.kept_one(parent.sut, snapshot)
        subjects.seated(found, snapshot)
        return found

    def impl(self, parent: Run, body: dict[str, Any]) -> Impl:
        if (impl := scorer_of(self, parent, body)) is not None:
            return impl
        if not text(body, "description", most=20_000).strip():
            raise Unprocessable(
                "description_missing", "A fork says what is to change: an impl, code or a grader.", [Wrong("/description", "missing", "is needed.")]
            )
        raise NotYet("Forking by a description in words", "Upload the scorer as `code`, or name an `impl` or a built-in `grader`.")


def scorer_of(view: View, run: Run, body: dict[str, Any]) -> Impl | None:
    """Gives the impl that a request names or brings along: code, an id, or a built-in grader; None where it says none of them. Errors: Problem."""
    if body.get("code"):
        label, description = text(body, "label", most=200), text(body, "description", most=20_000)
        return impls.create(view.caller, str(body["code"]), "python", label, description, run.benchmark, run.subset, run.pk)[0]
    if body.get("impl"):
        return find_impl(view, str(body["impl"]))
    return grader_impl(view, run, body["grader"]) if body.get("grader") is not None else None


def grader_impl(view: View, run: Run, value: object) -> Impl:
    """Gives the impl of a built-in grader that a request brings along. The subset's own grader stays as it is."""
    subset = copy.copy(run.subset)
    subset.grader = graders.read(value)
    return targets.builtin_impl(view.caller.owner, view.caller.team, subset)


class Requeue(View):
    scopes = {"POST": ("runs:write",)}

    def post(self, request: Request, run: str) -> Response:
        """Asks again what failed on the way, and what no grader could tell; what was answered stays. The old samples are kept as superseded."""
        row = there(mine(self, run))
        if row.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED):
            raise Conflict("run_not_over", "The run is under way: it asks again by itself.")
        if wrong := holding.changed(row):
            raise Conflict("fingerprint_changed", f"The run cannot go on: {wrong} Launch it anew, or replay it.")
        unanswered = (Outcome.INFRASTRUCTURE, Outcome.JUDGE_FAILED)
        with transaction.atomic(), connection.cursor() as cursor:
            open_tasks = Task.objects.filter(run=row, scoring=1, outcome__in=unanswered)
            left = row.total - Task.objects.filter(run=row, scoring=1).count()
            count = open_tasks.count()
            if not count and not left:
                raise Conflict("nothing_to_requeue", "Every task of the run was answered.")
            tried = Sample.objects.filter(run=row, position=OuterRef("position"), trial=OuterRef("trial"))
            last = tried.order_by("-superseded").values("superseded")[:1]
            samples = Sample.objects.filter(run=row, superseded=0, outcome__in=unanswered, position__in=open_tasks.values("position"))
            samples.update(superseded=Subquery(last) + 1)
            open_tasks.delete()
            files.forget(Q(run=row))
            Run.objects.filter(pk=row.pk).update(
                status=Run.Status.QUEUED, error="", halt_reason="", halt_note="", finished_at=None, done=F("done") - count, interruptions=0
            )
            recording.tell(cursor, row.pk, [("RunQueued", {"subject": row.subject, "tasks": count + left, "requeued": True})])
        audit.record(self.actor, "run.requeue", row.pk, reason=f"{count} tasks")
        engine.ring()
        row.refresh_from_db()
        return Response({**shown(row), "requeued": count + left}, status=202)
