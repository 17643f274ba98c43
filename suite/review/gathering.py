"""One go at a repository, from its name to rows that can be kept: pinned, tested as it is, planted in, mined, told of.

name or path ─▶ the commit ─▶ its files in a folder of their own ─▶ its tests in the sandbox ─▶ pairs and claims ─▶ rows
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.review import claims, fixes, functions, planting, repository, tasks, verifying
from suite.review.repository import Commit, Place, ReviewError
from suite.review.tasks import Pair
from suite.review.verifying import Tested
from suite.sandbox import box

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a go came to. Shape: rows as they are kept, and `told`, which counts what became of what was tried."""

    place: Place
    commit: Commit
    planted: list[dict[str, Any]] = field(default_factory=list)
    real: list[dict[str, Any]] = field(default_factory=list)
    claimed: list[dict[str, Any]] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    tests: str = ""


@contextmanager
def checked_out(place: Place, commit: Commit) -> Iterator[Path]:
    """Gives the files of a commit in a folder of their own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="review-") as folder:
        repository.unpack(place.folder, commit.id, Path(folder))
        yield Path(folder)


def need_sandbox() -> None:
    """Errors: ReviewError. A repository's code is run nowhere else."""
    if missing := box.trouble():
        raise ReviewError(f"A repository's code is run in a sandbox only, and there is none here: {missing}")


def as_it_is(place: Place, commit: Commit, tree: Path, say: Say, examples: int = 0) -> tuple[Tested | None, str]:
    """Runs the tests as they are; without any that pass, faults are shown by calls alone."""
    files = [path for path in repository.paths(place.folder, commit.id) if functions.is_product(path)]
    say(f"Running the tests of {place.name} as they are, in the sandbox ...")
    try:
        found = verifying.baseline(place, tree, files, examples)
    except verifying.NoTests as error:
        say(f"Its tests could not be run, so faults must show in calls: {error}")
        return None, str(error)
    said = f"{len(found.passing)} tests pass{f', {found.failing} fail' if found.failing else ''}; they run {len(found.covering)} files."
    say(said)
    return found, said


def seed(place: Place, commit: Commit, say: Say, *, planted: int, real: int, seed: int, take_unverified: bool = False, commits: Sequence[str] = ()) -> Gathered:
    """Plants faults and mines real ones. Errors: ReviewError."""
    need_sandbox()
    mark = tasks.canary(f"{place.name} {commit.id} {seed}")
    told: Counter[str] = Counter()
    pairs: list[Pair] = []
    said = ""
    if planted:
        with checked_out(place, commit) as tree:
            known, said = as_it_is(place, commit, tree, say)
            say(f"Planting {planted} faults ...")
            go = planting.Seeding(place, commit, tree, known, seed, take_unverified)
            pairs = planting.plant(go, planted)
            told.update(go.told)
    mined: list[Pair] = []
    if real:
        say(f"Looking for {real} real faults in the history ...")
        mining = fixes.Mining(place, commit, take_unverified, tuple(commits))
        mined = fixes.mine(mining, real)
        told.update(mining.told)
    return Gathered(place, commit, tasks.rows_of(pairs, mark, seed), tasks.rows_of(mined, mark, seed), [], told, said)


def claim(place: Place, commit: Commit, say: Say, *, count: int, seed: int) -> Gathered:
    """Makes claims about a repository's functions. Errors: ReviewError."""
    need_sandbox()
    mark = tasks.canary(f"{place.name} {commit.id} {seed}")
    with checked_out(place, commit) as tree:
        known, said = as_it_is(place, commit, tree, say, examples=6) if place.tests else (None, "")
        go = claims.Telling(place, commit, tree, known, seed)
        found = claims.tell(go, count)
    return Gathered(place, commit, [], [], tasks.claim_rows(found, mark, seed), go.told, said)
