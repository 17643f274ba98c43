"""The Beta distribution, as much of it as a rate with its uncertainty needs: mean and quantiles, without a numerical library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt

TINY = 1e-300
# The fraction below converges in about the square root of the larger parameter; this is enough for millions of verdicts.
STEPS = 5_000
NEAR = 1e-9
# Of the comparison of two: how many standard deviations of the first are looked at, in how many steps.
REACH, NODES = 12.0, 240


@dataclass(frozen=True, slots=True)
class Rate:
    """A share that was observed and what it says of the true one: the posterior's mean and 95% interval.

    Shape: `yes` of `of` (weights, so not always whole numbers); prior Beta(1, 1), which is every share being as likely as any other.
    `counted_yes` of `counted` is the same before it aged.
    """

    yes: float
    of: float
    mean: float
    low: float
    high: float
    counted_yes: float
    counted: float


def rate(yes: float, of: float, counted_yes: float | None = None, counted: float | None = None) -> Rate:
    """Works out the posterior Beta(1 + yes, 1 + of - yes). Nothing observed gives mean 0.5 and an interval from 0.025 to 0.975."""
    a, b = 1.0 + yes, 1.0 + max(0.0, of - yes)
    low, high = quantile(0.025, a, b), quantile(0.975, a, b)
    return Rate(yes, of, a / (a + b), low, high, yes if counted_yes is None else counted_yes, of if counted is None else counted)


@lru_cache(maxsize=4096)
def better(a: float, b: float, c: float, d: float) -> float:
    """Works out the probability that a Beta(a, b) value is above an independent Beta(c, d) one.

    Shape: no parameter under 1, as with posteriors over Beta(1, 1): there the density is bounded, and Simpson's rule meets it to six places.
    """
    mean, spread = a / (a + b), sqrt(a * b / ((a + b) ** 2 * (a + b + 1.0)))
    low, high = max(0.0, mean - REACH * spread), min(1.0, mean + REACH * spread)
    width = (high - low) / NODES
    whole = part = 0.0
    for n in range(NODES + 1):
        x = low + n * width
        weight = _density(x, a, b) * (1 if n in (0, NODES) else 4 if n % 2 else 2)
        whole += weight
        part += weight * distribution(x, c, d) if weight else 0.0
    return min(1.0, part / whole)


def _density(x: float, a: float, b: float) -> float:
    """Works out a Beta density but for rounding at the ends, where it is 0 or, for a parameter of 1, its limit."""
    if x <= 0.0:
        return exp(lgamma(a + b) - lgamma(a) - lgamma(b)) if a == 1.0 else 0.0
    if x >= 1.0:
        return exp(lgamma(a + b) - lgamma(a) - lgamma(b)) if b == 1.0 else 0.0
    return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1.0) * log(x) + (b - 1.0) * log1p(-x))


def distribution(x: float, a: float, b: float) -> float:
    """Works out the probability that a Beta(a, b) value is at most x: the regularised incomplete beta function.

    Source: the continued fraction of https://dlmf.nist.gov/8.17#E22, by Lentz's method.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    # Past the mean the fraction converges slowly; the mirrored one does not.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - distribution(1.0 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        fraction *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        step = d * c
        fraction *= step
        if abs(step - 1.0) < 1e-15:
            break
    return front * fraction


@lru_cache(maxsize=16384)
def quantile(p: float, a: float, b: float) -> float:
    """Finds the value below which a Beta(a, b) lies with probability p.

    The distribution only ever rises, so each value looked at narrows where it lies; Halley's steps meet it in a few, and where one leads outside, half
    of the way is gone instead.
    """
    low, high = 0.0, 1.0
    norm = lgamma(a + b) - lgamma(a) - lgamma(b)
    x = _start(p, a, b)
    for _ in range(80):
        error = distribution(x, a, b) - p
        low, high = (x, high) if error < 0.0 else (low, x)
        density = exp(norm + (a - 1.0) * log(x) + (b - 1.0) * log1p(-x))
        following = -1.0
        if density > TINY:
            step = error / density
            following = x - step / max(0.5, 1.0 - 0.5 * min(1.0, step * ((a - 1.0) / x - (b - 1.0) / (1.0 - x))))
            if abs(following - x) <= NEAR * min(x, 1.0 - x):  # and the next step would be far below what rounding leaves
                return following
        if not low < following < high:
            following = (low + high) / 2.0
            if not low < following < high:
                return following
        x = following
    return x


def _start(p: float, a: float, b: float) -> float:
    """Guesses a quantile. Source: https://dlmf.nist.gov/8.18 by its normal approximation, Abramowitz and Stegun 26.5.22."""
    if a < 1.0 or b < 1.0:
        return a / (a + b)
    t = sqrt(-2.0 * log(min(p, 1.0 - p)))
    z = t - (2.30753 + 0.27061 * t) / (1.0 + (0.99229 + 0.04481 * t) * t)
    z = -z if p < 0.5 else z
    if a == 1.0 or b == 1.0:
        exact: float = 1.0 - (1.0 - p) ** (1.0 / b) if a == 1.0 else p ** (1.0 / a)
        return min(max(exact, 1e-12), 1.0 - 1e-12)
    shift = (z * z - 3.0) / 6.0
    one, other = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h = 2.0 / (one + other)
    w = -z * sqrt(h + shift) / h - (other - one) * (shift + 5.0 / 6.0 - 2.0 / (3.0 * h)) if h + shift > 0 else 0.0
    guess = a / (a + b * exp(min(max(2.0 * w, -60.0), 60.0)))
    return min(max(guess, 1e-12), 1.0 - 1e-12)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
