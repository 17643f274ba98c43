"""How far several judges agree beyond chance: Krippendorff's alpha, for any number of judges, some of whom said nothing of some tasks. Pure.

1 is full agreement, 0 what chance would give, below 0 systematic disagreement. None where it cannot be told: no task that two judged, or all said the same
of everything, so that chance would agree as well.

Source: K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

Difference = Callable[[Hashable, Hashable], float]


def nominal(one: Hashable, other: Hashable) -> float:
    return float(one != other)


def interval(one: Hashable, other: Hashable) -> float:
    return (float(str(one)) - float(str(other))) ** 2


def alpha(units: Iterable[Sequence[Hashable]], difference: Difference = nominal) -> float | None:
    """Gives alpha. Shape: a unit holds what each judge said of one task; with one or none it tells nothing."""
    together: Counter[tuple[Hashable, Hashable]] = Counter()
    for said in units:
        if len(said) < 2:
            continue
        counts = Counter(said)
        for one, n in counts.items():
            for other, m in counts.items():
                together[(one, other)] += n * (m - (one == other)) / (len(said) - 1)  # type: ignore[assignment]  # counts of pairs, each unit worth its judges
    totals: Counter[Hashable] = Counter()
    for (one, _), weight in together.items():
        totals[one] += weight
    every = sum(totals.values())
    expected = sum(totals[one] * totals[other] * difference(one, other) for one in totals for other in totals)
    if every <= 1 or expected == 0:
        return None
    observed = sum(weight * difference(one, other) for (one, other), weight in together.items())
    return 1 - (every - 1) * observed / expected
