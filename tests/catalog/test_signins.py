"""Signing in at providers: both ways at each of them, what must not be accepted, and what ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection

from access import secrets
from access.models import AuditEntry
from catalog import endpoint_keys, signin_rows, signing, signins
from catalog.models import Endpoint, SignIn
from catalog.shape import ShapeError
from catalog.signing import SignInRefused
from tests.catalog.signin_server import PROVIDERS, SWITCHED, SignInServer, serving

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
HERE = "http://127.0.0.1:8122/signins/callback/"
BY_CODE = [p.name for p in signins.every() if "code" in p.flows]
BY_DEVICE = [p.name for p in signins.every() if "device" in p.flows and not p.needs_consent]
FOREVER = ("openrouter", "nanogpt")

pytestmark = pytest.mark.django_db


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


def later(**how: float) -> datetime:
    return NOW + timedelta(**how)


def begin(provider: str, flow: str, endpoint: str = "", session: str = "session-1", now: datetime = NOW, **more: str) -> signing.Started:
    client = {"client_id": "app-1"} if signins.get(provider).client == "needed" else {}
    asked = {"client_id": "", **client, **more}
    return signing.start(provider, flow, endpoint, asked["client_id"], lambda: HERE + provider, session, "anna", now)


def come_back(address: str, session: str = "session-1", now: datetime = NOW, **changed: str) -> signin_rows.SignInView:
    """What the callback's view makes of the address that a provider sends the browser to."""
    parts = urlsplit(address)
    said = {name: values[0] for name, values in parse_qs(parts.query).items()}
    provider, _, in_path = parts.path.removeprefix("/signins/callback/").partition("/")
    said = {"state": in_path, **said, **changed}
    return signing.finish(provider, said["state"], said.get("code", ""), said.get("error", ""), session, "anna", now)


def key_of(name: str) -> str:
    return endpoint_keys.key_of(Endpoint.objects.get(name=name))


# ------------------------------------------------------------------ both ways


def test_each_file_stands_for_a_provider_under_its_own_name():
    assert {p.name for p in signins.every()} == {*PROVIDERS, *SWITCHED}
    for provider in signins.every():
        assert provider.site.startswith("https://")
        assert provider.base_url.startswith("https://")
        assert type(provider).__module__ == f"catalog.signins.{provider.name}"


@pytest.mark.parametrize("provider", BY_CODE)
def test_a_sign_in_by_the_browser_makes_the_endpoint_with_its_key(there, provider):
    started = begin(provider, "code")
    assert started.authorize_url.startswith(f"{there.url}/{provider}/")
    assert started.signin.state == "open"
    done = come_back(there.agree(started.authorize_url))
    assert (done.state, done.message, done.endpoint) == ("done", "", provider)
    row = Endpoint.objects.get()
    assert (row.name, row.kind, row.base_url) == (provider, signins.get(provider).kind, signins.get(provider).base_url)
    assert key_of(provider) in there.secrets
    assert done.expires_at == (None if provider in FOREVER else later(seconds=28_800))
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["signin.start", "endpoint.add", "signin.done"]


@pytest.mark.parametrize("provider", BY_DEVICE)
def test_a_sign_in_by_a_code_waits_until_it_was_typed_in(there, provider):
    started = begin(provider, "device").signin
    assert started.user_code.startswith("AB-")
    assert started.verification_uri == (f"{there.url}/device" if provider == "pollinations" else f"{there.url}/{provider}/device")
    assert signing.look(started.id, later(seconds=6)).state == "open"
    there.approve(started.user_code)
    done = signing.look(started.id, later(seconds=60))
    assert (done.state, done.user_code) == ("done", "")
    assert key_of(provider) in there.secrets


def test_a_provider_that_knows_no_state_gets_it_in_the_path(there):
    address = there.agree(begin("openrouter", "code").authorize_url)
    assert len(urlsplit(address).path.split("/")) == 5
    assert "state" not in parse_qs(urlsplit(address).query)


