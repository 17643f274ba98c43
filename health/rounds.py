"""What comes after an endpoint's probes: the evidence is gathered and judged by `health.retirement`, suspects are asked once more, and the dead retired."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Min

from access import preferences
from catalog import candidates, status
from catalog.editing import UnknownEndpoint
from catalog.load import load_model
from catalog.status import Standing, StatusError
from health import errands, faults, probes, retirement
from health.alerts import raise_alert
from health.errands import Failed, Later, New, Task
from health.models import Attempt, Errand, ModelHealth, Probe
from health.probe_calls import CONFIRM, ProbeResult, put
from health.retirement import Second, Seen, Suspicion
from health.roll import roll

ACTOR = "health"
# Live calls and siblings' probes are evidence for so long.
FRESH = timedelta(hours=26)
# In how many of the newest probes a row of failed days is looked for.
LOOKED_AT = 60
PROBED = ("word", "confirm")
# What a failed list says of the connection, in the words of catalog.served and catalog.web.
LIST_KEY = re.compile(r"refused the key|wants a key|no credit|\b40[123]\b")
LIST_CONNECTION = re.compile(r"does not resolve|connection|did not answer within|did not finish|no HTTP|nothing that is HTTP|TLS|redirects")

REASONS = {
    faults.MODEL: "Its endpoint says that there is no such model.",
    faults.SERVER: "It has given no answer for days, while its endpoint is up.",
    retirement.UNLISTED: "Its endpoint no longer lists it.",
    retirement.LIVE: "A live call was told that there is no such model.",
}


# ------------------------------------------------------------------ judging a run


def do_judge(task: Task) -> Mapping[str, Any]:
    """The errand `judge`: one endpoint's models together, once their probes are done. Errors: Later, Failed."""
    mine = Errand.objects.filter(batch=task.batch, endpoint=task.endpoint, kind="probe")
    if (due := mine.filter(state__in=[Errand.State.WAITING, Errand.State.RUNNING]).aggregate(due=Min("due_at"))["due"]) is not None:
        raise Later(max(due + timedelta(seconds=1), datetime.now(UTC) + timedelta(seconds=30)), "Probes of its run are still waiting.")
    list_state, unlisted = look_at_list(task.endpoint)
    now = datetime.now(UTC)
    standing = {s.alias: s for s in status.standing(task.endpoint)}
    outcomes = {e.subject: e.outcome for e in mine if e.state == Errand.State.DONE}
    # A probe that somebody asks for is judged for that model alone; a schedule's run for all that take part.
    aliases = [m.alias for m in roll().models if m.endpoint.name == task.endpoint]
    seen = [see(standing[alias], outcomes.get(alias, {}), unlisted, now) for alias in aliases if alias in standing]
    found = retirement.judge(seen, list_state, preferences.value("health.failed_probes"))
    note_listing(seen, now, unlisted is not None)
    for alias in found.cleared:
        clear(alias)
    if found.connection:
        connection_alert(task.endpoint, found.connection)
    # What a person asked for spends on that model alone.
    suspects = [s for s in found.suspects if "by" not in task.details or s.alias in outcomes]
    queued = sum(suspect(task, s, outcomes.get(s.alias, {}), now) for s in suspects)
    if unlisted is not None:
        tell_what_is_back(task.endpoint, standing.values(), unlisted)
    return {
        "models": len(seen),
        "ok": sum(s.outcome == faults.OK for s in seen),
        "failed": sum(s.outcome == faults.FAILED for s in seen),
        "connection": found.connection,
        "suspects": [s.alias for s in suspects],
        "confirming": queued,
        "list": list_state,
    }


def look_at_list(endpoint: str) -> tuple[str, frozenset[str] | None]:
    """Asks for the endpoint's list, which costs nothing: how that went, and what it lacks; a list that failed is no evidence. Errors: Failed."""
    try:
        kept = candidates.refresh(endpoint)
    except UnknownEndpoint:
        raise Failed(f"There is no endpoint {endpoint} any more.") from None
    if not kept.error:
        return retirement.LIST_OK if kept.models else retirement.LIST_NONE, candidates.unlisted(endpoint)
    if LIST_KEY.search(kept.error):
        return faults.KEY, None
    return (faults.CONNECTION if LIST_CONNECTION.search(kept.error) else retirement.LIST_NONE), None


