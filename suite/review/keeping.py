"""Tasks kept as benchmarks: one for finding faulty lines, one for claims, each with a subset for every place that tasks come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from suite import ids
from suite.authoring import rows as reading
from suite.authoring import subsets
from suite.models import Benchmark, Row, Subset

REVIEW, CLAIM = "rebench", "claim"
TOLD: Mapping[str, tuple[str, str]] = {
    REVIEW: (
        "review",
        "Find the faulty line, or say that there is none. Each fault comes with a clean control, and planted and real ones have figures of their own.",
    ),
    CLAIM: ("review", "Is a statement about the code beside it true? What each says was proved by the code's text or by running it."),
}


def benchmark(name: str, title: str, owner: str, team: str = "", built_in: str = "") -> Benchmark:
    """Finds or makes a benchmark of an owner. Built-in ones are everybody's to read; all others private until a run is shared."""
    there = Benchmark.objects.filter(name=title, owner=owner, built_in=built_in, deleted_at=None).order_by("created_at").first()
    if there is not None:
        return there
    now = timezone.now()
    category, description = TOLD[name]
    return Benchmark.objects.create(
        id=ids.new_id("bm"), name=title, description=description, category=category, tags=["review", name], owner=owner, team=team, built_in=built_in,
        created_at=now, updated_at=now,
    )  # fmt: skip


def slug_of(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-._").lower()[:120]


def keep(
    parent: Benchmark, slug: str, title: str, description: str, kind: str, tasks: Sequence[Mapping[str, Any]], by: str, *, rolling: bool, passes: bool = False
) -> tuple[Subset, int]:
    """Keeps rows in a subset of a benchmark. Shape: the subset, and how many rows are new; a row that is there stays as it is."""
    grader = {"kind": kind}
    with transaction.atomic():
        subset = Subset.objects.filter(benchmark=parent, slug=slug, deleted_at=None).first()
        if subset is None:
            subset = subsets.create(parent, slug, title, description, [], True, grader, by, {"passes": True} if passes else {})
        there = set(Row.objects.filter(subset=subset).values_list("task_id", flat=True))
        new = reading.checked(enumerate(task for task in tasks if task["task_id"] not in there), grader, "")
        if new and (subset.rolling or subset.version == 0):
            subset, added, _ = subsets.append(subset.pk, new, by)
        else:
            added = 0
        if not rolling and subset.rolling:
            subset.rolling = False
            subset.save(update_fields=["rolling"])
    return subset, added


def mark_passes(subset: Subset, passes: bool) -> None:
    """Says whether onboarding and the weekly schedule run a subset."""
    if bool(subset.recipe.get("passes")) != passes:
        subset.recipe = {**{name: value for name, value in subset.recipe.items() if name != "passes"}, **({"passes": True} if passes else {})}
        subset.save(update_fields=["recipe"])
