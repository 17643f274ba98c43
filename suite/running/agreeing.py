"""How a run's judges agree, from what is kept of each sample."""

from __future__ import annotations

from typing import Any

from suite.grading import verdicts
from suite.models import Run, Sample
from suite.running import recording
from suite.statistics import agreement

# Each sample has to be unpacked for it: of larger runs the first so many tell enough.
MOST_SAMPLES = 5000


def of(run: Run) -> dict[str, Any] | None:
    """Tells how often judges gave a verdict, and how far they agree beyond chance; None for a run without judges."""
    grader = run.impl.grader or {}
    if not grader.get("judge"):
        return None
    opinions = silent = 0
    units: list[list[str]] = []
    rows = Sample.objects.filter(run=run, superseded=0).order_by("position", "trial").values_list("payload", flat=True)
    for payload in rows[:MOST_SAMPLES].iterator(chunk_size=500):
        said = (recording.unpacked(payload).get("metadata") or {}).get("judges") or []
        told = [str(one["verdict"]) for one in said if one.get("verdict") is not None]
        opinions, silent = opinions + len(said), silent + len(said) - len(told)
        if told:
            units.append(told)
    is_scale = verdicts.choices_of(grader.get("choices")).is_scale
    found = agreement.alpha(units, agreement.interval if is_scale else agreement.nominal)
    return {
        "opinions": opinions,
        "without_verdict": silent,
        "tasks_with_several": sum(len(said) > 1 for said in units),
        "krippendorff_alpha": None if found is None else round(found, 6),
        "metric": "interval" if is_scale else "nominal",
    }