def see(model: Standing, outcome: Mapping[str, Any], unlisted: frozenset[str] | None, now: datetime) -> Seen:
    """Gathers what speaks for and against one model. Three queries."""
    since = model.at or datetime.min.replace(tzinfo=UTC)
    live = Attempt.objects.filter(model=model.alias, started_at__gte=max(now - FRESH, since)).exclude(purpose__in=["probe", "onboard"])
    newest = live.order_by("-started_at").first()
    health = ModelHealth.objects.filter(pk=model.alias).first()
    live_fault = "" if newest is None else faults.judged(newest.status, newest.http_status, newest.code, newest.error).fault
    answered_at = newest.started_at if newest is not None and newest.status == Attempt.Status.OK else None
    if answered_at and health and (health.last_ok_at is None or health.last_ok_at < answered_at):
        health.last_ok_at = answered_at
        health.save(update_fields=["last_ok_at"])
    return Seen(
        alias=model.alias,
        outcome=str(outcome.get("outcome", "")),
        fault=str(outcome.get("fault", "")),
        failed_in_row=failed_days(model.alias, since, answered_at),
        is_unlisted=unlisted is not None and model.served_name in unlisted,
        live_fault=live_fault,
        is_suspect=bool(health and health.suspect_since),
    )


def failed_days(alias: str, since: datetime, answered_at: datetime | None) -> int:
    """On how many days in a row its probes failed, newest first, since it was last put in play or answered. What is unknown counts neither way."""
    days = set()
    rows = Probe.objects.filter(model=alias, kind__in=PROBED, at__gt=max(since, answered_at or since)).exclude(outcome=Probe.Outcome.UNKNOWN)
    for at, outcome in rows.order_by("-at").values_list("at", "outcome")[:LOOKED_AT]:
        if outcome == Probe.Outcome.OK:
            break
        days.add(at.date())
    return len(days)


def note_listing(seen: Sequence[Seen], now: datetime, is_known: bool) -> None:
    """Keeps since when a model is missing from its endpoint's list."""
    if not is_known:
        return
    ModelHealth.objects.bulk_create([ModelHealth(pk=s.alias) for s in seen], ignore_conflicts=True)
    ModelHealth.objects.filter(pk__in=[s.alias for s in seen if s.is_unlisted], unlisted_since=None).update(unlisted_since=now)
    ModelHealth.objects.filter(pk__in=[s.alias for s in seen if not s.is_unlisted]).exclude(unlisted_since=None).update(unlisted_since=None)


def clear(alias: str) -> None:
    """It answers: nothing is held against it any more."""
    ModelHealth.objects.filter(pk=alias).update(suspect_since=None, suspect_reason="")


def suspect(task: Task, found: Suspicion, outcome: Mapping[str, Any], now: datetime) -> int:
    """Marks a model and queues the one call that decides, some minutes later. Gives how many were queued."""
    said = str(outcome.get("message", ""))
    ModelHealth.objects.get_or_create(pk=found.alias)
    ModelHealth.objects.filter(pk=found.alias, suspect_since=None).update(suspect_since=now)
    ModelHealth.objects.filter(pk=found.alias).update(suspect_reason=f"{REASONS[found.why]} {said}".strip()[:500])
    if Errand.objects.filter(kind="confirm", subject=found.alias, state__in=[Errand.State.WAITING, Errand.State.RUNNING]).exists():
        return 0
    due = now + timedelta(minutes=preferences.value("health.confirm_after_minutes"))
    first = {name: outcome.get(name) for name in ("attempt", "outcome", "fault", "http_status", "code", "message")}
    details = {"why": found.why, "first": {**first, "at": now.isoformat()}, "until": (due + probes.PATIENCE).isoformat(), **asked_by(task)}
    return errands.queue(
        [
            New(
                once=f"confirm:{found.alias}:{task.batch}",
                kind="confirm",
                subject=found.alias,
                endpoint=task.endpoint,
                batch=task.batch,
                details=details,
                priority=probes.PRIORITY,
                due_at=due,
            )
        ]
    )


def asked_by(task: Task) -> dict[str, Any]:
    return {"asked_by": task.details["by"]} if "by" in task.details else {}


def connection_alert(endpoint: str, why: str) -> None:
    """Says once an outage that an endpoint, not its models, is in trouble: the last good answer names the outage."""
    last_ok = Probe.objects.filter(endpoint=endpoint, outcome=Probe.Outcome.OK).order_by("-at").values_list("attempt", flat=True).first()
    raise_alert(
        "endpoint", endpoint, f"endpoint:{endpoint}:{last_ok or 'never'}", f"Endpoint {endpoint} is in trouble, and none of its models is blamed. {why}"
    )


