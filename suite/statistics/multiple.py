"""Many comparisons at once: of twenty, one is found by chance at 5%. Holm's step-down keeps the chance of any false find at alpha."""

from __future__ import annotations

from collections.abc import Mapping


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Gives each p value adjusted for all that were looked at. Source: S. Holm, Scandinavian Journal of Statistics 6 (1979)."""
    adjusted: dict[str, float] = {}
    worst = 0.0
    for i, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        worst = max(worst, min(1.0, (len(p_values) - i) * p))
        adjusted[name] = worst
    return adjusted
