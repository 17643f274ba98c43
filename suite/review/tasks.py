"""Pairs and claims as rows of a benchmark: shuffled apart, under ids that tell nothing, with the line that marks them as benchmark data."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

APART = 5
MARK = "Benchmark data of Benchwarmers, not for training. Canary"


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a pair. Shape: `lines` are those at fault, from 1 in `code`; none for a control. `issue` is what a user reports, where it is shown."""

    code: str
    lines: tuple[int, ...]
    issue: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A faulty piece of code and a clean one, cut alike. Shape: `source` is what stands in both rows' source; `cluster` what errs together."""

    id: str
    faulty: Half
    clean: Half
    source: Mapping[str, str]
    cluster: str


@dataclass(frozen=True, slots=True)
class ClaimTask:
    """One statement about code that is attached."""

    id: str
    claim: str
    code: str
    value: bool
    source: Mapping[str, str] = field(compare=False)
    cluster: str


def canary(name: str) -> str:
    """Makes the line that marks a set's rows: the same in all of them, so that it tells nothing."""
    return f"{MARK} {hashlib.sha256(name.encode()).hexdigest()[:32]}."


def rows_of(pairs: Sequence[Pair], mark: str, seed: int) -> list[dict[str, Any]]:
    """Writes pairs as rows, in an order and under ids that do not tell which half is which."""
    chance = random.Random(seed)
    firsts: list[dict[str, Any]] = []
    seconds: list[dict[str, Any]] = []
    for pair in pairs:
        halves = [pair.faulty, pair.clean]
        chance.shuffle(halves)
        for half, rows, number in zip(halves, (firsts, seconds), (1, 2), strict=True):
            row_input: dict[str, Any] = {"code": half.code, "canary": mark}
            if half.issue:
                row_input["issue"] = half.issue
            rows.append(
                {
                    "task_id": f"{pair.id}-{number}",
                    "input": row_input,
                    "expected": {"lines": list(half.lines)},
                    "source": {**pair.source, "pair": pair.id},
                    "cluster": pair.cluster[:255],
                }
            )
    order = list(range(len(pairs)))
    chance.shuffle(order)
    # Blocks of first halves, then of their second ones: no pair stands together, and a run of the first rows still has whole pairs.
    found = []
    for start in range(0, len(order), APART):
        block = order[start : start + APART]
        found += [firsts[i] for i in block] + [seconds[i] for i in block]
    return found


def claim_rows(claims: Sequence[ClaimTask], mark: str, seed: int) -> list[dict[str, Any]]:
    found = [
        {
            "task_id": one.id,
            "input": {"claim": one.claim, "code": one.code, "canary": mark},
            "expected": {"value": one.value},
            "source": dict(one.source),
            "cluster": one.cluster[:255],
        }
        for one in claims
    ]
    random.Random(seed).shuffle(found)
    return found
