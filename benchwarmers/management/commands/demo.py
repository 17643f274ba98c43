"""`manage.py demo`: fetches the small demo model where it is not here yet, serves it, and puts it on the bench."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from benchwarmers import processes
from benchwarmers.settings import child_environment

MOST_TRIES = 2
log = logging.getLogger("benchwarmers.demo")


class Command(BaseCommand):
    help = "Serves the small demo model while it is switched on. `serve` starts it; by itself it only says that it is not asked for."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        from catalog import demo, demo_download

        if (asked := demo.switch()) is None:
            sys.exit("error: Nobody asked for the demo model. Switch it on at First steps, or with POST /bench/demo.")
        # What `python` and pip would take for their own settings must not come from a variable of ours.
        environment = child_environment(PYTHONPATH="", PYTHONHOME="")
        try:
            demo_download.fetch(environment)
        except demo_download.DownloadFailed as failure:
            log.warning("The demo model is switched off again: %s", failure)
            demo.fail(str(failure), asked.by)
            return
        before = demo.last()
        demo.tell(demo.State("starting", message="Loading the model.", base_url=before.base_url, tries=before.tries))
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, str(settings.BASE_DIR / "catalog" / "demo_server.py"), str(demo.model_file()), demo.SERVED_NAME, str(port(before.base_url))],
            env={**environment, "PYTHONPATH": str(demo_download.site())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=processes.before_exec(signal.SIGTERM),
        )
        assert process.stdout
        address = process.stdout.readline().strip()
        if not address:
            if before.tries < MOST_TRIES:  # the supervisor tries again
                demo.tell(demo.State("starting", message="It did not start, and is tried again.", tries=before.tries + 1))
                sys.exit("error: The demo model's server did not start.")
            demo.fail("The model server does not start. Its build may not run on this machine.", asked.by)
            return
        base_url = f"{address}/v1"
        try:
            demo.join(base_url, asked.by)
        except (demo.DemoTaken, ValueError, PermissionError) as refused:
            demo.fail(str(refused), asked.by)
            process.terminate()
            return
        demo.tell(demo.State("running", base_url=base_url))
        connections.close_all()
        code = process.wait()
        sys.exit(f"error: The demo model's server ended with {code}.")


def port(last: str) -> int:
    """The port of the last time where it is free, so that the endpoint keeps its address; else 0, which takes any."""
    wanted = urlsplit(last).port or 0
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted
