"""Who is left alone at a moment, until when and why; and how much of a limit is left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from health.limits import decode, used
from health.models import Meter
from health.resting import Resting, load_rests

# What a limit may be of; limits that only report are no limits.
MEASURES = frozenset({"requests", "tokens", "parallel"})


def resting(now: datetime) -> dict[str, Resting]:
    """Reads the rests that hold, by scope: `endpoint:<name>`, `model:<alias>`. One query."""
    return {scope: rest for scope, rest in load_rests().items() if rest.until > now}


def of_model(alias: str, endpoint: str, now: datetime) -> list[Resting]:
    """Reads the rests that hold a model back, its own and its endpoint's. One query."""
    held = resting(now)
    return [held[scope] for scope in (f"model:{alias}", f"endpoint:{endpoint}") if scope in held]


def left(scopes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Reads what is left of limits: for every limit in them the same shape with what may still be used now. One query.

    Shape: limits as a roster has them, by meter scope (`endpoint:3`, `model:12`); never below 0.
    """
    scopes = {scope: {m: cap for m, cap in limits.items() if m in MEASURES} for scope, limits in scopes.items()}
    names = [f"{scope}|{measure}" for scope, limits in scopes.items() for measure in limits]
    if not names:
        return {}
    now_ms = int(time.time() * 1000)
    meters = {row.scope: used(decode(row.state), now_ms) for row in _meters(names)}
    found: dict[str, dict[str, Any]] = {}
    for scope, limits in scopes.items():
        for measure, cap in limits.items():
            held = meters.get(f"{scope}|{measure}", {})
            rest = {w: max(0, most - held.get(w, 0)) for w, most in cap.items()} if isinstance(cap, Mapping) else max(0, cap - held.get(measure, 0))
            found.setdefault(scope, {})[measure] = rest
    return found


def _meters(names: Iterable[str]) -> Iterable[Meter]:
    return Meter.objects.filter(scope__in=list(names))
