"""Encrypts what is stored encrypted anew with the first secret, all of it or nothing."""

from __future__ import annotations

from django.db import transaction

from access import audit, secrets
from catalog.models import Endpoint


def reseal_all(actor: str) -> int:
    """Gives how many endpoints' keys were encrypted anew. Errors: SecretsMismatch, and then nothing was changed."""
    with transaction.atomic():
        secrets.reseal_check_value()
        rows = list(Endpoint.objects.select_for_update().exclude(key_sealed=""))
        for row in rows:
            row.key_sealed = secrets.reseal(row.key_sealed)
            row.save(update_fields=["key_sealed"])
        audit.record(actor, "secrets.rotate", f"{len(rows)} endpoint keys")
    return len(rows)
