"""A subset distilled from runs: the tasks that all failed, that some number of them failed, or that tell the runs apart.

Counted is only what was scored: a task that a run never answered says nothing of it. Each task keeps an edge to where it came from.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
class Chosen:
    """The tasks that a rule selects, by where they stand.

    Shape: `positions` by subset id, `runs` that subset's own; `looked_at` counts the tasks that every run of their source scored.
    """

    positions: Mapping[str, Sequence[int]]
    runs: Mapping[str, Sequence[Run]]
    looked_at: int

    @property
    def is_composite(self) -> bool:
        return len(self.runs) > 1

    @property
    def per_source(self) -> dict[str, int]:
        return {subset: len(found) for subset, found in self.positions.items()}


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


def choose(runs: Sequence[Run], rule: str, k: int) -> Chosen:
    """Selects tasks by what each source's own runs say of them. Errors: Unprocessable."""
    sources: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        sources[run.subset_id].append(run)
    if rule == "k_of_n" and (small := [s for s, own in sources.items() if len(own) < k]):
        raise wrong("/k", f"is more than the runs of {', '.join(small)}.")
    positions: dict[str, list[int]] = {}
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
        positions[subset] = sorted(position for position, passed in whole.items() if is_taken(rule, k, passed, len(own)))
    if sum(map(len, positions.values())) > MOST_TASKS:
        raise Unprocessable(
            "too_many_tasks", f"That would be more than {MOST_TASKS} tasks.", [Wrong("/runs", "too_many", "select too many tasks.")], max=MOST_TASKS
        )
    return Chosen(positions, sources, looked_at)


def task_ids(chosen: Chosen) -> list[str]:
    """Names the tasks that would be taken, each once, in their order. Shape: of several sources `<benchmark>::<task>`."""
    found: list[str] = []
    for subset, run, batch in batches(chosen):
        there = Row.objects.filter(subset_id=subset, position__in=batch).order_by("position").values_list("task_id", "digest")
        found += [renamed(task_id, digest, run, chosen.is_composite) for task_id, digest in there]
    return list(dict.fromkeys(found))


def distil(chosen: Chosen, rule: str) -> list[NewRow]:
    """Takes the tasks over. Errors: Unprocessable where there is none."""
    found: list[NewRow] = []
    for subset, run, batch in batches(chosen):
        there = Row.objects.filter(subset_id=subset, position__in=batch).order_by("position")
        found += [taken_over(row, run, chosen.is_composite) for row in there]
    if not found:
        raise Unprocessable(
            "empty_scope", f"No task meets the rule {rule}, of {chosen.looked_at} that every run scored.", [Wrong("/rule", "empty_scope", "selects nothing.")]
        )
    return unique(found)


def batches(chosen: Chosen) -> Iterator[tuple[str, Run, Sequence[int]]]:
    for subset, positions in chosen.positions.items():
        for start in range(0, len(positions), BATCH):
            yield subset, chosen.runs[subset][0], positions[start : start + BATCH]


def taken_over(row: Row, run: Run, is_composite: bool) -> NewRow:
    """Writes a row anew with an edge to its source; what its source said of licence and date stays."""
    body = json.loads(row.body)
    source = {**(body["source"] or {}), "benchmark": run.benchmark_id, "subset": run.subset_id, "task_id": row.task_id}
    task_id = renamed(row.task_id, row.digest, run, is_composite)
    new = {"input": body["input"], "expected": body["expected"], "source": source}
    return NewRow(task_id, row.kind, row.cluster, canonical.digest({"task_id": task_id, **new}), canonical.kept(new))


def renamed(task_id: str, digest: str, run: Run, is_composite: bool) -> str:
    name = f"{run.benchmark_id}::{task_id}" if is_composite else task_id
    return name if len(name) <= LONGEST_ID else f"{name[: LONGEST_ID - 18]}::{digest[:16]}"


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
