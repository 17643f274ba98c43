"""`manage.py roster load|dump FILE`: applies a roster file, or writes one."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from panels import rosterfile
from panels.roster_text import RosterError


class Command(BaseCommand):
    help = "Applies a roster file (YAML or JSON), or writes the roster as one, without secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        load = verbs.add_parser("load", help="Apply a file. Twice changes nothing; a wrong file changes nothing.")
        load.add_argument("file", help="YAML or JSON; - for standard input.")
        load.add_argument("--dry-run", action="store_true", help="Print what would change, and change nothing.")
        dump = verbs.add_parser("dump", help="Write the roster, without secrets.")
        dump.add_argument("file", help="Written as JSON where it ends in .json, else as YAML; - for standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "load":
            self.load(options["file"], options["dry_run"])
        else:
            self.dump(options["file"])

    def load(self, file: str, dry_run: bool) -> None:
        try:
            raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            changes = rosterfile.load(raw.decode("utf-8"), dry_run=dry_run)
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise CommandError(f"{file}: line {raw.count(b'%c' % 10, 0, error.start) + 1}: The file is not UTF-8.") from None
        except RosterError as error:
            lines = "\n".join(f"{file}: {problem}" for problem in error.problems)
            raise CommandError(f"Nothing was changed.\n{lines}") from None
        for change in changes:
            self.stdout.write(f"{'+' if change.is_new else '~'} {change.noun} {change.name}")
            for name, (before, after) in change.changes.items():
                self.stdout.write(f"    {name}: {shown(after)}" if change.is_new else f"    {name}: {shown(before)} -> {shown(after)}")
        counted = Counter("added" if change.is_new else "changed" for change in changes)
        said = ", ".join(f"{count} {what}" for what, count in counted.items()) or "Nothing to change"
        self.stdout.write(f"{said}.{' Nothing was written (--dry-run).' if dry_run and changes else ''}")

    def dump(self, file: str) -> None:
        text = rosterfile.dump_json() if file.endswith(".json") else rosterfile.dump_yaml()
        if file == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        self.stdout.write(f"Wrote {file}.")


def shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
