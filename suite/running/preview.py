"""What a launch would come to, before it is one: whom it tests, what goes out to whom, how many calls that is, what they usually cost and at most.

The launch is made and taken back in one transaction, so that what is refused here and there is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from django.db import transaction
from django.db.models import Avg

from access.caller import Caller
from catalog.roster import Model
from health.costs import cost_pusd, most_pusd, usd_text
from panels.asks import DEFAULT_OUTPUT_LIMIT
from panels.estimate import OUTPUT_UNKNOWN
from panels.plan import PREFIX
from panels.snapshot import Snapshot, load_snapshot
from suite.grading import every
from suite.grading.contract import Question
from suite.models import Row, Run, Task
from suite.running import launching, subjects
from suite.running.asking import request_of
from suite.running.subjects import Subject
from wire.conversation import Usage
from wire.estimate import request_tokens, text_tokens

# So many rows are read for the mean; so many are shown whole.
LOOKED_AT, SHOWN = 200, 3
CAPS = ("max_tokens", "max_completion_tokens")


def preview(caller: Caller, body: Mapping[str, Any]) -> dict[str, Any]:
    """Reckons a launch that is not made. Errors: Problem, as a launch."""
    with transaction.atomic():
        run = launching.launch(caller, body)
        found = told(run, load_snapshot())
        transaction.set_rollback(True)
    return found


def told(run: Run, snapshot: Snapshot) -> dict[str, Any]:
    subject = Subject.kept(run.sut)
    rows = rows_of(run)
    questions = [question_of(run, row) for row in rows]
    read = [size(subject, question, row) for question, row in zip(questions, rows, strict=True)]
    tokens = round(fmean(read)) if read else 0
    usual = usual_output(run)
    seats = seats_of(subject, subjects.seated(subject, snapshot))
    calls = run.total * run.trials * len(seats)
    cap = next((value for name in CAPS if isinstance(value := (subject.params or {}).get(name), int)), None)
    costs = [cost_of(model, is_merger, tokens, usual, cap, len(seats)) for model, is_merger in seats]
    known = [cost for cost in costs if cost is not None]
    each = [sum(cost[i] for cost in known) * run.total * run.trials for i in (0, 1)]
    ceiling = (run.limits.get("run") or {}).get("cost")
    most = min(each[1], round(ceiling * 1e12)) if ceiling else each[1]
    is_code = run.impl.language != "builtin"
    return {
        "object": "preview",
        "subject": run.subject,
        "benchmark_id": run.benchmark_id,
        "subset_id": run.subset_id,
        "subset_version": run.version,
        "impl": {"id": run.impl_id, "label": run.impl.label, "language": run.impl.language},
        "scope": run.scope,
        "tasks": run.total,
        "trials": run.trials,
        "calls": None if is_code else calls,
        "backend": run.backend,
        "limits": run.limits,
        "warnings": run.launch.get("warnings", []),
        "sent_to": [{"model": m.alias, "endpoint": m.endpoint.name, "address": m.endpoint.base_url} for m in {m.alias: m for m, _ in seats}.values()],
        "tokens": {"input": tokens * calls, "output": usual * calls},
        "cost_usd": {"typical": usd_text(min(each[0], most)) if known else None, "most": usd_text(most) if known else None},
        "unknown": [model.alias for (model, _), cost in zip(seats, costs, strict=True) if cost is None],
        "examples": [shown(row, question) for row, question in list(zip(rows, questions, strict=True))[:SHOWN]],
    }


def rows_of(run: Run) -> list[Row]:
    """Reads the first rows that the run would ask."""
    rows = Row.objects.filter(subset=run.subset_id, since__lte=run.version).order_by("position")
    chosen = run.selection.get("positions")
    return list(rows.filter(position__in=chosen[:LOOKED_AT]) if chosen is not None else rows[: min(LOOKED_AT, run.total)])


def question_of(run: Run, row: Row) -> Question | None:
    """Gives what a built-in grader asks; None where code asks as it likes."""
    if run.impl.language != "builtin":
        return None
    kind = (run.impl.grader or {}).get("kind") or row.kind
    return every()[kind].ask(json.loads(row.body)["input"])


def size(subject: Subject, question: Question | None, row: Row) -> int:
    return text_tokens(row.body) if question is None else request_tokens(request_of(subject, question, subject.params or {}))


def usual_output(run: Run) -> int:
    """Reads what answers to these tasks usually come to: this subject's, else anybody's. Units: tokens a call."""
    tasks = Task.objects.filter(run__subset=run.subset_id, scoring=1, output_tokens__gt=0)
    for only in (tasks.filter(run__subject=run.subject), tasks):
        found = only.aggregate(mean=Avg("output_tokens"), trials=Avg("trials"))
        if found["mean"] is not None:
            return max(1, round(float(found["mean"]) / float(found["trials"])))
    return OUTPUT_UNKNOWN


def seats_of(subject: Subject, snapshot: Snapshot) -> Sequence[tuple[Model, bool]]:
    """Gives who is asked for one task, and whether it merges what others said."""
    if subject.kind != "collection":
        return [(snapshot.models[subject.asked_as], False)]
    collection = snapshot.collections[subject.asked_as.removeprefix(PREFIX).partition(":")[0]]
    members = [m for alias in collection.members if (m := snapshot.models.get(alias)) and not m.retired]
    if subject.mode == "route":
        return [(model, False) for model in members[:1]]
    seats = [(model, False) for model in members[: collection.seats]]
    mergers = [m for alias in collection.mergers if (m := snapshot.models.get(alias)) and not m.retired] or members
    return [*seats, (mergers[0], True)] if subject.mode == "merged" and len(seats) > 1 else seats


def cost_of(model: Model, is_merger: bool, tokens: int, usual: int, cap: int | None, seats: int) -> tuple[int, int] | None:
    """Prices one call, typically and at most. Units: trillionths of a US dollar; None where the price is unknown."""
    price, most = model.price_on(datetime.now(UTC).date()), cap or model.output_limit or DEFAULT_OUTPUT_LIMIT
    usual = min(usual, most)
    others = seats - 1 if is_merger else 0
    typically = cost_pusd(Usage(input=tokens + others * usual, output=usual), price)
    at_most = most_pusd(Usage(input=tokens + others * most, output=most), price)
    return None if typically is None or at_most is None else (typically, at_most)


def shown(row: Row, question: Question | None) -> dict[str, Any]:
    """A task as it would go out."""
    if question is None:
        return {"task_id": row.task_id, "messages": None, "tools": [], "input": json.loads(row.body)["input"]}
    return {"task_id": row.task_id, "messages": list(question.messages), "tools": list(question.tools), "input": None}
