"""Drift: the same questions every night, and an alarm when something else seems to answer under a model's name.

learning (the first nights) ─▶ steady ⇄ doubtful (one strange night) ─▶ changed ─▶ a person accepts: learning anew
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from access import audit
from catalog.load import load_model
from catalog.roster import Model
from health import drift_distance, faults, probes
from health.alerts import raise_alert
from health.drift_distance import LEAST, MOST, Comparison, Heard, Night, compare, heard, is_change
from health.drift_prompts import PROMPTS
from health.errands import Later, Task
from health.models import ModelHealth, Probe
from health.probe_calls import put
from health.probes import ProbeError

LEARNING, STEADY, DOUBTFUL, CHANGED = "learning", "steady", "doubtful", "changed"
# After so many questions without an answer a night is given up.
MOST_FAILURES = 2


def plan(slot: datetime, now: datetime) -> dict[str, Any]:
    """Queues a night's questions for every model that takes part. The same slot queues nothing twice."""
    return probes.plan("drift", slot, now, judged=False)


# ------------------------------------------------------------------ a night


def do_drift(task: Task) -> Mapping[str, Any]:
    """The errand `drift`: one model's night. Answers that are there already are not paid again. Errors: Later, Failed."""
    model = probes.model_of(task)
    done = {row.prompt for row in probes.rows_of(task) if row.outcome == Probe.Outcome.OK}
    failures, cost, result = 0, 0, None
    for question in PROMPTS:
        if question.prompt in done:
            continue
        if task.stop.is_set():
            raise Later(datetime.now(UTC), "Its slice of time was over.")
        result = put(model, question, purpose="probe", judge=probes.judge_of(task), **probes.options(task))
        if not result.attempt:
            return probes.finish(task, result)
        cost += result.cost_pusd or 0
        failures += not result.is_ok
        if failures > MOST_FAILURES or result.fault == faults.KEY:
            return {**probes.finish(task, result), "drift": "", "answers": len(done)}
    night = night_of(task)
    state = take_in(model, night, task.id, datetime.now(UTC)) if drift_distance.counts(night, len(PROMPTS)) else ""
    return {"outcome": faults.OK if state else faults.UNKNOWN, "drift": state, "answers": len(night), "cost_pusd": cost}


def night_of(task: Task) -> dict[str, Heard]:
    """What one errand was answered, by question."""
    return {
        row.prompt: Heard(row.answer, row.seen.get("finish", ""), None if row.seen.get("estimated", True) else row.seen.get("input_tokens"), served_as(row))
        for row in reversed(probes.rows_of(task))
        if row.outcome == Probe.Outcome.OK and row.prompt
    }


def served_as(row: Probe) -> str:
    return str(row.seen.get("served_as", ""))


def take_in(model: Model, night: Night, errand: int, now: datetime) -> str:
    """Compares a night with the baseline, keeps what follows, and raises the alarm. Gives the state."""
    with transaction.atomic():
        health, _ = ModelHealth.objects.select_for_update().get_or_create(pk=model.alias)
        before = health.drift if health.drift.get("of") == identity(model, health) else {}
        if before.get("errand") == errand:
            return str(before["state"])
        after = following(before, night, now)
        health.drift = {**after, "errand": errand, "of": identity(model, health)}
        health.save(update_fields=["drift"])
    if after["state"] == CHANGED and before.get("state") != CHANGED:
        raise_alert("drift", model.alias, f"drift:{model.alias}:{after['changed_at']}", message(model.alias, after["newest"]))
    return str(after["state"])


def identity(model: Model, health: ModelHealth) -> list[Any]:
    """What must be the same for nights to be compared: who is asked, and how."""
    form = health.probe_form
    return [model.endpoint.name, model.served_name, form.get("effort", ""), form.get("temperature", True)]


