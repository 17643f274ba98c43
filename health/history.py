"""What the ledger and the meters say, read back as frozen values for other rooms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db.models import QuerySet

from health.limits import decode, used
from health.lines import COLUMNS, Row
from health.models import Attempt, Meter, ModelUse


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


def rows(found: QuerySet[Attempt]) -> tuple[Row, ...]:
    return tuple(Row(*values) for values in found.order_by("started_at", "id").values_list(*COLUMNS))
