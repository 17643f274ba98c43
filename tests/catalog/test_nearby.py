"""Model servers on this machine: found where they listen, not looked for where others could learn from it."""

from __future__ import annotations

import pytest

from access import preferences
from catalog import nearby
from catalog.models import Endpoint
from tests.fake import FakeProvider
from tests.live import free_port

pytestmark = pytest.mark.django_db


@pytest.fixture
def places(fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake provider's port is LM Studio's here, a closed one Ollama's."""
    closed = nearby.Place("ollama", "Ollama", free_port(), "ollama", "")
    monkeypatch.setattr(nearby, "PLACES", (closed, nearby.Place("lm-studio", "LM Studio", fake.port)))


def test_a_server_that_answers_is_found_with_its_models(places: None, fake: FakeProvider) -> None:
    fake.models = [f"m{i}" for i in range(25)]
    (found,) = nearby.look().found
    assert (found.name, found.title, found.kind, found.base_url) == ("lm-studio", "LM Studio", "openai", fake.url)
    assert (found.count, len(found.models), found.endpoint, found.wants_key) == (25, 20, "", False)
    assert not any(name.lower() == "authorization" for call in fake.others for name in call.headers)


def test_an_endpoint_that_is_there_already_is_named(places: None, fake: FakeProvider) -> None:
    fake.models = ["m"]
    Endpoint.objects.create(name="mine", kind="openai", base_url=fake.url)
    assert nearby.look().found[0].endpoint == "mine"


def test_this_server_does_not_ask_itself(places: None, fake: FakeProvider) -> None:
    assert nearby.look(own_port=fake.port).found == ()
    assert fake.others == []


def test_a_server_that_others_reach_looks_only_where_it_was_told(places: None, fake: FakeProvider, settings) -> None:
    settings.ON_LOOPBACK = False
    fake.models = ["m"]
    looked = nearby.look()
    assert (looked.found, looked.own_machine) == ((), False)
    assert fake.others == []
    preferences.change(nearby.ADDRESSES, [fake.root], "admin")
    looked = nearby.look()
    assert [one.base_url for one in looked.found] == [fake.url]


def test_what_is_no_model_server_is_passed_over(places: None, fake: FakeProvider) -> None:
    fake.on_connect = "reset"
    assert nearby.look().found == ()


@pytest.mark.parametrize("given", ["http://x", [1], ["ftp://x"], ["http://169.254.169.254/"], ["http://a:b@c/"], ["http://h"] * 30])
def test_addresses_that_cannot_be_asked_are_refused(given: object) -> None:
    with pytest.raises(preferences.PreferenceError, match=r"nearby\.addresses"):
        preferences.change(nearby.ADDRESSES, given, "admin")
