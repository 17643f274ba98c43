"""Which server is meant, and who gets which key."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchwarmers_client.server import BadAddress, Server, checked_url, find, is_loopback


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:9555", "pid": 1, "version": "0"}')
    (tmp_path / "operator.key").write_text("bw_live_operator\n")
    return tmp_path


def test_the_server_on_this_machine_is_found_with_its_key(home: Path) -> None:
    assert find(None, {"BENCHWARMERS_HOME": str(home)}) == Server("http://127.0.0.1:9555", "bw_live_operator")


def test_the_operators_key_leaves_for_no_other_machine(home: Path) -> None:
    for url in ("http://bench.lan:8122", "https://bench.example.org", "http://127.0.0.1.example.org", "http://10.0.0.7", "http://localhost.example.org"):
        assert find(url, {"BENCHWARMERS_HOME": str(home)}).key == ""


def test_what_is_given_wins(home: Path) -> None:
    given = {"BENCHWARMERS_HOME": str(home), "BENCHWARMERS_URL": "http://there:1/", "BENCHWARMERS_KEY": " mine \n"}
    assert find(None, given) == Server("http://there:1", "mine")
    assert find("http://elsewhere:2/v1/", given) == Server("http://elsewhere:2", "mine")


@pytest.mark.parametrize("told", ["", "{}", "[1]", '{"url": 1', "\xff"])
def test_a_broken_file_of_the_server_is_none(tmp_path: Path, told: str) -> None:
    (tmp_path / "server.json").write_text(told, encoding="latin-1")
    assert find(None, {"BENCHWARMERS_HOME": str(tmp_path)}) == Server("http://127.0.0.1:8122", "")


@pytest.mark.parametrize("text", ["ftp://x", "http://", "http://user:secret@x", "http://x?key=1", "http://x:99999", "http://[::1", "file:///etc/passwd"])
def test_what_is_no_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadAddress) as refused:
        checked_url(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8122", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8122", True),
        ("http://localhost", True),
        ("http://LOCALHOST.:1", True),
        ("http://bench.lan", False),
        ("http://192.168.1.2", False),
        ("http://0.0.0.0", False),
        ("http://localhost.evil.example", False),
    ],
)
def test_loopback_is_told_from_names_that_look_like_it(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected
