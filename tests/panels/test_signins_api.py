"""Signing in at providers through the server's own API, and the address that providers send browsers back to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from access.models import AuditEntry
from catalog import endpoint_keys
from catalog.models import Endpoint, SignIn
from tests.catalog.signin_server import PROVIDERS, SignInServer, serving
from tests.panels.conftest import Api, ok, problem

pytestmark = pytest.mark.django_db
HUGGINGFACE = {"provider": "huggingface", "client_id": "app-1"}


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


@pytest.fixture
def anna(user_api: Callable[..., Api]) -> Api:
    return user_api("anna", "admin")


def back(client: Client, address: str, **more: Any) -> Any:
    """The browser follows the provider home."""
    parts = urlsplit(address)
    return client.get(f"{parts.path}?{parts.query}", headers={"host": parts.netloc}, **more)


# ------------------------------------------------------------------ the way through


def test_an_admin_signs_in_and_the_endpoint_is_there(anna, there):
    started = ok(anna.post("signins", {"provider": "openrouter"}), 201)
    assert started["state"] == "open"
    assert started["user_code"] == ""
    answer = back(anna.client, there.agree(started["authorize_url"]))
    assert (answer.status_code, answer["Location"]) == (302, f"/admin/catalog/signin/{started['id'].replace('_', '_5F')}/change/")
    assert answer["Referrer-Policy"] == "no-referrer"
    done = ok(anna.get(f"signins/{started['id']}"))
    assert (done["state"], done["endpoint"], done["account"]) == ("done", "openrouter", "user_42")
    assert ok(anna.get("endpoints/openrouter"))["key"] == "stored"


def test_a_device_sign_in_is_polled_by_looking(anna, there, settings):
    started = ok(anna.post("signins", {"provider": "nanogpt", "flow": "device", "endpoint": "nano"}), 201)
    assert started["authorize_url"] == ""
    assert started["user_code"].startswith("AB-")
    assert started["verification_uri"] == f"{there.url}/nanogpt/device"
    there.approve(started["user_code"])
    assert ok(anna.get(f"signins/{started['id']}"))["state"] == "open", "its turn has not come"
    SignIn.objects.update(next_poll_at=SignIn.objects.get().started_at)
    assert ok(anna.get(f"signins/{started['id']}"))["state"] == "done"
    assert Endpoint.objects.get().name == "nano"


def test_a_key_starts_and_a_signed_in_admin_finishes(operator, anna, there):
    started = ok(operator.post("signins", HUGGINGFACE), 201)
    back(anna.client, there.agree(started["authorize_url"]))
    assert ok(operator.get(f"signins/{started['id']}"))["state"] == "done"


def test_the_list_holds_everything_but_secrets(anna, there):
    first = ok(anna.post("signins", HUGGINGFACE), 201)
    back(anna.client, there.agree(first["authorize_url"]))
    second = ok(anna.post("signins", {"provider": "nanogpt", "flow": "device"}), 201)
    found = ok(anna.get("signins"))
    assert [one["id"] for one in found["data"]] == [second["id"], first["id"]]
    assert "authorize_url" not in found["data"][0]
    text = anna.get("signins").content.decode() + anna.get("endpoints").content.decode()
    assert not [secret for secret in there.secrets if secret in text]


def test_signing_out(anna, there):
    started = ok(anna.post("signins", HUGGINGFACE), 201)
    back(anna.client, there.agree(started["authorize_url"]))
    ok(anna.delete(f"signins/{started['id']}"), 204)
    assert ok(anna.get("endpoints/huggingface"))["key"] == "none"
    problem(anna.get(f"signins/{started['id']}"), 404, code="not_found")
    assert AuditEntry.objects.latest("id").action == "signin.delete"


def test_the_providers_and_what_to_register_there(anna):
    found = {one["name"]: one for one in ok(anna.get("signins/providers"))["data"]}
    assert set(found) == set(PROVIDERS)
    assert found["huggingface"]["redirect_uri"] == "http://localhost/signins/callback/huggingface"
    assert (found["github"]["flows"], found["github"]["client"]) == (["device"], "needed")


# ------------------------------------------------------------------ where the browser comes back to


def redirect_of(started: dict[str, Any]) -> str:
    return parse_qs(urlsplit(started["authorize_url"]).query)["redirect_uri"][0]


def test_it_is_the_address_that_the_server_was_reached_at(anna, there):
    anna.headers = {"host": "127.0.0.1:8122"}
    assert redirect_of(ok(anna.post("signins", HUGGINGFACE), 201)) == "http://127.0.0.1:8122/signins/callback/huggingface"


def test_or_the_public_one(anna, there, settings):
    settings.PUBLIC_ORIGIN = "https://bench.example.org"
    assert redirect_of(ok(anna.post("signins", HUGGINGFACE), 201)) == "https://bench.example.org/signins/callback/huggingface"


def test_a_host_that_is_not_ours_gets_nowhere(anna, there):
    anna.headers = {"host": "evil.example.net"}
    assert anna.post("signins", HUGGINGFACE).status_code == 403
    assert not SignIn.objects.exists()


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "provider"),
        ({"provider": 5}, "provider"),
        ({"provider": None}, "provider"),
        ({"provider": "nobody"}, "provider"),
        ({"provider": "openrouter", "flow": "device"}, "flow"),
        ({"provider": "openrouter", "flow": 1}, "flow"),
        ({"provider": "huggingface"}, "client_id"),
        ({"provider": "huggingface", "client_id": "a\nb"}, "client_id"),
        ({"provider": "openrouter", "endpoint": "a\x00b"}, "endpoint"),
        ({"provider": "openrouter", "colour": 1}, "colour"),
    ],
)
def test_a_wrong_start_is_400_naming_the_field(anna, there, body, field):
    problem(anna.post("signins", body), 400, field)
    assert not SignIn.objects.exists()


@pytest.mark.parametrize("sign_in", ["nothing", "a%00b", "%F0%9F%A6%80"])
def test_what_is_unknown_is_404(anna, sign_in):
    problem(anna.get(f"signins/{sign_in}"), 404, code="not_found")
    problem(anna.delete(f"signins/{sign_in}"), 404, code="not_found")


@pytest.mark.parametrize("role", ["viewer", "judge", "operator"])
def test_it_is_an_admins_alone(user_api, api_of, anna, there, role):
    started = ok(anna.post("signins", HUGGINGFACE), 201)
    for other in (user_api(role, role), api_of("read", "ask", "judge", "operate")):
        for path in ("signins", "signins/providers", f"signins/{started['id']}"):
            problem(other.get(path), 403, code="not_allowed")
        problem(other.post("signins", HUGGINGFACE), 403)
        problem(other.delete(f"signins/{started['id']}"), 403)


def test_without_a_key_nobody_gets_in(keyless):
    problem(keyless.get("signins"), 403)
    problem(keyless.post("signins", HUGGINGFACE), 403)


def test_the_callback_wants_the_session_that_began(anna, user_api, there):
    address = there.agree(ok(anna.post("signins", HUGGINGFACE), 201)["authorize_url"])
    for client, status in ((Client(), 403), (user_api("olga", "operator").client, 403), (user_api("other", "admin").client, 400)):
        answer = back(client, address)
        assert answer.status_code == status
        assert len(answer.content) < 1500
    assert not there.posts("/oauth/token")
    assert back(anna.client, address).status_code == 302


def test_a_gateway_key_does_not_open_the_callback(operator, there):
    address = there.agree(ok(operator.post("signins", HUGGINGFACE), 201)["authorize_url"])
    assert back(Client(), address, HTTP_AUTHORIZATION=operator.headers["authorization"]).status_code == 403


@pytest.mark.parametrize("more", [{"HTTP_SEC_PURPOSE": "prefetch;prerender"}, {"HTTP_PURPOSE": "prefetch"}])
def test_a_browser_that_looks_ahead_finishes_nothing(anna, there, more):
    address = there.agree(ok(anna.post("signins", HUGGINGFACE), 201)["authorize_url"])
    assert back(anna.client, address, **more).status_code == 503
    assert back(anna.client, address).status_code == 302


@pytest.mark.parametrize(
    "path",
    ["huggingface", "huggingface?state=x", "huggingface?state=%00&code=a", "nobody?state=x", "openrouter/x", "huggingface?error=<script>x</script>&state=x"],
)
def test_a_made_up_way_back_is_400_and_shows_nothing_of_it(anna, there, path):
    answer = anna.client.get(f"/signins/callback/{path}", headers={"host": "localhost"})
    assert answer.status_code == 400
    assert b"<script>" not in answer.content
    assert not there.asked


def test_a_state_works_once(anna, there):
    address = there.agree(ok(anna.post("signins", HUGGINGFACE), 201)["authorize_url"])
    assert [back(anna.client, address).status_code for _ in range(3)] == [302, 400, 400]
    assert len(there.posts("/oauth/token")) == 1
    assert endpoint_keys.key_of(Endpoint.objects.get()) in there.secrets


# ------------------------------------------------------------------ what is off at first


def test_a_chatgpt_plan_is_refused_until_an_admin_switches_it_on(anna, there):
    refused = problem(anna.post("signins", {"provider": "chatgpt"}), 400)
    assert refused["code"] == "invalid_request"
    assert "signins.chatgpt" in refused["detail"]
    ok(anna.patch("settings/signins.chatgpt", {"value": True}))
    shown = {one["name"]: one for one in ok(anna.get("signins/providers"))["data"]}["chatgpt"]
    assert "not a documented sign-in" in shown["note"]
    started = ok(anna.post("signins", {"provider": "chatgpt"}), 201)
    assert (started["flow"], started["authorize_url"]) == ("device", "")
    assert started["verification_uri"].endswith("/codex/device")
