"""Encrypts what is stored encrypted anew with the first secret, all of it or nothing."""

from __future__ import annotations

from django.db import transaction

from access import audit, secrets
from catalog.models import Endpoint, SignIn


def reseal_all(actor: str) -> int:
    """Gives how many endpoints' keys were encrypted anew. Errors: SecretsMismatch, and then nothing was changed."""
    with transaction.atomic():
        secrets.reseal_check_value()
        rows = list(Endpoint.objects.select_for_update().exclude(key_sealed=""))
        for row in rows:
            row.key_sealed = secrets.reseal(row.key_sealed)
            row.save(update_fields=["key_sealed"])
        held = list(SignIn.objects.select_for_update().exclude(sealed=""))
        for sign_in in held:
            sign_in.sealed = secrets.reseal(sign_in.sealed)
            sign_in.save(update_fields=["sealed"])
        audit.record(actor, "secrets.rotate", f"{len(rows)} endpoint keys" + (f", {len(held)} sign-ins" if held else ""))
    return len(rows)
