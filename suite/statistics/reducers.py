"""Several trials of one task made into one figure. An estimate that the trials cannot give is None, never 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import comb, fsum


def average(scores: Sequence[float]) -> float | None:
    return fsum(scores) / len(scores) if scores else None


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Estimates the chance that at least one of k trials passes, without bias. None where fewer than k were made.

    Source: M. Chen et al., Evaluating large language models trained on code, arXiv 2107.03374, equation 1.
    """
    if not _fits(trials, passed, k):
        return None
    return 1.0 - comb(trials - passed, k) / comb(trials, k)


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """Estimates the chance that all of k trials pass, without bias. None where fewer than k were made.

    Source: S. Yao et al., tau-bench, arXiv 2406.12045, section 3.
    """
    if not _fits(trials, passed, k):
        return None
    return comb(passed, k) / comb(trials, k)


def _fits(trials: int, passed: int, k: int) -> bool:
    if not 0 <= passed <= trials or k < 1:
        raise ValueError(f"{passed} passed of {trials} trials, k {k}: that cannot be.")
    return k <= trials


def majority(answers: Sequence[Hashable]) -> Hashable | None:
    """Gives the answer that most trials gave. None where two lead, or there is none."""
    leading = Counter(answers).most_common(2)
    if not leading or (len(leading) == 2 and leading[0][1] == leading[1][1]):
        return None
    return leading[0][0]
