"""Signs in at a provider: starts, and finishes by the browser or by a device code. `catalog.renewing` renews tokens before they end.

SignInRefused   it cannot be done; says why and what to do
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets as randomness
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from access import audit, secrets
from access.ids import new_id
from catalog import editing, endpoint_keys, names, signins, web
from catalog.addresses import literal
from catalog.models import Endpoint, SignIn
from catalog.shape import ShapeError
from catalog.signin_rows import (
    SignInView,
    UnknownSignIn,
    checked_client_id,
    found,
    holds_its_key,
    is_offered,
    opened,
    sealed,
    site_of,
    stored_client_id,
    switch,
    view,
)
from catalog.signins import Answer, Denied, Post, SignInAt
from wire.errors import redacted

VALID_FOR = timedelta(minutes=10)
LIMIT_BYTES = 200_000
TIMEOUT_S = 20.0


class SignInRefused(ValueError):
    code = "invalid_request"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message, self.field = message, field


@dataclass(frozen=True, slots=True)
class Started:
    """A sign-in that began. Shape: `authorize_url` is shown this once, empty for a device's."""

    signin: SignInView
    authorize_url: str


# ------------------------------------------------------------------ starting


def start(provider_name: str, flow: str, endpoint: str, client_id: str, callback_url: Callable[[], str], session: str, actor: str, now: datetime) -> Started:
    """Begins a sign-in. The provider is asked for a code where it is a device's.

    Shape: an empty `flow`, `endpoint` or `client_id` means the provider's first, its name, and the settings' one; `callback_url` gives this server's
    own for the provider; `session` the key of the session that must finish it, empty where a gateway key starts it: then any admin's may.
    Errors: SignInRefused, catalog.shape.ShapeError.
    """
    try:
        provider = signins.get(provider_name)
    except KeyError:
        raise SignInRefused(f"provider must be one of {', '.join(p.name for p in signins.every() if is_offered(p))}.", "provider") from None
    if not is_offered(provider):
        raise SignInRefused(f"{switched_off(provider)} {provider.note}", "provider")
    flow = flow or provider.flows[0]
    if flow not in provider.flows:
        raise SignInRefused(f"flow must be {' or '.join(provider.flows)} at {provider.title}.", "flow")
    endpoint = names.check_endpoint_name(endpoint or provider.name, "endpoint")
    refuse_other_address(provider, endpoint)
    client_id = checked_client(provider, client_id)
    row = SignIn(
        id=new_id("sgn"), provider=provider.name, flow=flow, endpoint_name=endpoint, started_by=actor[:200], started_at=now, expires_at=now + VALID_FOR
    )
    address = ""
    if flow == "code":
        state, verifier = randomness.token_urlsafe(32), randomness.token_urlsafe(64)
        redirect_uri = checked_callback(callback_url()) + (f"/{state}" if provider.state_in_path else "")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        row.state_digest = digest(state)
        row.sealed = sealed({"verifier": verifier, "redirect_uri": redirect_uri, "client_id": client_id, "session": digest(session) if session else ""})
        address = provider.authorize_url(site_of(provider), client_id, redirect_uri, state, challenge)
    else:
        try:
            device = provider.read_device(site_of(provider), post(provider, provider.device_start(site_of(provider), client_id)))
        except Denied as denied:
            raise SignInRefused(told(provider, denied)) from None
        row.expires_at = now + timedelta(seconds=device.expires_in_s)
        row.next_poll_at = now + timedelta(seconds=device.interval_s)
        kept = {"device_code": device.device_code, "user_code": device.user_code, "page": device.page, "page_filled": device.page_filled}
        row.sealed = sealed({**kept, "interval_s": device.interval_s, "client_id": client_id})
    with transaction.atomic():
        row.save(force_insert=True)
        audit.record(actor, "signin.start", endpoint, {"provider": [None, provider.name], "flow": [None, flow]})
    return Started(view(row), address)


def switched_off(provider: SignInAt) -> str:
    return f"Signing in at {provider.title} is switched off. An admin can switch it on with the setting {switch(provider)}."


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def checked_client(provider: SignInAt, given: str) -> str:
    if provider.client == "none":
        if given:
            raise SignInRefused(f"client_id: {provider.title} knows no client ids. Leave it out.", "client_id")
        return ""
    try:
        client_id = checked_client_id(given or stored_client_id(provider))
    except ValueError as error:
        raise SignInRefused(f"client_id {error}", "client_id") from None
    if provider.client == "needed" and not client_id:
        raise SignInRefused(
            f"client_id is missing: {provider.title} wants an app of your own. Register one at {provider.client_page}; {provider.note}", "client_id"
        )
    return client_id


