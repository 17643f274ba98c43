"""What the ledger and the meters say, read back as frozen values for other rooms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import QuerySet, Sum

from access.pages import Page, keyset
from health.limits import decode, used
from health.lines import COLUMNS, Row
from health.models import Attempt, Meter, ModelUse

NO_MORE: Mapping[str, str] = {}
# What an index finds, and what has to be looked for row by row: that among so many of the newest.
FOUND = ("model", "panel", "call")
LOOKED_FOR = ("status", "endpoint", "key_name", "collection", "purpose", "judge")
MOST_LOOKED_AT = 20_000
FAILED = "failed"


def attempts_of_panel(panel: str) -> tuple[Row, ...]:
    """A panel's ledger rows, first ones first."""
    return rows(Attempt.objects.filter(panel=panel))


def attempts_of_call(call: str) -> tuple[Row, ...]:
    """One seat's ledger rows, first ones first: more than one where it tried several models."""
    return rows(Attempt.objects.filter(call=call))


def cost_of_request(request: str, since: datetime, models: Sequence[str]) -> dict[str, int]:
    """Sums what calls of one request cost since a time, by model, of those whose price is known. Units: trillionths of a US dollar."""
    found = Attempt.objects.filter(model__in=models, started_at__gte=since, request=request).order_by()
    return {row["model"]: row["cost"] or 0 for row in found.values("model").annotate(cost=Sum("cost_pusd"))}


def call_exists(call: str) -> bool:
    """Tells whether the ledger knows a call. For a no that is sure, `ledger.catch_up(call)` first."""
    return Attempt.objects.filter(call=call).exists()


def uses_of_models(model: str | None = None) -> dict[str, tuple[int, datetime]]:
    """How often and when last each model, or one, was seated, by alias. One that never was is not in it."""
    found = ModelUse.objects.all() if model is None else ModelUse.objects.filter(model=model)
    return {alias: (seats, last) for alias, seats, last in found.values_list("model", "seats", "last_seated_at")}


def meters(now_ms: int, prefix: str = "") -> dict[str, Mapping[str, int]]:
    """What is used of each limited thing in each window, by "scope|measure"."""
    found = Meter.objects.filter(scope__startswith=prefix) if prefix else Meter.objects.all()
    return {name: used(decode(state), now_ms) for name, state in found.values_list("scope", "state")}


def calls(limit: int, page_token: str, since: datetime | None = None, until: datetime | None = None, of: Mapping[str, str] = NO_MORE) -> Page[Row]:
    """Lists the ledger's rows, newest first, of a stretch of time and of what `of` names. One query.

    Shape: `of` names FOUND and LOOKED_FOR; the status "failed" is every one but ok. Errors: CallerError for a token that is not of this list.
    """
    found = within(since, until, of)
    wanted = {name: of[name] for name in LOOKED_FOR if name in of}
    if wanted.get("status") == FAILED:
        found = found.exclude(status=Attempt.Status.OK)
        del wanted["status"]
    return keyset(found.filter(**wanted), ("started_at", "id"), limit, page_token, newest_first=True).mapped(row_of)


def horizon(since: datetime | None, until: datetime | None, of: Mapping[str, str]) -> datetime | None:
    """How far back a list of calls can look for what no index finds; None where it can look at all of them. One query."""
    if not set(of) & set(LOOKED_FOR):
        return None
    return within(since, until, of).order_by("-started_at").values_list("started_at", flat=True)[MOST_LOOKED_AT : MOST_LOOKED_AT + 1].first()


def within(since: datetime | None, until: datetime | None, of: Mapping[str, str]) -> QuerySet[Attempt]:
    found = Attempt.objects.filter(**{name: of[name] for name in FOUND if name in of})
    if since is not None:
        found = found.filter(started_at__gte=since)
    if until is not None:
        found = found.filter(started_at__lt=until)
    return found


def row_of(attempt: Attempt) -> Row:
    return Row(*(getattr(attempt, name) for name in COLUMNS))


def rows(found: QuerySet[Attempt]) -> tuple[Row, ...]:
    return tuple(Row(*values) for values in found.order_by("started_at", "id").values_list(*COLUMNS))
