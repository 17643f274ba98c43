"""Runs compared task by task with the first of them, honest about many comparisons and about what differs besides the subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from suite.models import Run, Task
from suite.running.summary import by_kind
from suite.statistics import multiple, paired
from suite.statistics.paired import Comparison

MOST_RUNS = 20
__all__ = ["MOST_RUNS", "by_kind", "compare", "differences", "flips", "scores_of"]


def scores_of(run: Run) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
    """Reads a run's scores, clusters and kinds by task id; what was not scored is not there."""
    scores: dict[str, float] = {}
    clusters, kinds = {}, {}
    rows = Task.objects.filter(run=run, scoring=run.scoring, score__isnull=False).values_list("task_id", "score", "passed", "cluster", "kind")
    for task_id, score, passed, cluster, kind in rows.iterator(chunk_size=5000):
        scores[task_id] = float(bool(passed)) if score in (0.0, 1.0) else float(score or 0.0)
        kinds[task_id] = kind
        if cluster:
            clusters[task_id] = cluster
    return scores, clusters, kinds


def differences(one: Run, other: Run) -> list[str]:
    """Tells what differs between two runs besides whom they tested: a comparison holds only where nothing does."""
    found = []
    if one.subset_id != other.subset_id:
        found.append("They ran different subsets; only tasks of the same name are compared.")
    elif one.version != other.version:
        found.append(f"They ran versions {one.version} and {other.version} of the subset; only tasks that both have are compared.")
    if one.graded_by != other.graded_by:
        found.append("They were graded by different impls, so a difference may be the graders'.")
    if one.trials != other.trials:
        found.append(f"They made {one.trials} and {other.trials} trials a task.")
    if "full" not in (one.scope, other.scope) or one.scope != other.scope:
        found.append(f"Their scopes are {one.scope} and {other.scope}.")
    return found


def compare(runs: Sequence[Run], seed: int = 0) -> list[dict[str, Any]]:
    """Compares the first run with each other one. Shape: a pair each, with the p value that is left after all were looked at."""
    read = [scores_of(run) for run in runs]
    found: list[tuple[Run, Comparison]] = []
    for run, (scores, clusters, _) in zip(runs[1:], read[1:], strict=True):
        known = {**clusters, **read[0][1]}
        found.append((run, paired.compare(read[0][0], scores, known or None, seed=seed)))
    adjusted = multiple.holm({run.pk: c.p for run, c in found if c.p is not None})
    pairs = []
    for run, comparison in found:
        p_holm = adjusted.get(run.pk)
        if p_holm is not None and p_holm > 0.05 and comparison.verdict != "inconclusive":
            comparison = replace(comparison, verdict="inconclusive", reason="Among so many comparisons this difference is no surprise (Holm).")
        caveats = differences(runs[0], run)
        pairs.append(
            {
                "object": "comparison",
                "first": runs[0].pk,
                "second": run.pk,
                **asdict(comparison),
                "p_holm": p_holm,
                "comparable": not caveats,
                "caveats": caveats,
            }
        )
    return pairs


def flips(one: Run, other: Run, limit: int = 100) -> list[dict[str, Any]]:
    """Lists tasks that one run passed and the other did not."""
    first = dict(Task.objects.filter(run=one, scoring=one.scoring, passed__isnull=False).values_list("task_id", "passed"))
    second = dict(Task.objects.filter(run=other, scoring=other.scoring, passed__isnull=False).values_list("task_id", "passed"))
    found = [{"task_id": t, "first": first[t], "second": second[t]} for t in sorted(first.keys() & second.keys()) if first[t] != second[t]]
    return found[:limit]
