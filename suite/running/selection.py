"""Which rows of a version a run asks: all, the first so many, those that a parent failed, or those that are named. Frozen on the run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from suite.api.problems import Unprocessable, Wrong
from suite.models import Row, Run, Task

LOOKED_UP = 500  # values in one statement


@dataclass(frozen=True, slots=True)
class Selection:
    """Shape: `positions` None means all from 0 to `total` - 1, in which case no list is kept however many they are."""

    strategy: str  # all, first, failed or ids
    total: int
    positions: tuple[int, ...] | None
    digest: str
    scope: str  # full, limited, failed or ids

    def said(self, seed: int) -> dict[str, Any]:
        found: dict[str, Any] = {"strategy": self.strategy, "n": self.total, "seed": seed, "digest": self.digest}
        return found if self.positions is None else {**found, "positions": list(self.positions)}


def rows_of(subset: str, version: int) -> Any:
    return Row.objects.filter(subset_id=subset, since__lte=version)


def choose(subset: str, version: int, cap: int | None) -> Selection:
    """Takes a version's rows, the first so many in their order where a cap says so."""
    rows = rows_of(subset, version)
    there = rows.count()
    total = min(there, cap) if cap is not None else there
    is_cut = total < there
    return Selection("first" if is_cut else "all", total, None, digest_of(rows, total), "limited" if is_cut else "full")


def choose_ids(subset: str, version: int, task_ids: Sequence[str], cap: int | None = None) -> Selection:
    """Takes named rows, the first so many of them where a cap says so. Errors: Unprocessable listing those that are none."""
    wanted = list(dict.fromkeys(task_ids))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), LOOKED_UP):
        found |= dict(rows_of(subset, version).filter(task_id__in=wanted[start : start + LOOKED_UP]).values_list("task_id", "position"))
    if unknown := [name for name in wanted if name not in found]:
        raise Unprocessable(
            "unknown_task",
            f"There is no task {', '.join(unknown[:10])}{' and others' if len(unknown) > 10 else ''} in this version.",
            [Wrong(f"/replay/task_ids/{task_ids.index(name)}", "unknown_task", f"{name[:100]} is no task of it.") for name in unknown[:100]],
            unknown=unknown[:1000],
        )
    return listed("ids", subset, version, sorted(found.values())[:cap])


def choose_failed(parent: Run, subset: str, version: int, cap: int | None = None) -> Selection:
    """Takes the rows that a parent did not pass, those without a score among them. Errors: Unprocessable where it passed all."""
    tasks = Task.objects.filter(run=parent, scoring=parent.scoring)
    passed = set(tasks.filter(passed=True).values_list("task_id", flat=True))
    chosen = parent.selection.get("positions")
    wanted = frozenset(chosen) if chosen is not None else range(parent.total)
    there = rows_of(subset, version).order_by("position").values_list("position", "task_id").iterator(chunk_size=5000)
    positions = [position for position, task_id in there if position in wanted and task_id not in passed]
    if not positions:
        raise Unprocessable(
            "empty_scope", "The parent passed every task: there is none left to ask again.", [Wrong("/replay/only_failed", "empty_scope", "selects nothing.")]
        )
    return listed("failed", subset, version, positions[:cap])


def choose_again(scope: str, subset: str, version: int, positions: Sequence[int], cap: int | None = None) -> Selection:
    """Takes the rows that a parent's own list has, as far as the version has them. Errors: Unprocessable where it has none."""
    there: set[int] = set()
    for start in range(0, len(positions), LOOKED_UP):
        there.update(rows_of(subset, version).filter(position__in=positions[start : start + LOOKED_UP]).values_list("position", flat=True))
    if not there:
        raise Unprocessable("empty_scope", "This version has none of the parent's tasks.", [Wrong("/replay/subset_version", "empty_scope", "selects nothing.")])
    return listed(scope, subset, version, sorted(there)[:cap])


def listed(strategy: str, subset: str, version: int, positions: Sequence[int]) -> Selection:
    """Takes rows by position. Shape: `positions` in order."""
    return Selection(strategy, len(positions), tuple(positions), digest_at(rows_of(subset, version), positions), strategy)


def digest_of(rows: Any, total: int) -> str:
    """Makes one digest of the first rows, in order."""
    return summed(rows.order_by("position").values_list("digest", flat=True)[:total].iterator(chunk_size=5000))


def digest_at(rows: Any, positions: Sequence[int]) -> str:
    """Makes one digest of the rows that were chosen, in order. Databases take so many values in one statement and no more: they are looked up by parts."""
    parts = (positions[start : start + LOOKED_UP] for start in range(0, len(positions), LOOKED_UP))
    return summed(digest for part in parts for digest in rows.filter(position__in=part).order_by("position").values_list("digest", flat=True))


def summed(digests: Iterable[str]) -> str:
    sum_ = hashlib.sha256()
    for digest in digests:
        sum_.update(bytes.fromhex(digest))
    return sum_.hexdigest()


def digest_again(run: Run) -> str:
    """Makes the digest of a run's rows once more: of one whose tasks are what they were it is the one that was frozen."""
    rows = rows_of(run.subset_id, run.version)
    positions = run.selection.get("positions")
    return digest_at(rows, positions) if positions is not None else digest_of(rows, run.total)
