"""Whether a run meets thresholds, ruled on by the server with its team's settings."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from suite import teamsettings
from suite.api.problems import Conflict, Unprocessable, wrong
from suite.api.view import View
from suite.models import Run, Task
from suite.running import summary
from suite.running.launching import find_run
from suite.statistics import gates, intervals
from suite.statistics.intervals import Interval

MOST_GATES = 20


class Gate(View):
    scopes = {"GET": ("runs:read",)}
    filters = ("require", "confidence", "min_coverage")

    def get(self, request: Request, run: str) -> Response:
        """Rules on ?require=pass_rate=0.90, as often as needed: pass or fail by the figure, or with a confidence pass, fail or inconclusive."""
        row = find_run(self.caller, run)
        asked = self.filters_wanted()
        try:
            wanted = [gates.read(text) for text in asked.get("require", [])]
        except gates.GateError as error:
            raise Unprocessable("invalid_gate", str(error)) from None
        if not 1 <= len(wanted) <= MOST_GATES:
            raise Unprocessable("invalid_gate", f"require names what must be met, 1 to {MOST_GATES} times, such as pass_rate=0.90.")
        confidence = share(asked, "confidence", teamsettings.value(row.team, "default_gate_confidence"), 0.5, 0.999)
        least = share(asked, "min_coverage", teamsettings.value(row.team, "gate_min_coverage"), 0.0, 1.0)
        if row.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED):
            raise Conflict("run_not_over", "The run has not ended yet, so there is nothing to rule on.")
        told = summary.of(row)
        rulings = [
            gates.rule(
                gate,
                value_of(gate.metric, told),
                interval_of(row, gate.metric, told, confidence or intervals.CONFIDENCE),
                coverage=told["coverage"],
                least_coverage=least if least is not None else gates.LEAST_COVERAGE,
                three_valued=confidence is not None,
            )
            for gate in wanted
        ]
        verdict = gates.together(rulings) if row.status == Run.Status.OK else "fail"
        return Response(
            {
                "object": "gate",
                "run": row.pk,
                "status": row.status,
                "verdict": verdict,
                "confidence": confidence,
                "min_coverage": least,
                "coverage": told["coverage"],
                "rulings": [ruling_of(ruling) for ruling in rulings],
            }
        )


def share(asked: dict[str, list[str]], name: str, default: float | None, low: float, high: float) -> float | None:
    """Reads a share from the query. Errors: Unprocessable."""
    if name not in asked:
        return default
    try:
        value = float(asked[name][-1])
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise wrong("", f"{name} must be a number from {low:g} to {high:g}.")
    return value


def value_of(metric: str, told: dict[str, Any]) -> float | None:
    """Finds a gate's figure in a run's summary. A cost that is not known whole is none."""
    if metric == "cost":
        return float(told["cost_usd"]) if told["cost_complete"] and told["cost_usd"] is not None else None
    found = told["duration_ms_p95"] if metric == "p95_ms" else told[metric]
    return None if found is None else float(found)


def interval_of(run: Run, metric: str, told: dict[str, Any], confidence: float) -> Interval | None:
    if metric == "pass_rate":
        return summary.of_rate(run, run.scoring, told["passed"], told["scored"], confidence)
    if metric != "mean":
        return None
    rows = list(Task.objects.filter(run=run, scoring=run.scoring, score__isnull=False).values_list("score", "cluster", "position"))
    return intervals.mean([float(score or 0.0) for score, _, _ in rows], [cluster or position for _, cluster, position in rows], confidence)


def ruling_of(ruling: gates.Ruling) -> dict[str, Any]:
    interval = ruling.interval
    finite = interval is not None and interval.stderr is not None
    return {
        "metric": ruling.gate.metric,
        "threshold": ruling.gate.threshold,
        "more_is_better": ruling.gate.more_is_better,
        "value": ruling.value,
        "interval": [interval.low, interval.high] if interval is not None and finite else None,
        "verdict": ruling.verdict,
        "reason": ruling.reason,
        "warning": ruling.warning or None,
    }
