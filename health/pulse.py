"""Whether background work gets done: what waits in the queue and for how long, who works it off, what the outboxes still hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Min
from django_q.brokers import get_broker
from django_q.models import OrmQ

from health.models import Heartbeat
from health.outbox import REJECTED

ALIVE_S = 60


@dataclass(frozen=True, slots=True)
class Queue:
    """Shape: `workers` are clusters with a heartbeat in the last minute; None where a figure cannot be had (Redis is away, or keeps no times)."""

    waiting: int | None
    oldest_s: float | None
    workers: int


@dataclass(frozen=True, slots=True)
class Outboxes:
    """Shape: `rejected_bytes` are lines that could not be committed and wait for a person."""

    files: int
    bytes: int
    rejected_bytes: int


def queue(now: datetime) -> Queue:
    """Reads how the queue stands. Three queries with the database's own broker."""
    workers = Heartbeat.objects.filter(at__gt=now - timedelta(seconds=ALIVE_S)).count()
    if settings.REDIS_URL:
        try:
            return Queue(int(get_broker().queue_size() or 0), None, workers)
        except Exception:  # whatever the broker's library raises: the rest of the status is still worth having
            return Queue(None, None, workers)
    # A row's lock is when it was queued, and lies in the future while a worker has it.
    waiting = OrmQ.objects.filter(lock__lte=now)
    oldest = waiting.aggregate(oldest=Min("lock"))["oldest"]
    return Queue(waiting.count(), None if oldest is None else round((now - oldest).total_seconds(), 1), workers)


def outboxes() -> Outboxes:
    """Reads what this host's processes have not committed yet."""
    files = size = rejected = 0
    for path in Path(settings.OUTBOX_FOLDER).glob("*.jsonl"):
        try:
            found = path.stat().st_size
        except FileNotFoundError:  # drained meanwhile
            continue
        if path.name == REJECTED:
            rejected = found
        else:
            files, size = files + 1, size + found
    return Outboxes(files, size, rejected)
