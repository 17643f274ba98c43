"""The audit trail: one row a write, with what changed and never a secret."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from access.models import AuditEntry


def record(actor: str, action: str, target: str, changes: Mapping[str, Any] | None = None, reason: str = "") -> AuditEntry:
    """Writes one entry, inside the caller's transaction: no write without its entry, no entry without its write.

    Shape: `changes` as `diff` gives them.
    """
    return AuditEntry.objects.create(
        at=timezone.now(), actor=actor[:200], action=action[:60], target=target[:260], changes=dict(changes or {}), reason=reason[:500]
    )


def entries_of(target: str, actions: Collection[str]) -> QuerySet[AuditEntry]:
    """The entries that say of one thing that any of these was done to it."""
    return AuditEntry.objects.filter(target=target[:260], action__in=actions)


def diff(before: Mapping[str, Any], after: Mapping[str, Any], secret_fields: Collection[str] = ()) -> dict[str, list[Any]]:
    """Tells what is different, field by field, as [before, after]; of secret fields only whether they were and are set."""
    found: dict[str, list[Any]] = {}
    for field in [*before, *(f for f in after if f not in before)]:
        old, new = before.get(field), after.get(field)
        if old == new:
            continue
        found[field] = [is_set(old), is_set(new)] if field in secret_fields else [plain(old), plain(new)]
    return found


def is_set(value: object) -> str:
    return "set" if value else "not set"


def plain(value: Any) -> Any:
    """What JSON can hold of a value."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    return str(value)
