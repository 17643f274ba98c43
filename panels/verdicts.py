"""Verdicts: what a judge found of one call after checking it, kept with its history, and what still waits for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from access import audit
from access.caller import Caller
from access.pages import Page, keyset
from panels import lookup, tally
from panels.models import Panel, Seat, Verdict
from wire.errors import CallerError

CLAIMS_MAX = 200
CALLS_MAX = 200  # looked up at once
CHARACTERS_MAX = 10_000
# Two parallel verdicts of one judge collide on a unique index, and each collision means that another one got in.
TRIES = 50
# What PostgreSQL cannot store (NUL) and what no UTF-8 can say (half a surrogate pair) become the replacement character.
UNSTORABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}

ANSWERED = (Seat.Status.OK, Seat.Status.PARTIAL, Seat.Status.TRUNCATED)


@dataclass(frozen=True, slots=True)
class VerdictValue:
    """One verdict as it is kept. Shape: `replaces` is the id of the same judge's verdict before it, None for a first one."""

    id: int
    call: str
    judge: str
    useful: bool | None
    note: str
    real: tuple[str, ...]
    false: tuple[str, ...]
    at: datetime
    replaces: int | None


@dataclass(frozen=True, slots=True)
class PendingSeat:
    call: str
    model: str


@dataclass(frozen=True, slots=True)
class Pending:
    """One panel with the seats of it that nobody has judged."""

    panel: str
    asked_at: datetime
    collection: str
    seats: tuple[PendingSeat, ...]


def record_verdict(judge: str, call: object, useful: object, note: object, real: object, false: object, now: datetime) -> VerdictValue:
    """Keeps a verdict; one by the same judge on the same call is replaced and stays as history.

    Errors: CallerError 400 naming the field where nothing is judged or a type or size is wrong, 404 for a call that is not on record.
    """
    call = _words("call", call)
    note = _words("note", "" if note is None else note)
    if useful is not None and not isinstance(useful, bool):
        raise CallerError("invalid_request", "useful must be true, false or null.", field="useful")
    real_claims, false_claims = _claims("real", real), _claims("false", false)
    if len(real_claims) + len(false_claims) > CLAIMS_MAX:
        raise CallerError("invalid_request", f"A verdict holds at most {CLAIMS_MAX} claims, real and false together.", field="false")
    if useful is None and not real_claims and not false_claims:
        raise CallerError("invalid_request", "Nothing is judged: say useful (true or false), or name real or false claims.", field="useful")
    found = lookup.call(call)
    if found is None:
        raise CallerError(
            "call_not_found", "No call with this id is on record. Take the call id from the reply's bench field or its x-bench-call header.", status=404
        )
    if settings.KEEP_TEXT_DAYS == 0:
        note = ""  # where no texts are kept a verdict holds only claims, and notes quote
    said = {"call": call, "judge": judge, "useful": useful, "note": note, "real": list(real_claims), "false": list(false_claims), "at": now}
    for _ in range(TRIES):
        try:
            return value(_replace(said | {"model": found.model, "collection": found.collection}, found.panel or call))
        except IntegrityError:
            continue
    raise CallerError("server_busy", "Many verdicts on this call arrived at once. Send it again.", status=503, retry_after_s=1.0)


def _replace(fields: dict[str, Any], panel: str) -> Verdict:
    with transaction.atomic():
        tally.alone(panel)
        before = Verdict.objects.select_for_update().filter(call=fields["call"], judge=fields["judge"], current=True).first()
        if before is not None:
            before.current = False
            before.save(update_fields=["current"])
        verdict = Verdict.objects.create(**fields, replaces=before)
        tally.enter(verdict, before, panel)
        # Claims and notes stay in the verdict: the trail tells who said what kind of thing when.
        changes = audit.diff({} if before is None else _kinds(before), _kinds(verdict))
        audit.record(verdict.judge, "verdict.replace" if before else "verdict.add", f"call {verdict.call}", changes)
        return verdict


def _kinds(verdict: Verdict) -> dict[str, Any]:
    return {"useful": verdict.useful, "real": len(verdict.real), "false": len(verdict.false)}


def value(verdict: Verdict) -> VerdictValue:
    return VerdictValue(
        id=verdict.pk,
        call=verdict.call,
        judge=verdict.judge,
        useful=verdict.useful,
        note=verdict.note,
        real=tuple(verdict.real),
        false=tuple(verdict.false),
        at=verdict.at,
        replaces=verdict.replaces_id,
    )


def current_of_calls(calls: Sequence[str]) -> dict[str, list[VerdictValue]]:
    """Reads what each judge last said of these calls, oldest first."""
    found: dict[str, list[VerdictValue]] = {call: [] for call in calls}
    for verdict in Verdict.objects.filter(call__in=calls, current=True).order_by("id"):
        found[verdict.call].append(value(verdict))
    return found


