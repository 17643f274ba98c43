"""`manage.py rotate_secrets`: encrypts everything anew with the first secret."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from access import secrets
from benchwarmers import schema
from benchwarmers.refusals import Refusal
from catalog import resealing


class Command(BaseCommand):
    help = "Encrypts all stored keys anew with the first secret, so that the others can be dropped."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        schema.reach()
        if schema.read().pending:
            raise Refusal("The database is not set up or not up to date. Start the server once first.")
        try:
            count = resealing.reseal_all("rotate_secrets")
        except secrets.SecretsMismatch as error:
            raise Refusal(f"Nothing was changed. {error}") from None
        self.stdout.write(f"{count} endpoint key(s) and the check value are now encrypted with the first secret.")
        if len(settings.SECRET_KEYS) > 1:
            self.stdout.write("Restart every server that uses this database with the first secret, then the others can be removed.")
