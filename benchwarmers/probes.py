"""Whether calls should be sent here: the checks behind `/readyz`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.utils import DatabaseError

from benchwarmers import schema, serverfile
from health import figures, pulse

# Lines leave the outbox within 50 ms; this much lies there only when the writer has been unable to for minutes.
OUTBOX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """Shape: `detail` names no path and no secret: anybody may ask."""

    ok: bool
    detail: str


def run(now: datetime) -> dict[str, Check]:
    """Runs every check that applies; one that the database's absence breaks says so."""
    wanted: dict[str, Callable[[datetime], Check]] = {"server": server, "database": database, "migrations": migrations, "outbox": outbox}
    if settings.ONLY != "gateway":
        wanted["queue"] = queue
    found = {}
    for name, check in wanted.items():
        try:
            found[name] = check(now)
        except DatabaseError:
            found[name] = Check(False, "the database cannot be reached")
    return found


def server(now: datetime) -> Check:
    running = serverfile.read(settings.HOME)
    return Check(False, "stopping") if running and running.stopping else Check(True, "serving")


def database(now: datetime) -> Check:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Check(True, connection.vendor)


def migrations(now: datetime) -> Check:
    found = schema.read()
    if found.pending or found.unknown:
        return Check(False, f"{len(found.pending)} pending, {len(found.unknown)} unknown")
    return Check(True, "in step")


def outbox(now: datetime) -> Check:
    waiting = pulse.outboxes().bytes
    return Check(waiting < OUTBOX_BYTES, f"{waiting} bytes waiting")


def queue(now: datetime) -> Check:
    age_s = figures.heartbeat_age_s(now)
    if age_s is None:
        return Check(False, "no heartbeat yet")
    return Check(age_s < pulse.ALIVE_S, f"last heartbeat {age_s:.0f} s ago")
