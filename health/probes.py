"""Probes: one word a day, what it will cost, and asking for one now.

    plan ─▶ an errand a model (its connection's lane) ─▶ probe_calls.put ─▶ an errand an endpoint, behind them: health.rounds judges what was seen

ProbeError   a probe that cannot be asked for
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from access import audit
from access.ids import new_id
from catalog import candidates
from catalog.load import load_model
from catalog.roster import Model
from health import calls, errands, faults, ledger
from health.costs import usd_text
from health.errands import Failed, Later, New, Task
from health.estimates import ERRANDS, KINDS, estimate
from health.models import Attempt, Errand, Permit, Probe
from health.probe_calls import WORD, ProbeResult, Question, note_row, put, request_name, result_of_row
from health.resting import LIMIT, load_rests
from health.roll import answers_in_words, roll
from health.speed import QUESTIONS, measure

PRIORITY = 60
JUDGE_PRIORITY = 70
# How long an errand of a run waits for a rest or a limit to pass before it is left out.
PATIENCE = timedelta(hours=6)
# How soon it is looked again whether another host has said what became of a call.
ELSEWHERE_S = 5
JUDGE = "schedule"


class ProbeError(ValueError):
    """A probe that cannot be made. The message says why."""

    code = "invalid_request"


# ------------------------------------------------------------------ one probe


def probe_word(
    model: Model,
    purpose: str,
    judge: str,
    *,
    batch: str = "",
    minds_rests: bool = True,
    stop: threading.Event = calls.NEVER,
) -> ProbeResult:
    """Asks a model for one word in the cheapest form that it takes. For a thread of the queue. Errors: DatabaseAway."""
    return put(model, WORD, purpose=purpose, judge=judge, batch=batch, minds_rests=minds_rests, stop=stop)


# ------------------------------------------------------------------ planning a run


def plan_word(slot: datetime, now: datetime) -> dict[str, Any]:
    """Queues the daily probes of a schedule's slot, and what judges them. Shape: a report in numbers. The same slot queues nothing twice."""
    return plan("word", slot, now, judged=True)


def plan_perf(slot: datetime, now: datetime) -> dict[str, Any]:
    """Queues the weekly speed probes of a schedule's slot."""
    return plan("perf", slot, now, judged=False)


def plan(kind: str, slot: datetime, now: datetime, judged: bool) -> dict[str, Any]:
    who = roll()
    name = f"{kind}:{slot.astimezone(UTC):%Y-%m-%dT%H:%M}"
    details = {"since": now.isoformat(), "until": (now + PATIENCE).isoformat(), "slot": slot.isoformat()}
    new = [errand(ERRANDS[kind], f"{ERRANDS[kind]}:{m.alias}:{name}", m.alias, m.endpoint.name, name, details) for m in who.models]
    if judged:
        new += [judging(endpoint, name, details) for endpoint in sorted({m.endpoint.name for m in who.models})]
    queued = errands.queue(new)
    expected = estimate(kind, who.models)
    left = {f"left_out_{why}": len(aliases) for why, aliases in who.left_out.items() if aliases}
    return {"models": len(who.models), "queued": queued, "expected_cost_usd": usd_text(expected.cost_pusd), "unpriced": expected.unpriced, **left}


def errand(kind: str, once: str, alias: str, endpoint: str, batch: str, details: Mapping[str, Any], priority: int = PRIORITY) -> New:
    return New(once=once, kind=kind, subject=alias, endpoint=endpoint, batch=batch, details=details, priority=priority)


def judging(endpoint: str, batch: str, details: Mapping[str, Any]) -> New:
    """What comes after an endpoint's probes: the higher number waits in the lane until they are done."""
    return errand("judge", f"judge:{endpoint}:{batch}", endpoint, endpoint, batch, details, JUDGE_PRIORITY)


# ------------------------------------------------------------------ asking for one now