def test_the_account_is_shown_where_the_provider_tells_it(there):
    assert come_back(there.agree(begin("openrouter", "code").authorize_url)).account == "user_42"


def test_an_endpoint_that_is_there_gets_the_new_key_and_nothing_else(there):
    Endpoint.objects.create(name="mine", kind="openai", base_url="https://openrouter.ai/api/v1", limits={"parallel": 2}, key_sealed=secrets.seal("old"))
    come_back(there.agree(begin("openrouter", "code", "mine").authorize_url))
    row = Endpoint.objects.get()
    assert row.limits == {"parallel": 2}
    assert key_of("mine") in there.secrets


def test_a_second_sign_in_takes_the_place_of_the_first(there):
    first = come_back(there.agree(begin("huggingface", "code").authorize_url))
    second = come_back(there.agree(begin("huggingface", "code").authorize_url))
    assert list(SignIn.objects.values_list("id", flat=True)) == [second.id] != [first.id]


def test_a_stored_client_id_is_used_where_none_is_given(there):
    from access import preferences

    preferences.change("signins.github_client_id", "Iv1.app", "anna")
    begin("github", "device", client_id="")
    assert there.asked[0].body["client_id"] == "Iv1.app"


# ------------------------------------------------------------------ what is refused before anything is asked


@pytest.mark.parametrize(
    ("provider", "flow", "more", "field"),
    [
        ("nobody", "", {}, "provider"),
        ("openrouter", "device", {}, "flow"),
        ("github", "code", {}, "flow"),
        ("huggingface", "code", {"client_id": ""}, "client_id"),
        ("github", "device", {"client_id": "a b"}, "client_id"),
        ("openrouter", "code", {"client_id": "x"}, "client_id"),
    ],
)
def test_a_wrong_beginning_names_the_field(there, provider, flow, more, field):
    asked = {"client_id": "app-1", **more} if provider != "openrouter" else {"client_id": "", **more}
    with pytest.raises(SignInRefused) as refused:
        signing.start(provider, flow, "", asked["client_id"], lambda: HERE, "s", "anna", NOW)
    assert refused.value.field == field
    assert not SignIn.objects.exists()
    assert not there.asked


@pytest.mark.parametrize("callback", ["http://bench.example.org/x", "http://192.168.1.5:8122/x"])
def test_a_browser_comes_back_to_https_or_to_this_machine_only(callback):
    with pytest.raises(SignInRefused, match="https"):
        signing.start("openrouter", "code", "", "", lambda: callback, "s", "anna", NOW)


@pytest.mark.parametrize("callback", ["https://bench.example.org/x", "http://localhost:8122/x", "http://[::1]:8122/x", "http://127.0.0.1:9/x"])
def test_where_it_may_come_back_to(callback):
    assert signing.start("openrouter", "code", "", "", lambda: callback, "s", "anna", NOW).authorize_url


def test_a_token_goes_to_no_endpoint_at_another_address(there):
    Endpoint.objects.create(name="openrouter", kind="openai", base_url="https://elsewhere.example.net/api/v1")
    with pytest.raises(SignInRefused, match="is not at OpenRouter") as refused:
        begin("openrouter", "code")
    assert refused.value.field == "endpoint"


def test_nor_to_one_that_was_moved_meanwhile(there):
    address = there.agree(begin("openrouter", "code").authorize_url)
    Endpoint.objects.create(name="openrouter", kind="openai", base_url="https://elsewhere.example.net/api/v1")
    assert come_back(address).state == "failed"
    assert key_of("openrouter") == ""


def test_a_variable_that_would_win_is_named(settings):
    settings.ENVIRONMENT_KEYS = {"BENCHWARMERS_KEY_OPENROUTER": "sk-x"}
    with pytest.raises(SignInRefused, match="BENCHWARMERS_KEY_OPENROUTER"):
        begin("openrouter", "code")


