"""How small a difference could have been seen, so that "no difference found" is not read as "there is none"."""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

ALPHA, POWER = 0.05, 0.8


def reach(alpha: float = ALPHA, power: float = POWER) -> float:
    """Gives how many standard errors a true difference must have, to be found with that power at that two-sided alpha."""
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)


def detectable(stderr: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Works out the minimum detectable effect of a comparison with that standard error."""
    return reach(alpha, power) * stderr


def tasks_needed(difference: float, discordant: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Works out how many paired 0/1 tasks find a difference where the runs disagree on that share of tasks. Errors: ValueError."""
    if not 0 < abs(difference) <= discordant <= 1:
        raise ValueError("The difference cannot be above the share of tasks on which the runs disagree, nor 0.")
    spread = sqrt(discordant - difference * difference)
    return ceil((reach(alpha, power) * spread / difference) ** 2)
