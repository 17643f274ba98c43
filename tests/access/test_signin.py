"""One-time sign-in links."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from access.models import AuditEntry, SignInLink
from access.signin import make_link, redeem

pytestmark = [pytest.mark.urls("tests.access.paths"), pytest.mark.django_db]

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def token_of(url: str) -> str:
    return url.rpartition("/")[2]


@pytest.mark.parametrize(
    ("base", "start"), [("http://127.0.0.1:8122", "http://127.0.0.1:8122/signin/"), ("https://x.example/bench/", "https://x.example/bench/signin/")]
)
def test_a_link_works_once_and_its_token_is_not_kept(base: str, start: str, make_user) -> None:
    user = make_user("admin")
    url = make_link(user, base, NOW)
    assert url.startswith(start)
    assert token_of(url) not in str(SignInLink.objects.values())
    assert redeem(token_of(url), NOW) == user
    assert redeem(token_of(url), NOW) is None


def test_a_link_ends_after_ten_minutes(make_user) -> None:
    token = token_of(make_link(make_user("admin"), "http://x", NOW))
    assert redeem(token, NOW + timedelta(minutes=10)) is None
    assert redeem(token, NOW + timedelta(minutes=9, seconds=59)) is not None


def test_a_link_of_a_deactivated_user_opens_nothing(make_user) -> None:
    user = make_user("admin")
    token = token_of(make_link(user, "http://x", NOW))
    user.is_active = False
    user.save()
    assert redeem(token, NOW) is None


@pytest.mark.parametrize("token", ["", "x", "' OR 1=1 --", "\ud800", "a" * 10_000, "%00", "\x00"])
def test_other_tokens_open_nothing(token: str, make_user) -> None:
    make_link(make_user("admin"), "http://x", NOW)
    assert redeem(token, NOW) is None


def test_old_links_are_swept(make_user) -> None:
    user = make_user("admin")
    make_link(user, "http://x", NOW)
    make_link(user, "http://x", NOW + timedelta(days=2))
    assert SignInLink.objects.count() == 1


def test_opening_the_link_signs_in_and_goes_on_to_the_admin(make_user) -> None:
    user = make_user("operator")
    path = make_link(user, "", timezone.now())
    client = Client(headers={"host": "127.0.0.1"})
    reply = client.get(path)
    assert reply.status_code == 302
    assert reply["Location"] == "/"
    assert "no-store" in reply["Cache-Control"]
    assert reply["Referrer-Policy"] == "no-referrer"
    assert client.get("/operate").json()["judge"] == user.username
    assert AuditEntry.objects.get().action == "user.signin_link"
    again = Client(headers={"host": "127.0.0.1"}).get(path)
    assert again.status_code == 403
    assert b"manage.py signin" in again.content
    assert token_of(path).encode() not in again.content


@pytest.mark.parametrize("headers", [{"sec-purpose": "prefetch"}, {"sec-purpose": "prefetch;prerender"}, {"purpose": "prefetch"}, {"x-moz": "prefetch"}])
def test_a_browser_that_only_looks_ahead_does_not_use_the_link_up(headers: dict[str, str], make_user) -> None:
    path = make_link(make_user("admin"), "", timezone.now())
    client = Client(headers={"host": "127.0.0.1"})
    assert client.get(path, headers=headers).status_code == 503
    assert client.head(path).status_code == 503
    assert client.post(path).status_code == 405
    assert client.get(path).status_code == 302
