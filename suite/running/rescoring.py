"""Graded again, without asking any model: stored outputs under another grader, as a further scoring beside the old one, which stays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from access.ids import new_id
from suite import grading
from suite.api.problems import Conflict, Unprocessable
from suite.grading import noise
from suite.grading.contract import Call, Options, Output
from suite.grading.outcomes import Grade, Outcome
from suite.models import Impl, Row, Run, Sample, Task
from suite.running import recording, retention

BATCH = 500
MOST_SHOWN = 200
# What a rescoring leaves as it was.
COPIED = ("position", "task_id", "kind", "cluster", "preview", "preview_cut", "duration_ms", "cost_pusd", "input_tokens", "output_tokens")
# What these came to says nothing of the output, so no other grader changes it.
KEPT = frozenset({Outcome.INFRASTRUCTURE, Outcome.LIMIT, Outcome.TRUNCATED})


def options_of(grader: Mapping[str, Any]) -> Options:
    return Options(
        decimal=str(grader.get("decimal", "")),
        ignore_case=bool(grader.get("ignore_case", True)),
        tolerance=float(grader.get("tolerance", 1e-9)),
        threshold=float(grader.get("pass_threshold", 1.0)),
        more=grader,
    )


def rescore(run: Run, impl: Impl) -> dict[str, Any]:
    """Adds a scoring by another built-in impl. Shape: its number, how many tasks changed sides, some of those. Errors: Conflict, Unprocessable."""
    if run.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED):
        raise Conflict("run_not_over", "The run has not ended yet.")
    if retention.is_emptied(run.pk):
        raise Conflict("outputs_gone", "The run's outputs are older than the team keeps them (retention_days), so they cannot be graded again.")
    if impl.language != "builtin":
        raise Unprocessable("rescore_unsupported", "Only built-in graders score again: an impl with code asks the model itself.")
    grader = impl.grader or {}
    if (kind := grading.every().get(str(grader.get("kind", "")))) is not None and (kind.needs_sandbox or kind.needs_judge):
        raise Unprocessable("rescore_unsupported", f"Grading by {kind.name} takes more than the stored outputs. Replay the run, or fork it with this grader.")
    options, kind_name = options_of(grader), str(grader.get("kind", ""))
    number = run.scoring + 1
    changed: Counter[str] = Counter()
    flips: list[dict[str, Any]] = []
    before = dict(Task.objects.filter(run=run, scoring=run.scoring).values_list("position", "passed"))
    made: list[tuple[Any, ...]] = []
    # Graded first and written in one go: nobody else's writing waits while a large run is graded.
    for some in batched(sorted(before)):
        rows = {row.position: row for row in Row.objects.filter(subset_id=run.subset_id, position__in=some)}
        samples: dict[int, list[Sample]] = {}
        for sample in Sample.objects.filter(run=run, position__in=some, superseded=0).order_by("trial"):
            samples.setdefault(sample.position, []).append(sample)
        for task in Task.objects.filter(run=run, scoring=1, position__in=some).order_by("position"):
            grades = [regraded(sample, rows[task.position], kind_name, options) for sample in samples.get(task.position, [])]
            found = {
                **{name: getattr(task, name) for name in COPIED},
                **recording.together([(g.outcome, g.score) for g in grades], options.threshold),
                "id": new_id("tsk"),
                "run_id": run.pk,
                "scoring": number,
                "reason": next((g.reason for g in grades if g.reason), "")[:60],
            }
            made.append(tuple([found[name] for name in recording.TASK]))
            if found["passed"] != before[task.position]:
                changed["now_passed" if found["passed"] else "now_not"] += 1
                flips.append({"task_id": task.task_id, "task": found["id"], "before": before[task.position], "after": found["passed"]})
    with transaction.atomic(), connection.cursor() as cursor:
        if not Run.objects.filter(pk=run.pk, scoring=run.scoring, last_seq=run.last_seq).update(scoring=number, etag=F("etag") + 1):
            raise Conflict("rescoring", "Somebody else is scoring this run again just now, or it has changed meanwhile.")
        cursor.executemany(recording.INSERT_PLAIN_TASK, made)
    return {
        "object": "rescoring",
        "run": run.pk,
        "impl": impl.pk,
        "version": number,
        "tasks": len(made),
        "changed": sum(changed.values()),
        **changed,
        "rows": flips[:MOST_SHOWN],
    }


def batched(positions: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(positions), BATCH):
        yield positions[start : start + BATCH]


def regraded(sample: Sample, row: Row, kind_name: str, options: Options) -> Grade:
    if sample.outcome in KEPT:
        return Grade(Outcome(sample.outcome), sample.score, reason=sample.reason)
    kept, body = recording.unpacked(sample.payload), json.loads(row.body)
    output = Output(kept["output"], tuple(Call(c["name"], c["arguments"]) for c in kept.get("calls", [])))
    try:
        kind = grading.every()[kind_name or row.kind]
        if kind.needs_sandbox or kind.needs_judge:  # a row of its own kind among others: what it came to stands
            return Grade(Outcome(sample.outcome), sample.score, reason=sample.reason)
        return noise.marked(kind.grade(output, body["input"], body["expected"], options), output.text)
    except Exception as error:
        return Grade(Outcome.JUDGE_FAILED, None, reason="grader_raised", explanation=f"{type(error).__name__}: {str(error)[:300]}")
