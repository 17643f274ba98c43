"""The ceilings of a run, as a launch declares them: dollars and seconds, by level. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from suite.api.problems import Unprocessable, Wrong

# Level: quantities that mean something there, and whether they are whole numbers.
LEVELS: dict[str, dict[str, bool]] = {
    "run": {"cost": False, "duration": False, "tasks": True},
    "phase": {"cost": False, "duration": False},
    "task": {"cost": False, "duration": False, "attempts": True, "tokens": True, "output_bytes": True},
    "attempt": {"duration": False, "tokens": True, "output_bytes": True},
}
# Three thousand years, or more dollars than there are: beyond it sums and dates overflow.
MOST = 100_000_000_000
LEGACY = {"max_cost_cents": ("cost", 100), "max_duration_ms": ("duration", 1000), "max_tasks": ("tasks", 1)}


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no ceiling. Units: costs US dollars, durations seconds, tokens and bytes by name."""

    run_cost: float | None = None
    run_duration: float | None = None
    run_tasks: int | None = None
    phase_cost: float | None = None
    phase_duration: float | None = None
    task_cost: float | None = None
    task_duration: float | None = None
    task_attempts: int | None = None
    task_tokens: int | None = None
    task_output_bytes: int | None = None
    attempt_duration: float | None = None
    attempt_tokens: int | None = None
    attempt_output_bytes: int | None = None

    def said(self) -> dict[str, dict[str, Any]]:
        """Writes them as a launch does."""
        found: dict[str, dict[str, Any]] = {}
        for name, value in asdict(self).items():
            if value is not None:
                level, _, quantity = name.partition("_")
                found.setdefault(level, {})[quantity] = value
        return found


def read(limits: Any, constraints: Any = None) -> Limits:
    """Reads `limits` and the older `constraints`; of a ceiling that both set, the lower holds. Errors: Unprocessable naming every value that is none."""
    found: dict[str, Any] = {}
    wrongs: list[Wrong] = []
    if limits is not None and not isinstance(limits, Mapping):
        raise Unprocessable("invalid_limits", 'limits must be an object such as {"run": {"cost": 5.0}}.', [Wrong("/limits", "invalid", "must be an object.")])
    for level, quantities in (limits or {}).items():
        if level not in LEVELS or not isinstance(quantities, Mapping):
            wrongs.append(Wrong(f"/limits/{level}", "unknown_limit", f"The levels are {', '.join(LEVELS)}, each an object."))
            continue
        for quantity, value in quantities.items():
            pointer = f"/limits/{level}/{quantity}"
            if level == "run" and quantity == "model_cost":
                wrongs.append(Wrong(pointer, "connection_only", "model_cost belongs on the connection; here it is cost."))
            elif quantity not in LEVELS[level]:
                wrongs.append(Wrong(pointer, "unknown_limit", f"{level} has {', '.join(LEVELS[level])}."))
            elif (said := amount(value, LEVELS[level][quantity])) is None:
                wrongs.append(Wrong(pointer, "invalid", f"must be a number above 0 and at most {MOST:,}" + (", whole." if LEVELS[level][quantity] else ".")))
            else:
                found[f"{level}_{quantity}"] = said
    if constraints is not None and not isinstance(constraints, Mapping):
        wrongs.append(Wrong("/constraints", "invalid", "must be an object."))
    for name, value in (constraints if isinstance(constraints, Mapping) else {}).items():
        if name not in LEGACY:
            wrongs.append(Wrong(f"/constraints/{name}", "unknown_limit", f"There are {', '.join(LEGACY)}."))
        elif (said := amount(value, name == "max_tasks")) is None:
            wrongs.append(Wrong(f"/constraints/{name}", "invalid", f"must be a number above 0 and at most {MOST:,}."))
        else:
            quantity, unit = LEGACY[name]
            own = said if quantity == "tasks" else said / unit
            found[f"run_{quantity}"] = min(found.get(f"run_{quantity}", own), own)
    if wrongs:
        raise Unprocessable("invalid_limits", f"{wrongs[0].pointer} {wrongs[0].message}", wrongs)
    return Limits(**found)


def amount(value: Any, is_whole: bool) -> Any:
    """Gives a ceiling, None for what is none: zero, negative, NaN, true, more than can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 < value <= MOST:
        return None
    if is_whole:
        return int(value) if value == int(value) else None
    return float(value)


def narrower(*caps: int | None) -> int | None:
    """Of several caps the narrowest; None where there is none."""
    given = [cap for cap in caps if cap is not None]
    return min(given) if given else None
