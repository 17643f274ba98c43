"""The rules of the door, as tables."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.door import (
    FORWARDING,
    WAS_FORWARDED,
    approach,
    client_address,
    extract_key,
    is_loopback_host,
    needs_no_key,
    refused_origin,
    was_forwarded,
)


def meta(**headers: str) -> dict[str, str]:
    return {f"HTTP_{name.upper()}": value for name, value in headers.items()}


# ------------------------------------------------------------------ which key


@pytest.mark.parametrize(
    ("headers", "query", "key"),
    [
        ({}, "", None),
        ({}, "alt=sse", None),
        (meta(authorization="Bearer k1"), "", "k1"),
        (meta(authorization="bearer k1"), "", "k1"),
        (meta(authorization="BEARER   k1  "), "", "k1"),
        (meta(x_api_key="k1"), "", "k1"),
        (meta(x_api_key=" k1\t"), "", "k1"),
        (meta(x_goog_api_key="k1"), "", "k1"),
        ({}, "key=k1", "k1"),
        ({}, "alt=sse&key=k1", "k1"),
        ({}, "k%65y=k%31", "k1"),
        ({}, "monkey=k1", None),
        ({}, "KEY=k1", None),
        ({}, "key=", None),
        (meta(authorization=""), "", None),
        (meta(authorization="Bearer"), "", None),
        (meta(authorization="Bearer "), "", None),
        (meta(authorization="Bearer \t "), "", None),  # what a client sends whose variable for the key is empty
        (meta(authorization="bearer"), "", None),
        (meta(authorization="Bearer ", x_api_key="k1"), "", "k1"),
        (meta(x_api_key=""), "", None),
        (meta(authorization="Bearer k1", x_api_key="k1"), "key=k1", "k1"),
        (meta(x_goog_api_key="k1"), "key=k1", "k1"),
    ],
)
def test_a_key_is_found_wherever_clients_put_it(headers: dict[str, str], query: str, key: str | None) -> None:
    assert extract_key(headers, query) == key


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        (meta(authorization="Basic YWRtaW46azE="), ""),
        (meta(authorization="k1"), ""),
        (meta(authorization="Token k1"), ""),
        (meta(authorization="Digest username=k1"), ""),
        (meta(authorization="Bearer k1,Bearer k1"), ""),
        (meta(authorization="Bearer k1, Bearer k2"), ""),
        (meta(authorization="Bearerk1"), ""),
        (meta(authorization="Bearer k1 k2"), ""),
        (meta(authorization="Basic k1", x_api_key="k1"), ""),
        (meta(authorization="Bearer k1", x_api_key="k2"), ""),
        (meta(x_api_key="k2", x_goog_api_key="k1"), ""),
        (meta(authorization="Bearer k2"), "key=k1"),
        ({}, "key=k1&key=k2"),
        ({}, "key=k1%0d%0a"),
    ],
)
def test_what_can_be_no_key_of_ours_is_still_something_that_was_sent(headers: dict[str, str], query: str) -> None:
    assert extract_key(headers, query) not in (None, "", "k1", "k2")


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_header_breaks_the_search_for_a_key(authorization: str, other: str, query: str) -> None:
    found = extract_key(meta(authorization=authorization, x_api_key=other), query)
    assert found is None or found
    if other.strip():
        assert found is not None, "a key that is sent is always checked"


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60))
def test_a_bearer_comes_back_as_it_was_sent(key: str) -> None:
    assert extract_key(meta(authorization=f"Bearer {key}"), "") == key


# ------------------------------------------------------------------ who needs none


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "localhost:8122", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:80", "[::1]", "[::1]:8122", "[0:0:0:0:0:0:0:1]:65535"],
)
def test_names_of_this_machine(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "localhost.",
        "localhost@evil.example",
        "evil.example#localhost",
        "localhost, evil.example",
        "localhost:8122, localhost",
        "localhost:",
        "localhost:80:80",
        "localhost:x",
        "localhost:999999",
        " localhost",
        "localhost ",
        "localhost\n",
        "localhost/",
        "127.0.0.1.nip.io",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "0.0.0.0",
        "128.0.0.1",
        "[::]",
        "[::2]",
        "[::ffff:127.0.0.1]",
        "::1",
        "[::1",
        "[fe80::1]",
        "192.168.0.2",
        "ｌocalhost",
        "127.0.0.１",
    ],
)
def test_names_that_only_look_like_this_machine(host: str) -> None:
    assert not is_loopback_host(host)


@pytest.mark.parametrize(
    "name", [*FORWARDING, "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED", "HTTP_X_FORWARDED_FOO"]
)
@pytest.mark.parametrize("value", ["127.0.0.1", "", "garbage"])
def test_any_forwarding_header_means_that_a_key_is_needed(name: str, value: str) -> None:
    headers = {"HTTP_HOST": "localhost", name: value}
    assert was_forwarded(headers)
    assert not needs_no_key(True, headers)


@pytest.mark.parametrize(
    ("listens_on_loopback", "headers", "free"),
    [
        (True, meta(host="127.0.0.1:8122"), True),
        (True, meta(host="[::1]:8122", user_agent="curl", accept="*/*"), True),
        (False, meta(host="127.0.0.1:8122"), False),
        (True, meta(host="bench.example.org"), False),
        (True, {}, False),
        (True, meta(host="localhost", x_forwarded_for="203.0.113.9"), False),
        (True, {**meta(host="localhost"), WAS_FORWARDED: True}, False),
        (True, {**meta(host="localhost"), WAS_FORWARDED: False}, True),
    ],
)
def test_no_key_is_needed_only_on_loopback_by_a_loopback_name_and_not_forwarded(listens_on_loopback: bool, headers: dict[str, str], free: bool) -> None:
    assert needs_no_key(listens_on_loopback, headers) is free


# ------------------------------------------------------------------ pages of other origins

OWN = "127.0.0.1:8122"


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        (meta(origin="http://127.0.0.1:8122"), False),
        (meta(origin="HTTP://127.0.0.1:8122"), False),
        (meta(origin="http://127.0.0.1:8122", sec_fetch_site="same-origin"), False),
        (meta(sec_fetch_site="same-origin"), False),
        (meta(sec_fetch_site="none"), False),
        (meta(sec_fetch_site="Same-Origin"), False),
        (meta(origin="https://evil.example"), True),
        (meta(origin="null"), True),
        (meta(origin=""), True),
        (meta(origin="http://127.0.0.1:9999"), True),
        (meta(origin="http://127.0.0.1"), True),
        (meta(origin="https://127.0.0.1:8122"), True),
        (meta(origin="http://localhost:8122"), True),
        (meta(origin="http://127.0.0.1:8122.evil.example"), True),
        (meta(origin="http://127.0.0.1:8122@evil.example"), True),
        (meta(origin="http://evil.example/http://127.0.0.1:8122"), True),
        (meta(origin="http://127.0.0.1:8122,http://evil.example"), True),
        (meta(origin="file://"), True),
        (meta(origin="chrome-extension://abcdef"), True),
        (meta(sec_fetch_site="cross-site"), True),
        (meta(sec_fetch_site="same-site"), True),
        (meta(sec_fetch_site=""), True),
        (meta(sec_fetch_site="whatever"), True),
        (meta(origin="http://127.0.0.1:8122", sec_fetch_site="cross-site"), True),
        (meta(origin="https://evil.example", sec_fetch_site="same-origin"), True),
    ],
)
def test_a_write_from_a_page_needs_the_same_origin(headers: dict[str, str], refused: bool) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "QUERY"):
        assert refused_origin(method, {"HTTP_HOST": OWN, **headers}, "http", "") is refused
    for method in ("GET", "HEAD", "OPTIONS"):
        assert refused_origin(method, {"HTTP_HOST": OWN, **headers}, "http", "") is False


@pytest.mark.parametrize(
    ("host", "scheme", "origin"),
    [
        ("bench.example.org", "https", "https://bench.example.org"),
        ("bench.example.org:443", "https", "https://bench.example.org"),
        ("bench.example.org", "http", "http://bench.example.org:80"),
        ("[::1]:8122", "http", "http://[::1]:8122"),
        ("BENCH.example.org", "https", "https://bench.EXAMPLE.org"),
    ],
)
def test_one_origin_may_be_written_in_several_ways(host: str, scheme: str, origin: str) -> None:
    assert not refused_origin("POST", meta(host=host, origin=origin), scheme, "")


def test_the_public_origin_is_our_own_and_allowed_origins_may_be_cross_site() -> None:
    headers = meta(host=OWN, origin="https://bench.example.org")
    assert refused_origin("POST", headers, "http", "")
    assert not refused_origin("POST", headers, "http", "https://bench.example.org")
    page = meta(host=OWN, origin="https://app.example.org", sec_fetch_site="cross-site")
    assert refused_origin("POST", page, "http", "https://bench.example.org")
    assert not refused_origin("POST", page, "http", "", ["https://app.example.org"])
    assert refused_origin("POST", meta(host=OWN, origin="null"), "http", "", ["null", "*"])
    assert refused_origin("POST", meta(host=OWN, origin="https://x.example"), "http", "", ["*"])


def test_a_page_does_not_match_a_server_that_has_no_name() -> None:
    assert refused_origin("POST", meta(origin=""), "http", "")
    assert refused_origin("POST", meta(host="bad host", origin="bad host"), "http", "")


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_header_breaks_the_origin_rule(origin: str, host: str, site: str) -> None:
    assert refused_origin("POST", meta(origin=origin, host=host, sec_fetch_site=site), "http", "https://bench.example.org") in (True, False)


# ------------------------------------------------------------------ proxies

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "address"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # not a proxy of ours: what it says is not believed
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1:443", "198.51.100.1"),
        ("10.0.0.1", '"[2001:db8::1]:443"', "2001:db8::1"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("fd00::1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1"),  # the left is what the client wrote
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, garbage, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "garbage", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("", "198.51.100.1", ""),
        ("unix:/run/x.sock", "198.51.100.1", "unix:/run/x.sock"),
    ],
)
def test_the_address_of_a_client_behind_proxies(peer: str, forwarded_for: str | None, address: str) -> None:
    headers = {} if forwarded_for is None else meta(x_forwarded_for=forwarded_for)
    assert client_address(peer, headers, PROXIES) == address


def test_nobody_is_believed_by_default() -> None:
    headers = meta(host="localhost:8122", x_forwarded_for="1.2.3.4", x_forwarded_proto="https", x_forwarded_host="bench.example.org")
    way = approach("127.0.0.1", "http", headers, [])
    assert (way.address, way.scheme, way.host, way.forwarded) == ("127.0.0.1", "http", "localhost:8122", True)


@pytest.mark.parametrize(
    ("proto", "host", "scheme", "name"),
    [
        ("https", "bench.example.org", "https", "bench.example.org"),
        ("HTTPS", "bench.example.org:8443", "https", "bench.example.org:8443"),
        ("https, http", "a.example, b.example", "http", "b.example"),
        ("javascript", "bad host", "http", "inner:8122"),
        ("", "", "http", "inner:8122"),
        ("https", "evil.example/path", "https", "inner:8122"),
        ("https", "a@b", "https", "inner:8122"),
    ],
)
def test_a_trusted_proxy_tells_scheme_and_host(proto: str, host: str, scheme: str, name: str) -> None:
    way = approach("10.0.0.1", "http", meta(host="inner:8122", x_forwarded_proto=proto, x_forwarded_host=host), PROXIES)
    assert (way.scheme, way.host, way.forwarded) == (scheme, name, True)


@given(st.text(max_size=40), st.text(max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_no_header_breaks_the_reading_of_an_approach(peer: str, forwarded_for: str, proto: str, host: str) -> None:
    for source in (peer, "10.0.0.1"):
        way = approach(source, "http", meta(x_forwarded_for=forwarded_for, x_forwarded_proto=proto, x_forwarded_host=host), PROXIES)
        assert way.scheme in ("http", "https")
