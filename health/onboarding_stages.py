"""What onboarding does with one model: stage after stage, each written down when it is over, so that whoever takes it up again pays for none twice.

register  on the roster, with what its endpoint's list and the catalogs say
check     one word (quick, full). A model that was added here and does not answer is taken out of play again, with the evidence
speed     a short and a long answer, timed (full)
suite     what benchmarks set up here (full)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from catalog import adding, candidates, editing, status
from catalog.load import load_model
from catalog.roster import Model
from catalog.shape import ShapeError
from health import errands, faults, probes
from health.models import Attempt, Onboarding
from health.onboarding import MODES, OPEN
from health.probe_calls import WORD, ProbeResult
from health.roll import answers_in_words
from health.speed import QUESTIONS, measure

PURPOSE = "onboard"
# How long a model waits for a limit to pass before its onboarding is given up.
PATIENCE = timedelta(hours=24)
AFTER_A_LIMIT = timedelta(minutes=1)
# Calls that a model has to give a first answer, where the server fails.
TRIES = 3
MOST_LINES = 200
NO_SUITE = "No benchmark is set up yet."


class Gone(Exception):
    """It was cancelled meanwhile."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What came of one stage. Shape: `outcome` is ok, skipped, unknown or failed, after which nothing more is done; `more` is kept with it."""

    outcome: str
    said: str
    more: Mapping[str, Any]

    def kept(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "said": self.said[:500], "at": timezone.now().isoformat(timespec="seconds"), **self.more}


# Takes an alias, the batch and an event that is set when it should come to an end, and gives what stands in the stage.
SuiteHook = Callable[[str, str, errands.Task], Mapping[str, Any]]
suite_hook: list[SuiteHook] = []


def fill_suite(function: SuiteHook) -> None:
    """Gives the stage `suite` something to do: benchmarks call this when they are set up."""
    suite_hook[:] = [function]


# ------------------------------------------------------------------ the errand


def do(task: errands.Task) -> Mapping[str, Any]:
    """Brings one model as far as its mode goes: what its errand calls. Errors: errands.Later, errands.Failed."""
    row = Onboarding.objects.select_related("batch").filter(pk=task.details["onboarding"], state__in=OPEN).first()
    if row is None:
        return {}
    try:
        walk(row, task)
    except Gone:
        return {}
    except errands.Later as later:
        keep(row, state=Onboarding.State.WAITING, message=later.why[:500])
        raise
    except (errands.Failed, *errands.AWAY):
        raise
    except Exception as failure:
        said = f"{type(failure).__name__}: {failure}"
        end(row, Onboarding.State.FAILED, said)
        raise
    return {"alias": row.alias}


def gave_up(task: errands.Task, why: str) -> None:
    """What ends its process each time is not tried for ever."""
    if row := Onboarding.objects.filter(pk=task.details["onboarding"], state__in=OPEN).first():
        end(row, Onboarding.State.FAILED, why)


def walk(row: Onboarding, task: errands.Task) -> None:
    """Errors: Gone, errands.Later, errands.Failed."""
    if task.interruptions and row.state == Onboarding.State.RUNNING:
        note(row, "Taken up again: the process that was at it had ended.")
    keep(row, state=Onboarding.State.RUNNING, started_at=row.started_at or timezone.now(), message="", log=row.log)
    for stage in MODES[row.mode]:
        if stage in row.stages_done:
            continue
        if task.stop.is_set():
            raise errands.Later(timezone.now(), "Goes on in a moment.")
        keep(row, stage=stage)
        try:
            came = STAGES[stage](row, task)
        finally:
            count_cost(row, task)
        row.stages_done = {**row.stages_done, stage: came.kept()}
        note(row, f"{stage}: {came.said}")
        keep(row, stages_done=row.stages_done, log=row.log, alias=row.alias)
        if came.outcome == "failed":
            end(row, Onboarding.State.FAILED, came.said)
            raise errands.Failed(came.said)
    odd = [f"{stage}: {came['said']}" for stage, came in row.stages_done.items() if came["outcome"] == "unknown"]
    end(row, Onboarding.State.DONE, "; ".join(odd))


def note(row: Onboarding, said: str) -> None:
    row.log = [*row.log, {"at": timezone.now().isoformat(timespec="seconds"), "said": said[:500]}][-MOST_LINES:]


def keep(row: Onboarding, **fields: Any) -> None:
    """Writes fields, unless it was cancelled meanwhile. Errors: Gone."""
    for name, value in fields.items():
        setattr(row, name, value)
    if not Onboarding.objects.filter(pk=row.pk, state__in=OPEN).update(**fields):
        raise Gone


def end(row: Onboarding, state: str, message: str) -> None:
    try:
        keep(row, state=state, message=message[:500], finished_at=timezone.now(), log=row.log)
    except Gone:
        pass


def count_cost(row: Onboarding, task: errands.Task) -> None:
    """Takes the cost from the ledger, which knows of every call whatever died."""
    found = calls_of(row, task).aggregate(cost=Sum("cost_pusd"), calls=Count("pk"), priced=Count("cost_pusd"))
    Onboarding.objects.filter(pk=row.pk).update(cost_pusd=int(found["cost"] or 0), unpriced=found["calls"] - found["priced"])


def calls_of(row: Onboarding, task: errands.Task) -> QuerySet[Attempt]:
    return probes.calls_of(task, row.alias).filter(purpose=PURPOSE).order_by()


# ------------------------------------------------------------------ the stages


