"""Gates of a run: thresholds that a job ends by. The server rules; here they are read, and an earlier run is stood beside.

Without a confidence a gate goes by the figure itself, and says so where the interval holds the threshold; with one it may be inconclusive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import click

from benchwright.cli.session import Session

# Metric: whether more is better.
METRICS = {"pass_rate": True, "mean": True, "coverage": True, "cost": False, "p95_ms": False}
WRITTEN = re.compile(r"\s*([a-z0-9_]+)\s*=\s*([0-9.eE+-]+)\s*")
NO_REGRESSION = re.compile(r"\s*no_regression(?:\s*@\s*alpha\s*=\s*([0-9.eE+-]+))?\s*")

PASS, FAIL, UNSURE = "pass", "fail", "inconclusive"


@dataclass(frozen=True, slots=True)
class Gate:
    """Units: `threshold` a share for pass_rate, mean and coverage, US dollars for cost, milliseconds for p95_ms."""

    metric: str
    threshold: float

    @property
    def said(self) -> str:
        return f"{self.metric}={self.threshold:g}"


@dataclass(frozen=True, slots=True)
class Ruling:
    gate: str
    verdict: str
    reason: str
    warning: str = ""
    interval: list[float] | None = None

    def said(self) -> dict[str, Any]:
        return {"gate": self.gate, "verdict": self.verdict, "interval": self.interval, "reason": self.reason, "warning": self.warning or None}


def read(text: str) -> Gate:
    """Reads `pass_rate=0.90`. Errors: UsageError."""
    found = WRITTEN.fullmatch(text)
    try:
        threshold = float(found[2]) if found else float("nan")
    except ValueError:
        threshold = float("nan")
    if found is None or found[1] not in METRICS or not isfinite(threshold):
        raise click.UsageError(f"A gate reads like pass_rate=0.90; the metrics are {', '.join(METRICS)}.")
    if threshold < 0 or (METRICS[found[1]] and threshold > 1):
        raise click.UsageError(f"{found[1]} cannot reach {found[2]}: " + ("it is a share from 0 to 1." if METRICS[found[1]] else "it is never negative."))
    return Gate(found[1], threshold)


def read_regression(text: str) -> float:
    """Reads `no_regression@alpha=0.05`. Errors: UsageError."""
    found = NO_REGRESSION.fullmatch(text)
    try:
        alpha = float(found[1] or 0.05) if found else 0.0
    except ValueError:
        alpha = 0.0
    if not 0 < alpha < 1:
        raise click.UsageError("--gate-vs takes a run and what must hold, like: --gate-vs run_… no_regression@alpha=0.05")
    return alpha


def ruled(session: Session, run: str, wanted: Sequence[Gate], confidence: float | None, least_coverage: float | None) -> tuple[list[Ruling], float | None]:
    """Has the server rule, by the team's settings where nothing is said. Shape: the rulings, and the confidence that held, None for two values."""
    found = session.bw.runs.gate(run, [gate.said for gate in wanted], confidence, least_coverage)
    rulings = [
        Ruling(gate.said, one.verdict, one.reason, one.get("warning") or "", one.get("interval")) for gate, one in zip(wanted, found.rulings, strict=True)
    ]
    return rulings, found.get("confidence")


def rule_regression(pair: Mapping[str, Any], alpha: float, confidence: float | None) -> Ruling:
    """Rules on a run beside an earlier one. Shape: `pair` is a comparison whose first run is the new one."""
    name, p = f"no_regression@alpha={alpha:g}", pair.get("p")
    difference = (pair.get("difference") or {}).get("estimate")
    if p is None or difference is None:
        return Ruling(name, FAIL if confidence is None else UNSURE, str(pair.get("reason") or "The runs have no task in common that both scored."))
    reason = f"{difference:+.1%} beside {pair.get('second')} (p {float(p):.3g}, {pair.get('shared')} tasks)"
    if float(p) <= alpha:
        return Ruling(name, FAIL if difference < 0 else PASS, f"{reason}: {'worse' if difference < 0 else 'better'}.")
    seen = pair.get("detectable")
    blind = f"A drop under {float(seen):.1%} would hardly have been seen." if isinstance(seen, int | float) else ""
    if confidence is not None:
        return Ruling(name, UNSURE, f"{reason}: no difference was shown, which is not that there is none.", blind)
    return Ruling(name, PASS, f"{reason}: no drop was shown.", blind)


def together(rulings: Sequence[Ruling]) -> str:
    verdicts = [r.verdict for r in rulings]
    return FAIL if FAIL in verdicts else UNSURE if UNSURE in verdicts else PASS
