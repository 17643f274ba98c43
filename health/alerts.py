"""What somebody should know of: raised once, seen once. Pages, `/bench/alerts` and the metrics show what nobody has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from access import audit
from access.pages import Page, keyset
from health.models import Alert

ONCE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class AlertView:
    """One alert."""

    id: int
    kind: str
    subject: str
    message: str
    at: datetime
    seen_at: datetime | None
    seen_by: str


def raise_alert(kind: str, subject: str, once: str, message: str) -> bool:
    """Raises an alert unless the same was raised before; tells whether it was new. Shape: `once` says what is the same, as in budget:key:7:2026-11:80."""
    _, new = Alert.objects.get_or_create(once=short(once), defaults={"kind": kind, "subject": subject[:260], "message": message[:500], "at": timezone.now()})
    return new


def short(once: str, most: int = ONCE_LENGTH) -> str:
    """Fits what is the same into its column: what is cut gets a digest, since long names differ in what stands behind them."""
    return once if len(once) <= most else f"{once[: most - 33]}~{hashlib.sha256(once.encode('utf-8', 'replace')).hexdigest()[:32]}"


def line_of(kind: str, subject: str, once: str, message: str, at: datetime) -> dict[str, Any]:
    """Gives an alert as an outbox line: for who must not wait for the database."""
    return {"alerts": [{"kind": kind, "subject": subject[:260], "once": short(once), "message": message[:500], "at": at.isoformat()}]}


PUT = "INSERT INTO health_alert (kind, subject, once, message, at, seen_by) VALUES (%s, %s, %s, %s, %s, '') ON CONFLICT (once) DO NOTHING"


def commit_alerts(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    for item in sorted(items, key=lambda one: str(one["once"])):
        at = connection.ops.adapt_datetimefield_value(datetime.fromisoformat(item["at"]))
        cursor.execute(PUT, [item["kind"], item["subject"], item["once"], item["message"], at])


def alerts(limit: int, page_token: str, unseen_only: bool = False) -> Page[AlertView]:
    """Lists alerts, newest first. One query."""
    found = Alert.objects.filter(seen_at=None) if unseen_only else Alert.objects.all()
    return keyset(found, ("at", "id"), limit, page_token, newest_first=True).mapped(view)


def unseen() -> int:
    return Alert.objects.filter(seen_at=None).count()


def see(alert_id: int, by: str) -> bool:
    """Notes that somebody has seen it; tells whether there was such an alert."""
    with transaction.atomic():
        if Alert.objects.filter(pk=alert_id, seen_at=None).update(seen_at=timezone.now(), seen_by=by[:200]):
            audit.record(by, "alert.seen", str(alert_id))
            return True
    return Alert.objects.filter(pk=alert_id).exists()


def view(row: Alert) -> AlertView:
    return AlertView(row.pk, row.kind, row.subject, row.message, row.at, row.seen_at, row.seen_by)
