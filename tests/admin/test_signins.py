"""The admin's pages of sign-ins: begun by a button, finished at the provider, seen by admins alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from catalog.endpoint_keys import key_of
from catalog.models import Endpoint, SignIn
from tests.admin.conftest import trail
from tests.catalog.signin_server import SignInServer, serving

pytestmark = pytest.mark.django_db
START, LIST = "/admin/catalog/signin/start/", "/admin/catalog/signin/"


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


def press(client: Any, provider: str, flow: str, **more: str) -> Any:
    said = {"endpoint": provider, **more}
    return client.post(
        START, {"provider": provider, "flow": flow, **{f"{provider}-{name}": value for name, value in said.items()}}, headers={"host": "localhost"}
    )


def link(page: Any, words: str) -> str:
    found = re.search(rf'<a href="([^"]+)"[^>]*>\s*{re.escape(words)}', page.content.decode())
    assert found, page.content.decode()[-3000:]
    return unescape(found[1])


def test_the_way_through_by_the_browser(admin, there):
    page = press(admin, "openrouter", "code", endpoint="mine")
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    address = urlsplit(there.agree(link(page, "Go on to OpenRouter")))
    done = admin.get(f"{address.path}?{address.query}", headers={"host": "localhost"}, follow=True)
    assert "signed in" in done.content.decode()
    assert link(done, "List its models") == reverse("admin:catalog_endpoint_serves", args=[Endpoint.objects.get().pk])
    assert key_of(Endpoint.objects.get(name="mine")) in there.secrets
    assert not [s for s in there.secrets if s in done.content.decode()]
    assert trail() == [("admin", "signin.start", "mine"), ("admin", "endpoint.add", "mine"), ("admin", "signin.done", "mine")]


def test_the_way_through_by_a_code(admin, there):
    page = press(admin, "nanogpt", "device")
    assert page.status_code == 302
    shown = admin.get(page["Location"])
    code = re.search(r"AB-\d{3}", shown.content.decode())
    assert code
    assert shown["Refresh"] == "5"
    assert f'href="{there.url}/nanogpt/device"' in shown.content.decode()
    there.approve(code[0])
    SignIn.objects.update(next_poll_at=SignIn.objects.get().started_at)
    done = admin.get(page["Location"])
    assert "signed in" in done.content.decode()
    assert "Refresh" not in done
    assert "signed in" in admin.get(LIST).content.decode()


def test_what_is_refused_stands_at_its_field(admin, there):
    page = press(admin, "huggingface", "code")
    assert "client_id is missing" in page.content.decode()
    page = press(admin, "github", "device", client_id="a b")
    assert "must be a client id" in page.content.decode()
    Endpoint.objects.create(name="openrouter", kind="openai", base_url="https://elsewhere.example.net/v1")
    assert "is not at OpenRouter" in unescape(press(admin, "openrouter", "code").content.decode())
    assert not SignIn.objects.exists()


def test_what_a_provider_says_is_never_markup(admin, there):
    there.answer("nanogpt", "/api/cli-login/start", (400, {"error": "<img src=x onerror=alert(1)>"}))
    page = press(admin, "nanogpt", "device").content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    there.answer(
        "nanogpt", "/api/cli-login/start", (200, {"device_code": "d", "user_code": "<svg onload=alert(1)>", "verification_uri": 'https://x.example/"onx=1'})
    )
    shown = admin.get(press(admin, "nanogpt", "device")["Location"]).content.decode()
    assert "<svg onload" not in shown
    assert '"onx=1' not in shown


def test_signing_out_from_the_page(admin, there):
    address = urlsplit(there.agree(link(press(admin, "openrouter", "code"), "Go on to OpenRouter")))
    admin.get(f"{address.path}?{address.query}", headers={"host": "localhost"})
    page = reverse("admin:catalog_signin_change", args=[quote(SignIn.objects.get().pk)])
    assert "Sign out and forget the token" in admin.get(page).content.decode()
    admin.post(page)
    assert not SignIn.objects.exists()
    assert key_of(Endpoint.objects.get()) == ""


@pytest.mark.parametrize("role", ["viewer", "judge", "operator"])
def test_only_admins_see_them(as_role, admin, there, role):
    press(admin, "nanogpt", "device")
    row = SignIn.objects.get()
    other = as_role(role)
    page = reverse("admin:catalog_signin_change", args=[quote(row.pk)])
    for address in (START, LIST, page):
        assert other.get(address).status_code == 403, address
        assert other.post(address, {}).status_code == 403, address
    assert SignIn.objects.filter(pk=row.pk).exists()
    endpoints = reverse("admin:catalog_endpoint_changelist")
    assert "Sign in with a provider" in admin.get(endpoints).content.decode()
    assert "Sign in with a provider" not in other.get(endpoints).content.decode()


def test_a_chatgpt_plan_is_on_the_page_once_it_is_switched_on_and_with_its_caution(admin, there):
    from access import preferences

    assert 'value="chatgpt"' not in admin.get(START).content.decode()
    preferences.change("signins.chatgpt", True, "admin")
    page = admin.get(START).content.decode()
    assert 'value="chatgpt"' in page
    assert "may end with the account" in page
    shown = admin.get(press(admin, "chatgpt", "device")["Location"]).content.decode()
    assert f"{there.url}/chatgpt/codex/device" in shown
    assert SignIn.objects.get().provider == "chatgpt"
