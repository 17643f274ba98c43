"""How fast a model is: the time to its first token and its tokens a second after that, from a short and a long streamed answer. Shown, never decided by."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from catalog.roster import Model
from health import calls
from health.models import ModelHealth, Probe
from health.probe_calls import ProbeResult, Question, put

SHORT = Question("short", "Write one sentence of about fifteen words on rain.", words_tokens=48, stream=True)
LONG = Question("long", "Write the numbers from 1 to 150 in order, separated by commas, and nothing else.", words_tokens=400, stream=True)
QUESTIONS = (SHORT, LONG)
NEWEST = 5


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured. Shape: by kind, short and long; a kind that failed holds the result that says why.

    Units: `cost_pusd` trillionths of a US dollar, None where the price is unknown.
    """

    results: tuple[ProbeResult, ...]

    @property
    def is_ok(self) -> bool:
        return all(r.is_ok for r in self.results)

    @property
    def problem(self) -> ProbeResult | None:
        return next((r for r in self.results if not r.is_ok), None)

    @property
    def cost_pusd(self) -> int | None:
        costs = [r.cost_pusd for r in self.results]
        return None if None in costs else sum(c for c in costs if c is not None)

    @property
    def calls(self) -> int:
        return sum(r.calls for r in self.results)


def measure(
    model: Model,
    purpose: str,
    judge: str,
    *,
    batch: str = "",
    done: Sequence[str] = (),
    minds_rests: bool = True,
    stop: threading.Event = calls.NEVER,
) -> Speed:
    """Asks for a short and a long streamed answer, and keeps the medians. Kinds in `done` are left out. Stops at the first failure. Errors: DatabaseAway."""
    results = []
    for question in QUESTIONS:
        if question.kind in done:
            continue
        results.append(put(model, question, purpose=purpose, judge=judge, batch=batch, minds_rests=minds_rests, stop=stop))
        if not results[-1].is_ok or stop.is_set():
            break
    keep_medians(model.alias)
    return Speed(tuple(results))


def keep_medians(alias: str) -> None:
    """Works out the medians of the newest good answers of each kind. Two queries, and a write where something changed."""
    found: dict[str, Any] = {}
    for question in QUESTIONS:
        rows = list(Probe.objects.filter(model=alias, kind=question.kind, outcome=Probe.Outcome.OK).order_by("-at")[:NEWEST])
        if rows:
            found[question.kind] = medians([(r.ttft_ms, r.tokens_per_s) for r in rows]) | {"of": len(rows), "at": rows[0].at.astimezone(UTC).isoformat()}
    health, _ = ModelHealth.objects.get_or_create(pk=alias)
    if health.speed != found:
        health.speed = found
        health.save(update_fields=["speed"])


def medians(measured: Sequence[tuple[int | None, float | None]]) -> dict[str, Any]:
    """The medians of what was measured; None where nothing was."""
    firsts = [first for first, _ in measured if first is not None]
    rates = [rate for _, rate in measured if rate is not None]
    return {"ttft_ms": round(median(firsts)) if firsts else None, "tokens_per_s": round(median(rates), 1) if rates else None}


def measured_at(speed: dict[str, Any]) -> datetime | None:
    """When the newest of the measurements was made."""
    times = [datetime.fromisoformat(kind["at"]) for kind in speed.values()]
    return max(times, default=None)