def test_a_name_that_differs_only_in_case_is_taken(endpoint):
    with pytest.raises(ShapeError, match="taken"):
        begin("openrouter", "code", "GROQ-EU")


# ------------------------------------------------------------------ states


@pytest.mark.parametrize("state", ["", "wrong", "\0", "é" * 500])
def test_a_wrong_state_finishes_nothing(there, state):
    address = there.agree(begin("huggingface", "code").authorize_url)
    with pytest.raises(SignInRefused, match="no sign-in that waits"):
        come_back(address, state=state)
    assert come_back(address).state == "done", "the true one is still good"


def test_a_state_is_good_at_its_own_provider_only(there):
    address = there.agree(begin("huggingface", "code").authorize_url)
    with pytest.raises(SignInRefused):
        come_back(address.replace("callback/huggingface", "callback/pollinations"))


def test_another_session_does_not_finish_it(there):
    address = there.agree(begin("huggingface", "code").authorize_url)
    for session in ("session-2", ""):
        with pytest.raises(SignInRefused, match="Another session"):
            come_back(address, session=session)
    assert not there.posts("/oauth/token")
    assert come_back(address).state == "done"


def test_what_a_key_began_any_admins_session_finishes(there):
    address = there.agree(begin("huggingface", "code", session="").authorize_url)
    assert come_back(address, session="session-7").state == "done"


@pytest.mark.parametrize("provider", BY_CODE)
def test_an_address_opened_twice_asks_once(there, provider):
    address = there.agree(begin(provider, "code").authorize_url)
    come_back(address)
    with pytest.raises(SignInRefused):
        come_back(address)
    assert len(there.asked) == 1


@pytest.mark.parametrize("provider", BY_CODE)
def test_a_code_that_was_used_already_is_refused_in_plain_words(there, provider):
    address = there.agree(begin(provider, "code").authorize_url)
    there.granted.clear()
    failed = come_back(address)
    assert failed.state == "failed"
    assert failed.message.startswith(signins.get(provider).title)
    assert not any(secret in failed.message for secret in there.secrets)
    assert not Endpoint.objects.exists()


def test_ten_minutes_later_it_is_over(there):
    address = there.agree(begin("huggingface", "code").authorize_url)
    over = come_back(address, now=later(minutes=10))
    assert (over.state, there.asked) == ("failed", [])
    assert "ten minutes" in over.message


def test_who_turns_it_down_is_told_so_in_our_words(there):
    failed = come_back(there.turn_down(begin("huggingface", "code").authorize_url))
    assert failed.message == "Hugging Face: It was turned down there. (access_denied)"
    assert not there.asked


def test_an_error_that_comes_back_shows_no_markup_and_no_secret(there):
    address = there.agree(begin("huggingface", "code").authorize_url)
    failed = come_back(address, error="<script>alert(1)</script>")
    assert failed.message == "Hugging Face: It sent no code back. (error)"


def test_a_challenge_is_a_digest_of_what_only_this_server_knows(there):
    address = begin("huggingface", "code").authorize_url
    row = SignIn.objects.get()
    state = parse_qs(urlsplit(address).query)["state"][0]
    assert state not in row.sealed + row.state_digest
    assert signin_rows.opened(row)["verifier"] not in address
    assert row.state_digest not in address


# ------------------------------------------------------------------ answers that are none


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {}, "without a token"),
        (200, {"access_token": 5}, "without a token"),
        (200, {"access_token": "tok\r\nx-evil: 1"}, "without a token"),
        (200, {"access_token": ""}, "without a token"),
        (200, b"<html>token=abc123</html>", "no JSON (got text/html)"),
        (500, b"<html>token=abc123</html>", "status 500"),
        (200, [1], "no JSON"),
        (302, {}, "redirects"),
        (400, {"error": {"code": "odd one", "message": "Bad <b>thing</b>\r\n"}}, "Bad <b>thing</b>"),
        (403, {"error": "plain words, no code"}, "plain words"),
    ],
)
def test_an_answer_without_a_token_is_a_failure_that_says_what_came(there, status, body, said):
    there.answer("huggingface", "/oauth/token", (status, body))
    failed = come_back(there.agree(begin("huggingface", "code").authorize_url))
    assert failed.state == "failed"
    assert said in failed.message
    assert "abc123" not in failed.message
    assert "evil" not in failed.message