def checked_callback(url: str) -> str:
    """Providers send a browser back with a code to https, or to the person's own machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    address = literal(host)
    at_home = host == "localhost" or (address is not None and address.is_loopback)
    if parts.scheme != "https" and not at_home:
        raise SignInRefused(
            "The browser must come back to https or to this machine. Open this server at https (BENCH_PUBLIC_URL says where that is) "
            "or at localhost, or sign in with a device code where there is that way.",
            "flow",
        )
    return url


def refuse_other_address(provider: SignInAt, endpoint: str) -> None:
    """A token goes to no address but its provider's, whatever an endpoint is called."""
    row = Endpoint.objects.filter(name=endpoint).first()
    if row is None:
        names.check_unique(endpoint, Endpoint.objects.values_list("name", flat=True), "endpoint")
    elif endpoint_keys.origin(row.base_url) != endpoint_keys.origin(provider.base_url):
        raise SignInRefused(f"Endpoint {endpoint} is not at {provider.title} ({provider.base_url}). Name another one; a new one is made.", "endpoint")
    if variable := endpoint_keys.variable_of(row or Endpoint(name=endpoint)):
        raise SignInRefused(f"Endpoint {endpoint} takes its key from the variable {variable}, which would win over a sign-in.", "endpoint")


# ------------------------------------------------------------------ asking the provider


