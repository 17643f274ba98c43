"""What every reply of Django's stack carries, and whose word about a request's way is believed."""

from __future__ import annotations

from io import BytesIO
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from benchwarmers.middleware import SecurityHeadersMiddleware

LOCAL = {"host": "127.0.0.1:8122"}


@pytest.fixture(autouse=True)
def collected_static_files(settings, tmp_path: Path) -> None:
    """A checkout has none, about which whitenoise warns at each start of the stack."""
    settings.STATIC_ROOT = tmp_path


def policy_of(reply: Any) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in reply["Content-Security-Policy"].split(";"))


@pytest.mark.parametrize("path", ["/admin/login/", "/no-such-page", "/static/admin/css/base.css", "/admin"])
def test_every_reply_carries_the_security_headers(path: str, db: None) -> None:
    reply = Client(headers=LOCAL).get(path)
    reply.close()
    assert reply["X-Content-Type-Options"] == "nosniff"
    assert reply["Referrer-Policy"] == "same-origin"
    assert reply["Cross-Origin-Opener-Policy"] == "same-origin"
    assert reply["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in reply["Permissions-Policy"]
    assert reply["X-Request-Id"].startswith("req_")
    policy = policy_of(reply)
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'self'"
    assert policy["form-action"] == "'self'"
    assert policy["img-src"] == "'self' data:"


def test_no_page_runs_inline_scripts_and_only_the_admin_evaluates(db: None) -> None:
    admin, other = (policy_of(Client(headers=LOCAL).get(path)) for path in ("/admin/login/", "/no-such-page"))
    assert admin["script-src"] == "'self' 'unsafe-eval'"
    assert other["script-src"] == "'self'"
    assert other["style-src"] == "'self'"


@pytest.mark.parametrize("given", ["abc", "01J8ZQ", "req_1.2:3-4", "a" * 80])
def test_a_sane_request_id_is_kept(given: str) -> None:
    assert Client(headers=LOCAL).get("/no-such-page", headers={"x-request-id": given})["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", " ", "a b", "a\tb", "a" * 81, "<script>", "ü", "a,b", "-a", '"', "a\n"])
def test_any_other_request_id_is_replaced(given: str) -> None:
    found = Client(headers=LOCAL).get("/no-such-page", headers={"x-request-id": given})["X-Request-Id"]
    assert found.startswith("req_")
    assert found != given


def test_a_view_keeps_a_stricter_header_of_its_own() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers={"Referrer-Policy": "no-referrer"})

    reply = SecurityHeadersMiddleware(view)(RequestFactory().get("/"))
    assert reply["Referrer-Policy"] == "no-referrer"


# ------------------------------------------------------------------ the way a request came


def seen(request: HttpRequest) -> HttpRequest:
    SecurityHeadersMiddleware(lambda r: HttpResponse())(request)
    return request


def by_wsgi(headers: dict[str, str]) -> HttpRequest:
    return RequestFactory(headers=headers).get("/")


def by_asgi(headers: dict[str, str]) -> HttpRequest:
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8122)}
    return ASGIRequest({**scope, "headers": [(n.encode(), v.encode()) for n, v in headers.items()]}, BytesIO())


FORWARDED = {
    "host": "inner:8122",
    "x-forwarded-for": "198.51.100.1",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "bench.example.org",
    "x-forwarded-port": "443",
    "forwarded": "for=198.51.100.1;host=bench.example.org",
}


@pytest.mark.parametrize("arrive", [by_wsgi, by_asgi])
def test_a_trusted_proxy_says_who_asked_and_for_what(arrive: Any, settings) -> None:
    settings.ALLOWED_HOSTS, settings.TRUSTED_PROXIES = ["*"], [ip_network("127.0.0.0/8")]
    request = seen(arrive(FORWARDED))
    assert request.scheme == "https"
    assert request.is_secure()
    assert request.get_host() == "bench.example.org"
    assert request.build_absolute_uri("/x") == "https://bench.example.org/x"
    assert request.META["REMOTE_ADDR"] == "198.51.100.1"
    assert not [n for n in request.META if "FORWARDED" in n and n.startswith("HTTP_")]


@pytest.mark.parametrize("arrive", [by_wsgi, by_asgi])
@pytest.mark.parametrize("trusted", [[], ["10.0.0.0/8"]])
def test_nobody_else_is_believed(arrive: Any, trusted: list[str], settings) -> None:
    settings.ALLOWED_HOSTS, settings.TRUSTED_PROXIES = ["*"], [ip_network(n) for n in trusted]
    request = seen(arrive(FORWARDED))
    assert request.scheme == "http"
    assert request.get_host() == "inner:8122"
    assert request.META["REMOTE_ADDR"] == "127.0.0.1"
    assert not [n for n in request.META if "FORWARDED" in n and n.startswith("HTTP_")]


@pytest.mark.parametrize(
    "headers", [{"x-forwarded-for": "127.0.0.1"}, {"forwarded": "for=127.0.0.1"}, {"x-forwarded-host": "localhost"}, {"x-real-ip": "::1"}, {"via": "1.1 x"}]
)
@pytest.mark.urls("tests.access.paths")
def test_taking_the_headers_away_does_not_make_a_forwarded_request_a_local_one(headers: dict[str, str], db: None, settings) -> None:
    for trusted in ([], [ip_network("127.0.0.1/32")]):
        settings.TRUSTED_PROXIES = trusted
        assert Client(headers=LOCAL).get("/ask").status_code == 200
        assert Client(headers=LOCAL).get("/ask", headers=headers).status_code == 401
