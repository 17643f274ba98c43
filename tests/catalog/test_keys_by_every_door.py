"""An endpoint's key, by whichever door it comes: what a paste brings along is trimmed, what no header carries is refused, and it is never repeated."""

from __future__ import annotations

import pytest

from access.secrets import UnusableKey
from catalog import endpoint_keys, providers
from catalog.endpoint_keys import KeyUnreadable
from catalog.models import Endpoint
from tests.benchwarmers.deployment import Deployment

pytestmark = pytest.mark.django_db

GOOD = ["sk-up-1\n", " sk-up-1 ", "\tsk-up-1\r\n", "sk-up-1"]
BAD = {"sk-up-1\r\nx-evil: 1": "a line break", "sk-\u200bup-1": "position 4", "sk-\u00fcp": "position 4", "sk-up-1\x00": "a null character"}


@pytest.fixture
def row() -> Endpoint:
    return Endpoint.objects.create(name="local", kind="openai", base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize("raw", GOOD)
@pytest.mark.parametrize("door", ["database", "environment"])
def test_a_paste_is_trimmed(row: Endpoint, settings, raw: str, door: str) -> None:
    if door == "database":  # the API's, the admin's, init's and roster's one way in
        endpoint_keys.set_key(row, raw, "operator")
    else:
        settings.ENVIRONMENT_KEYS = {"BENCHWARMERS_KEY_LOCAL": raw}
    assert endpoint_keys.key_of(row) == "sk-up-1"
    assert providers.get("openai").headers(endpoint_keys.key_of(row))["Authorization"] == "Bearer sk-up-1"


@pytest.mark.parametrize("raw", BAD)
@pytest.mark.parametrize("door", ["database", "environment"])
def test_what_no_header_carries_is_refused_by_its_character(row: Endpoint, settings, raw: str, door: str) -> None:
    if door == "database":
        with pytest.raises(UnusableKey) as refused:
            endpoint_keys.set_key(row, raw, "operator")
        row.refresh_from_db()
        assert not row.key_sealed
    else:
        settings.ENVIRONMENT_KEYS = {"BENCHWARMERS_KEY_LOCAL": raw}
        with pytest.raises(KeyUnreadable) as refused:  # type: ignore[assignment]
            endpoint_keys.key_of(row)
        assert "BENCHWARMERS_KEY_LOCAL" in str(refused.value)
        assert [problem for _, _, problem in endpoint_keys.every_source() if problem]
    assert BAD[raw] in str(refused.value)
    for part in ("sk-up-1", "up-1", "x-evil"):
        assert part not in str(refused.value)


@pytest.mark.parametrize(("typed", "accepted"), [(" sk-up-1 \n", True), ("sk-up-1\r\n", True), ("sk-\u200bup-1\n", False), ("sk-\u00fcp-1\n", False)])
def test_a_typed_key_is_treated_alike(tmp_path, typed: str, accepted: bool) -> None:
    deployment = Deployment(tmp_path)
    try:
        done = deployment.ready().manage("init", "--endpoint", "typed", "https://api.example.org/v1", "--key", typed=typed)
        assert (done.code == 0) == accepted, done.said
        assert "up-1" not in done.said
        assert "Traceback" not in done.said
        assert ("endpoint typed" in deployment.manage("doctor").said) == accepted
    finally:
        deployment.database.drop()
