"""Which meters one upstream call is entered in, and under which caps: its endpoint's and its model's limits, set by hand or told by the provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.roster import Model
from health.limits import ON_THE_WAY_MS, Caps
from health.reserve import SHADOW, Hold
from wire.limit_headers import habits_of

# What a call is for where somebody waits for it. Whatever else calls are for gives way to these.
FOREGROUND = frozenset({"panel", "merged", "route", "direct", "shadow", "compare"})
NOTHING: Mapping[str, Any] = {}


def call_holds(model: Model, tokens: int) -> tuple[Hold, ...]:
    """What one call of a model holds. Empty where nothing limits it. Units: `tokens` estimated input and the output it may have."""
    endpoint = model.endpoint
    if not (endpoint.limits or endpoint.learned or model.limits or model.learned):
        return ()
    zone = habits_of(endpoint.base_url).zone
    return (
        *limit_holds(f"endpoint:{endpoint.id}", endpoint.limits, tokens, endpoint.learned, zone),
        *limit_holds(f"model:{model.id}", model.limits, tokens, model.learned, zone),
    )


def shadow_holds(model: Model, tokens: int) -> tuple[Hold, ...]:
    """What one call holds of limits that only report."""
    endpoint = model.endpoint
    if "shadow" not in endpoint.limits and "shadow" not in model.limits:
        return ()
    zone = habits_of(endpoint.base_url).zone
    return (
        *limit_holds(f"{SHADOW}endpoint:{endpoint.id}", endpoint.limits.get("shadow", NOTHING), tokens, NOTHING, zone),
        *limit_holds(f"{SHADOW}model:{model.id}", model.limits.get("shadow", NOTHING), tokens, NOTHING, zone),
    )


def limit_holds(scope: str, limits: Mapping[str, Any], tokens: int, learned: Mapping[str, Any] = NOTHING, zone: str = "UTC") -> list[Hold]:
    """A limit that a person set goes before one that was learned, window by window."""
    holds = []
    for measure, amount in (("requests", 1), ("tokens", tokens)):
        caps, told = limits.get(measure), learned.get(measure)
        if told:
            amount, caps = fitted(amount, caps or NOTHING, told), {**told, **(caps or NOTHING)}
        if caps:
            holds.append(Hold(scope, measure, amount, Caps(caps.get("minute"), caps.get("day"), caps.get("month"), zone=zone, late_ms=ON_THE_WAY_MS)))
    most = limits.get("parallel")
    if most is None:
        most = learned.get("parallel")
    if most is not None:
        holds.append(Hold(scope, "parallel", 1, Caps(parallel=most)))
    return holds


def holding(limits: Mapping[str, Any], learned: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the limits that hold, in a roster's shape: those that a person set, and window by window those that were learned besides."""
    windows = {m: {**learned.get(m, NOTHING), **(limits.get(m) or NOTHING)} for m in ("requests", "tokens")}
    most = learned.get("parallel") if limits.get("parallel") is None else limits["parallel"]
    return {**{m: caps for m, caps in windows.items() if caps}, **({} if most is None else {"parallel": most})}


def fitted(amount: int, caps: Mapping[str, int], told: Mapping[str, int]) -> int:
    """What a call holds of a limit that was learned: no more than all of it.

    An estimate errs high and a provider counts in its own way, so a call that seems larger than a whole window still goes, once the window is empty; the
    provider says whether it is too large. Only what a person set makes a call impossible.
    """
    least = min([cap for window, cap in told.items() if window not in caps], default=amount)
    return least if least < amount <= min(caps.values(), default=amount) else amount
