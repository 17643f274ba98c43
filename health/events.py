"""What happened to one model, newest first: probes, what was done to it, alerts about it, and the rests that hold now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet

from access import audit
from access.models import AuditEntry
from access.pages import Page, read_token, token
from health import rests
from health.models import Alert, Probe
from health.resting import Resting
from wire.errors import CallerError

KINDS = ("rest", "alert", "status", "probe")
DONE = ("model.add", "model.retire", "model.restore", "model.baseline", "model.delete")
ALERTS = ("retired", "drift")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Shape: `kind` one of KINDS; `what` a probe's outcome, what was done, an alert's kind, a rest's; `by` who did it, "" where nobody did.
    """

    at: datetime
    kind: str
    what: str
    by: str
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


Key = tuple[datetime, int, int]


def of_model(alias: str, endpoint: str, limit: int, page_token: str, now: datetime) -> Page[Event]:
    """Reads one page. Four queries. Errors: CallerError for a token that is not of this list."""
    after = key_of(page_token) if page_token else None
    found: list[tuple[Key, Event]] = []
    if after is None:  # they hold now: they head the first page, however long ago they began
        found += [((rest.since, KINDS.index("rest"), 0), rest_event(rest)) for rest in rests.of_model(alias, endpoint, now)]
    heads = len(found)
    rows: list[tuple[Key, Event]] = []
    for rank, events in ((1, alerts_of(alias)), (2, audit.entries_of(alias, DONE)), (3, probes_of(alias))):
        rows += [((row.at, rank, row.pk), event_of(row)) for row in newest(events, rank, after)[: limit + 1]]
    rows.sort(key=lambda one: one[0], reverse=True)
    found += rows
    shown = found[: max(limit, heads)]
    following = shown[-1][0] if len(found) > len(shown) else None
    return Page([event for _, event in shown], token([following[0].isoformat(), *map(str, following[1:])]) if following else None)


def key_of(page_token: str) -> Key:
    said = read_token(page_token, None)
    try:
        at, rank, pk = said
        key = datetime.fromisoformat(at), int(rank), int(pk)
        if key[0].tzinfo is None or not 0 <= key[2] < 1 << 62:
            raise ValueError
        return key
    except ValueError:
        raise CallerError("invalid_request", "page_token is none of this list. Take it from the next field of the page before.", field="page_token") from None


def newest(rows: QuerySet[Any], rank: int, after: Key | None) -> QuerySet[Any]:
    """Rows of one kind that come after a place in the whole list, which is in the order of time, kind and id."""
    if after is not None:
        at, other, pk = after
        rows = rows.filter(at__lte=at)
        if rank == other:
            rows = rows.filter(Q(at__lt=at) | Q(at=at, pk__lt=pk))
        elif rank > other:
            rows = rows.filter(at__lt=at)
    return rows.order_by("-at", "-pk")


def alerts_of(alias: str) -> QuerySet[Alert]:
    return Alert.objects.filter(kind__in=ALERTS, subject=alias[:260])


def probes_of(alias: str) -> QuerySet[Probe]:
    return Probe.objects.filter(model=alias).defer("answer")


def event_of(row: Model) -> Event:
    match row:
        case Alert():
            return Event(row.at, "alert", row.kind, "", row.message, {"seen_at": row.seen_at, "seen_by": row.seen_by})
        case Probe():
            details = {name: getattr(row, name) for name in ("status", "http_status", "latency_ms", "ttft_ms", "tokens_per_s")}
            said = {"probe": row.kind, "prompt": row.prompt, "fault": row.fault, "attempt": row.attempt, **details}
            return Event(row.at, "probe", row.outcome, "", row.message, said)
        case AuditEntry():
            return Event(row.at, "status", row.action.removeprefix("model."), row.actor, row.reason, row.changes)
    raise TypeError(type(row).__name__)


def rest_event(rest: Resting) -> Event:
    return Event(rest.since, "rest", rest.kind, "", rest.reason, {"scope": rest.scope, "until": rest.until, "step": rest.step})
