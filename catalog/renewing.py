"""Renews the tokens of sign-ins before they end, once whichever host gets to it first, and forgets sign-ins that nobody finished."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from access import audit
from catalog import editing, signins
from catalog.models import SignIn
from catalog.signin_rows import holds_its_key, opened, site_of
from catalog.signing import keep, post, told
from catalog.signins import Denied

log = logging.getLogger(__name__)
ACTOR = "sign-ins"
# Renewed this long before it ends: time for two more tries, ten minutes apart.
BEFORE = timedelta(minutes=30)
# From here on a try that failed is worth an alert.
URGENT = timedelta(minutes=15)
# What nothing renews is announced a day ahead; what lasts for hours only, in its last quarter.
AHEAD = timedelta(days=1)
LEASE = timedelta(minutes=2)
FORGET = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A sign-in that somebody must look after. Shape: `once` says what is the same trouble."""

    endpoint: str
    once: str
    message: str


def refresh_due(now: datetime) -> list[Trouble]:
    """Renews what ends soon, and gives what could not be renewed."""
    forget(now)
    troubles = []
    soon = SignIn.objects.filter(state=SignIn.State.DONE, expires_at__lte=now + AHEAD).select_related("endpoint").order_by("expires_at")
    for row in soon:
        trouble = cared_for(row, now)
        if trouble is not None:
            log.warning("%s", trouble.message)
            troubles.append(trouble)
    return troubles


def cared_for(row: SignIn, now: datetime) -> Trouble | None:
    """Looks after one sign-in whose token ends within a day."""
    assert row.expires_at is not None
    if not holds_its_key(row):
        # Renewed, it would take the place of a key that a person set.
        return failed(row, "The endpoint was given another key, or its key cannot be read; this sign-in does not renew it any more.", tell=False)
    kept = opened(row)
    if not kept.get("refresh"):
        lasts = row.expires_at - (row.refreshed_at or row.started_at)
        if row.expires_at - now > min(AHEAD, lasts / 4):
            return None
        word = "has ended" if row.expires_at <= now else "ends"
        at = f"{row.expires_at:%d %b %Y %H:%M} UTC"
        return trouble_of(row, "over" if row.expires_at <= now else "soon", f"Its token {word} ({at}), and nothing renews it. Sign in again.")
    if row.expires_at > now + BEFORE or not claimed(row, now):
        return None
    provider = signins.get(row.provider)
    refresh_token, client_id = str(kept["refresh"]), str(kept.get("client_id", ""))
    try:
        tokens = provider.read_tokens(post(provider, provider.refresh(site_of(provider), client_id, refresh_token)))
    except Denied as denied:
        message = told(provider, denied, refresh_token)
        if not denied.passing:
            return failed(row, f"{message} Sign in again.")
        SignIn.objects.filter(pk=row.pk).update(message=message, next_poll_at=None)
        return trouble_of(row, "failing", f"Its token could not be renewed. {message}") if row.expires_at <= now + URGENT else None
    if not tokens.refresh:  # a server that does not rotate leaves the old one good (RFC 6749, 6)
        tokens = signins.Tokens(tokens.access, refresh_token, tokens.expires_in_s, tokens.account)
    renewed(row, tokens, client_id, now)
    return None


def claimed(row: SignIn, now: datetime) -> bool:
    """Takes the row for this host, if it still stands as it was read."""
    free = SignIn.objects.filter(Q(next_poll_at=None) | Q(next_poll_at__lte=now), pk=row.pk, state=SignIn.State.DONE, sealed=row.sealed)
    return bool(free.update(next_poll_at=now + LEASE))


def renewed(row: SignIn, tokens: signins.Tokens, client_id: str, now: datetime) -> None:
    """Gives the fresh token to the endpoint, from the next call on in every process."""
    with transaction.atomic():
        fresh = SignIn.objects.select_for_update(of=("self",)).select_related("endpoint").filter(pk=row.pk, state=SignIn.State.DONE).first()
        if fresh is None:
            return  # signed out meanwhile
        if holds_its_key(fresh):
            editing.change_endpoint(fresh.endpoint_name, {}, tokens.access, ACTOR, is_admin=True)
        fresh.message = ""
        keep(fresh, tokens, client_id, now)
        audit.record(ACTOR, "signin.renew", fresh.endpoint_name, {"ends": [audit.plain(row.expires_at), audit.plain(fresh.expires_at)]})


def failed(row: SignIn, message: str, tell: bool = True) -> Trouble | None:
    """Gives up on renewing. The endpoint keeps its key, which may be good for a while yet."""
    SignIn.objects.filter(pk=row.pk).update(state=SignIn.State.FAILED, message=message[:500], sealed="", next_poll_at=None)
    return trouble_of(row, "failed", message) if tell else None


def trouble_of(row: SignIn, what: str, message: str) -> Trouble:
    ends = "" if row.expires_at is None else f"{row.expires_at:%Y%m%d%H%M}"
    return Trouble(row.endpoint_name, f"signin:{row.pk}:{what}:{ends}", f"Endpoint {row.endpoint_name}: {message}"[:500])


def forget(now: datetime) -> None:
    """Drops what was begun and never finished, and after a while what failed."""
    SignIn.objects.filter(state=SignIn.State.OPEN, expires_at__lte=now).update(
        state=SignIn.State.FAILED, message="It was not finished in time.", sealed="", state_digest="", next_poll_at=None
    )
    SignIn.objects.filter(state=SignIn.State.FAILED, endpoint=None, started_at__lte=now - FORGET).delete()
