"""Whether a model plays: the one place that retires it and brings it back, with the reason and what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit
from catalog.models import Endpoint, Model

REASON_LENGTH = 500


class StatusError(ValueError):
    """A change of status that cannot be made. The message says why, and what to do. `code` is stable."""

    code = "invalid_request"


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is. Shape: active models include those that rest."""

    endpoints: int
    active: int
    retired: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether one model plays, since when, and on what evidence."""

    alias: str
    served_name: str
    is_retired: bool
    at: datetime | None
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """A model by its names alone."""

    alias: str
    endpoint: str


def retire(model: Model, reason: str, actor: str, evidence: Mapping[str, Any] | None = None) -> None:
    """Takes a model out of play; it keeps its place in collections and its record. Errors: StatusError."""
    _move(model, Model.Status.RETIRED, reason, actor, evidence)


def restore(model: Model, reason: str, actor: str, evidence: Mapping[str, Any] | None = None) -> None:
    """Brings a retired model back. What spoke against it stays as evidence under `before`. Errors: StatusError."""
    _move(model, Model.Status.ACTIVE, reason, actor, evidence)


def retire_alias(alias: str, reason: str, actor: str, evidence: Mapping[str, Any]) -> None:
    """Retires by name, for rooms that hold no rows. Errors: StatusError, also where there is no such model (any more)."""
    row = Model.objects.filter(alias=alias).first()
    if row is None:
        raise StatusError(f"There is no model {alias} any more.")
    retire(row, reason[:REASON_LENGTH], actor, evidence)


def _move(model: Model, to: Model.Status, reason: str, actor: str, evidence: Mapping[str, Any] | None) -> None:
    reason = reason.strip()
    if not reason:
        raise StatusError(f"Say why {model.alias} should be {'retired' if to == Model.Status.RETIRED else 'restored'}: the reason is kept with it.")
    if len(reason) > REASON_LENGTH:
        raise StatusError(f"The reason has {len(reason)} characters; at most {REASON_LENGTH} are kept. Shorten it.")
    with transaction.atomic():
        # Read again under the transaction: of two people pressing at once one is told that it has been done.
        row = Model.objects.select_for_update().get(pk=model.pk)
        if row.status == to:
            raise StatusError(f"Model {row.alias} is {row.status} already.")
        before = {"status": row.status, "reason": row.status_reason, "at": row.status_at.isoformat() if row.status_at else None, **row.status_evidence}
        # One step back is enough: the whole history stands in the audit trail.
        before.pop("before", None)
        row.status_evidence = {**(evidence or {}), "by": actor, "before": before}
        changes = {"status": [row.status, to.value], "status_reason": [row.status_reason, reason]}
        row.status, row.status_reason, row.status_at = to.value, reason, timezone.now()
        row.save(update_fields=["status", "status_reason", "status_evidence", "status_at"])
        audit.record(actor, "model.retire" if to == Model.Status.RETIRED else "model.restore", row.alias, changes, reason)
    model.status, model.status_reason, model.status_evidence, model.status_at = row.status, row.status_reason, row.status_evidence, row.status_at


def counts() -> Counts:
    """Counts endpoints, and models by status."""
    retired = Model.objects.filter(status=Model.Status.RETIRED).count()
    return Counts(endpoints=Endpoint.objects.count(), active=Model.objects.count() - retired, retired=retired)


def active() -> list[Named]:
    """Names the models that are not retired."""
    rows = Model.objects.filter(status=Model.Status.ACTIVE).values_list("alias", "endpoint__name")
    return [Named(alias, endpoint) for alias, endpoint in rows]


def explorable() -> frozenset[str]:
    """The aliases of models that play where nobody named them."""
    return frozenset(Model.objects.filter(status=Model.Status.ACTIVE, ad_hoc=False).values_list("alias", flat=True))


def standing(endpoint_name: str) -> list[Standing]:
    """Tells of every model of an endpoint whether it plays. One query."""
    rows = Model.objects.filter(endpoint__name=endpoint_name)
    return [Standing(row.alias, row.served_name, row.status == Model.Status.RETIRED, row.status_at, row.status_evidence) for row in rows]


def first_endpoint() -> int | None:
    """The endpoint that was added first, None where there is none."""
    return Endpoint.objects.order_by("pk").values_list("pk", flat=True).first()