def test_a_page_to_type_at_must_be_an_address(there):
    for page in ("javascript:alert(1)", "data:text/html,x", "http://user@host/x", "", None, 5):
        there.answer("huggingface", "/oauth/device", (200, {"device_code": "d", "user_code": "u", "verification_uri": page}))
        with pytest.raises(SignInRefused, match="no_code"):
            begin("huggingface", "device")


def test_a_private_address_is_asked_only_where_the_deployer_named_it(there, settings):
    settings.SIGNIN_URLS = {}
    from catalog import web

    with pytest.raises(web.WebError) as refused:
        web.send(f"{there.url}/huggingface/oauth/token", {}, form={"a": "b"}, named=False, limit_bytes=1000, timeout_s=5)
    assert refused.value.code == "address_refused"
    assert not there.asked


# ------------------------------------------------------------------ polling


def poll_times(there: SignInServer, started: signin_rows.SignInView, until_s: int) -> list[int]:
    """Looks once a second, and tells in which seconds the provider was asked."""
    asked = []
    for second in range(1, until_s + 1):
        before = len(there.asked)
        signing.look(started.id, later(seconds=second))
        if len(there.asked) > before:
            asked.append(second)
    return asked


def test_it_asks_no_oftener_than_the_provider_said(there):
    started = begin("huggingface", "device").signin
    assert poll_times(there, started, 9) == [2, 4, 6, 8]


def test_slow_down_adds_five_seconds_or_what_the_provider_says(there):
    started = begin("huggingface", "device").signin
    there.answer("huggingface", "/oauth/token", (400, {"error": "slow_down"}))
    assert poll_times(there, started, 20) == [2, 9, 16]
    started = begin("github", "device").signin
    there.answer("github", "/login/oauth/access_token", (200, {"error": "slow_down", "interval": 10}))
    assert poll_times(there, started, 24) == [2, 12, 22]


def test_a_provider_that_stumbles_is_asked_less_often_and_again(there):
    started = begin("huggingface", "device").signin
    there.answer("huggingface", "/oauth/token", (503, b"<html>"), (503, b"<html>"))
    there.approve(started.user_code)
    assert poll_times(there, started, 16) == [2, 6, 14]
    assert SignIn.objects.get().state == "done"


@pytest.mark.parametrize(
    ("provider", "path", "answer", "said"),
    [
        ("huggingface", "/oauth/token", (400, {"error": "access_denied"}), "turned down"),
        ("github", "/login/oauth/access_token", (200, {"error": "access_denied"}), "turned down"),
        ("github", "/login/oauth/access_token", (200, {"error": "expired_token"}), "ended before"),
        ("github", "/login/oauth/access_token", (200, {"error": "device_flow_disabled"}), "does not allow"),
        ("nanogpt", "/api/cli-login/poll", (200, {"status": "expired"}), "ended before"),
        ("nanogpt", "/api/cli-login/poll", (200, {"status": "consumed"}), "fetched already"),
        ("pollinations", "/api/device/token", (400, {"error": "access_denied"}), "turned down"),
    ],
)
def test_a_no_ends_it_in_plain_words(there, provider, path, answer, said):
    started = begin(provider, "device").signin
    there.answer(provider, path, answer)
    ended = signing.look(started.id, later(seconds=10))
    assert ended.state == "failed"
    assert said in ended.message
    assert SignIn.objects.get().sealed == ""
    assert len(there.asked) == 2
    signing.look(started.id, later(seconds=60))
    assert len(there.asked) == 2


