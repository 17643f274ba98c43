"""Sign-ins as they stand: which providers there are, the rows without their secrets, and what is kept sealed in them.

UnknownSignIn   there is no such sign-in
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from access import preferences, secrets
from access.pages import Page, keyset
from catalog import signins
from catalog.models import SignIn
from catalog.signins import SignInAt


class UnknownSignIn(LookupError):
    code = "not_found"


@dataclass(frozen=True, slots=True)
class ProviderView:
    """One provider that can be signed in at. Shape: `client` as in `SignInAt`; `client_id` the one that the settings hold."""

    name: str
    title: str
    flows: tuple[str, ...]
    client: str
    client_page: str
    client_id: str
    endpoint: str
    base_url: str
    note: str


@dataclass(frozen=True, slots=True)
class SignInView:
    """One sign-in without its secrets. Shape: `user_code` and the pages only while a device sign-in is open; `expires_at` as the row has it."""

    id: str
    provider: str
    flow: str
    endpoint: str
    state: str
    message: str
    account: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    started_by: str
    started_at: datetime
    expires_at: datetime | None
    next_poll_at: datetime | None
    refreshed_at: datetime | None


# ------------------------------------------------------------------ providers


def client_setting(provider: SignInAt) -> str:
    return f"signins.{provider.name}_client_id"


def register_settings() -> None:
    """Adds a setting for each provider that knows programs by an id of their own, and a switch for each that needs consent."""
    for provider in signins.every():
        if provider.needs_consent:
            preferences.register(switch(provider), False, checked_switch, f"Whether signing in at {provider.title} is offered. {provider.note}")
        if provider.client != "none":
            preferences.register(client_setting(provider), "", checked_client_id, f"The client id of your own app at {provider.title}, for sign-ins there.")


def switch(provider: SignInAt) -> str:
    return f"signins.{provider.name}"


def checked_switch(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError("must be true or false.")
    return given


def is_offered(provider: SignInAt) -> bool:
    return not provider.needs_consent or preferences.value(switch(provider)) is True


def checked_client_id(given: Any) -> str:
    if not isinstance(given, str) or len(given) > 300 or not all("!" <= char <= "~" for char in given):
        raise ValueError("must be a client id: up to 300 letters, digits and signs without spaces.")
    return given


def every_provider() -> list[ProviderView]:
    """Lists those that are offered, those first where nothing must be registered."""
    effort = ("none", "optional", "needed")
    found = sorted(filter(is_offered, signins.every()), key=lambda p: effort.index(p.client))
    return [ProviderView(p.name, p.title, p.flows, p.client, p.client_page, stored_client_id(p), p.name, p.base_url, p.note) for p in found]


def titles() -> dict[str, str]:
    """Gives each provider's name for people by its name here."""
    return {p.name: p.title for p in signins.every()}


def stored_client_id(provider: SignInAt) -> str:
    return "" if provider.client == "none" else str(preferences.value(client_setting(provider)))


def site_of(provider: SignInAt) -> str:
    return str(settings.SIGNIN_URLS.get(provider.name, provider.site)).rstrip("/")


# ------------------------------------------------------------------ rows


def page(limit: int, page_token: str) -> Page[SignInView]:
    """Lists sign-ins, newest first. One query."""
    return keyset(SignIn.objects.all(), ("started_at", "id"), limit, page_token, newest_first=True).mapped(view)


def view(row: SignIn) -> SignInView:
    kept = opened(row) if row.state == SignIn.State.OPEN and row.flow == "device" else {}
    return SignInView(
        id=row.pk,
        provider=row.provider,
        flow=row.flow,
        endpoint=row.endpoint_name,
        state=row.state,
        message=row.message,
        account=row.account,
        user_code=str(kept.get("user_code", "")),
        verification_uri=str(kept.get("page", "")),
        verification_uri_complete=str(kept.get("page_filled", "")),
        started_by=row.started_by,
        started_at=row.started_at,
        expires_at=row.expires_at,
        next_poll_at=row.next_poll_at,
        refreshed_at=row.refreshed_at,
    )


def opened(row: SignIn) -> dict[str, Any]:
    """What a row keeps sealed; empty where it cannot be read."""
    try:
        return dict(json.loads(secrets.unseal(row.sealed))) if row.sealed else {}
    except (secrets.SecretsMismatch, ValueError):
        return {}


def sealed(kept: Mapping[str, Any]) -> str:
    return secrets.seal(json.dumps(kept))


def found(sign_in_id: str) -> SignIn:
    row = SignIn.objects.filter(pk=sign_in_id).first() if "\0" not in sign_in_id else None
    if row is None:
        raise UnknownSignIn(sign_in_id)
    return row


def holds_its_key(row: SignIn) -> bool:
    """Whether the endpoint's key is the one that this sign-in gave it; a key set by hand since is not to be touched."""
    if row.endpoint is None or not row.endpoint.key_sealed:
        return False
    try:
        return secrets.unseal(row.endpoint.key_sealed) == opened(row).get("access")
    except secrets.SecretsMismatch:
        return False
