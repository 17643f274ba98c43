"""The limits that a person sets by hand on an endpoint or a model, as the roster file writes them."""

from __future__ import annotations

from typing import Any

from catalog.shape import known_names, mapping, whole

# What is counted, over which windows. Minutes roll, days and months are the calendar's.
COUNTED = ("requests", "tokens")
WINDOWS = ("minute", "day", "month")
PARALLEL = "parallel"
MOST = 10**15
MOST_PARALLEL = 100_000


def checked(value: Any, field: str = "limits") -> dict[str, Any]:
    """Gives the limits with what says nothing (null, empty windows) left out.

    Shape: {"requests": {"minute": 30, "day": 1000, "month": 20000}, "tokens": {...}, "parallel": 4}; each part may be missing.
    Errors: ShapeError that names the field.
    """
    limits = mapping(value, field)
    known_names(limits, (*COUNTED, PARALLEL), field)
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
