"""`manage.py demo`: fetches the small demo model where it is not here yet, serves it, and puts it on the bench."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from benchwarmers import processes
from benchwarmers.settings import child_environment

MOST_TRIES = 3
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
        last = demo.last().base_url
        try:
            demo_download.fetch(environment)
        except demo_download.DownloadFailed as failure:
            log.warning("The demo model is switched off again: %s", failure)
            demo.fail(str(failure), asked.by)
            return
        demo.tell(demo.State("starting", message="Loading the model.", base_url=last))
        environment["PYTHONPATH"] = str(demo_download.site())
        for _ in range(MOST_TRIES):
            process = begun([str(demo.model_file()), demo.SERVED_NAME, str(port(last))], environment)
            assert process.stdout
            if address := process.stdout.readline().strip():
                break
            process.wait()
        else:
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


def begun(arguments: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Starts what serves the model. It prints its address once it does."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, str(settings.BASE_DIR / "catalog" / "demo_server.py"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=processes.before_exec(signal.SIGTERM),
    )


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
