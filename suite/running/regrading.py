"""Stored outputs on their way to another grade: what is read of them, what of them no grader changes, and the rows that come of it. No model is asked."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from access.ids import new_id
from suite import backends
from suite.grading import noise
from suite.grading.contract import Call, Options, Output, options_of
from suite.grading.outcomes import SCORED, Grade, Outcome
from suite.models import Impl, Row, Run, Sample, Task
from suite.running import recording
from suite.running.asking import Said
from suite.running.coding import Coding
from suite.running.lines import Item
from suite.running.marking import Marking
from suite.running.sampling import raised
from suite.sandbox import box

AT_ONCE = 200
# What a grading leaves as it was.
COPIED = ("position", "task_id", "kind", "cluster", "preview", "preview_cut", "duration_ms", "cost_pusd", "input_tokens", "output_tokens")
# What no grader looked at, and none will: there was no whole answer.
UNREAD = frozenset({Outcome.TRUNCATED, Outcome.REFUSED})
# What a program came to in the sandbox is its grade, though its outcome says otherwise of an answer that none was made of.
BROKE, NO_SANDBOX = "limit_exceeded:code.", "sandbox_failed"
REGRADE = ("rescoring_id", "position", "trial", "outcome", "score", "reason", "payload")
INSERT_REGRADE = recording.insert("suite_regrade", REGRADE, "")


class OutputsGone(Exception):
    """The team keeps these outputs no longer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A scoring to be made, read once. Shape: `kind` "" for each row's own; `caps` are the backend's limits."""

    run: str
    subset: str
    scoring: int
    kind: str
    grader: Mapping[str, Any]
    options: Options
    language: str
    code: str
    timeout_s: float
    caps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trial:
    """One stored trial. Shape: `stands` is its grade where no grader changes it."""

    number: int
    output: Output
    stands: Grade | None


@dataclass(frozen=True, slots=True)
class Stored:
    """One task's trials, and its row in the first scoring."""

    item: Item
    task: Task
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A task's row of the new scoring and its trials', as they are inserted; the latter without the rescoring's id, which comes first."""

    task: tuple[Any, ...]
    grades: tuple[tuple[Any, ...], ...]


def plan_of(run: Run, impl: Impl, scoring: int) -> Plan:
    grader = dict(impl.grader or {})
    return Plan(
        run=run.pk,
        subset=run.subset_id,
        scoring=scoring,
        kind=str(grader.get("kind", "")),
        grader=grader,
        options=options_of(grader),
        language=impl.language,
        code=impl.code,
        timeout_s=float(grader.get("run_timeout", run.subset.recipe.get("run_timeout", 300))),
        caps=backends.caps_of(run.backend),
    )


def marking_of(plan: Plan) -> Marking:
    limits = box.Limits(wall_s=plan.timeout_s, cpu_s=int(plan.timeout_s) + 1, **plan.caps)
    coding = Coding(plan.code, None, limits) if plan.language != "builtin" else None
    return Marking(plan.kind, plan.grader, plan.options, coding, None, plan.caps)


def positions_of(run: str) -> list[int]:
    """Gives the places of all tasks that have ended."""
    return list(Task.objects.filter(run_id=run, scoring=1).order_by("position").values_list("position", flat=True))


def batched(positions: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), AT_ONCE):
        yield positions[start : start + AT_ONCE]


def read(plan: Plan, positions: Sequence[int]) -> list[Stored]:
    """Reads some tasks with their trials. Errors: OutputsGone."""
    rows = {row.position: row for row in Row.objects.filter(subset_id=plan.subset, position__in=positions)}
    trials: dict[int, list[Trial]] = {}
    for sample in Sample.objects.filter(run_id=plan.run, position__in=positions, superseded=0).order_by("trial"):
        trials.setdefault(sample.position, []).append(trial_of(sample))
    found = []
    for task in Task.objects.filter(run_id=plan.run, scoring=1, position__in=positions).order_by("position"):
        row = rows[task.position]
        body = json.loads(row.body)
        item = Item(task.position, 1, row.task_id, row.kind, row.cluster, body["input"], body["expected"])
        found.append(Stored(item, task, tuple(trials.get(task.position, ()))))
    return found


