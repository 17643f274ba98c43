"""A subset distilled from runs: the tasks that all failed, that some number of them failed, or that tell the runs apart.

Counted is only what was scored: a task that a run never answered says nothing of it. Each task keeps an edge to where it came from.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite import canonical
from suite.api.problems import Unprocessable, Wrong, wrong
from suite.authoring import graders, inheriting
from suite.authoring.rows import LONGEST_ID, NewRow
from suite.models import Row, Run, Task

RULES = ("failed_by_all", "k_of_n", "discriminating")
MOST_RUNS = 50
MOST_TASKS = 20_000
BATCH = 500


@dataclass(frozen=True, slots=True)
class Distilled:
    """Shape: `looked_at` counts the tasks that every run of their source scored; `per_source` how many were taken, by subset id."""

    rows: tuple[NewRow, ...]
    looked_at: int
    per_source: Mapping[str, int]


def rule_of(rule: Any, k: Any, runs: int) -> tuple[str, int]:
    """Reads the rule and its k. Errors: Unprocessable."""
    if rule not in RULES:
        raise wrong("/rule", f"must be one of {', '.join(RULES)}.", "missing" if rule is None else "invalid")
    if rule == "k_of_n" and k is None:
        raise wrong("/k", "says by how many of the runs a task must have been failed.", "missing")
    if rule == "failed_by_all" and k is not None:
        raise wrong("/k", "belongs to k_of_n and discriminating.")
    most = runs if rule == "k_of_n" else runs // 2
    value = 1 if k is None else k
    if rule == "discriminating" and runs < 2:
        raise wrong("/runs", "must name two runs or more to tell them apart.")
    if rule != "failed_by_all" and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
        raise wrong("/k", f"must be a whole number from 1 to {most}.")
    return str(rule), value


def is_taken(rule: str, k: int, passed: int, of: int) -> bool:
    """Tells whether a task is taken that `passed` of its `of` runs passed. `discriminating`: at least k on either side."""
    failed = of - passed
    if rule == "failed_by_all":
        return failed == of
    if rule == "k_of_n":
        return failed >= k
    return passed >= k and failed >= k


def distil(runs: Sequence[Run], rule: str, k: int) -> Distilled:
    """Takes tasks by what each source's own runs say of them. Shape: task ids of several sources are `<benchmark>::<task>`. Errors: Unprocessable."""
    sources: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        sources[run.subset_id].append(run)
    if rule == "k_of_n" and (small := [s for s, own in sources.items() if len(own) < k]):
        raise wrong("/k", f"is more than the runs of {', '.join(small)}.")
    is_composite = len(sources) > 1
    found: list[NewRow] = []
    per_source: dict[str, int] = {}
    looked_at = 0
    for subset, own in sources.items():
        counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for run in own:
            scored = Task.objects.filter(run=run, scoring=run.scoring, passed__isnull=False).values_list("position", "passed")
            for position, passed in scored.iterator(chunk_size=5000):
                counts[position][0] += bool(passed)
                counts[position][1] += 1
        whole = {position: passed for position, (passed, of) in counts.items() if of == len(own)}
        looked_at += len(whole)
        taken = sorted(position for position, passed in whole.items() if is_taken(rule, k, passed, len(own)))
        per_source[subset] = len(taken)
        if len(found) + len(taken) > MOST_TASKS:
            raise Unprocessable(
                "too_many_tasks", f"That would be more than {MOST_TASKS} tasks.", [Wrong("/runs", "too_many", "select too many tasks.")], max=MOST_TASKS
            )
        for start in range(0, len(taken), BATCH):
            rows = Row.objects.filter(subset_id=subset, position__in=taken[start : start + BATCH]).order_by("position")
            found += [taken_over(row, own[0], is_composite) for row in rows]
    if not found:
        raise Unprocessable(
            "empty_scope", f"No task meets the rule {rule}, of {looked_at} that every run scored.", [Wrong("/rule", "empty_scope", "selects nothing.")]
        )
    return Distilled(tuple(unique(found)), looked_at, per_source)


def taken_over(row: Row, run: Run, is_composite: bool) -> NewRow:
    """Writes a row anew with an edge to its source; what its source said of licence and date stays."""
    body = json.loads(row.body)
    source = {**(body["source"] or {}), "benchmark": run.benchmark_id, "subset": run.subset_id, "task_id": row.task_id}
    task_id = f"{run.benchmark_id}::{row.task_id}" if is_composite else row.task_id
    if len(task_id) > LONGEST_ID:
        task_id = f"{task_id[: LONGEST_ID - 18]}::{row.digest[:16]}"
    new = {"input": body["input"], "expected": body["expected"], "source": source}
    return NewRow(task_id, row.kind, row.cluster, canonical.digest({"task_id": task_id, **new}), canonical.kept(new))


def unique(rows: Sequence[NewRow]) -> list[NewRow]:
    """Two subsets of one benchmark may share a task: the first stands for both."""
    return list({row.task_id: row for row in reversed(rows)}.values())[::-1]


def grader_of(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Gives the grader that all runs had, each row's own kind where they had several, None where code graded."""
    if any(run.impl.language != "builtin" for run in runs):
        return None
    said = [{name: value for name, value in (run.impl.grader or {}).items() if name in graders.FIELDS} for run in runs]
    return said[0] if all(one == said[0] for one in said) else {}


def recipe_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Gives what of a recipe bears on results, where all runs came of one subset."""
    if len({run.subset_id for run in runs}) > 1:
        return {}
    return {name: value for name, value in runs[0].subset.recipe.items() if name in inheriting.CODE_RECIPE}