@dataclass(frozen=True, slots=True)
class Queued:
    """A probe that was asked for. `is_new` is false where the same one was waiting or running."""

    errand: int
    alias: str
    kind: str
    is_new: bool
    expected_cost_pusd: int | None


def request(alias: str, kind: str, by: str) -> Queued:
    """Queues a probe that a person asks for, and notes who. One that waits or runs already is not queued again.

    Errors: ProbeError; LookupError for no such model.
    """
    if kind not in KINDS:
        raise ProbeError(f"kind must be one of {', '.join(KINDS)}.")
    model = load_model(alias)
    if model is None:
        raise LookupError(alias)
    if model.ad_hoc:
        raise ProbeError(f"{alias} is ad hoc: it is called only where a person or a collection names it, and never probed.")
    if not answers_in_words(model, candidates.not_chat(model.endpoint.name)):
        raise ProbeError(f"{alias} does not answer in words, as far as its endpoint's list or its name tells; it cannot be probed.")
    cost = estimate(kind, [model]).cost_of(alias)
    if waiting := open_errand(alias, kind):
        return Queued(waiting, alias, kind, False, cost)
    name, now = f"now:{new_id('run')}", datetime.now(UTC)
    details = {"since": now.isoformat(), "until": (now + timedelta(minutes=10)).isoformat(), "by": by}
    once = f"{ERRANDS[kind]}:{alias}:{name}"
    new = [errand(ERRANDS[kind], once, alias, model.endpoint.name, name, details, priority=20)]
    if kind == "word" and not model.retired:
        new.append(judging(model.endpoint.name, name, details))
    with transaction.atomic():
        errands.queue(new)
        audit.record(by, "model.probe", alias, {"kind": [None, kind]})
    return Queued(Errand.objects.values_list("pk", flat=True).get(once=errands.once_of(once)), alias, kind, True, cost)


def open_errand(alias: str, kind: str) -> int | None:
    found = Errand.objects.filter(kind=ERRANDS[kind], subject=alias, batch__startswith="now:", state__in=[Errand.State.WAITING, Errand.State.RUNNING])
    return found.values_list("pk", flat=True).first()


# ------------------------------------------------------------------ doing them


def do_word(task: Task) -> Mapping[str, Any]:
    """The errand `probe`. Errors: Later, Failed."""
    return finish(task, already(task, WORD) or probe_word(model_of(task), "probe", judge_of(task), **options(task)))


def do_perf(task: Task) -> Mapping[str, Any]:
    """The errand `perf`. What was measured before its process died is not paid again. Errors: Later, Failed."""
    done = answered(task, QUESTIONS)
    speed = measure(model_of(task), "probe", judge_of(task), done=done, **options(task))
    if speed.problem:
        return finish(task, speed.problem)
    if task.stop.is_set() and len(done) + len(speed.results) < len(QUESTIONS):
        raise Later(datetime.now(UTC), "Its slice of time was over.")
    return {"outcome": faults.OK, "cost_pusd": speed.cost_pusd, "calls": speed.calls}


def model_of(task: Task) -> Model:
    """Errors: Failed, where there is nothing (left) to probe."""
    model = load_model(task.subject)
    if model is None:
        raise Failed(f"There is no model {task.subject} any more.")
    if model.ad_hoc:
        raise Failed(f"{task.subject} is ad hoc now, and is not probed.")
    if model.retired and "by" not in task.details:
        raise Failed(f"{task.subject} is retired, and is not probed by a schedule.")
    return model


def judge_of(task: Task) -> str:
    return str(task.details.get("by") or JUDGE)[:200]


def options(task: Task) -> dict[str, Any]:
    """A person who asks may look at what rests; a schedule leaves it alone."""
    return {"batch": batch_of(task), "minds_rests": "by" not in task.details or rests_on_a_limit(task), "stop": task.stop}


def batch_of(task: Task) -> str:
    """What the ledger's rows of one errand are found by: each says this and its question, see `probe_calls.request_name`."""
    return f"errand-{task.id}"


