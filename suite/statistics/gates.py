"""A threshold that a run must meet, answered honestly: pass, fail, or inconclusive where the run cannot tell.

Without a confidence a gate goes by the figure itself, as people who write `pass_rate=0.90` into a job expect, and says so where the interval straddles it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from suite.statistics.intervals import Interval

# Metric: whether more is better.
METRICS = {"pass_rate": True, "mean": True, "coverage": True, "cost": False, "p95_ms": False}
LEAST_COVERAGE = 0.98
WRITTEN = re.compile(r"(?P<metric>[a-z0-9_]+)\s*=\s*(?P<least>[0-9.eE+-]+)")


class GateError(ValueError):
    """A gate that cannot be read. The message says what one looks like."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Units: `threshold` as the metric's: a share for pass_rate, mean and coverage, US dollars for cost, milliseconds for p95_ms."""

    metric: str
    threshold: float

    @property
    def more_is_better(self) -> bool:
        return METRICS[self.metric]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one gate says of one run. `verdict`: pass, fail or inconclusive; `warning` where the figure alone would mislead."""

    gate: Gate
    verdict: str
    value: float | None
    interval: Interval | None
    reason: str
    warning: str = ""


def read(text: str) -> Gate:
    """Reads `pass_rate=0.90`. Errors: GateError."""
    found = WRITTEN.fullmatch(text.strip())
    if found is None or found["metric"] not in METRICS:
        raise GateError(f"A gate reads like pass_rate=0.90; the metrics are {', '.join(METRICS)}.")
    try:
        threshold = float(found["least"])
    except ValueError:
        raise GateError(f"{found['least']} is no number. A gate reads like pass_rate=0.90.") from None
    if not isfinite(threshold) or threshold < 0 or (METRICS[found["metric"]] and threshold > 1):
        raise GateError(
            f"{found['metric']} cannot reach {found['least']}: " + ("it is a share from 0 to 1." if METRICS[found["metric"]] else "it is never negative.")
        )
    return Gate(found["metric"], threshold)


def rule(
    gate: Gate,
    value: float | None,
    interval: Interval | None = None,
    *,
    coverage: float | None,
    least_coverage: float = LEAST_COVERAGE,
    three_valued: bool = False,
) -> Ruling:
    """Rules on one figure of a run.

    Shape: `value` is None where there is no figure: nothing was scored. `coverage` is what share of the tasks was scored; a run that left too much out fails,
    or is inconclusive where three values are asked for, whatever its figure: the missing tasks may be the hard ones. `interval` is the figure's.
    """
    unsure = "inconclusive" if three_valued else "fail"
    if value is None:
        return Ruling(gate, unsure, None, None, f"There is no {gate.metric}: nothing was scored.")
    if gate.metric != "coverage" and (coverage or 0.0) < least_coverage:
        return Ruling(gate, unsure, value, interval, f"Only {coverage or 0.0:.1%} of the tasks were scored, and a gate needs {least_coverage:.0%}.")
    meets = value >= gate.threshold if gate.more_is_better else value <= gate.threshold
    straddles = interval is not None and interval.low < gate.threshold < interval.high
    said = f"{gate.metric} is {value:.4g}, {'at least' if gate.more_is_better else 'at most'} {gate.threshold:.4g} is asked"
    if interval is not None:
        said += f" (interval {interval.low:.4g} to {interval.high:.4g}, n {interval.n})"
    if straddles and three_valued:
        return Ruling(gate, "inconclusive", value, interval, f"{said}: the interval holds the threshold.")
    warning = "The interval holds the threshold: another run may well end on its other side." if straddles else ""
    return Ruling(gate, "pass" if meets else "fail", value, interval, f"{said}.", warning)


def together(rulings: Mapping[str, Ruling] | list[Ruling]) -> str:
    """Gives the verdict of several gates: fail if one fails, else inconclusive if one is, else pass. No gate at all passes nothing."""
    said = [r.verdict for r in (rulings.values() if isinstance(rulings, Mapping) else rulings)]
    return "fail" if "fail" in said else "inconclusive" if "inconclusive" in said or not said else "pass"
