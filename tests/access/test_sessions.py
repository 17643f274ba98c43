"""Who is signed in, for requests that Django's middleware does not see: read, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings as configured
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import get_random_string
from rest_framework.request import Request

from access import sessions
from access.auth import NotAllowed, UserAuthentication
from access.caller import Caller
from access.models import User
from benchwarmers.asgi import LeanRequest

pytestmark = pytest.mark.django_db


def session_of(user: User, **more: Any) -> str:
    session = import_module(configured.SESSION_ENGINE).SessionStore()
    session.update(
        {SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: configured.AUTHENTICATION_BACKENDS[0], HASH_SESSION_KEY: user.get_session_auth_hash(), **more}
    )
    session.create()
    return str(session.session_key)


@pytest.fixture
def kim(db: None) -> User:
    user = User(username="kim", role="judge")
    user.set_password("a-long-password")
    user.save()
    return user


def test_a_session_is_its_users(kim: User, django_assert_num_queries: Callable[[int], Any]) -> None:
    key = session_of(kim)
    with django_assert_num_queries(2):
        assert sessions.user_of(key) == kim


def test_what_is_no_session_is_nobodys(kim: User) -> None:
    for key in ("", "x" * 32, "no/such key", "\0", "x" * 5_000):
        assert sessions.user_of(key) is None
    assert sessions.user_of(session_of(kim, **{BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend"})) is None


def test_a_session_ends_with_its_time_its_user_and_its_password(kim: User) -> None:
    key = session_of(kim)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert sessions.user_of(key) is None
    key = session_of(kim)
    User.objects.update(is_active=False)
    assert sessions.user_of(key) is None
    User.objects.update(is_active=True)
    kim.set_password("another-password")
    kim.save()
    assert sessions.user_of(key) is None
    assert Session.objects.filter(session_key=key).exists()  # looking changes nothing


def test_a_session_under_an_earlier_secret_goes_on(kim: User, settings: Any) -> None:
    key = session_of(kim)
    before = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-secret", [before]
    assert sessions.user_of(key) == kim
    assert Session.objects.filter(session_key=key).exists()


def test_cookies_are_read_as_django_reads_them() -> None:
    assert sessions.cookies_of("") == {}
    assert sessions.cookies_of('a=1; b="2"; c') == {"a": "1", "b": "2", "": "c"}


# ------------------------------------------------------------------ the door


def lean(user: User | None, csrf: str, scheme: str = "http", **headers: str) -> Request:
    sent = {"host": "bench.example", "cookie": f"{configured.CSRF_COOKIE_NAME}={csrf}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/bench/ask",
        "scheme": scheme,
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        raise AssertionError("authentication reads no body")

    request = LeanRequest(scope, receive)
    request.keyring = None  # type: ignore[attr-defined]
    sessions.put_in(request, sessions.cookies_of(sent["cookie"]), user)
    return Request(request)


@pytest.fixture
def hosts(settings: Any) -> Any:
    settings.ALLOWED_HOSTS = ["bench.example"]
    return settings


def who(request: Request) -> Any:
    found = UserAuthentication().authenticate(request)
    return found[0] if found else None


CSRF = get_random_string(32)


def test_a_page_of_our_own_with_the_token_is_its_user(kim: User, hosts: Any) -> None:
    caller = who(lean(kim, CSRF, origin="http://bench.example", x_csrftoken=CSRF))
    assert isinstance(caller, Caller)
    assert (caller.kind, caller.judge) == ("user", "kim")
    assert who(lean(None, CSRF, origin="http://bench.example", x_csrftoken=CSRF)) is None


def test_a_page_behind_a_proxy_is_known_by_the_public_address(kim: User, hosts: Any) -> None:
    hosts.PUBLIC_ORIGIN, hosts.CSRF_TRUSTED_ORIGINS = "https://bench.example", ["https://bench.example"]
    assert who(lean(kim, CSRF, origin="https://bench.example", x_csrftoken=CSRF)).judge == "kim"


def test_over_https_a_browser_that_names_no_origin_is_known_by_the_page_it_comes_from(kim: User, hosts: Any) -> None:
    assert who(lean(kim, CSRF, scheme="https", referer="https://bench.example/app/ask", x_csrftoken=CSRF)).judge == "kim"
    with pytest.raises(NotAllowed):
        who(lean(kim, CSRF, scheme="https", x_csrftoken=CSRF))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_csrftoken": "z" * 32},
        {"x_csrftoken": "short"},
        {"x_csrftoken": CSRF, "origin": "http://evil.example"},
        {"x_csrftoken": CSRF, "origin": "null"},
        {"x_csrftoken": CSRF, "origin": "http://bench.example:81"},
        {"x_csrftoken": CSRF, "sec_fetch_site": "same-site"},
    ],
)
def test_anything_else_may_not(kim: User, hosts: Any, headers: dict[str, str]) -> None:
    with pytest.raises(NotAllowed):
        who(lean(kim, CSRF, **headers))


def test_pages_that_may_call_with_a_key_may_not_use_a_session(kim: User, hosts: Any) -> None:
    hosts.ALLOWED_ORIGINS = ["http://tool.example"]
    with pytest.raises(NotAllowed):
        who(lean(kim, CSRF, origin="http://tool.example", x_csrftoken=CSRF))
