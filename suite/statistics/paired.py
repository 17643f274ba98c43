"""Two runs of the same tasks compared task by task, which needs far fewer tasks than two intervals side by side.

Only shared tasks count. Outcomes that are all 0 or 1 and come unclustered go by the exact McNemar test; anything else by a bootstrap over clusters.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, fsum

from suite.statistics import intervals, power
from suite.statistics.intervals import CONFIDENCE, Interval

# With so many the last digit of a p value near 0.05 is the sampling's own.
RESAMPLES = 4_000
# A bootstrap over a handful of clusters claims more than it knows.
FEWEST_CLUSTERS = 8


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs say of each other. `verdict` is of the first: better, worse or inconclusive.

    Shape: `wins` and `losses` count tasks where one of both scored higher, `ties` the others; `difference` is the first's mean less the other's;
    `detectable` the smallest true difference that this many tasks would find four times of five.
    """

    verdict: str
    method: str
    shared: int
    wins: int
    losses: int
    ties: int
    difference: Interval | None
    p: float | None
    detectable: float | None
    only_first: int
    only_second: int
    reason: str = ""


def mcnemar(wins: int, losses: int) -> float:
    """Works out the exact two-sided p value of so many wins against so many losses, ties left out: both as likely, how rare is a split at least as uneven."""
    if wins < 0 or losses < 0:
        raise ValueError("There are no negative counts.")
    n, least = wins + losses, min(wins, losses)
    if n == 0:
        return 1.0
    tail = sum(comb(n, i) for i in range(least + 1))
    return min(1.0, float(2 * tail / (1 << n)))


def bootstrap(
    differences: Sequence[float], clusters: Sequence[Hashable], seed: int, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """Draws whole clusters again and again. Shape: low and high of the mean difference, and the two-sided p value of none."""
    sums: dict[Hashable, tuple[float, int]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        total, n = sums.get(cluster, (0.0, 0))
        sums[cluster] = total + difference, n + 1
    draw, blocks = random.Random(seed), list(sums.values())
    means = []
    for _ in range(resamples):
        drawn = draw.choices(blocks, k=len(blocks))
        means.append(fsum(total for total, _ in drawn) / sum(n for _, n in drawn))
    means.sort()
    edge = (1 - confidence) / 2
    low, high = means[int(edge * (resamples - 1))], means[int((1 - edge) * (resamples - 1))]
    # Counting oneself in keeps p above 0: so many draws cannot show less than 1 in so many.
    under, over = sum(m <= 0 for m in means), sum(m >= 0 for m in means)
    return low, high, min(1.0, 2 * (min(under, over) + 1) / (resamples + 1))


def within_bounds(found: Interval | None) -> Interval | None:
    """Cuts a difference of scores from 0 to 1 off where none can be. One of a single cluster stays open, since it says nothing."""
    if found is None or found.stderr is None:
        return found
    return replace(found, low=max(-1.0, found.low), high=min(1.0, found.high))


def compare(
    first: Mapping[str, float],
    second: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    *,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compares two runs by the tasks that both have a score for. Shape: scores and clusters by task id; a task without a cluster is its own."""
    shared = sorted(first.keys() & second.keys())
    differences = [first[task] - second[task] for task in shared]
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    blank = Comparison(
        verdict="inconclusive",
        method="none",
        shared=len(shared),
        wins=wins,
        losses=losses,
        ties=len(shared) - wins - losses,
        difference=None,
        p=None,
        detectable=None,
        only_first=len(first) - len(shared),
        only_second=len(second) - len(shared),
    )
    if not shared:
        return replace(blank, reason="The runs share no scored task.")
    names = [clusters.get(task, task) if clusters else task for task in shared]
    is_clustered = len(set(names)) < len(shared)
    difference = within_bounds(intervals.mean(differences, names, confidence))
    detectable = power.detectable(difference.stderr) if difference and difference.stderr is not None else None
    if not is_clustered and all(scores[task] in (0.0, 1.0) for scores in (first, second) for task in shared):
        p, method = mcnemar(wins, losses), "mcnemar"
    elif len(set(names)) < FEWEST_CLUSTERS:
        reason = f"Too few clusters to tell: {len(set(names))}, and {FEWEST_CLUSTERS} are needed."
        return replace(blank, method="bootstrap", difference=difference, detectable=detectable, reason=reason)
    else:
        low, high, p = bootstrap(differences, names, seed, confidence)
        method = "bootstrap"
        if difference:
            # Of few clusters a bootstrap draws too narrow: at 8 it found a difference of equals in 11% of tries, with the t interval beside it in 5%.
            p = max(p, intervals.two_sided(difference, names))
            difference = replace(difference, low=min(low, difference.low), high=max(high, difference.high))
    verdict = "inconclusive" if p > 1 - confidence else "better" if fsum(differences) > 0 else "worse" if fsum(differences) < 0 else "inconclusive"
    return replace(blank, verdict=verdict, method=method, difference=difference, p=p, detectable=detectable)
