"""`manage.py init [FOLDER] [--endpoint NAME BASE_URL --key]`: starts a data folder."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections, transaction

from benchwarmers import schema, startup
from benchwarmers.refusals import Refusal
from benchwarmers.settings import child_environment
from catalog import endpoint_keys, names
from panels import rosterfile
from panels.roster_text import RosterError

POINTER = ".benchwarmers-home"


class Command(BaseCommand):
    help = "Starts a data folder: database, first admin, operator key, an example roster; with --endpoint also the first endpoint."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "folder",
            nargs="?",
            type=Path,
            help=f"Where; remembered for this checkout in {POINTER}. Without one: BENCHWARMERS_HOME, else the user's data folder.",
        )
        parser.add_argument("--endpoint", nargs=2, metavar=("NAME", "BASE_URL"), help="An endpoint to begin with, of kind openai.")
        parser.add_argument("--kind", default="openai", help="The endpoint's kind, where it is not openai.")
        parser.add_argument("--key", action="store_true", help="Ask for the endpoint's key, hidden; from standard input where that is no terminal.")

    def handle(self, *args: Any, folder: Path | None, key: bool, **options: Any) -> None:
        os.umask(0o077)
        if key and not options["endpoint"]:
            raise Refusal("--key asks for an endpoint's key: name the endpoint with --endpoint NAME BASE_URL.")
        if folder is not None and folder.expanduser().resolve() != settings.HOME:
            more = ["--endpoint", *options["endpoint"], "--kind", options["kind"]] if options["endpoint"] else []
            self.begin_elsewhere(folder.expanduser().resolve(), [*more, *(["--key"] if key else [])])
            return
        home = settings.HOME
        startup.check_folder(home)
        schema.reach()
        for line in startup.prepare_schema(home, may_migrate=False):
            self.stdout.write(line)
        startup.first_rows(home)
        self.copy_examples(home)
        if options["endpoint"]:
            name, base_url = options["endpoint"]
            self.set_endpoint(name, base_url, options["kind"], key)
        connections.close_all()
        self.stdout.write(f"The data folder {home} is ready. Start the server with: python manage.py serve")

    def begin_elsewhere(self, home: Path, arguments: list[str]) -> None:
        """Remembers the folder and goes on in a process that has it as its own: settings are read once."""
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            startup.check_folder(home)
            (settings.BASE_DIR / POINTER).write_text(f"{home}\n", encoding="utf-8")
        except OSError as error:
            raise Refusal(f"{error.filename or home} cannot be written: {error.strerror}.") from None
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "init", str(home), *arguments]
        done = subprocess.run(command, env=child_environment(BENCHWARMERS_HOME=str(home)), check=False)  # noqa: S603
        if done.returncode:
            sys.exit(done.returncode)
        self.stdout.write(f"This checkout uses it from now on ({POINTER}); BENCHWARMERS_HOME wins where it is set.")

    def copy_examples(self, home: Path) -> None:
        """Puts the example files into the folder, to be changed and loaded; what is there stays."""
        for source in sorted((settings.BASE_DIR / "examples").glob("*.yaml")):
            target = home / source.name
            if not target.exists():
                target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
                self.stdout.write(f"{target}: an example to change, then: python manage.py roster load {target}")

    def set_endpoint(self, name: str, base_url: str, kind: str, with_key: bool) -> None:
        try:
            names.check_endpoint_name(name)
            raw = self.ask_key(name) if with_key else ""
            with transaction.atomic():
                changes = rosterfile.load(json.dumps({"endpoints": [{"name": name, "kind": kind, "base_url": base_url}]}), actor="init")
                if raw:
                    endpoint_keys.set_key_of(name, raw, "init")
        except RosterError as error:
            raise Refusal("; ".join(problem.message for problem in error.problems)) from None
        except ValueError as error:
            raise Refusal(f"Endpoint {name}: {error}") from None
        self.stdout.write(f"Endpoint {name} {'added' if changes else 'was there already'}{', its key stored encrypted' if raw else ''}.")

    def ask_key(self, name: str) -> str:
        raw = getpass.getpass(f"Key of {name} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
        if not raw.strip():
            raise Refusal(f"No key was given for {name}; nothing was changed.")
        return raw