def judges_of_calls(calls: Sequence[str]) -> dict[str, list[str]]:
    """Reads who has judged these calls."""
    found: dict[str, list[str]] = {call: [] for call in calls}
    for call, judge in Verdict.objects.filter(call__in=calls, current=True).order_by("id").values_list("call", "judge"):
        found[call].append(judge)
    return found


def listed(filters: Mapping[str, str], limit: int = 50, page_token: str = "") -> Page[dict[str, Any]]:
    """Lists what judges say now, newest first. Shape: `filters` by model, collection or judge; each verdict with its model and collection."""
    rows = keyset(Verdict.objects.filter(current=True, **filters), ("at", "id"), limit, page_token, newest_first=True)
    return rows.mapped(lambda row: {**to_fields(value(row)), "model": row.model, "collection": row.collection})


def to_fields(verdict: VerdictValue) -> dict[str, Any]:
    return {field.name: getattr(verdict, field.name) for field in fields(verdict)}


def history_of_call(call: str) -> list[VerdictValue]:
    """Reads every verdict on a call, replaced ones too, oldest first."""
    return [value(verdict) for verdict in Verdict.objects.filter(call=call).order_by("id")]


def pending(whose: Caller | None, limit: int = 50, page_token: str = "") -> Page[Pending]:
    """Lists panels with answers that nobody has judged, oldest first: those that a caller asked, or with None everybody's.

    Answers that came whole or in part count; a merger's does not, for it is made of the others. Errors: CallerError for a token not of ours.
    """
    return _pending(_unjudged(), {} if whose is None else lookup.asked_by(whose), limit, page_token)


def pending_of(calls: object, limit: int = 50, page_token: str = "") -> Page[Pending]:
    """Lists the same of these seats alone, whoever asked them: who knows a call's id may judge it, and so may learn whether anybody has.

    Errors: CallerError 400 naming the field, 503 where the newest of them may still be on its way into a database that does not answer.
    """
    if not isinstance(calls, list) or not all(isinstance(call, str) for call in calls):
        raise CallerError("invalid_request", "calls must be a list of call ids.", field="calls")
    if len(calls) > CALLS_MAX:
        raise CallerError("invalid_request", f"calls names {len(calls)} seats; at most {CALLS_MAX} are looked up at once.", field="calls")
    calls = [call for call in calls if call.isprintable()]  # all others are no ids, and some of them no database takes
    if calls:
        newest = max(calls)  # ids sort by time, and only what a seat of a moment ago came to can be missing here
        lookup.after_a_drain(lambda: Seat.objects.filter(pk=newest).exclude(status=Seat.Status.RUNNING).exists() or None, newest)
    return _pending(_unjudged().filter(call__in=calls), {}, limit, page_token)


def _unjudged() -> QuerySet[Seat]:
    unjudged = Seat.objects.filter(status__in=ANSWERED).exclude(seat="merger").filter(~Exists(Verdict.objects.filter(call=OuterRef("call"))))
    return unjudged.order_by("position")


def _pending(unjudged: QuerySet[Seat], whose: dict[str, object], limit: int, page_token: str) -> Page[Pending]:
    panels = Panel.objects.filter(Exists(unjudged.filter(panel=OuterRef("pk"))), mode__in=["panel", "merged"], **whose)
    page = keyset(panels.only("id", "asked_at", "collection"), ("asked_at", "id"), limit, page_token)
    seats: dict[str, list[PendingSeat]] = {}
    for panel_id, call, model in unjudged.filter(panel__in=[p.pk for p in page.data]).values_list("panel_id", "call", "model"):
        seats.setdefault(panel_id, []).append(PendingSeat(call, model))
    # A verdict may have come between the two queries: a panel left without a seat is not pending any more.
    waiting = [Pending(p.pk, p.asked_at, p.collection, tuple(seats[p.pk])) for p in page.data if p.pk in seats]
    return Page(waiting, page.next)


def _words(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise CallerError("invalid_request", f"{field} must be a string.", field=field)
    if len(given) > CHARACTERS_MAX:
        raise CallerError("invalid_request", f"{field} holds {len(given)} characters; at most {CHARACTERS_MAX} are kept.", field=field)
    return given.translate(UNSTORABLE)


def _claims(field: str, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        raise CallerError("invalid_request", f"{field} must be a list of strings.", field=field)
    if len(given) > CLAIMS_MAX:
        raise CallerError("invalid_request", f"{field} holds {len(given)} claims; a verdict holds at most {CLAIMS_MAX}.", field=field)
    claims = []
    for position, claim in enumerate(given):
        name = f"{field}[{position}]"
        claims.append(_words(name, claim))
        if not claims[-1].strip():
            raise CallerError("invalid_request", f"{name} is an empty claim. Leave it out, or say what was claimed.", field=name)
    return tuple(claims)
