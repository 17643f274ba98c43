"""The sign-in with a ChatGPT plan: off until it is switched on, then by a code, with one request more than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from access import preferences
from access.models import AuditEntry
from catalog import providers, renewing, signin_rows, signing
from catalog.models import Endpoint, SignIn
from catalog.signing import SignInRefused
from tests.catalog.signin_server import SignInServer, serving
from tests.catalog.test_signins import begin, key_of, later

pytestmark = pytest.mark.django_db
POLL, EXCHANGE = "/api/accounts/deviceauth/token", "/oauth/token"


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


@pytest.fixture
def on(there: SignInServer) -> SignInServer:
    preferences.change("signins.chatgpt", True, "anna")
    return there


def signed_in(there: SignInServer) -> signin_rows.SignInView:
    started = begin("chatgpt", "device").signin
    there.approve(started.user_code)
    return signing.look(started.id, later(seconds=6))


# ------------------------------------------------------------------ off and on


def test_it_is_neither_offered_nor_begun_while_it_is_off(there):
    assert "chatgpt" not in {one.name for one in signin_rows.every_provider()}
    with pytest.raises(SignInRefused, match=r"switched off.*signins\.chatgpt.*private backend") as refused:
        begin("chatgpt", "device")
    assert refused.value.field == "provider"
    assert not there.asked
    assert not SignIn.objects.exists()


def test_switched_on_it_is_offered_with_its_caution(on):
    shown = next(one for one in signin_rows.every_provider() if one.name == "chatgpt")
    assert (shown.flows, shown.client) == (("device",), "none")
    assert "may end with the account" in shown.note
    assert "may end with the account" in preferences.registered["signins.chatgpt"].tells


@pytest.mark.parametrize("given", ["yes", 1, [], {}])
def test_the_switch_is_true_or_false(given):
    with pytest.raises(preferences.PreferenceError, match="true or false"):
        preferences.change("signins.chatgpt", given, "anna")


def test_the_way_by_the_browser_is_refused(on):
    with pytest.raises(SignInRefused, match="flow must be device"):
        begin("chatgpt", "code")


def test_what_waits_ends_when_it_is_switched_off(on):
    started = begin("chatgpt", "device").signin
    on.approve(started.user_code)
    preferences.change("signins.chatgpt", False, "anna")
    ended = signing.look(started.id, later(seconds=6))
    assert ended.state == "failed"
    assert "switched off" in ended.message
    assert len(on.asked) == 1
    assert not Endpoint.objects.exists()


# ------------------------------------------------------------------ by a code


def test_a_code_that_was_typed_in_makes_the_endpoint(on):
    started = begin("chatgpt", "device").signin
    assert started.verification_uri == f"{on.url}/chatgpt/codex/device"
    assert started.expires_at == later(minutes=15)
    assert signing.look(started.id, later(seconds=6)).state == "open"
    on.approve(started.user_code)
    done = signing.look(started.id, later(seconds=12))
    assert (done.state, done.account, done.expires_at) == ("done", "anna@example.org", later(seconds=12 + 28_800))
    row = Endpoint.objects.get()
    assert (row.name, row.kind, row.base_url) == ("chatgpt", "chatgpt", "https://chatgpt.com/backend-api/codex")
    assert key_of("chatgpt") in on.secrets
    assert providers.get(row.kind).headers(key_of("chatgpt"))["chatgpt-account-id"] == "acct-42"
    assert [one.body.get("grant_type") for one in on.posts(EXCHANGE)] == ["authorization_code"]


@pytest.mark.parametrize("status", [403, 404])
def test_both_of_its_ways_to_say_not_yet_are_waited_for(on, status):
    started = begin("chatgpt", "device").signin
    on.answer("chatgpt", POLL, (status, {"error": {"message": "no"}}), (status, b"<html>"))
    assert [signing.look(started.id, later(seconds=at)).state for at in (6, 12)] == ["open", "open"]
    on.approve(started.user_code)
    assert signing.look(started.id, later(seconds=18)).state == "done"


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (POLL, (400, {"error": {"code": "expired_token"}}), "ended before"),
        (POLL, (200, {"authorization_code": "c"}), "without a code"),
        (POLL, (200, {"authorization_code": 1, "code_verifier": "v"}), "without a code"),
        (EXCHANGE, (400, {"error": "invalid_grant"}), "used already"),
        (EXCHANGE, (200, {"refresh_token": "r"}), "without a token"),
    ],
)
def test_an_answer_that_is_none_ends_it_in_plain_words(on, path, answer, said):
    started = begin("chatgpt", "device").signin
    on.approve(started.user_code)
    on.answer("chatgpt", path, answer)
    ended = signing.look(started.id, later(seconds=6))
    assert ended.state == "failed"
    assert said in ended.message
    assert not Endpoint.objects.exists()


def test_a_code_that_its_answer_repeats_is_not_shown(on):
    started = begin("chatgpt", "device").signin
    on.approve(started.user_code)

    def repeat() -> None:
        last = on.asked[-1]
        if last.path == EXCHANGE:
            on.answer("chatgpt", EXCHANGE, (400, {"error": {"code": "odd", "message": f"bad {last.body['code']} or {last.body['code_verifier']}"}}))

    on.meanwhile = repeat
    ended = signing.look(started.id, later(seconds=6))
    assert ended.state == "failed"
    assert "bad" in ended.message
    assert not [secret for secret in on.secrets if secret in ended.message]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {}), "no device sign-in"),
        ((200, {"user_code": "AB"}), "no_code"),
        ((200, {"device_auth_id": "d", "user_code": 5}), "no_code"),
        ((200, {"device_auth_id": "d d", "user_code": "AB"}), "no_code"),
    ],
)
def test_a_beginning_that_is_refused_leaves_no_row(on, answer, said):
    on.answer("chatgpt", "/api/accounts/deviceauth/usercode", answer)
    with pytest.raises(SignInRefused, match=said):
        begin("chatgpt", "device")
    assert not SignIn.objects.exists()


def test_the_codes_other_name_is_known_and_it_needs_no_interval(on):
    on.answer("chatgpt", "/api/accounts/deviceauth/usercode", (200, {"device_auth_id": "d", "usercode": "AB-1"}))
    started = begin("chatgpt", "device").signin
    assert (started.user_code, started.next_poll_at) == ("AB-1", later(seconds=5))


# ------------------------------------------------------------------ before it ends


def test_its_token_is_renewed_and_what_rotates_is_kept(on):
    done = signed_in(on)
    first = key_of("chatgpt")
    assert done.expires_at is not None
    soon = done.expires_at - timedelta(minutes=20)
    assert renewing.refresh_due(soon) == []
    assert renewing.refresh_due(soon + timedelta(hours=8)) == []
    asked = [one.body for one in on.posts(EXCHANGE) if one.body["grant_type"] == "refresh_token"]
    assert len({one["refresh_token"] for one in asked}) == 2
    assert asked[0]["client_id"].startswith("app_")
    assert asked[0]["scope"] == "openid profile email"
    assert key_of("chatgpt") not in ("", first)
    assert (SignIn.objects.get().state, SignIn.objects.get().account) == ("done", "anna@example.org")


def test_what_is_held_is_renewed_though_it_was_switched_off(on):
    done = signed_in(on)
    preferences.change("signins.chatgpt", False, "anna")
    assert done.expires_at is not None
    assert renewing.refresh_due(done.expires_at - timedelta(minutes=20)) == []
    assert SignIn.objects.get().state == "done"


def test_nothing_secret_stands_in_the_database_or_in_the_trail(on):
    signed_in(on)
    kept = repr([list(m.objects.values()) for m in (SignIn, Endpoint, AuditEntry)])
    assert len(on.secrets) > 4
    assert not [secret for secret in on.secrets if secret in kept]
