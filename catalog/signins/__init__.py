"""One file per provider that publishes a sign-in for programs like this one: what is posted where, and how the answers read.

A file here holds one `SIGN_IN`, a subclass of `SignInAt`; it is found by walking the folder. All of it is pure: it builds and reads, `catalog.signing` sends.

Pending   a device sign-in that the person has not finished yet
Denied    the provider said no
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from access.secrets import UnusableKey, clean_key

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SLOWER_S = 5.0  # RFC 8628, 3.5
LONGEST_TEXT = 200
CODE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


@dataclass(frozen=True, slots=True)
class Post:
    """One request of a flow. Shape: a form, or JSON where `form` is None."""

    url: str
    form: Mapping[str, str] | None = None
    json_body: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Shape: `body` is the JSON object, empty where it was none."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a finished sign-in gives. Units: `expires_in_s` seconds from now, None where the token says no end."""

    access: str
    refresh: str = ""
    expires_in_s: float | None = None
    account: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A device sign-in that began. Shape: `page_filled` is `page` with the code typed in already, where the provider has one."""

    device_code: str
    user_code: str
    page: str
    page_filled: str = ""
    expires_in_s: float = 600.0
    interval_s: float = 5.0


class Pending(Exception):
    """Units: `slower_s` is added to the interval; `interval_s` replaces it where the provider names one."""

    def __init__(self, slower_s: float = 0.0, interval_s: float | None = None) -> None:
        super().__init__("not finished yet")
        self.slower_s, self.interval_s = slower_s, interval_s


class Denied(Exception):
    """Shape: `code` is the provider's word in plain characters, or ours; `passing` where the same may succeed later."""

    def __init__(self, code: str, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.passing = code, message, passing


# What people are told for the words that RFC 6749 and RFC 8628 have.
SAID = {
    "access_denied": "It was turned down there.",
    "expired_token": "The code ended before it was entered.",
    "invalid_grant": "The code or token was used already, has ended or was revoked.",
    "invalid_client": "The client id is not known there.",
    "unauthorized_client": "The client may not sign in this way.",
    "device_flow_disabled": "The app does not allow device sign-ins; its settings there can.",
    "incorrect_client_credentials": "The client id is not known there.",
}


class SignInAt:
    """A sign-in as OAuth 2 has it (RFC 6749, RFC 7636, RFC 8628); files change what is different.

    Shape: `client` says whether an id of an app's own registration is "none", "optional" or "needed"; `kind` and `base_url` are the endpoint's.
    """

    name: str
    title: str
    site: str
    flows: tuple[str, ...] = ("code", "device")
    client: str = "needed"
    client_page: str = ""
    note: str = ""
    kind: str = "openai"
    base_url: str
    # Not offered until an admin switches it on: then `note` says what is to be known of it.
    needs_consent: bool = False
    scope: str = ""
    authorize_path: str = "/oauth/authorize"
    token_path: str = "/oauth/token"  # noqa: S105
    device_path: str = "/oauth/device"
    # Some give back nothing but their code: then the state stands in the path of the callback.
    state_in_path: bool = False

    # ------------------------------------------------------------------ by the browser

    def authorize_url(self, site: str, client_id: str, redirect_uri: str, state: str, challenge: str) -> str:
        """The page that the person is sent to."""
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "scope": self.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return with_query(site + self.authorize_path, asked)

    def exchange(self, site: str, client_id: str, redirect_uri: str, code: str, verifier: str) -> Post:
        """What turns the code that came back into tokens."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "client_id": client_id, "code_verifier": verifier}
        return Post(site + self.token_path, filled(form))

    def read_tokens(self, answer: Answer) -> Tokens:
        """Errors: Denied."""
        return read_tokens(answer)

    # ------------------------------------------------------------------ by a code that a person types

    def device_start(self, site: str, client_id: str) -> Post:
        return Post(site + self.device_path, filled({"client_id": client_id, "scope": self.scope}))

    def read_device(self, site: str, answer: Answer) -> Device:
        """Errors: Denied."""
        return read_device(site, answer)

    def device_poll(self, site: str, client_id: str, device_code: str) -> Post:
        return Post(site + self.token_path, filled({"grant_type": DEVICE_GRANT, "device_code": device_code, "client_id": client_id}))

    def device_exchange(self, site: str, client_id: str, answer: Answer) -> Post | None:
        """What turns a poll's answer into tokens, where that takes one request more; `read_tokens` reads what comes of it. Errors: Pending, Denied."""
        return None

    def read_poll(self, answer: Answer) -> Tokens:
        """Errors: Pending, Denied."""
        word = word_of(answer)
        if word == "authorization_pending":
            raise Pending
        if word == "slow_down":
            raise Pending(SLOWER_S, seconds(answer.body.get("interval")))
        return self.read_tokens(answer)

    # ------------------------------------------------------------------ before it ends

    def refresh(self, site: str, client_id: str, refresh_token: str) -> Post:
        return Post(site + self.token_path, filled({"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": client_id}))


# ------------------------------------------------------------------ reading answers


def with_query(url: str, asked: Mapping[str, str]) -> str:
    return f"{url}?{urlencode(filled(asked))}"


def filled(form: Mapping[str, str]) -> dict[str, str]:
    """Leaves out what is empty."""
    return {name: value for name, value in form.items() if value}


def plain(value: Any, longest: int = LONGEST_TEXT) -> str:
    """What may be shown of a provider's text: one short line of printable characters."""
    return "".join(char for char in value if char.isprintable())[:longest].strip() if isinstance(value, str) else ""


def word_of(answer: Answer) -> str:
    """The error's code, empty where there is none. Some answer errors with status 200, some as an object."""
    said = answer.body.get("error")
    if isinstance(said, Mapping):
        said = said.get("code") or said.get("type") or "error"
    if not said:
        return "" if answer.status < 400 else f"status_{answer.status}"
    word = said if isinstance(said, str) else "error"
    return word if len(word) <= 60 and set(word) <= CODE_CHARACTERS else "error"


def refuse(answer: Answer) -> None:
    """Errors: Denied where the answer is an error, in our own words where the code is known, else in the provider's."""
    word = word_of(answer)
    if not word:
        return
    said = answer.body.get("error")
    told = answer.body.get("error_description") or answer.body.get("message")
    if not told and isinstance(said, Mapping):
        told = said.get("message")
    if not told and isinstance(said, str) and word == "error":
        told = said
    passing = answer.status >= 500 or answer.status in (408, 425, 429) or word in ("rate_limited", "temporarily_unavailable", "server_error")
    raise Denied(word, SAID.get(word) or plain(told) or f"It answered with an error (status {answer.status}).", passing)


def seconds(value: Any) -> float | None:
    """Reads a number of seconds, as a number or as text."""
    try:
        found = None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        return None
    return found if found is not None and 0 < found < 1e9 else None


def token_of(answer: Answer, name: str = "access_token") -> str:
    """Errors: Denied where there is none that a header can carry."""
    value = answer.body.get(name)
    try:
        key = clean_key(value) if isinstance(value, str) else ""
    except UnusableKey:
        key = ""
    if not key:
        raise Denied("no_token", "It answered without a token that can be used.")
    return key


def read_tokens(answer: Answer) -> Tokens:
    refuse(answer)
    refresh = answer.body.get("refresh_token")
    return Tokens(token_of(answer), refresh if isinstance(refresh, str) else "", seconds(answer.body.get("expires_in")), plain(answer.body.get("user_id")))


def read_device(site: str, answer: Answer) -> Device:
    refuse(answer)
    body = answer.body
    device_code, user_code = body.get("device_code"), plain(body.get("user_code"), 60)
    page = page_of(site, body.get("verification_uri") or body.get("verification_url"))
    if not isinstance(device_code, str) or not device_code or not user_code or not page:
        raise Denied("no_code", "It answered without a code to type and a page to type it on.")
    ends, interval = seconds(body.get("expires_in")) or 600.0, seconds(body.get("interval")) or 5.0
    return Device(device_code, user_code, page, page_of(site, body.get("verification_uri_complete")), min(ends, 3600.0), min(interval, 300.0))


def page_of(site: str, address: Any) -> str:
    """The page's whole address, empty where it is none that a link may lead to."""
    if not isinstance(address, str) or not address or len(address) > 1000 or any(not c.isprintable() or c.isspace() for c in address):
        return ""
    try:
        whole = urljoin(site + "/", address)
        parts = urlsplit(whole)
    except ValueError:
        return ""
    return whole if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc else ""


# ------------------------------------------------------------------ the files


@cache
def every() -> tuple[SignInAt, ...]:
    """All that there are, by name."""
    found = [importlib.import_module(f"{__name__}.{m.name}").SIGN_IN for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda one: str(one.name)))


@cache
def get(name: str) -> SignInAt:
    """Errors: KeyError for a name that no file stands for."""
    return {one.name: one for one in every()}[name]
