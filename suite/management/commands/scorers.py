"""`manage.py scorers`: works on runs whose grading runs code, for servers that have no sandbox. Does nothing else."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections
from django.db.utils import DatabaseError

from health import errands
from suite.running import codehosts, engine

LOOK_S, DRY_S = 2.0, 0.5


class Command(BaseCommand):
    help = "Works on runs that need a sandbox, beside servers that have none. Needs their database, their secrets, and bubblewrap."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if said := codehosts.announce():
            codehosts.leave()
            raise CommandError(said)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, frame: stop.set())
        errands.closing = stop
        dry = threading.Thread(target=keep_trying, args=(stop,), name="dry-runs", daemon=True)
        dry.start()
        self.stdout.write("Runs that need a sandbox are worked on here.")
        while not stop.is_set():
            try:
                engine.work(lane=codehosts.CODE)
                codehosts.announce()
            except DatabaseError as error:
                self.stderr.write(f"The database cannot be reached ({type(error).__name__}). Trying again.")
            close_old_connections()
            stop.wait(LOOK_S)
        dry.join(timeout=60)
        codehosts.leave()


def keep_trying(stop: threading.Event) -> None:
    """Answers dry runs, and shows that this host lives: work on a run may take hours."""
    while not stop.wait(DRY_S):
        try:
            codehosts.answer_dry_runs()
            codehosts.announce()
        except DatabaseError:
            pass  # the other thread says so
        close_old_connections()
