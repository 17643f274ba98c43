"""A key that is there already goes to no other address unless an admin says so: whoever may edit the bench must not be able to read its keys."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import editing
from catalog.endpoint_keys import KeyAtStake, is_at_stake
from catalog.models import Endpoint

HOME, AWAY = "https://api.example.org/v1", "https://elsewhere.example.net/v1"
VARIABLE = "BENCHWARMERS_KEY_STAKE"


def endpoint(base_url: str = HOME, sealed: str = "", key_env: str = "", name: str = "plain") -> Endpoint:
    return Endpoint(name=name, kind="openai", base_url=base_url, key_sealed=sealed, key_env=key_env)


@pytest.mark.parametrize(
    ("before", "after", "at_stake"),
    [
        (None, endpoint(), False),
        (None, endpoint(sealed="mine"), False),
        (None, endpoint(key_env=VARIABLE), True),
        (None, endpoint(name="stake"), True),
        (endpoint(sealed="a"), endpoint(sealed="a"), False),
        (endpoint(sealed="a"), endpoint(AWAY, sealed="a"), True),
        (endpoint(sealed="a"), endpoint(AWAY, sealed="b"), False),
        (endpoint(sealed="a"), endpoint(AWAY), False),
        (endpoint(sealed="a"), endpoint(HOME + "/v2", sealed="a"), False),
        (endpoint(sealed="a"), endpoint(HOME.replace("https", "http"), sealed="a"), True),
        (endpoint(key_env=VARIABLE), endpoint(key_env=VARIABLE), False),
        (endpoint(key_env=VARIABLE), endpoint(AWAY, key_env=VARIABLE), True),
        (endpoint(), endpoint(key_env=VARIABLE), True),
        (endpoint(key_env=VARIABLE), endpoint(AWAY), False),
    ],
)
def test_a_key_is_at_stake_where_it_would_go_elsewhere(settings: Any, before: Endpoint | None, after: Endpoint, at_stake: bool) -> None:
    settings.ENVIRONMENT_KEYS = {VARIABLE: "sk-of-the-server"}
    assert is_at_stake(before, after) is at_stake


@pytest.mark.django_db
def test_only_an_admin_moves_a_stored_key() -> None:
    editing.make_endpoint({"name": "kept", "kind": "openai", "base_url": HOME}, "sk-first", "olga")
    with pytest.raises(KeyAtStake):
        editing.change_endpoint("kept", {"base_url": AWAY}, None, "olga")
    assert Endpoint.objects.get(name="kept").base_url == HOME
    editing.change_endpoint("kept", {"base_url": AWAY}, None, "anna", is_admin=True)
    assert Endpoint.objects.get(name="kept").base_url == AWAY
    editing.change_endpoint("kept", {"base_url": HOME}, "sk-second", "olga")


@pytest.mark.django_db
def test_only_an_admin_points_a_variable_at_an_address(settings: Any) -> None:
    settings.ENVIRONMENT_KEYS = {VARIABLE: "sk-of-the-server"}
    with pytest.raises(KeyAtStake):
        editing.make_endpoint({"name": "stake", "kind": "openai", "base_url": AWAY}, "", "olga")
    editing.make_endpoint({"name": "stake", "kind": "openai", "base_url": HOME}, "", "anna", is_admin=True)