def trial_of(sample: Sample) -> Trial:
    kept = recording.unpacked(sample.payload)
    if kept.get("gone"):
        raise OutputsGone
    output = Output(kept["output"], tuple([Call(c["name"], c["arguments"]) for c in kept.get("calls", [])]))
    return Trial(sample.trial, output, standing(sample, kept))


def standing(sample: Sample, kept: Mapping[str, Any]) -> Grade | None:
    """Gives the grade that stays; None for an answer that a grader reads."""
    outcome = Outcome(sample.outcome)
    is_unread = (
        kept.get("error") is not None
        or outcome in UNREAD
        or (outcome is Outcome.LIMIT and not sample.reason.startswith(BROKE))
        or (outcome is Outcome.INFRASTRUCTURE and sample.reason != NO_SANDBOX)
    )
    if not is_unread:
        return None
    return Grade(outcome, sample.score, kept.get("answer") or "", sample.reason, kept.get("explanation") or "", kept.get("metadata") or {})


def takes_time(marking: Marking, stored: Stored) -> bool:
    """Whether any of a task's trials goes into the sandbox."""
    if all(trial.stands is not None for trial in stored.trials):
        return False
    try:
        return marking.takes_time(stored.item.kind)
    except KeyError:  # a kind that this server does not have: told as the grader's failure
        return False


def graded(plan: Plan, marking: Marking, stored: Stored) -> Made:
    """Grades a task where that takes no time."""
    grades = []
    for trial in stored.trials:
        try:
            item = stored.item
            grade = trial.stands or marking.kind_of(item.kind).grade(trial.output, item.input, item.expected, plan.options)
        except Exception as error:  # a grader's fault is never the model's
            grade = raised(error)
        grades.append(noise.marked(grade, trial.output.text))
    return made(plan, stored, grades)


async def boxed(plan: Plan, marking: Marking, stored: Stored) -> Made:
    """Grades a task in the sandbox, one trial after another."""
    grades = []
    for trial in stored.trials:
        try:
            grade = trial.stands or (await marking.mark(stored.item, Said(readable(trial.output) if marking.coding else trial.output))).grade
        except Exception as error:
            grade = raised(error)
        grades.append(noise.marked(grade, trial.output.text))
    return made(plan, stored, grades)


def readable(output: Output) -> Output:
    """Writes an output as a scorer's `score` takes it: its text, or its tool calls as JSON where it has none."""
    if output.text or not output.calls:
        return output
    return Output(json.dumps([{"name": call.name, "arguments": call.arguments} for call in output.calls]))


def made(plan: Plan, stored: Stored, grades: Sequence[Grade]) -> Made:
    found = {
        **{name: getattr(stored.task, name) for name in COPIED},
        **recording.together([(grade.outcome, grade.score) for grade in grades], plan.options.threshold),
        "id": new_id("tsk"),
        "run_id": plan.run,
        "scoring": plan.scoring,
        "reason": next((grade.reason for grade in grades if grade.reason), "")[:60],
    }
    rows = [grade_row(stored, trial, grade) for trial, grade in zip(stored.trials, grades, strict=True)]
    return Made(tuple([found[name] for name in recording.TASK]), tuple(rows))


def grade_row(stored: Stored, trial: Trial, grade: Grade) -> tuple[Any, ...]:
    payload = recording.packed({"answer": grade.answer, "explanation": grade.explanation, "metadata": grade.metadata})
    score = grade.score if grade.outcome in SCORED else None
    return (stored.item.position, trial.number, str(grade.outcome), score, grade.reason[:60], base64.b64decode(payload))


def insert(cursor: Any, rescoring: str, some: Sequence[Made]) -> None:
    """Keeps rows of a scoring, in its caller's transaction."""
    cursor.executemany(recording.INSERT_PLAIN_TASK, [one.task for one in some])
    cursor.executemany(INSERT_REGRADE, [(rescoring, *grade) for one in some for grade in one.grades])
