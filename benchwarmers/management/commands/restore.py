"""`manage.py restore FILE`: puts a backup back."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections
from django.db.utils import DatabaseError

from access import secrets
from benchwarmers import archive, schema, startup
from benchwarmers.refusals import Refusal


class Command(BaseCommand):
    help = "Replaces the database and the data folder's files by a backup's. The old state is kept beside it; no server may be running."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A file that `manage.py backup` wrote.")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        os.umask(0o077)
        source = file.expanduser().absolute()
        startup.check_folder(settings.HOME)
        held = startup.take_folder(settings.HOME)
        try:
            schema.reach()
            kept = archive.put_back(source, settings.HOME)
        except (DatabaseError, OSError) as error:
            raise Refusal(f"{file} was not restored: {schema.first_line(error)}") from None
        finally:
            connections.close_all()
            os.close(held)
        self.stdout.write(f"Restored {file}." + (f" What was there before is in {kept}." if kept else ""))
        try:
            secrets.ensure_check_value()
        except secrets.SecretsMismatch as error:
            self.stderr.write(f"The server will not start yet. {error}")
