"""What the ledger and the meters say, read back as frozen values for other rooms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db.models import QuerySet

from access.pages import Page, keyset
from health.limits import decode, used
from health.lines import COLUMNS, Row
from health.models import Attempt, Meter, ModelUse

NO_MORE: Mapping[str, str] = {}


def attempts_of_panel(panel: str) -> tuple[Row, ...]:
    """A panel's ledger rows, first ones first."""
    return rows(Attempt.objects.filter(panel=panel))


def attempts_of_call(call: str) -> tuple[Row, ...]:
    """One seat's ledger rows, first ones first: more than one where it tried several models."""
    return rows(Attempt.objects.filter(call=call))


def call_exists(call: str) -> bool:
    """Tells whether the ledger knows a call. For a no that is sure, `ledger.catch_up(call)` first."""
    return Attempt.objects.filter(call=call).exists()


def uses_of_models() -> dict[str, tuple[int, datetime]]:
    """How often and when last each model was seated, by alias. One that never was is not in it."""
    return {model: (seats, last) for model, seats, last in ModelUse.objects.values_list("model", "seats", "last_seated_at")}


def meters(now_ms: int, prefix: str = "") -> dict[str, Mapping[str, int]]:
    """What is used of each limited thing in each window, by "scope|measure"."""
    found = Meter.objects.filter(scope__startswith=prefix) if prefix else Meter.objects.all()
    return {name: used(decode(state), now_ms) for name, state in found.values_list("scope", "state")}


def calls(limit: int, page_token: str, since: datetime | None = None, until: datetime | None = None, of: Mapping[str, str] = NO_MORE) -> Page[Row]:
    """Lists the ledger's rows, newest first, of a stretch of time and of what `of` names: model, panel, call, which an index finds. One query.

    Errors: CallerError for a token that is not of this list.
    """
    found = Attempt.objects.filter(**{name: of[name] for name in ("model", "panel", "call") if name in of})
    if since is not None:
        found = found.filter(started_at__gte=since)
    if until is not None:
        found = found.filter(started_at__lt=until)
    return keyset(found, ("started_at", "id"), limit, page_token, newest_first=True).mapped(row_of)


def row_of(attempt: Attempt) -> Row:
    return Row(*(getattr(attempt, name) for name in COLUMNS))


def rows(found: QuerySet[Attempt]) -> tuple[Row, ...]:
    return tuple(Row(*values) for values in found.order_by("started_at", "id").values_list(*COLUMNS))
