"""Which meters one upstream call is entered in, and under which caps: its endpoint's and its model's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.roster import Model
from health.limits import Caps
from health.reserve import Hold


def call_holds(model: Model, tokens: int) -> tuple[Hold, ...]:
    """What one call of a model holds. Empty where nothing limits it. Units: `tokens` estimated input and the output it may have."""
    return (
        *limit_holds(f"endpoint:{model.endpoint.id}", model.endpoint.limits, tokens),
        *limit_holds(f"model:{model.id}", model.limits, tokens),
    )


def limit_holds(scope: str, limits: Mapping[str, Any], tokens: int) -> list[Hold]:
    holds = []
    for measure, amount in (("requests", 1), ("tokens", tokens)):
        if caps := limits.get(measure):
            holds.append(Hold(scope, measure, amount, Caps(minute=caps.get("minute"), day=caps.get("day"), month=caps.get("month"))))
    if (most := limits.get("parallel")) is not None:
        holds.append(Hold(scope, "parallel", 1, Caps(parallel=most)))
    return holds
