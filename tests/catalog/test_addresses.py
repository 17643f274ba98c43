"""Where calls may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import addresses
from catalog.addresses import AddressRefused, check_host, check_image_url, check_ip, is_public, literal

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
OWN = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "::",
    "fc00::1",
    "fd12:3456::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
]
METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
]
NOWHERE = [
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.9",
    "198.18.0.1",
    "0.1.2.3",
    "ff02::1",
    "2001:db8::1",
    "192.88.99.1",
    "fec0::1",
    "2001::1",
]


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_may_be_called_by_all(ip: str) -> None:
    assert is_public(ip)
    check_ip(ip, named=False)
    check_ip(ip, named=True)


@pytest.mark.parametrize("ip", OWN)
def test_own_addresses_may_be_called_only_where_an_admin_named_them(ip: str) -> None:
    assert not is_public(ip)
    check_ip(ip, named=True)
    with pytest.raises(AddressRefused, match="private or special"):
        check_ip(ip, named=False)


@pytest.mark.parametrize("ip", METADATA)
def test_metadata_is_never_called_however_it_is_spelt(ip: str) -> None:
    assert not is_public(ip)
    for named in (True, False):
        with pytest.raises(AddressRefused, match="metadata"):
            check_ip(ip, named)


@pytest.mark.parametrize("ip", [*NOWHERE, "nonsense", ""])
def test_addresses_where_no_server_is_are_refused(ip: str) -> None:
    for named in (True, False):
        with pytest.raises(AddressRefused):
            check_ip(ip, named)


@pytest.mark.parametrize(
    ("host", "ip"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("2852039166", "169.254.169.254"),
        ("0xA9FEA9FE", "169.254.169.254"),
        ("0251.0376.0251.0376", "169.254.169.254"),
        ("169.254.43518", "169.254.169.254"),
        ("127.0.0.1.", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("example.org", None),
        ("1.example", None),
        ("999.999.999.999", None),
        ("a1", None),
        ("", None),
    ],
)
def test_hosts_are_read_as_addresses_in_every_spelling(host: str, ip: str | None) -> None:
    found = literal(host)
    assert (None if found is None else str(found)) == ip


@pytest.mark.parametrize(
    "host", ["2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "METADATA.google.internal", "metadata.google.internal.", "[::ffff:a9fe:a9fe]"]
)
def test_metadata_hosts_are_refused_before_any_resolver_is_asked(host: str) -> None:
    with pytest.raises(AddressRefused):
        check_host(host, named=True)


@pytest.mark.parametrize("host", ["localhost", "ollama", "printer.local", "db.internal", "127.0.0.1", "10.0.0.1"])
def test_own_hosts_need_an_admin(host: str) -> None:
    check_host(host, named=True)
    with pytest.raises(AddressRefused):
        check_host(host, named=False)


def test_resolving_gives_addresses_only_where_all_of_them_may_be_called() -> None:
    assert "127.0.0.1" in addresses.resolve("localhost", 80, named=True) or "::1" in addresses.resolve("localhost", 80, named=True)
    with pytest.raises(AddressRefused):
        addresses.resolve("localhost", 80, named=False)
    with pytest.raises(AddressRefused):
        addresses.resolve("2852039166", 80, named=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://img.example/cat.png",
        "http://img.example:8080/a/b.jpg?w=1&h=2#x",
        "https://sub.domain.example.org/ünïcode.png",
        "https://bücher.example/x.png",
        "https://img.example./x.png",
        "https://1.2.3.4.example/x.png",
        "https://a_b.example/x.png",
        "https://local.example/x.png",
    ],
)
def test_public_image_addresses_pass(url: str) -> None:
    check_image_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cat.png",
        "//img.example/cat.png",
        "ftp://img.example/cat.png",
        "file:///etc/passwd",
        "gopher://img.example/",
        "javascript:alert(1)",
        "https://",
        "https:///x.png",
        "https://user:pass@img.example/x.png",
        "https://img.example@evil.example/x.png",
        "https://@img.example/x.png",
        "http://127.0.0.1/x.png",
        "http://8.8.8.8/x.png",
        "http://2130706433/x.png",
        "http://0x7f000001/x.png",
        "http://0x7f.0.0.1/x.png",
        "http://0177.0.0.1/x.png",
        "http://127.1/x.png",
        "http://[::1]/x.png",
        "http://[::ffff:127.0.0.1]/x.png",
        "http://[2606:4700::1111]/x.png",
        "http://１２７.０.０.１/x.png",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost/x.png",
        "http://LOCALHOST./x.png",
        "http://a.localhost/x.png",
        "http://ollama:11434/x.png",
        "http://printer.local/x.png",
        "http://db.internal/x.png",
        "http://metadata.google.internal/x",
        "http://router.lan/x.png",
        "http://nas.home.arpa/x.png",
        "http://x.onion/x.png",
        "http://img.example:99999/x.png",
        "http://img.example:port/x.png",
        "http://img..example/x.png",
        "http://-img.example/x.png",
        "http://img.exa mple/x.png",
        "http://img.example/x\n.png",
        "http://good.example\\@127.0.0.1/x.png",
        "http://img.example/\x00.png",
        "http://img%2eexample/x.png",
        "http://foo.1/x.png",
        "https://img.example/" + "x" * 9000,
        "http://[::1/x.png",
    ],
)
def test_other_image_addresses_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        check_image_url(url)
    assert not url or len(url) < 12 or url not in str(caught.value)


@given(st.text(max_size=80))
def test_no_text_makes_the_image_rule_fail_otherwise(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/x.png"):
        try:
            check_image_url(url)
        except AddressRefused:
            pass


@given(st.integers(0, 2**32 - 1))
def test_every_number_that_is_an_address_is_refused_as_an_image_host(number: int) -> None:
    for host in (str(number), hex(number), f"0{number:o}"):
        with pytest.raises(AddressRefused):
            check_image_url(f"http://{host}/x.png")


@given(st.ip_addresses())
def test_every_address_is_public_own_or_refused(ip: object) -> None:
    text = str(ip)
    try:
        check_ip(text, named=False)
        assert is_public(text)
    except AddressRefused:
        assert not is_public(text)


@pytest.mark.parametrize(
    "host", ["１６９.254.169.254", "169。254。169。254", "169．254．169．254", "１６９。２５４。１６９。２５４", "ⓜetadata", "metadata。google。internal"]
)
def test_what_connecting_reads_as_plain_is_checked_as_plain(host: str) -> None:
    with pytest.raises(AddressRefused):
        check_host(host, named=True)
