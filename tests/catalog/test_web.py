"""Outgoing HTTP that is no model call: checked addresses, nothing followed, nothing leaked."""

from __future__ import annotations

import gzip
import socket
from typing import Any

import pytest

from catalog import web
from catalog.web import WebError
from tests.catalog.pages import Pages


def get(url: str, named: bool = True, limit_bytes: int = 100_000, timeout_s: float = 5.0, **headers: str) -> Any:
    return web.get_json(url, headers, named, limit_bytes, timeout_s, "a model API")


def wrong(url: str, **more: Any) -> WebError:
    with pytest.raises(WebError) as caught:
        get(url, **more)
    return caught.value


def test_json_is_read_with_the_headers_that_were_given(pages: Pages) -> None:
    pages.put("/a?b=1", {"data": []})
    assert get(f"{pages.url}/a?b=1", Authorization="Bearer sk-x") == {"data": []}
    assert pages.asked[0][0] == "/a?b=1"
    assert pages.asked[0][1]["authorization"] == "Bearer sk-x"


def test_a_netrc_does_not_replace_the_key(pages: Pages, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("default login somebody password else\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    pages.put("/a", {})
    get(f"{pages.url}/a", Authorization="Bearer sk-x")
    assert pages.asked[0][1]["authorization"] == "Bearer sk-x"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "127.1", "[::ffff:127.0.0.1]"])
def test_private_hosts_are_called_only_where_an_admin_named_them(pages: Pages, host: str) -> None:
    pages.put("/a", {})
    assert wrong(f"http://{host}:{pages.port}/a", named=False).code == "address_refused"
    assert pages.asked == []


def test_localhost_is_called_where_an_admin_named_it(pages: Pages) -> None:
    pages.put("/a", {"ok": True})
    assert get(f"http://localhost:{pages.port}/a") == {"ok": True}


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "metadata.google.internal",
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_metadata_is_refused_in_every_spelling_even_of_an_endpoint(host: str, named: bool) -> None:
    error = wrong(f"http://{host}/latest/meta-data", named=named)
    assert error.code == "address_refused"


def test_a_name_that_resolves_to_metadata_is_refused_when_it_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolver(*args: Any, **more: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    # The resolver is the network's, not ours: this is what one that an attacker runs would say.
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    assert wrong("http://innocent.example.org/").code == "address_refused"


def test_a_name_with_one_good_and_one_bad_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolver(*args: Any, **more: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("8.8.8.8", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    assert wrong("http://innocent.example.org/", named=False).code == "address_refused"


@pytest.mark.parametrize(
    ("body", "status", "content_type", "code", "said"),
    [
        ("<html>token=abc123</html>", 200, "text/html", "not_json", "not a model API (got text/html, status 200)"),
        ("<html>token=abc123</html>", 200, "Text/HTML; charset=utf-8", "not_json", "got text/html, status 200"),
        ("token=abc123", 200, "text/plain", "not_json", "got text/plain, status 200"),
        ("token=abc123", 200, "application/json", "not_json", "got application/json, status 200"),
        ('{"token": "abc123"', 200, "application/json", "not_json", "status 200"),
        (b"\xff\xfetoken=abc123", 200, "application/octet-stream", "not_json", "got application/octet-stream"),
        ("", 200, "application/json", "not_json", "status 200"),
        ("[" * 90_000, 200, "application/json", "not_json", "status 200"),
        ("token=abc123", 500, "text/plain", "refused", "status 500"),
        ('{"token": "abc123"}', 401, "application/json", "refused", "status 401"),
        ("token=abc123", 302, "text/html", "redirected", "redirects elsewhere"),
        ("token=abc123", 200, "token=abc123", "not_json", "an odd content type"),
        ("token=abc123", 200, "", "not_json", "no content type"),
    ],
)
def test_what_is_not_json_is_named_without_a_byte_of_it(pages: Pages, body: Any, status: int, content_type: str, code: str, said: str) -> None:
    pages.put("/a", body, status, content_type, Location="/token=abc123")
    error = wrong(f"{pages.url}/a")
    assert error.code == code
    assert error.status == status
    assert said in str(error)
    for leak in ("abc123", "<html"):
        assert leak not in str(error)


def test_json_under_another_content_type_is_read(pages: Pages) -> None:
    pages.put("/a", {"ok": 1}, content_type="text/plain")
    assert get(f"{pages.url}/a") == {"ok": 1}


def test_redirects_are_not_followed(pages: Pages) -> None:
    pages.put("/a", "", 307, Location="/b")
    pages.put("/b", {"ok": True})
    assert wrong(f"{pages.url}/a").code == "redirected"
    assert [path for path, _ in pages.asked] == ["/a"]


def test_an_answer_that_is_too_large_is_cut_off(pages: Pages) -> None:
    pages.put("/a", b'"' + b"x" * 200_000 + b'"')
    assert wrong(f"{pages.url}/a").code == "too_large"


def test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off(pages: Pages) -> None:
    pages.put("/a", gzip.compress(b'"' + b"x" * 5_000_000 + b'"'), Content_Encoding="gzip")
    assert wrong(f"{pages.url}/a").code == "too_large"


def test_a_server_that_says_nothing_is_given_up(pages: Pages) -> None:
    pages.put("/a", "HOLD")
    assert wrong(f"{pages.url}/a", timeout_s=0.3).code == "timed_out"


def test_a_connection_that_breaks_off_is_unreachable(pages: Pages) -> None:
    pages.put("/a", None)
    assert wrong(f"{pages.url}/a").code == "unreachable"


def test_a_port_where_nothing_listens_says_so() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    error = wrong(f"http://127.0.0.1:{port}/")
    assert error.code == "unreachable"
    assert "refused" in str(error)


def test_a_server_without_tls_is_unreachable_by_https(pages: Pages) -> None:
    assert wrong(f"https://127.0.0.1:{pages.port}/").code == "unreachable"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "127.0.0.1", "http://"])
def test_other_schemes_are_refused(url: str) -> None:
    assert wrong(url).code in ("address_refused", "unreachable")


def test_a_header_that_cannot_be_sent_is_not_repeated(pages: Pages) -> None:
    error = wrong(f"{pages.url}/a", Authorization="Bearer sk-secret\r\nx: y")
    assert "secret" not in str(error)


def test_proxies_see_public_hosts_only(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PROXIES = {"http": "http://proxy.example:3128", "https": "http://proxy.example:3128", "no": "direct.example.org"}

    def resolver(host: str, *args: Any, **more: Any) -> Any:
        known = {"public.example.org": "8.8.8.8", "own.example.org": "10.0.0.5"}
        if host not in known:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], 80))]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    through = {"http": "http://proxy.example:3128"}
    assert web.proxies_for("http://public.example.org/", named=True) == through
    assert web.proxies_for("http://unknown.example.org/", named=True) == through
    assert web.proxies_for("http://public.example.org/", named=False) == through
    for direct in ("own.example.org", "127.0.0.1", "2130706433", "localhost", "ollama", "printer.local"):
        assert web.proxies_for(f"http://{direct}/", named=True) == {}
    assert web.proxies_for("http://direct.example.org/", named=True) == {}
    settings.PROXIES = {}
    assert web.proxies_for("http://public.example.org/", named=True) == {}
