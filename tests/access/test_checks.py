"""What the system checks find."""

from __future__ import annotations

import pytest

from access.checks import admin_token


@pytest.mark.parametrize(
    ("on_loopback", "token", "found"),
    [
        (True, "", []),
        (True, "0123456789abcdef", []),
        (True, "tiny", ["access.E001"]),
        (False, "", ["access.E002"]),
        (False, "0123456789abcde", ["access.E001"]),
        (False, "0123456789abcdef", []),
    ],
)
def test_a_server_that_others_reach_needs_a_long_admin_token(on_loopback: bool, token: str, found: list[str], settings) -> None:
    settings.ON_LOOPBACK, settings.HOST, settings.ADMIN_TOKEN = on_loopback, "0.0.0.0", token
    errors = admin_token(None)
    assert [e.id for e in errors] == found
    for error in errors:
        assert error.is_serious()
        assert "BENCHWARMERS_ADMIN_TOKEN" in f"{error.msg}{error.hint}"
        assert not token or token not in f"{error.msg}{error.hint}"