def post(provider: SignInAt, asked: Post) -> Answer:
    """Sends one request of a flow. Errors: Denied, passing, where no answer came."""
    try:
        fetched = web.send(
            asked.url,
            {},
            form=asked.form,
            json_body=asked.json_body,
            named=provider.name in settings.SIGNIN_URLS,
            limit_bytes=LIMIT_BYTES,
            timeout_s=TIMEOUT_S,
        )
    except web.WebError as error:
        raise Denied("unreachable", f"It gave no answer. {error.message}", passing=True) from None
    if 300 <= fetched.status < 400:
        raise Denied("redirected", "It redirects elsewhere, which is not followed.")
    try:
        body = json.loads(fetched.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        if fetched.status < 400:
            raise Denied("not_json", f"It answered no JSON (got {fetched.media_type}).")
        body = {}
    return Answer(fetched.status, body)


def told(provider: SignInAt, denied: Denied, *hidden: str) -> str:
    """What people read. A provider's own words may hold what was sent to it."""
    return redacted(f"{provider.title}: {denied.message} ({denied.code})", *hidden)[:500]


# ------------------------------------------------------------------ finishing


def finish(provider_name: str, state: str, code: str, error: str, session: str, actor: str, now: datetime) -> SignInView:
    """Takes what came back with the browser: the state is good once, within ten minutes, in the session that it was given to.

    Errors: SignInRefused.
    """
    again = "Start the sign-in again."
    waits = SignIn.objects.filter(provider=provider_name, state_digest=digest(state), state=SignIn.State.OPEN)
    row = waits.first() if state and "\0" not in provider_name else None
    if row is None:
        raise SignInRefused(f"This is no sign-in that waits here: it was finished already, or began elsewhere. {again}")
    kept = opened(row)
    if kept.get("session") and not randomness.compare_digest(str(kept["session"]), digest(session)):
        raise SignInRefused(f"Another session began this sign-in. Finish it in the browser that began it, signed in as {row.started_by}.")
    mine = SignIn.objects.filter(pk=row.pk, state=SignIn.State.OPEN, state_digest=row.state_digest)
    if not mine.update(state_digest=""):
        raise SignInRefused(f"This sign-in was finished already. {again}")
    if row.expires_at is None or row.expires_at <= now:
        return ended(row, f"It was not finished within ten minutes. {again}")
    provider = signins.get(provider_name)
    if error or not code:
        word = signins.word_of(Answer(400, {"error": error or "no_code"}))
        return ended(row, told(provider, Denied(word, signins.SAID.get(word, "It sent no code back."))))
    try:
        asked = provider.exchange(site_of(provider), kept["client_id"], kept["redirect_uri"], code, kept["verifier"])
        tokens = provider.read_tokens(post(provider, asked))
    except KeyError:
        return ended(row, f"What was kept of it cannot be read any more. {again}")
    except Denied as denied:
        return ended(row, told(provider, denied, code, state, kept["verifier"]))
    return hold(row, tokens, kept["client_id"], actor, now)


def look(sign_in_id: str, now: datetime) -> SignInView:
    """Shows a sign-in; asks the provider first where a device's is open and its turn has come, whichever process shows it.

    Errors: UnknownSignIn.
    """
    row = found(sign_in_id)
    if row.state != SignIn.State.OPEN:
        return view(row)
    if row.expires_at is None or row.expires_at <= now:
        return ended(row, "It was not finished in time. Start the sign-in again.")
    if row.flow != "device" or row.next_poll_at is None or row.next_poll_at > now:
        return view(row)
    kept = opened(row)
    interval = float(kept.get("interval_s", 5.0))
    hidden = str(kept.get("device_code", "")).split()
    # Nobody else asks while this one waits for its answer.
    turn = SignIn.objects.filter(pk=row.pk, state=SignIn.State.OPEN, next_poll_at=row.next_poll_at)
    if not turn.update(next_poll_at=now + timedelta(seconds=interval + TIMEOUT_S)):
        return view(found(sign_in_id))
    try:
        provider = signins.get(row.provider)
        if not is_offered(provider):
            return ended(row, switched_off(provider))
        site, client_id = site_of(provider), kept["client_id"]
        answer = post(provider, provider.device_poll(site, client_id, kept["device_code"]))
        further = provider.device_exchange(site, client_id, answer)
        if further is not None:
            hidden += [value for name, value in (further.form or {}).items() if name.startswith("code")]
        tokens = provider.read_poll(answer) if further is None else provider.read_tokens(post(provider, further))
    except KeyError:
        return ended(row, "What was kept of it cannot be read any more. Start the sign-in again.")
    except signins.Pending as pending:
        return waiting(row, kept, max(interval + pending.slower_s, pending.interval_s or 0.0), "", now)
    except Denied as denied:
        if not denied.passing:
            return ended(row, told(provider, denied, *hidden))
        return waiting(row, kept, min(interval * 2, 60.0), told(provider, denied, *hidden), now)
    return hold(row, tokens, kept["client_id"], row.started_by, now)


def waiting(row: SignIn, kept: Mapping[str, Any], interval_s: float, message: str, now: datetime) -> SignInView:
    """Puts off the next question."""
    row.sealed, row.message = sealed({**kept, "interval_s": interval_s}), message
    row.next_poll_at = now + timedelta(seconds=interval_s)
    SignIn.objects.filter(pk=row.pk, state=SignIn.State.OPEN).update(sealed=row.sealed, message=row.message, next_poll_at=row.next_poll_at)
    return view(row)


def ended(row: SignIn, message: str) -> SignInView:
    """Gives up, and forgets what was kept for it."""
    gone = {"state": SignIn.State.FAILED, "message": message[:500], "sealed": "", "state_digest": "", "next_poll_at": None}
    SignIn.objects.filter(pk=row.pk, state=SignIn.State.OPEN).update(**gone)
    return view(found(row.pk))


def hold(row: SignIn, tokens: signins.Tokens, client_id: str, actor: str, now: datetime) -> SignInView:
    """Gives the token to its endpoint, which is made where there is none; what an earlier sign-in kept for it is forgotten."""
    provider = signins.get(row.provider)
    try:
        with transaction.atomic():
            if not SignIn.objects.select_for_update().filter(pk=row.pk, state=SignIn.State.OPEN).exists():
                raise SignInRefused("It was cancelled meanwhile.")
            refuse_other_address(provider, row.endpoint_name)
            if Endpoint.objects.filter(name=row.endpoint_name).exists():
                editing.change_endpoint(row.endpoint_name, {}, tokens.access, actor, is_admin=True)
            else:
                made = {"name": row.endpoint_name, "kind": provider.kind, "base_url": provider.base_url}
                editing.make_endpoint(made, tokens.access, actor, is_admin=True)
            row.endpoint = Endpoint.objects.get(name=row.endpoint_name)
            SignIn.objects.filter(endpoint=row.endpoint).exclude(pk=row.pk).delete()
            row.state, row.message, row.account = SignIn.State.DONE, "", tokens.account
            keep(row, tokens, client_id, now)
            audit.record(actor, "signin.done", row.endpoint_name, {"provider": [None, provider.name], "ends": [None, audit.plain(row.expires_at)]})
    except (SignInRefused, ShapeError, secrets.UnusableKey) as error:
        return ended(row, str(error))
    return view(row)


def keep(row: SignIn, tokens: signins.Tokens, client_id: str, now: datetime) -> None:
    """Writes what a sign-in holds from now on."""
    row.sealed = sealed({"access": tokens.access, "refresh": tokens.refresh, "client_id": client_id})
    row.expires_at = None if tokens.expires_in_s is None else now + timedelta(seconds=tokens.expires_in_s)
    row.state_digest, row.next_poll_at, row.refreshed_at = "", None, now
    row.save()


def remove(sign_in_id: str, actor: str) -> None:
    """Cancels a sign-in, or signs out: its tokens are forgotten, at its endpoint too. Errors: UnknownSignIn."""
    with transaction.atomic():
        row = SignIn.objects.select_for_update().filter(pk=found(sign_in_id).pk).first()
        if row is None:
            raise UnknownSignIn(sign_in_id)
        if row.endpoint_id is not None and holds_its_key(row):
            editing.change_endpoint(row.endpoint_name, {}, "", actor, is_admin=True)
        row.delete()
        audit.record(actor, "signin.delete", row.endpoint_name, {"provider": [row.provider, None], "state": [row.state, None]})
