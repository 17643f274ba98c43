"""The comparison tried on itself: where nothing differs, how often does it say that something does. Well above alpha, verdicts cannot be trusted."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from suite.statistics.intervals import Interval, wilson
from suite.statistics.paired import compare


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Shape: `alarms` of `trials` comparisons of equals found a difference; `is_sound` while the interval of that rate holds alpha or lies below it."""

    trials: int
    alarms: int
    rate: Interval
    alpha: float
    is_sound: bool


def a_a(
    first: Mapping[str, float],
    second: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    *,
    seed: int,
    trials: int = 200,
    alpha: float = 0.05,
) -> SelfCheck:
    """Compares two runs of one model as they are, but for which of both a cluster's scores are called: by a coin. All that is then found is false."""
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise ValueError("The runs share no scored task.")
    coin = random.Random(seed)
    alarms = 0
    for _ in range(trials):
        sides: dict[Hashable, bool] = {}
        one, other = {}, {}
        for task in shared:
            is_swapped = sides.setdefault(clusters.get(task, task) if clusters else task, coin.random() < 0.5)
            one[task], other[task] = (second[task], first[task]) if is_swapped else (first[task], second[task])
        alarms += compare(one, other, clusters, seed=coin.getrandbits(32), confidence=1 - alpha).verdict != "inconclusive"
    rate = wilson(alarms, trials)
    assert rate is not None
    return SelfCheck(trials, alarms, rate, alpha, rate.low <= alpha)
