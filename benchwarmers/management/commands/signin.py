"""`manage.py signin`: another one-time sign-in link."""

from __future__ import annotations

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from access import people, signin
from benchwarmers import schema, serverfile
from benchwarmers.doors import url_of
from benchwarmers.refusals import Refusal


class Command(BaseCommand):
    help = "Prints a link that signs in once, within 10 minutes."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", help="Whom to sign in. Without a name: the admin.")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.reach()
        if schema.read().pending:
            raise Refusal("The database is not set up. Run: python manage.py init, or start the server once.")
        who = people.named(options["user"]) if options["user"] else people.ensure_admin()
        if who is None:
            raise Refusal(f"There is no active user {options['user']}. Make one in the admin, or leave the name out.")
        running = serverfile.read(settings.HOME)
        base_url = settings.PUBLIC_URL or (running.url if running else url_of("127.0.0.1", settings.PORT))
        self.stdout.write(signin.make_link(who, base_url, timezone.now()))
        if running is None:
            self.stderr.write(f"No server runs on the data folder {settings.HOME}: start it within 10 minutes.")