def tell_what_is_back(endpoint: str, standing: Any, unlisted: frozenset[str]) -> None:
    """Says that a model which was retired while its endpoint did not list it is listed again. Nobody restores it but a person."""
    for model in standing:
        if model.is_retired and model.evidence.get("by") == ACTOR and model.evidence.get("listed") is False and model.served_name not in unlisted:
            raise_alert(
                "retired",
                model.alias,
                f"back:{model.alias}:{model.at.isoformat() if model.at else ''}",
                f"Endpoint {endpoint} lists {model.served_name} again: {model.alias}, which was retired, may be restored.",
            )


# ------------------------------------------------------------------ the call that decides


def do_confirm(task: Task) -> Mapping[str, Any]:
    """The errand `confirm`: asks a suspect once more, and retires it where that fails in the same way. Errors: Later, Failed."""
    model = load_model(task.subject)
    if model is None:
        raise Failed(f"There is no model {task.subject} any more.")
    if model.ad_hoc or model.retired:
        raise Failed(f"{task.subject} is {'retired already' if model.retired else 'ad hoc now'}.")
    judge = str(task.details.get("asked_by") or probes.JUDGE)[:200]
    result = probes.already(task, CONFIRM) or put(model, CONFIRM, purpose="probe", judge=judge, batch=probes.batch_of(task), stop=task.stop)
    outcome = probes.finish(task, result)
    list_state, unlisted = look_at_list(task.endpoint)
    good, bad = siblings(task)
    why = str(task.details.get("why", ""))
    decision = retirement.confirm(Second(why, result.outcome, result.fault, list_state, good, bad))
    if decision == retirement.CLEAR:
        clear(task.subject)
    elif decision == retirement.RETIRE:
        is_listed = None if unlisted is None else model.served_name not in unlisted
        retire(task, why, result, is_listed)
    return {**outcome, "decision": decision, "list": list_state, "siblings_ok": good, "siblings_failing": bad}


def siblings(task: Task) -> tuple[int, int]:
    """How many of the endpoint's other models answered, and how many did not, by the newest probe of each."""
    newest: dict[str, Probe] = {}
    playing = {s.alias for s in status.standing(task.endpoint) if not s.is_retired} - {task.subject}
    for row in Probe.objects.filter(endpoint=task.endpoint, model__in=playing, kind__in=PROBED, at__gte=datetime.now(UTC) - FRESH).order_by("-at"):
        if row.outcome != Probe.Outcome.UNKNOWN or row.fault == faults.KEY:
            newest.setdefault(row.model, row)
    good = sum(row.outcome == Probe.Outcome.OK for row in newest.values())
    return good, len(newest) - good


def retire(task: Task, why: str, result: ProbeResult, is_listed: bool | None) -> None:
    """Takes the model out of play with both observations kept. Somebody who was quicker is right."""
    first, second = dict(task.details.get("first") or {}), told(result)
    words = result.message or first.get("message") or "no answer"
    reason = f"{REASONS[why]} A second call {minutes_between(first)} later failed too: {words}"
    evidence = {
        "why": why,
        "first": first,
        "second": second,
        "listed": is_listed,
        "seen": f"First call {first.get('attempt') or 'none'}, second call {result.attempt}"
        + {None: "; its endpoint's list could not be had.", True: "; its endpoint still lists it.", False: "; its endpoint does not list it."}[is_listed],
    }
    try:
        status.retire_alias(task.subject, reason[: status.REASON_LENGTH], ACTOR, evidence)
    except StatusError as error:
        raise Failed(str(error)) from None
    clear(task.subject)
    raise_alert("retired", task.subject, f"retired:{task.subject}:{result.attempt}", f"Model {task.subject} was retired. {REASONS[why]} Its page restores it.")


def told(result: ProbeResult) -> dict[str, Any]:
    return {
        "attempt": result.attempt,
        "outcome": result.outcome,
        "fault": result.fault,
        "http_status": result.http_status,
        "code": result.code,
        "message": result.message[:300],
        "at": datetime.now(UTC).isoformat(),
    }


def minutes_between(first: Mapping[str, Any]) -> str:
    passed = datetime.now(UTC) - datetime.fromisoformat(str(first["at"])) if first.get("at") else timedelta()
    return f"{max(round(passed.total_seconds() / 60), 0)} min"
