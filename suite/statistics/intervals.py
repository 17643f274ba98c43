"""One run's figure with its uncertainty: a rate of passes, or a mean of scores whose tasks may come in clusters.

Tasks of one repository or one document err together. Taking them for independent makes intervals too narrow, so a mean is given clusters where there are any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, inf, sqrt
from statistics import NormalDist

from panels.beta import distribution, quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, its standard error and its interval. Shape: `n` observations in `clusters`; `stderr` is None where one observation tells nothing of it."""

    estimate: float
    low: float
    high: float
    stderr: float | None
    n: int
    clusters: int


@lru_cache(maxsize=256)
def normal(confidence: float) -> float:
    """Gives how many standard errors to each side hold that share of a normal distribution."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(passed: int, scored: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Works out Wilson's interval of a rate of 0/1 outcomes. None where nothing was scored.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    if scored <= 0:
        return None
    if not 0 <= passed <= scored:
        raise ValueError(f"{passed} of {scored} is no rate.")
    z, rate = normal(confidence), passed / scored
    whole = 1 + z * z / scored
    centre = (rate + z * z / (2 * scored)) / whole
    half = z * sqrt(rate * (1 - rate) / scored + z * z / (4 * scored * scored)) / whole
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == scored else min(1.0, centre + half)
    return Interval(rate, low, high, sqrt(rate * (1 - rate) / scored), scored, scored)


@lru_cache(maxsize=1024)
def student(p: float, freedom: float) -> float:
    """Finds the value below which Student's t with so many degrees of freedom lies with probability p. Shape: p over 0.5 and under 1; at least 1 degree."""
    # For t > 0, P(T > t) is half of the incomplete beta function at freedom / (freedom + t²).
    x = quantile(2 * (1 - p), freedom / 2, 0.5) if freedom >= 2 else _by_halves(2 * (1 - p), freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def _by_halves(p: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def mean(values: Sequence[float], clusters: Sequence[Hashable] | None = None, confidence: float = CONFIDENCE) -> Interval | None:
    """Works out a mean with a t interval, its standard error clustered where clusters are given. None of nothing.

    A cluster that is a large part of all pulls the mean towards itself, so its deviation is taken from the mean without it; and clusters of unequal sizes
    tell as little of their spread as fewer equal ones. With clusters of one size both change nothing.
    Shape: `clusters` names each value's cluster. Without them each is its own.
    Source: E. Miller, Adding error bars to evals, arXiv 2411.00640, section 2.2; R. M. Bell and D. F. McCaffrey, Bias reduction in standard errors for
    linear regression with multi-stage samples, Survey Methodology 28 (2002), on the jackknife; L. Kish, Survey Sampling (1965), on unequal sizes.
    """
    n = len(values)
    if n == 0:
        return None
    centre = fsum(values) / n
    sums: dict[Hashable, float] = {}
    sizes: dict[Hashable, int] = {}
    for i, value in enumerate(values):
        name = clusters[i] if clusters is not None else i
        sums[name] = sums.get(name, 0.0) + (value - centre)
        sizes[name] = sizes.get(name, 0) + 1
    groups = len(sums)
    if groups < 2:
        return Interval(centre, -inf, inf, None, n, groups)
    stderr = sqrt(fsum((s / (1 - sizes[name] / n)) ** 2 for name, s in sums.items()) * (groups - 1) / groups) / n
    half = student(0.5 + confidence / 2, freedom(list(sizes.values()))) * stderr
    return Interval(centre, centre - half, centre + half, stderr, n, groups)


def alike(sizes: Sequence[int]) -> float:
    """Gives how many clusters of one size would tell as much as these of several."""
    return sum(sizes) ** 2 / sum(size * size for size in sizes)


def freedom(sizes: Sequence[int]) -> float:
    return max(1.0, alike(sizes) - 1)


def independent(passes: Sequence[bool], clusters: Sequence[Hashable]) -> float:
    """Gives how many independent outcomes would tell as much, by how alike those of a cluster are: few hits in small clusters make errors look small.

    Source: A. Donner and J. J. Koval, The estimation of intraclass correlation in the analysis of family data, Biometrics 36 (1980), by analysis of variance.
    """
    sizes, hits = Counter(clusters), Counter(name for name, is_hit in zip(clusters, passes, strict=True) if is_hit)
    n, groups = len(passes), len(sizes)
    if n == groups:
        return float(n)
    whole = sum(hits.values()) / n
    between = fsum((hits[name] - size * whole) ** 2 / size for name, size in sizes.items()) / (groups - 1)
    within = fsum(hits[name] * (1 - hits[name] / size) for name, size in sizes.items()) / (n - groups)
    usual = (n - sum(size * size for size in sizes.values()) / n) / (groups - 1)
    total = between + (usual - 1) * within
    likeness = min(1.0, max(0.0, (between - within) / total)) if total > 0 else 1.0
    return n / (1 + likeness * (n / alike(list(sizes.values())) - 1))


def two_sided(found: Interval, clusters: Sequence[Hashable]) -> float:
    """Works out the p value of a mean that is truly 0, by Student's t. Shape: `found` is the mean of values in these clusters, two or more."""
    if not found.stderr:
        return 1.0 if found.estimate == 0 or found.stderr is None else 0.0
    of, t = freedom(list(Counter(clusters).values())), found.estimate / found.stderr
    return distribution(of / (of + t * t), of / 2, 0.5)


def rate(passes: Sequence[bool], clusters: Sequence[Hashable], confidence: float = CONFIDENCE) -> Interval | None:
    """Works out the interval of a rate of 0/1 outcomes that come in clusters: Wilson's, as of the number of independent ones that would be as uncertain.

    The mean's own interval has no width where all failed or all passed, and reaches below 0 near there. Where all agree as many count as there are
    clusters, were they of one size; nowhere more than there are outcomes. One cluster tells nothing: 0 to 1. None of nothing.
    Source: E. L. Korn and B. I. Graubard, Confidence intervals for proportions with small expected number of positive counts, Survey Methodology 24 (1998).
    """
    plain = mean([float(p) for p in passes], clusters, confidence)
    if plain is None:
        return None
    if plain.stderr is None:
        return Interval(plain.estimate, 0.0, 1.0, None, plain.n, plain.clusters)
    p, spread = plain.estimate, plain.estimate * (1 - plain.estimate)
    # All alike in each cluster and so few of them that their spread is nothing by chance: no more than there are clusters.
    sizes = list(Counter(clusters).values())
    alone = min(plain.n, spread / plain.stderr**2, independent(passes, clusters)) if plain.stderr > 0 else alike(sizes)
    t = student(0.5 + confidence / 2, freedom(sizes))
    whole = 1 + t * t / alone
    centre = (p + t * t / (2 * alone)) / whole
    half = t * sqrt(spread / alone + t * t / (4 * alone * alone)) / whole
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return Interval(p, low, high, plain.stderr, plain.n, plain.clusters)
