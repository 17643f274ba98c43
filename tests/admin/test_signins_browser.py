"""Signing in with a real browser: the provider is another site, and the session still comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.models import Endpoint, SignIn
from tests.admin import seed
from tests.browser import DESK, MARKS, PHONE
from tests.catalog.signin_server import SignInServer, serving

pytestmark = MARKS


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_from_the_endpoints_to_a_token_and_back(open_page, there, viewport):
    seed.people()
    watched = open_page("admin", viewport)
    page, size = watched.page, viewport["width"]
    watched.goto("/admin/catalog/endpoint/")
    watched.pictured(f"endpoints-{size}")
    if viewport is PHONE:
        page.click("text=more_horiz >> visible=true")
    page.click("a:has-text('Sign in with a provider') >> visible=true")
    page.wait_for_selector("#openrouter")
    assert watched.overflow() <= 0
    watched.pictured(f"start-{size}")
    page.click("#openrouter >> text=Sign in with the browser")
    page.wait_for_selector("text=Go on to OpenRouter")
    watched.pictured(f"link-{size}")
    page.click("text=Go on to OpenRouter")
    page.wait_for_selector("text=signed in")
    assert watched.overflow() <= 0
    watched.pictured(f"done-{size}")
    assert page.url.startswith(watched.address), "it came back from another site, and the session with it"
    assert "code=" not in page.url
    assert Endpoint.objects.get().name == "openrouter"
    assert [w for w in watched.wrong if not w.startswith(f"left for {there.url}/openrouter/auth?")] == []


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_a_code_is_shown_and_the_page_notices_when_it_was_typed(open_page, there, viewport):
    seed.people()
    watched = open_page("admin", viewport, "dark")
    page = watched.page
    watched.goto("/admin/catalog/signin/start/")
    page.fill("#id_github-client_id", "Iv1.app")
    page.click("#github >> text=Sign in with a code")
    page.wait_for_selector("text=type this code")
    assert watched.overflow() <= 0
    watched.pictured(f"code-{viewport['width']}")
    there.approve(page.inner_text("#copy-code"))
    page.wait_for_selector("text=signed in")  # nobody pressed anything
    assert SignIn.objects.get().state == "done"
    assert watched.wrong == []
