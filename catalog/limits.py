"""The limits that a person sets by hand on an endpoint or a model, as the roster file writes them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from catalog.shape import ShapeError, known_names, mapping, whole

# What is counted, over which windows. Minutes roll, days and months are the calendar's.
COUNTED = ("requests", "tokens")
WINDOWS = ("minute", "day", "month")
PARALLEL = "parallel"
# Limits of the same shape that refuse nothing: what they would have refused is counted.
SHADOW = "shadow"
# What one run of the suite may do on the connection.
RUN = "run"
MOST = 10**15
MOST_PARALLEL = 100_000


def checked(value: Any, field: str = "limits") -> dict[str, Any]:
    """Gives the limits with what says nothing (null, empty windows) left out.

    Shape: {"requests": {"minute": 30, "day": 1000, "month": 20000}, "tokens": {...}, "parallel": 4, "shadow": {the same}, "run": {"model_cost": 2.5}}; each
    part may be missing. Units: `model_cost` US dollars that one run of the suite may spend there.
    Errors: ShapeError that names the field.
    """
    limits = mapping(value, field)
    known_names(limits, (*COUNTED, PARALLEL, SHADOW, RUN), field)
    found = checked_windows(limits, field)
    if limits.get(SHADOW) is not None:
        path = f"{field}.{SHADOW}"
        shadow = mapping(limits[SHADOW], path)
        known_names(shadow, (*COUNTED, PARALLEL), path)
        if kept := checked_windows(shadow, path):
            found[SHADOW] = kept
    if limits.get(RUN) is not None and (run := checked_run(limits[RUN], f"{field}.{RUN}")):
        found[RUN] = run
    return found


class RunLimitError(ShapeError):
    """A ceiling that no connection can set on a run: what the suite's own paths answer with, too."""

    status = 422


def checked_run(value: Any, field: str) -> dict[str, float]:
    """Gives what one run may cost. Errors: ShapeError, also for what only a launch may limit."""
    limits = mapping(value, field)
    if "cost" in limits:
        raise RunLimitError(f"{field}.cost", "belongs to a launch; a connection has model_cost.")
    if unknown := [name for name in limits if name != "model_cost"]:
        raise RunLimitError(f"{field}.{unknown[0]}", "is not known. Known: model_cost.")
    if (cost := limits.get("model_cost")) is None:
        return {}
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not isfinite(cost) or cost <= 0:
        raise RunLimitError(f"{field}.model_cost", "must be a number of US dollars above 0.")
    return {"model_cost": float(cost)}


def checked_windows(limits: Mapping[str, Any], field: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for counted in COUNTED:
        if limits.get(counted) is None:
            continue
        path = f"{field}.{counted}"
        windows = mapping(limits[counted], path)
        known_names(windows, WINDOWS, path)
        if kept := {window: whole(windows[window], f"{path}.{window}", 1, MOST) for window in WINDOWS if windows.get(window) is not None}:
            found[counted] = kept
    if limits.get(PARALLEL) is not None:
        found[PARALLEL] = whole(limits[PARALLEL], f"{field}.{PARALLEL}", 1, MOST_PARALLEL)
    return found
