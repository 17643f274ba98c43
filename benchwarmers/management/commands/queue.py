"""`manage.py queue`: the django-q2 cluster, and the bell that keeps it busy."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import threading
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections, connections

from benchwarmers import processes

log = logging.getLogger("benchwarmers.queue")

RING_EVERY_S = 20.0
# Unanswered rings: with more of them waiting, another would only lengthen the line.
MOST_WAITING = 4


class Command(BaseCommand):
    help = "Runs the queue's workers. `serve` starts it; alone, for hosts that only work."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        from django_q.cluster import Cluster

        from health import errands

        # The cluster's processes do not look after their parents, and would go on without them.
        processes.tie_forks(signal.SIGKILL)
        connections.close_all()
        # Before the cluster forks, so that its workers see it set.
        errands.closing = closing = multiprocessing.Event()
        cluster = Cluster()
        try:
            cluster.start()
        except RuntimeError as error:  # its broker is away
            sys.exit(f"error: The queue did not start: {error}")
        stop: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, frame: stop.append(got))
        over = threading.Event()
        threading.Thread(target=keep_ringing, args=(over,), name="bell", daemon=True).start()
        while cluster.sentinel.is_alive() and not stop:
            cluster.sentinel.join(1.0)
        over.set()
        closing.set()
        if not stop and cluster.stop_event is not None:
            sys.exit("error: The queue's sentinel died.")
        cluster.stop()


def keep_ringing(over: threading.Event) -> None:
    """Puts a ring into the queue every 20 s. What a worker does with it proves that broker, workers and database all work."""
    was_away = False
    while True:
        try:
            ring()
            was_away = False
        except Exception as error:
            # The broker or the database is away: said once, tried again.
            if not was_away:
                log.warning("The queue cannot be rung: %s. Trying again every %d s.", type(error).__name__, RING_EVERY_S)
            was_away = True
        if over.wait(RING_EVERY_S):
            return


def ring() -> None:
    from django_q.brokers import get_broker
    from django_q.tasks import async_task

    from suite.running import engine

    close_old_connections()
    broker = get_broker()
    if (broker.queue_size() or 0) < MOST_WAITING:
        async_task("health.jobs.ring", broker=broker, save=False)
        async_task("health.errands.work", broker=broker, save=False)
        engine.queue(broker)