def calls_of(task: Task, alias: str = "") -> QuerySet[Attempt]:
    """The ledger's rows of one errand, newest first. Shape: `alias` where the errand's subject is something else."""
    return Attempt.objects.filter(model=alias or task.subject, request__startswith=f"{batch_of(task)}/").order_by("-started_at")


def rests_on_a_limit(task: Task) -> bool:
    """A limit that a provider stated is kept, whoever asks."""
    model, now = load_model(task.subject), datetime.now(UTC)
    standing = {scope: rest for scope, rest in load_rests().items() if rest.kind == LIMIT}
    return model is not None and calls.rest_of(model, standing, now) is not None


def catch_up(task: Task) -> None:
    """Sees to it that what an interrupted errand was answered is in the ledger, so that it is not paid again. Errors: DatabaseAway, Later.

    What was answered while the database was away waits in an outbox: this host's are looked at here; another host commits its own, and until then,
    or until it runs out, the call's permit stands.
    """
    if not task.interruptions:
        return
    ledger.catch_up(batch_of(task))
    if task.was_elsewhere and Permit.objects.filter(attempt__contains=f'"{batch_of(task)}/').exists():
        raise Later(datetime.now(UTC) + timedelta(seconds=ELSEWHERE_S), "A call of it may still be under way on another host.")


def rows_of(task: Task, alias: str = "") -> list[Probe]:
    """What an errand has asked so far: after an interruption or a wait there may be something. Errors: DatabaseAway, Later."""
    catch_up(task)
    return list(Probe.objects.filter(attempt__in=list(calls_of(task, alias).values_list("pk", flat=True))))


def answered(task: Task, questions: Sequence[Question], alias: str = "") -> list[str]:
    """The kinds of question that have been answered, also those whose process died before it had kept the evidence. Errors: DatabaseAway, Later."""
    noted = {probe.attempt: probe for probe in rows_of(task, alias)}
    kinds = {probe.kind for probe in noted.values() if probe.outcome == faults.OK}
    for question in questions:
        name = request_name(batch_of(task), question)
        rows = calls_of(task, alias).filter(request=name, status=Attempt.Status.OK).exclude(pk__in=noted)
        for row in rows if question.kind not in kinds else ():
            note_row(question, row)
            kinds.add(question.kind)
    return [question.kind for question in questions if question.kind in kinds]


def already(task: Task, question: Question, alias: str = "") -> ProbeResult | None:
    """What an errand found out before its process died, so that it is not paid twice. A call that was lost is asked again; both are on record.

    Errors: DatabaseAway, Later.
    """
    if not task.interruptions:
        return None
    noted = {p.attempt: p for p in rows_of(task, alias)}
    for row in calls_of(task, alias).filter(request=request_name(batch_of(task), question)):
        note = noted.get(row.pk)
        judged = faults.Judged(note.outcome, note.fault) if note else faults.judged(row.status, row.http_status, row.code, row.error)
        # A refused form is tried on from; whether a cut answer had a word in it the ledger does not know.
        if judged.fault in (faults.LOST, faults.REQUEST) or (note is None and row.status == Attempt.Status.TRUNCATED):
            continue
        return result_of_row(question, row, judged)
    return None


def finish(task: Task, result: ProbeResult) -> Mapping[str, Any]:
    """How a probe's errand ends: what could not go out waits a while, everything else is told as it is. Errors: Later."""
    if result.retry_at is not None and result.fault != faults.KEY and result.retry_at < datetime.fromisoformat(task.details["until"]):
        raise Later(result.retry_at, result.message)
    return {
        "outcome": result.outcome,
        "fault": result.fault,
        "attempt": result.attempt,
        "http_status": result.http_status,
        "code": result.code,
        "message": result.message[:300],
        "cost_pusd": result.cost_pusd,
        "calls": result.calls,
    }
