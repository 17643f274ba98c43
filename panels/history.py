"""What became of a panel: its seats with their money and verdicts, read back from the record; and the end of its texts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from access import audit
from access.caller import Caller
from access.pages import Page
from health import ledger, sums
from health.costs import usd_text
from health.lines import Row
from panels import comparison, looking, lookup, record, stored, verdicts
from panels.looking import Filters
from panels.models import Comparison, Panel, Seat
from wire.errors import CallerError

# Texts may be large: a transaction that empties many would keep others from writing.
BATCH, PAUSE_S = 100, 0.01
# A seat in one of these without an attempt on record may still cost something; in any other it was never called.
MAYBE_CALLED = frozenset({Seat.Status.RUNNING, Seat.Status.TIMEOUT, Seat.Status.CANCELLED, Seat.Status.LOST})
EVERYTHING = Filters()


# ------------------------------------------------------------------ one panel


def panel(panel_id: str) -> dict[str, Any] | None:
    """Reads a panel as its reply showed it, with who asked, what was asked, and every judge's verdicts. None for an unknown id.

    A direct or routed call is a panel of one seat, made of the ledger alone unless its texts are kept.
    """
    found = lookup.after_a_drain(lambda: _panel(panel_id), panel_id)
    if found is not None and found["status"] == record.RUNNING and lookup.caught_up(panel_id):
        found = _panel(panel_id)  # whoever has its answer finds it ended, also in the moment before its end is committed
    return found


def _panel(panel_id: str) -> dict[str, Any] | None:
    rows = Panel.objects.filter(pk=panel_id).select_related("comparison")
    row = rows.first()
    attempts = ledger.attempts_of_panel(panel_id)
    if row is None and attempts:
        row = rows.all().first()  # both may have been written between the two looks
    if row is None:
        return _of_ledger(panel_id, attempts) if attempts else None
    seats = list(row.seats.order_by("position", "call"))
    by_call = _by_call(attempts)
    shown = [_seat(seat, by_call.get(seat.call, [])) | {"text": seat.text} for seat in seats]
    return {
        **_panel_fields(row),
        **_totalled(_with_verdicts(shown)),
        "prompt": _prompt(row.prompt),
        "seed": row.seed,
        "picked": row.picked,
        "merge_order": row.merge_order,
        "comparison": _comparison(getattr(row, "comparison", None), by_call),
    }


def _comparison(row: Comparison | None, by_call: Mapping[str, Sequence[Row]]) -> dict[str, Any] | None:
    if row is None or row.claims is None:
        return None
    money = _money(by_call.get(row.call, ()))
    kept = {field: getattr(row, field) for field in comparison.FIELDS if field != "panel"}
    return comparison.shown(kept, json.loads(row.claims), money["cost_usd"], money["usage"])


def _panel_fields(row: Panel) -> dict[str, Any]:
    return {
        "panel": row.pk,
        "collection": row.collection or None,
        "mode": row.mode,
        "status": row.status,
        "asked_at": row.asked_at,
        "judge": row.judge,
        "key": row.key_name or None,
        "key_id": row.key_id,
        "request": row.request or None,
        "dialect": row.dialect or None,
        "seconds": row.seconds,
    }


def _seat(seat: Seat, attempts: Sequence[Row]) -> dict[str, Any]:
    failed = seat.code or seat.message
    return {
        "call": seat.call,
        "model": seat.model,
        "seat": seat.seat,
        "status": seat.status,
        "seconds": seat.seconds,
        "ttft_seconds": seat.ttft_seconds,
        "finish_reason": seat.finish_reason or None,
        **_money(attempts, never_called=seat.status not in MAYBE_CALLED),
        "error": {"code": seat.code or seat.status, "message": seat.message} if failed else None,
    }


def _of_ledger(panel_id: str, attempts: Sequence[Row]) -> dict[str, Any]:
    """Makes a panel of its attempts alone: each call is a seat, the last attempt of a call says how it went."""
    shown = []
    for call, tries in _by_call(attempts).items():
        first, last = tries[0], tries[-1]
        ended = max(t.started_at + timedelta(milliseconds=t.latency_ms) for t in tries)
        waited = (last.started_at - first.started_at).total_seconds()
        failed = last.code or last.error
        shown.append(
            {
                "call": call,
                "model": last.model,
                "seat": last.seat,
                "status": last.status,
                "seconds": round((ended - first.started_at).total_seconds(), 3),
                "ttft_seconds": None if last.ttft_ms is None else round(waited + last.ttft_ms / 1000, 3),
                "text": None,
                "finish_reason": last.finish_reason or None,
                **_money(tries),
                "error": {"code": last.code or last.status, "message": last.error} if failed else None,
            }
        )
    first = attempts[0]
    ended = max(a.started_at + timedelta(milliseconds=a.latency_ms) for a in attempts)
    return {
        "panel": panel_id,
        "collection": first.collection or None,
        "mode": first.purpose,
        "status": _status([seat["status"] for seat in shown]),
        "asked_at": first.started_at,
        "judge": first.judge,
        "key": first.key_name or None,
        "key_id": first.key_id,
        "request": first.request or None,
        "dialect": None,
        "seconds": round((ended - first.started_at).total_seconds(), 3),
        **_totalled(_with_verdicts(shown)),
        "prompt": None,
        "seed": None,
        "picked": None,
        "merge_order": None,
        "comparison": None,
    }


def _status(seats: Iterable[str]) -> str:
    found = set(seats)
    if found == {"ok"}:
        return "complete"
    return "degraded" if found & {"ok", "partial", "truncated"} else "failed"


def _money(attempts: Sequence[Row], never_called: bool = False) -> dict[str, Any]:
    """Sums a seat's tries. What was never called cost nothing; what is not on record yet, or has no price, costs nobody knows what."""
    costs = [a.cost_pusd for a in attempts]
    total = None if None in costs or not (costs or never_called) else sum(c for c in costs if c is not None)
    return {
        "usage": {
            "input_tokens": sum(a.input_tokens for a in attempts),
            "output_tokens": sum(a.output_tokens for a in attempts),
            "cache_read_tokens": sum(a.cache_read_tokens for a in attempts),
            "cache_write_tokens": sum(a.cache_write_tokens for a in attempts),
            "reasoning_tokens": sum(a.reasoning_tokens for a in attempts),
            "estimated": any(a.estimated for a in attempts),
        }
        if attempts or never_called
        else None,
        "cost_usd": usd_text(total),
        "cost_pusd": total,
        "tries": [
            {"model": a.model, "status": a.http_status, "code": a.code or None, "seconds": round(a.latency_ms / 1000, 3), "cost_usd": usd_text(a.cost_pusd)}
            for a in attempts
        ],
    }


