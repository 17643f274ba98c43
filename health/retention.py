"""The end of rows that nobody needs any more, in small batches, so that no call waits for it: the schedule `retention`.

Sums stay for good in the totals. Other rooms register what they let go of; texts go every hour besides, schedule or not, since their end is promised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from access import preferences
from health import errands
from health.models import Alert, Allowance, Attempt, Probe, ShadowHit
from health.spend import today

BATCH = 500
# Between two batches, so that whoever else wants to write gets in.
PAUSE_S = 0.01
CALLS_DAYS, PROBES_DAYS, ALERTS_DAYS = "retention.calls_days", "retention.probes_days", "retention.alerts_days"
FORGETS = Callable[[datetime], int]
registered: dict[str, FORGETS] = {}


def register(name: str, function: FORGETS) -> None:
    """Adds something to let go of. Shape: the function gets the time and gives how many rows it changed; `name` stands in the report."""
    registered[name] = function


def prepare() -> None:
    """Registers this room's settings and rows, in the app's `ready`."""
    days = preferences.whole(31, 36_500)
    preferences.register(CALLS_DAYS, 400, days, "Days that the ledger's rows are kept, for the schedule retention. Sums by day and month stay for good.")
    preferences.register(PROBES_DAYS, 180, days, "Days that probes and the answers to drift prompts are kept.")
    preferences.register(ALERTS_DAYS, 90, preferences.whole(1, 36_500), "Days that alerts are kept which somebody has seen.")
    register("calls", calls)
    register("probes", lambda now: in_batches(Probe.objects.filter(at__lt=before(now, PROBES_DAYS)), "at"))
    register("alerts", lambda now: in_batches(Alert.objects.filter(at__lt=before(now, ALERTS_DAYS), seen_at__isnull=False), "at"))
    register("shadow_hits", lambda now: in_batches(ShadowHit.objects.filter(day__lt=before(now, CALLS_DAYS).date()), "day"))
    register("allowances", lambda now: in_batches(Allowance.objects.filter(told_at__lt=before(now, PROBES_DAYS)), "told_at"))


def run(slot: datetime, now: datetime) -> Mapping[str, Any]:
    """Lets go of what is old enough; gives how many rows of each kind. What fails keeps nothing else back. Errors: the first failure, at the end."""
    report: dict[str, Any] = {}
    failed: Exception | None = None
    for name, function in registered.items():
        try:
            report[name] = function(now)
        except errands.Later:
            raise
        except Exception as error:  # the next kind is another table
            report[name] = f"failed: {type(error).__name__}"
            failed = failed or error
    if failed:
        raise failed
    return report


def before(now: datetime, preference: str) -> datetime:
    """The beginning of the first day that is kept, in BENCH_TIME_ZONE: whole days go, so that those that stay can be summed anew."""
    day = today(now) - timedelta(days=int(preferences.value(preference)))
    return datetime.combine(day, time(), ZoneInfo(settings.BENCH_TIME_ZONE))


def calls(now: datetime) -> int:
    return in_batches(Attempt.objects.filter(started_at__lt=before(now, CALLS_DAYS)), "started_at")


def in_batches(rows: QuerySet[Any], order: str) -> int:
    """Deletes rows, oldest first, some in a transaction; gives how many there were."""
    pause = threading.Event()
    model: type[Model] = rows.model
    count = 0
    while names := list(rows.order_by(order).values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            model._default_manager.filter(pk__in=names).delete()
        count += len(names)
        if len(names) < BATCH:
            break
        if errands.is_over():
            raise errands.Later(timezone.now(), "There is more to delete; it goes on in a moment.")
        pause.wait(PAUSE_S)
    return count