def following(before: Mapping[str, Any], night: Night, now: datetime) -> dict[str, Any]:
    """The state after a night. Pure. Shape: `baseline` and `odd` are nights, each {"at", "heard": by question}."""
    kept = {"at": now.isoformat(), "heard": {name: one.as_json() for name, one in night.items()}}
    baseline: list[Any] = list(before.get("baseline", []))
    rest = {"since": before.get("since") or kept["at"], "accepted_by": before.get("accepted_by", "")}
    if len(baseline) < LEAST:
        baseline.append(kept)
        return {**rest, "state": STEADY if len(baseline) == LEAST else LEARNING, "baseline": baseline, "odd": None, "newest": None, "changed_at": None}
    nights = [read_night(one) for one in baseline]
    found = compare(night, nights)
    newest = {"at": kept["at"], **as_json(found)}
    if not found.is_strange:
        # The baseline grows from nights that fit it, up to a point: one that went on growing would follow a slow change.
        grown = [*baseline, kept] if len(baseline) < MOST else baseline
        return {**rest, "state": STEADY, "baseline": grown, "odd": None, "newest": newest, "changed_at": None}
    odd = before.get("odd")
    if before.get("state") == CHANGED:
        return {**rest, "state": CHANGED, "baseline": baseline, "odd": kept, "newest": newest, "changed_at": before.get("changed_at")}
    if odd and is_change(read_night(odd), night, nights):
        return {**rest, "state": CHANGED, "baseline": baseline, "odd": kept, "newest": newest, "changed_at": odd["at"]}
    return {**rest, "state": DOUBTFUL, "baseline": baseline, "odd": kept, "newest": newest, "changed_at": None}


def read_night(kept: Mapping[str, Any]) -> dict[str, Heard]:
    return {name: heard(one) for name, one in kept["heard"].items()}


def as_json(found: Comparison) -> dict[str, Any]:
    return {
        "effect": found.effect,
        "z": found.z,
        "prompts": {name: list(pair) for name, pair in found.prompts.items()},
        "tokens": {name: list(pair) for name, pair in found.tokens.items()},
        "names": list(found.names) if found.names else None,
    }


def message(alias: str, newest: Mapping[str, Any]) -> str:
    """The alarm's evidence in a sentence or two."""
    signs = []
    if newest["names"]:
        signs.append(f"it is served as {newest['names'][1]}, before as {newest['names'][0]}")
    if newest["tokens"]:
        name, (was, now) = next(iter(newest["tokens"].items()))
        signs.append(f"the same question takes {now} tokens, before {was} ({name}, and {len(newest['tokens']) - 1} more)")
    if newest["effect"] >= drift_distance.LEAST_EFFECT and newest["z"] >= drift_distance.Z:
        signs.append(f"its answers are {newest['effect']:.2f} further from the baseline than its nights from each other (z {newest['z']:.1f})")
    return f"Something else seems to answer under {alias}, two nights in a row: {'; '.join(signs)}."[:500]


# ------------------------------------------------------------------ what people see and do


def shown(kept: Mapping[str, Any]) -> dict[str, Any] | None:
    """The state without the answers' texts; None where no night was asked for."""
    if not kept:
        return None
    return {"state": kept["state"], "since": kept["since"], "nights": len(kept["baseline"]), "changed_at": kept["changed_at"], "newest": kept["newest"]}


def accept(alias: str, by: str) -> None:
    """Takes what answers now as the new baseline: the newest night is its first. Errors: LookupError for no such model, ProbeError for nothing to accept."""
    if load_model(alias) is None:
        raise LookupError(alias)
    with transaction.atomic():
        health = ModelHealth.objects.select_for_update().filter(pk=alias).first()
        if health is None or not health.drift:
            raise ProbeError(f"{alias} has no baseline yet: nothing was asked at night. Switch the schedule drift on, or ask for a probe of kind drift.")
        kept = health.drift
        first = kept.get("odd") or kept["baseline"][-1]
        # The nights' identity stays: only what is usual begins anew.
        health.drift = {
            "state": LEARNING,
            "since": first["at"],
            "baseline": [first],
            "odd": None,
            "newest": None,
            "changed_at": None,
            "accepted_by": by[:200],
            "errand": kept.get("errand"),
            "of": kept.get("of"),
        }
        health.save(update_fields=["drift"])
        audit.record(by, "model.baseline", alias, {"drift": [kept["state"], LEARNING]})