def _totalled(seats: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sums the seats' costs and takes the exact figures out of them: outside, money is a decimal text."""
    costs = [seat["cost_pusd"] for seat in seats]
    return {
        "seats": [{field: said for field, said in seat.items() if field != "cost_pusd"} for seat in seats],
        "cost_usd": None if None in costs else usd_text(sum(costs)),
    }


def _by_call(attempts: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for attempt in sorted(attempts, key=lambda a: (a.started_at, a.id)):
        grouped.setdefault(attempt.call, []).append(attempt)
    return grouped


def _with_verdicts(seats: list[dict[str, Any]]) -> list[dict[str, Any]]:
    judged = verdicts.current_of_calls([seat["call"] for seat in seats])
    return [{**seat, "verdicts": judged[seat["call"]]} for seat in seats]


def _prompt(kept: str | None) -> Any:
    if kept is None:
        return None
    try:
        return json.loads(kept)
    except ValueError:
        return kept


# ------------------------------------------------------------------ many panels


def panels(whose: Caller | None, filters: Filters = EVERYTHING, limit: int = 50, page_token: str = "") -> tuple[Page[dict[str, Any]], bool]:
    """Lists panels without prompts and answers, newest first: a caller's own, or with None everybody's.

    Shape: the page, and whether a search for words left older panels out.
    """
    page, cut_off = looking.page_of(filters, whose, limit, page_token)
    ids = [row.pk for row in page.data]
    by_call = _by_call(sums.attempts_of_panels(ids))
    seats: Mapping[str, list[dict[str, Any]]] = {panel_id: [] for panel_id in ids}
    for seat in Seat.objects.filter(panel__in=ids).defer("text").order_by("position", "call"):
        seats[seat.panel_id].append(_seat(seat, by_call.get(seat.call, [])))
    judged = verdicts.judges_of_calls([seat["call"] for of_panel in seats.values() for seat in of_panel])
    found = []
    for row in page.data:
        own = [{**seat, "judges": judged[seat["call"]]} for seat in seats[row.pk]]
        found.append({**_panel_fields(row), **_totalled(own)})
    return Page(found, page.next), cut_off


# ------------------------------------------------------------------ the end of texts


def delete_texts(panel_id: str, actor: str) -> bool:
    """Takes a panel's prompt and answers away for good; verdicts and sums stay. False for an unknown panel.

    Errors: CallerError 409 while a seat is still being answered, since its text would come after.
    """

    def look() -> bool | None:
        with transaction.atomic():
            row = Panel.objects.select_for_update().defer("prompt").filter(pk=panel_id).first()
            if row is None:
                # One whose texts were never kept, or for a day only, under its answer's id.
                return True if stored.empty(panel=panel_id) or ledger.attempts_of_panel(panel_id) else None
            if row.status == Panel.Status.RUNNING or row.seats.filter(status=Seat.Status.RUNNING).exists():
                raise CallerError("panel_running", f"Panel {panel_id} is still being answered. Delete its texts when it is done.", status=409)
            Panel.objects.filter(pk=panel_id).update(prompt=None)
            row.seats.update(text=None)
            comparison.forget([panel_id])
            stored.empty(panel=panel_id)
            audit.record(actor, "panel.delete_texts", f"panel {panel_id}")
            return True

    return lookup.after_a_drain(look, panel_id) is not None


def forget_old_texts(now: datetime) -> int:
    """Takes away the texts of panels older than KEEP_TEXT_DAYS, oldest first, in small transactions. Gives the number of panels.

    Units: days; 0 leaves no text at all.
    """
    before = now - timedelta(days=settings.KEEP_TEXT_DAYS)
    pause = threading.Event()
    forgotten = 0
    # The walk remembers where it was: what is done already is passed over once, not before every batch.
    reached: datetime | None = None
    while True:
        rows = Panel.objects.filter(asked_at__lt=before, prompt__isnull=False)
        if reached is not None:
            rows = rows.filter(asked_at__gte=reached)
        batch = list(rows.order_by("asked_at", "id").values_list("id", "asked_at")[:BATCH])
        if not batch:
            break
        names = [panel_id for panel_id, _ in batch]
        with transaction.atomic():
            Seat.objects.filter(panel__in=names, text__isnull=False).update(text=None)
            comparison.forget(names)
            forgotten += Panel.objects.filter(pk__in=names).update(prompt=None)
        reached = batch[-1][1]
        pause.wait(PAUSE_S)
    # Answers whose panel has no prompt any more, or never had one. Few, if any: an index holds those that have a text.
    while calls := list(Seat.objects.filter(text__isnull=False, panel__prompt__isnull=True, panel__asked_at__lt=before).values_list("call", flat=True)[:BATCH]):
        with transaction.atomic():
            Seat.objects.filter(pk__in=calls).update(text=None)
        pause.wait(PAUSE_S)
    return forgotten