def register(row: Onboarding, task: errands.Task) -> Stage:
    """Puts the model on the roster."""
    ad_hoc = row.mode == "quick_ad_hoc"
    try:
        placed = adding.place(row.endpoint, row.served_name, ad_hoc, row.batch.by)
    except editing.UnknownEndpoint:
        return Stage("failed", f"There is no endpoint {row.endpoint} any more.", {})
    except ShapeError as error:
        return Stage("failed", str(error), {})
    row.alias = placed.alias
    if placed.retired and ad_hoc:
        return Stage("failed", f"It is on the roster as {placed.alias}, and retired: {placed.reason} Restore it, or onboard it with a check.", {})
    kind = "ad hoc, called only where somebody names it" if placed.ad_hoc else "a full member"
    said = f"{'Added' if placed.is_new else 'On the roster already'} as {placed.alias}, {kind}."
    if not placed.is_listed:
        said += f" {row.endpoint} does not list it."
    return Stage("ok", said, {"new": placed.is_new, "alias": placed.alias})


def model_of(row: Onboarding) -> Model | None:
    return load_model(row.alias)


def answers(model: Model) -> bool:
    return answers_in_words(model, candidates.not_chat(model.endpoint.name))


def check(row: Onboarding, task: errands.Task) -> Stage:
    """Asks for one word. Errors: errands.Later."""
    model = model_of(row)
    if model is None:
        return Stage("failed", f"{row.alias} was taken off the roster meanwhile.", {})
    if not answers(model):
        return Stage("skipped", "It does not answer in words, so it is not asked for one.", {})
    known = probes.already(task, WORD, row.alias)
    if known is not None and known.fault not in ("", faults.MODEL, faults.KEY):
        known = None
    result = known or probes.probe_word(model, PURPOSE, row.batch.by, batch=probes.batch_of(task), stop=task.stop)
    waits_for(row, task, result)
    seen = evidence(result)
    if result.is_ok:
        said = f"It answered in {(result.latency_ms or 0) / 1000:.1f} s."
        if model.retired:
            editing.restore_model(row.alias, "It answered when it was onboarded again.", row.batch.by)
            said += " It is back in play."
        return Stage("ok", said, seen)
    said = result.message or f"It did not answer ({result.code or result.status})."
    if result.outcome == faults.UNKNOWN and result.fault == faults.REQUEST:
        return Stage("unknown", f"It refused the check, which need not mean that it does not work: {said}", seen)
    if row.stages_done.get("register", {}).get("new") and not model.retired:
        try:
            status.retire_alias(row.alias, f"Its check failed when it was onboarded: {said}", row.batch.by, seen)
        except status.StatusError:
            pass  # somebody was quicker
        said += " It was taken out of play."
    return Stage("failed", said, seen)


def speed(row: Onboarding, task: errands.Task) -> Stage:
    """Times a short and a long answer; a failure here keeps nobody off the bench. Errors: errands.Later."""
    model = model_of(row)
    if model is None:
        return Stage("failed", f"{row.alias} was taken off the roster meanwhile.", {})
    if not answers(model):
        return Stage("skipped", "It does not answer in words, so nothing was timed.", {})
    done = probes.answered(task, QUESTIONS, row.alias)
    found = measure(model, PURPOSE, row.batch.by, batch=probes.batch_of(task), done=done, stop=task.stop)
    if found.problem:
        waits_for(row, task, found.problem)
        return Stage("unknown", found.problem.message or "No time was measured.", evidence(found.problem))
    if task.stop.is_set() and len(done) + len(found.results) < len(QUESTIONS):
        raise errands.Later(timezone.now(), "Goes on in a moment.")
    rates = [f"{r.kind} {r.tokens_per_s:g} tokens/s" for r in found.results if r.tokens_per_s is not None]
    firsts = [f"first token after {r.ttft_ms / 1000:.2f} s" for r in found.results[:1] if r.ttft_ms is not None]
    return Stage("ok", f"Timed: {', '.join([*firsts, *rates]) or 'both answers came in one piece'}.", {})


def suite(row: Onboarding, task: errands.Task) -> Stage:
    """Hands over to the benchmarks, where there are any."""
    if not suite_hook:
        return Stage("skipped", NO_SUITE, {})
    came = dict(suite_hook[0](row.alias, row.batch_id, task))
    return Stage(str(came.pop("outcome", "ok")), str(came.pop("said", "The suite has run.")), came)


STAGES: dict[str, Callable[[Onboarding, errands.Task], Stage]] = {"register": register, "check": check, "speed": speed, "suite": suite}


def waits_for(row: Onboarding, task: errands.Task, result: ProbeResult) -> None:
    """Puts it off where a limit is met, which says nothing of the model, and after a fault of the server, some times. Errors: errands.Later."""
    if result.is_ok or result.fault in (faults.MODEL, faults.KEY, faults.REQUEST):
        return
    if result.attempt and result.fault in (faults.SERVER, faults.CONNECTION) and calls_of(row, task).count() >= TRIES:
        return
    if result.status == "limited" and result.retry_at is None:
        return  # a call of this size never fits
    now = timezone.now()
    until: datetime = max(result.retry_at or now + AFTER_A_LIMIT, now + timedelta(seconds=1))
    if until < (row.started_at or now) + PATIENCE:
        raise errands.Later(until, result.message or "A limit is used up for now.")


def evidence(result: ProbeResult) -> dict[str, Any]:
    """What a person needs to see it too."""
    return {
        "attempt": result.attempt,
        "status": result.status,
        "http_status": result.http_status,
        "code": result.code,
        "fault": result.fault,
        "calls": result.calls,
    }
