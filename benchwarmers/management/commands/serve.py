"""`manage.py serve`: the web server, the queue, and the demo model where it is switched on, under one supervisor."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections
from django.db.utils import DatabaseError

from benchwarmers import doors, processes, rehearsal, serverfile, startup
from benchwarmers.settings import child_environment, is_loopback
from benchwarmers.supervisor import Child, Hooks, Supervisor, demo_command, queue_command, web_command

QUEUE_GRACE_S = 270.0  # a task's own limit is 240 s
DEMO_GRACE_S = 10.0


class Command(BaseCommand):
    help = "Serves the gateway, the admin and the queue, and keeps them running until told to stop."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", choices=["gateway"], help="The gateway alone: no pages, no queue (port 8123 unless BENCH_PORT or --port is set).")
        parser.add_argument("--no-browser", action="store_true", help="Print the one-time sign-in link instead of opening it.")
        parser.add_argument("--migrate", action="store_true", help="Bring a PostgreSQL database that is in use up to date first.")
        parser.add_argument("--host", help="Address to listen on, instead of BENCH_HOST.")
        parser.add_argument("--port", type=int, help="Port to listen on, instead of BENCH_PORT; 0 takes a free one.")
        parser.add_argument("--workers", type=int, help="Web processes, instead of BENCH_WORKERS.")

    def handle(self, *args: Any, no_browser: bool, migrate: bool, port: int | None, **options: Any) -> None:
        home = settings.HOME
        only: str = options["only"] or settings.ONLY
        host: str = options["host"] or settings.HOST
        workers: int = options["workers"] or settings.WORKERS
        os.umask(0o077)  # what this server writes is its owner's alone, also in a folder that was there before
        startup.check_token(host)
        startup.check_folder(home)
        held = startup.take_folder(home)
        door = doors.open_door(host, port if port is not None else settings.GATEWAY_PORT if only else settings.PORT)
        for line in startup.prepare_schema(home, migrate):
            self.say(line)
        startup.first_rows(home)
        with suppress(OSError):  # whitenoise warns without it; an installed package has its files collected already
            settings.STATIC_ROOT.mkdir(exist_ok=True)
        connections.close_all()
        processes.raise_open_file_limit()

        local_host, local_port = doors.local_address(door)
        url = doors.url_of(local_host, local_port)
        environment = child_environment(
            BENCHWARMERS_HOME=str(home),
            BENCH_HOST=host,
            BENCH_PORT=str(local_port),
            BENCH_WORKERS=str(workers),
            BENCH_ONLY=only,
            # gunicorn and uvicorn would read these beside what they are told here.
            GUNICORN_CMD_ARGS="",
            FORWARDED_ALLOW_IPS="",
            WEB_CONCURRENCY="",
        )
        trusted = ",".join(map(str, settings.TRUSTED_PROXIES))
        web = Child(
            "web server",
            web_command(door, str(home), workers, settings.GRACEFUL_TIMEOUT_S, trusted),
            environment,
            str(settings.BASE_DIR),
            grace_s=settings.GRACEFUL_TIMEOUT_S + processes.CLOSING_S + 10.0,
            whole_group=True,
            keep=(door.fileno(),),
        )
        queue = model = None
        if not only:
            from catalog import demo

            manage, base = str(settings.BASE_DIR / "manage.py"), str(settings.BASE_DIR)
            queue = Child("queue", queue_command(manage), environment, base, grace_s=QUEUE_GRACE_S, whole_group=False)
            model = Child("demo model", demo_command(manage), environment, base, grace_s=DEMO_GRACE_S, whole_group=True, switch=demo.is_on, wanted=False)
        server = serverfile.RunningServer(url, os.getpid(), settings.VERSION)

        def ready() -> None:
            serverfile.write(home, server)
            self.announce(url, host, only, no_browser)

        def stopping() -> None:
            serverfile.write(home, serverfile.RunningServer(url, server.pid, server.version, stopping=True))

        code = 1
        try:
            code = Supervisor(door, web, queue, Hooks(self.say, ready, stopping, rehearsal.reason_against), model).run()
        finally:
            serverfile.remove(home, server.pid)
            os.close(held)
        self.say("Stopped." if code == 0 else "Stopped after a failure.")
        if code:
            sys.exit(code)

    def say(self, line: str) -> None:
        try:
            self.stdout.write(line)
            self.stdout.flush()
        except OSError:  # the terminal is gone; the server need not be
            pass

    def announce(self, url: str, host: str, only: str, no_browser: bool) -> None:
        shown = settings.PUBLIC_URL or url
        self.say(f"Benchwarmers {settings.VERSION} serves {shown} (data folder {settings.HOME}).")
        if only:
            self.say(f"The gateway alone: point clients at {shown}/v1.")
            return
        if not is_loopback(host):
            self.say(f"Sign in at {shown}/admin/ as admin with BENCHWARMERS_ADMIN_TOKEN, or run: python manage.py signin")
            return
        link = self.sign_in_link(shown)
        if link and not no_browser and settings.HAS_DISPLAY and webbrowser.open(link):
            self.say("A browser opens, signed in. Another link: python manage.py signin")
        elif link:
            self.say(f"Sign in, once and within 10 minutes: {link}")

    def sign_in_link(self, base_url: str) -> str | None:
        from access import people, signin

        try:
            return signin.make_link(people.ensure_admin(), base_url, datetime.now(UTC))
        except DatabaseError:
            return None
        finally:
            connections.close_all()
