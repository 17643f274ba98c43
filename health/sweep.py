"""What goes over the floor after deaths: outboxes of dead processes, permits that nobody settled, meters with nothing left in them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson
from django.conf import settings

from health import ledger, outbox
from health.database import Database
from health.limits import decode, is_spent
from health.lines import Line, lost_lines
from health.models import Meter, Permit

log = logging.getLogger(__name__)
BATCH = 500


def drain(now: datetime | None = None, folder: Path | None = None) -> outbox.Drained:
    """Commits what this host's dead processes left. Errors: DatabaseAway."""
    folder = folder or Path(settings.OUTBOX_FOLDER)
    drained = outbox.drain_dead(folder, partial(ledger.commit, folder=folder))
    if drained.files:
        log.info("Drained %d outboxes of ended processes: %d lines, %d calls lost.", drained.files, drained.lines, drained.lost)
    return drained


def sweep(now: datetime, folder: Path | None = None) -> int:
    """Ends permits past their time and deletes spent meters; returns how many permits there were. Errors: DatabaseAway."""
    folder = folder or Path(settings.OUTBOX_FOLDER)
    drain(now, folder)
    count = 0
    if Permit.objects.filter(expires_at__lt=now).exists():
        # After a time without the database, ends may still be on their way, and they know better than an expiry.
        ledger.catch_up(folder=folder)
        while expired := list(Permit.objects.filter(expires_at__lt=now).order_by("expires_at").values_list("id", "attempt")[:BATCH]):
            calls, wholes = lost_lines([stub_of(name, text) for name, text in expired], process_known=False)
            for lines in (calls, wholes):
                commit_lost(lines, folder)
            count += len(expired)
        log.warning("%d reservations ran out without an end; their calls are recorded as lost.", count)
    delete_spent_meters()
    return count


def stub_of(name: str, text: str) -> dict[str, object]:
    """What a permit was for; one that does not say so can only be let go."""
    stub = orjson.loads(text) if text else None
    return stub if isinstance(stub, dict) and stub.get("id") == name and "panel" in stub else {"id": name, "panel": ""}


def commit_lost(lines: Sequence[Line], folder: Path) -> None:
    if not lines:
        return
    ledger.commit(lines, folder)
    # A line that was set aside must not bring its permit back in the next round.
    names = [settle["permit"] for line in lines for settle in line["settle"]]
    if left := list(Permit.objects.filter(pk__in=names).values_list("pk", flat=True)):
        ledger.commit([{"settle": [{"permit": name}]} for name in left], folder)
        Permit.objects.filter(pk__in=left).delete()


def delete_spent_meters() -> None:
    """Deletes meters in which nothing counts any more, each unless it changed meanwhile."""
    now_ms = time.time_ns() // 1_000_000
    spent = sorted((name, state) for name, state in Meter.objects.values_list("scope", "state") if is_spent(decode(state), now_ms))
    if not spent:
        return
    db = Database()
    try:
        db.transaction(lambda db: db.many("DELETE FROM health_meter WHERE scope = %s AND state = %s", spent))
    finally:
        db.close()
