"""The door as views have it, for Django's requests and for the gateway's lean ones."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client

from access import keys
from access.auth import InvalidKey, MissingKey, NotAllowed, as_caller_error
from access.keys import KeyRing
from access.models import Key
from tests.access import paths

pytestmark = [pytest.mark.urls("tests.access.paths"), pytest.mark.django_db]

LOCAL = {"host": "127.0.0.1:8122"}
REMOTE = {**LOCAL, "x-forwarded-for": "203.0.113.9"}
BEARER = "Bearer"


def ask(headers: dict[str, str] | None = None, path: str = "/ask", method: str = "get") -> Any:
    return Client(enforce_csrf_checks=True).generic(method.upper(), path, b"{}", content_type="application/json", headers=headers or LOCAL)


def carrying(secret: str) -> list[tuple[str, dict[str, str]]]:
    return [
        ("/ask", {"authorization": f"Bearer {secret}"}),
        ("/ask", {"x-api-key": secret}),
        ("/ask", {"x-goog-api-key": secret}),
        (f"/ask?key={secret}", {}),
    ]


def test_without_a_key_callers_at_this_machine_are_local() -> None:
    assert ask().json() == {"kind": "loopback", "judge": "local", "key": None}
    assert ask({"host": "[::1]:8122"}).status_code == 200
    assert ask(path="/judge").status_code == 200


@pytest.mark.parametrize("path", ["/read", "/operate", "/admin-only"])
def test_local_callers_only_ask_and_judge(path: str) -> None:
    reply = ask(path=path)
    assert reply.status_code == 403
    assert reply.json()["code"] == "not_allowed"


@pytest.mark.parametrize(
    "headers",
    [REMOTE, {**LOCAL, "forwarded": "for=127.0.0.1"}, {**LOCAL, "via": "1.1 proxy"}, {**LOCAL, "x-real-ip": "127.0.0.1"}, {"host": "testserver"}],
)
def test_without_a_key_others_are_told_to_send_one(headers: dict[str, str], settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    reply = ask(headers)
    assert reply.status_code == 401
    assert reply["WWW-Authenticate"] == "Bearer"
    assert reply.json()["code"] == "missing_key"


def test_a_server_that_listens_beyond_loopback_lets_nobody_in_without_a_key(settings) -> None:
    settings.ON_LOOPBACK = False
    assert ask().status_code == 401


def test_a_key_opens_wherever_it_is_carried(make_key) -> None:
    key, secret = make_key("bot", owner="ana")
    for path, headers in carrying(secret):
        reply = ask({**REMOTE, **headers}, path)
        assert reply.json() == {"kind": "key", "judge": "ana", "key": key.pk}


@pytest.mark.parametrize("secret", ["sk-other-service-123456", "bw_live_wrong", "' OR '1'='1", "x" * 5000, "%00"])
@pytest.mark.parametrize("where", [LOCAL, REMOTE])
def test_a_key_that_is_sent_is_always_checked_and_never_repeated(secret: str, where: dict[str, str], make_key, caplog) -> None:
    make_key()
    for path, headers in carrying(secret):
        reply = ask({**where, **headers}, path)
        assert reply.status_code == 401
        assert reply["WWW-Authenticate"] == "Bearer"
        assert reply.json()["code"] == "invalid_key"
        assert secret not in reply.content.decode()
    assert secret not in caplog.text


@pytest.mark.parametrize("authorization", ["Basic c2stb3RoZXI6", "Token abc", "Negotiate", "bw_live_abc", "Bearer a, Bearer b", "Bearer \xfc"])
def test_other_schemes_are_keys_that_are_not_valid(authorization: str) -> None:
    reply = ask({**LOCAL, "authorization": authorization})
    assert reply.status_code == 401
    assert reply.json()["code"] == "invalid_key"


def test_unknown_expired_and_revoked_keys_get_one_text(make_key) -> None:
    expired, expired_secret = make_key("expired")
    Key.objects.filter(pk=expired.pk).update(expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    revoked, revoked_secret = make_key("revoked")
    keys.revoke(revoked, "test")
    replies = [ask({**LOCAL, "x-api-key": s}) for s in (expired_secret, revoked_secret, "bw_live_unknown")]
    assert [r.status_code for r in replies] == [401] * 3
    assert len({r.content for r in replies}) == 1


def test_a_valid_key_beside_another_one_opens_nothing(make_key) -> None:
    _, secret = make_key()
    assert ask({**LOCAL, "authorization": f"Bearer {secret}", "x-api-key": "sk-other"}).status_code == 401
    assert ask({**LOCAL, "authorization": f"Bearer {secret}", "x-api-key": secret}).status_code == 200


@pytest.mark.parametrize("scope", ["ask", "judge", "read", "operate", "admin"])
def test_a_key_opens_what_its_scopes_name_and_nothing_else(scope: str, make_key) -> None:
    _, secret = make_key(scopes=[scope])
    for path, needed in [("/ask", "ask"), ("/judge", "judge"), ("/read", "read"), ("/operate", "operate"), ("/admin-only", "admin")]:
        assert ask({**LOCAL, "x-api-key": secret}, path).status_code == (200 if needed == scope else 403)


def test_a_view_that_forgot_to_say_who_may_use_it_lets_nobody_in(make_key) -> None:
    _, secret = make_key(scopes=["read", "ask", "judge", "operate", "admin"])
    assert ask({**LOCAL, "x-api-key": secret}, "/nobody").status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "https://app.example.org"}, 403),  # allowed for the gateway, and this is none of its paths
        ({"origin": "http://127.0.0.1:8122"}, 200),
        ({}, 200),
    ],
)
def test_pages_of_other_origins_write_nothing_with_a_key_or_without(headers: dict[str, str], status: int, make_key, settings) -> None:
    settings.ALLOWED_ORIGINS = ["https://app.example.org"]
    _, secret = make_key()
    for key in ({}, {"x-api-key": secret}):
        reply = ask({**LOCAL, **headers, **key}, method="post")
        assert reply.status_code == status
        if status == 403:
            assert reply.json()["code"] == "not_allowed"
    assert ask({**LOCAL, **headers}).status_code == 200


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("viewer", {"/read"}),
        ("judge", {"/read", "/ask", "/judge"}),
        ("operator", {"/read", "/ask", "/judge", "/operate"}),
        ("admin", {"/read", "/ask", "/judge", "/operate", "/admin-only"}),
    ],
)
def test_a_signed_in_user_may_do_what_the_role_says(role: str, may: set[str], make_user) -> None:
    user = make_user(role)
    client = Client(headers=REMOTE)
    client.force_login(user)
    for path in ("/ask", "/judge", "/read", "/operate", "/admin-only"):
        reply = client.get(path)
        assert reply.status_code == (200 if path in may else 403), path
        if reply.status_code == 200:
            assert reply.json() == {"kind": "user", "judge": user.username, "key": None}


def test_a_signed_in_users_write_needs_the_csrf_token(make_user) -> None:
    client = Client(enforce_csrf_checks=True, headers=LOCAL)
    client.force_login(make_user("judge"))
    reply = client.post("/ask", {}, content_type="application/json")
    assert reply.status_code == 403
    assert reply.json()["code"] == "not_allowed"
    client.get("/admin/login/")
    client.force_login(make_user("judge", "other"))
    client.cookies["benchwarmers_csrf"] = token = "a" * 32
    assert client.post("/ask", {}, content_type="application/json", headers={"x-csrftoken": token}).status_code == 200


def test_a_user_who_was_deactivated_is_nobody_at_once(make_user) -> None:
    user = make_user("admin")
    client = Client(headers=REMOTE)
    client.force_login(user)
    user.is_active = False
    user.save()
    assert client.get("/read").status_code == 401


def test_a_key_wins_over_a_session(make_user, make_key) -> None:
    _, secret = make_key("bot", scopes=["ask"])
    client = Client(headers=REMOTE)
    client.force_login(make_user("admin"))
    assert client.get("/operate", headers={"x-api-key": secret}).status_code == 403
    assert client.get("/operate", headers={"x-api-key": "wrong"}).status_code == 401


# ------------------------------------------------------------------ lean requests


class LeanRequest(HttpRequest):
    """What the gateway's entry hands to a view: no session, no middleware, the snapshot's keys."""

    def __init__(self, ring: KeyRing, method: str = "POST", query: str = "", **headers: str) -> None:
        super().__init__()
        self.method, self.keyring = method, ring
        self.META = {"QUERY_STRING": query, "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8122", "HTTP_HOST": "127.0.0.1:8122"}
        self.META |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}


@pytest.fixture
def ring(make_key) -> tuple[KeyRing, str]:
    _, secret = make_key("bot", budget_usd=Decimal(1))
    return keys.load_ring(), secret


def test_a_lean_request_asks_no_database(ring, django_assert_num_queries) -> None:
    keyring, secret = ring
    view = paths.Ask.as_view()
    with django_assert_num_queries(0):
        assert view(LeanRequest(keyring, authorization=f"Bearer {secret}")).data["judge"] == "key:bot"
        assert view(LeanRequest(keyring, query=f"key={secret}")).status_code == 200
        assert view(LeanRequest(keyring)).data["kind"] == "loopback"
        assert view(LeanRequest(keyring, authorization="Bearer nope")).data["code"] == "invalid_key"
        assert view(LeanRequest(keyring, x_forwarded_for="203.0.113.9")).data["code"] == "missing_key"
        assert view(LeanRequest(KeyRing({}), authorization=f"Bearer {secret}")).data["code"] == "invalid_key"


def test_allowed_origins_may_write_to_the_gateway(ring, settings) -> None:
    keyring, _ = ring
    settings.ALLOWED_ORIGINS = ["https://app.example.org"]
    view = paths.Ask.as_view()
    assert view(LeanRequest(keyring, origin="https://app.example.org", sec_fetch_site="cross-site")).status_code == 200
    assert view(LeanRequest(keyring, origin="https://evil.example", sec_fetch_site="cross-site")).data["code"] == "not_allowed"
    assert view(LeanRequest(keyring, origin="http://127.0.0.1:8122")).status_code == 200


@pytest.mark.parametrize(
    ("error", "code", "status"), [(MissingKey(), "missing_key", 401), (InvalidKey(), "invalid_key", 401), (NotAllowed(), "not_allowed", 403)]
)
def test_a_refusal_can_be_written_by_a_dialect(error: Any, code: str, status: int) -> None:
    pure = as_caller_error(error)
    assert (pure.code, pure.status) == (code, status)
    assert pure.message