def test_a_code_that_nobody_typed_ends(there):
    started = begin("huggingface", "device").signin
    asked = len(there.asked)
    assert signing.look(started.id, later(seconds=600)).state == "failed"
    assert len(there.asked) == asked


def test_a_start_that_is_refused_leaves_no_row(there):
    there.answer("nanogpt", "/api/cli-login/start", (429, {"error": "rate_limited"}))
    with pytest.raises(SignInRefused, match="rate_limited"):
        begin("nanogpt", "device")
    assert not SignIn.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_several_processes_that_look_one_asks(there):
    started = begin("huggingface", "device").signin
    there.approve(started.user_code)
    seen = side_by_side(6, lambda: signing.look(started.id, later(seconds=5)).state)
    assert len(there.posts("/oauth/token")) == 1
    assert seen.count("done") >= 1
    assert set(seen) <= {"open", "done"}
    assert SignIn.objects.get().state == "done"


@pytest.mark.django_db(transaction=True)
def test_of_several_callbacks_with_one_state_one_is_taken(there):
    address = there.agree(begin("huggingface", "code").authorize_url)

    def one() -> str:
        try:
            return come_back(address).state
        except SignInRefused:
            return "refused"

    assert sorted(side_by_side(6, one)) == ["done", *["refused"] * 5]
    assert len(there.posts("/oauth/token")) == 1


def side_by_side(count: int, work: Any) -> list[Any]:
    """Does the same in several threads, each with a connection of its own."""
    start, found = threading.Barrier(count), []

    def run() -> None:
        try:
            start.wait(20)
            found.append(work())
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == count
    return found


# ------------------------------------------------------------------ signing out


def test_signing_out_forgets_the_token_at_the_endpoint_too(there):
    done = come_back(there.agree(begin("huggingface", "code").authorize_url))
    signing.remove(done.id, "anna")
    assert key_of("huggingface") == ""
    assert not SignIn.objects.exists()


def test_signing_out_leaves_a_key_that_was_set_since(there):
    done = come_back(there.agree(begin("huggingface", "code").authorize_url))
    endpoint_keys.set_key_of("huggingface", "sk-by-hand", "anna")
    signing.remove(done.id, "anna")
    assert key_of("huggingface") == "sk-by-hand"


def test_what_is_cancelled_cannot_be_finished(there):
    started = begin("huggingface", "code")
    signing.remove(started.signin.id, "anna")
    with pytest.raises(SignInRefused):
        come_back(there.agree(started.authorize_url))
    with pytest.raises(signin_rows.UnknownSignIn):
        signing.look(started.signin.id, NOW)


def test_an_endpoint_takes_its_sign_in_along(there):
    come_back(there.agree(begin("huggingface", "code").authorize_url))
    Endpoint.objects.all().delete()
    assert not SignIn.objects.exists()


# ------------------------------------------------------------------ at rest


def test_nothing_secret_stands_in_the_database_or_in_the_trail(there):
    begin("nanogpt", "device")
    begin("pollinations", "code")
    come_back(there.agree(begin("huggingface", "code").authorize_url))
    come_back(there.agree(begin("openrouter", "code").authorize_url))
    kept = repr([list(m.objects.values()) for m in (SignIn, Endpoint, AuditEntry)])
    assert len(there.secrets) > 6
    assert not [secret for secret in there.secrets if secret in kept]


def test_a_change_of_secrets_takes_sign_ins_along(there, settings):
    from catalog import resealing

    come_back(there.agree(begin("huggingface", "code").authorize_url))
    old = settings.SECRET_KEYS
    settings.SECRET_KEYS = ["another-secret-0123456789", *old]
    resealing.reseal_all("anna")
    settings.SECRET_KEYS = ["another-secret-0123456789"]
    assert signin_rows.opened(SignIn.objects.get())["access"] == key_of("huggingface")
