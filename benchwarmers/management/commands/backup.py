"""`manage.py backup FILE`: the database and the data folder in one file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db.utils import DatabaseError

from benchwarmers import archive, schema
from benchwarmers.refusals import Refusal


class Command(BaseCommand):
    help = "Writes a backup of the database and the data folder; the server may be running. Never holds the secrets file or operator.key."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The file to write (.tar.gz); it must not exist.")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        os.umask(0o077)
        schema.reach()
        try:
            if schema.read().is_empty:
                raise Refusal("The database is empty; there is nothing to back up.")
            manifest = archive.make(file.expanduser().absolute(), settings.HOME)
        except (DatabaseError, OSError) as error:
            raise Refusal(f"{file} was not written: {schema.first_line(error)}") from None
        self.stdout.write(f"{file}: {file.stat().st_size / 1e6:.1f} MB, {manifest.engine}, Benchwarmers {manifest.version}.")
        self.stdout.write("Keep the secrets (BENCHWARMERS_SECRET_KEYS or the secrets file) elsewhere: without them the endpoints' keys in it cannot be read.")
