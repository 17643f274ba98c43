"""Where models come from, through the API: known providers, servers nearby, the demo model, what an endpoint lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from access.models import AuditEntry
from catalog import nearby
from catalog.models import Endpoint, KnownProvider, Listing, Model
from tests.fake import FakeProvider
from tests.panels.conftest import Api, make_endpoint, make_model, ok, problem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(settings, tmp_path: Path) -> None:
    settings.HOME = tmp_path


@pytest.mark.parametrize(("method", "path"), [("GET", "demo"), ("POST", "demo"), ("DELETE", "demo"), ("POST", "nearby"), ("POST", "candidates")])
@pytest.mark.parametrize("scopes", [("read",), ("ask", "judge")])
def test_these_are_for_operators(api_of: Callable[..., Api], method: str, path: str, scopes: tuple[str, ...]) -> None:
    problem(api_of(*scopes).send(method, path, {}), 403, code="not_allowed")


def test_providers_that_have_an_address_are_listed_by_title_with_the_kinds(operator: Api) -> None:
    KnownProvider.objects.create(source="models_dev", provider="acme", title="Acme", base_url="https://${HOST}/v1", kind="openai", key_env="ACME_KEY", doc="")
    KnownProvider.objects.create(source="models_dev", provider="nowhere", title="Nowhere", base_url="", kind="", key_env="", doc="")
    found = ok(operator.get("providers"))
    titles = [one["title"] for one in found["data"]]
    assert titles == sorted(titles, key=str.casefold)
    by_id = {one["provider"]: one for one in found["data"]}
    assert by_id["acme"]["key_env"] == "ACME_KEY"
    assert by_id["openrouter"] == {
        "provider": "openrouter",
        "title": "OpenRouter",
        "kind": "openai",
        "base_url": "https://openrouter.ai/api/v1",
        "key_env": "",
        "doc": "",
    }
    assert "nowhere" not in by_id
    assert {"openai", "anthropic", "gemini", "ollama"} <= {one["kind"] for one in found["kinds"]}


def test_the_demo_model_is_switched_on_and_off(operator: Api) -> None:
    assert ok(operator.get("demo"))["stage"] == "off"
    shown = ok(operator.post("demo"), 202)
    assert (shown["on"], shown["stage"], shown["downloaded"]) == (True, "waiting", False)
    assert ok(operator.post("demo"), 202)["on"]
    assert not ok(operator.delete("demo?download=1"))["on"]
    assert list(AuditEntry.objects.filter(target="demo").order_by("id").values_list("action", flat=True)) == ["demo.start", "demo.stop"]
    problem(operator.delete("demo?download=maybe"), 400, "download")


def test_a_demo_endpoint_of_ones_own_is_not_taken_over(operator: Api) -> None:
    make_endpoint("demo", base_url="https://api.example.org/v1")
    problem(operator.post("demo"), 409, code="in_use")


def test_servers_nearby_are_looked_for_only_when_that_is_asked(operator: Api, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "PLACES", (nearby.Place("lm-studio", "LM Studio", fake.port),))
    fake.models = ["m"]
    problem(operator.get("nearby"), 405)
    assert fake.others == []
    found = ok(operator.post("nearby"))
    assert [(one["name"], one["base_url"], one["models"]) for one in found["data"]] == [("lm-studio", fake.url, ["m"])]
    assert found["own_machine"] is True


@pytest.fixture
def listed(db: None) -> Endpoint:
    """An endpoint whose list is known: one free, one dear, one that answers no prompts."""
    endpoint = make_endpoint("hub")
    told = [
        {"name": "vendor/free-owl", "facts": {"tools": True, "input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}, "chat": True},
        {"name": "vendor/dear-owl", "facts": {"tools": False, "input_usd_per_mtok": "3", "output_usd_per_mtok": "9"}, "chat": True},
        {"name": "vendor/embed", "facts": {}, "chat": False},
    ]
    Listing.objects.create(endpoint=endpoint, served=told, listed_at=timezone.now(), tried_at=timezone.now())
    return endpoint


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["vendor/dear-owl", "vendor/free-owl"]),
        ("text=FREE owl", ["vendor/free-owl"]),
        ("free=1", ["vendor/free-owl"]),
        ("can=tools", ["vendor/free-owl"]),
        ("text=nothing", []),
        ("all=1&text=embed", ["vendor/embed"]),
    ],
)
def test_candidates_are_found_by_name_price_and_ability(operator: Api, listed: Endpoint, query: str, names: list[str]) -> None:
    found = ok(operator.get(f"candidates?endpoint=hub&{query}"))
    assert sorted(one["served_name"] for one in found["data"]) == names
    assert found["total"] == len(names)


def test_a_wrong_filter_of_candidates_is_named(operator: Api, listed: Endpoint) -> None:
    problem(operator.get("candidates?can=fly"), 400, "can")
    problem(operator.get("candidates?free=maybe"), 400, "free")


def test_candidates_are_added_with_what_their_list_says_and_asked_nothing(operator: Api, listed: Endpoint) -> None:
    added = ok(operator.post("candidates", {"endpoint": "hub", "served_names": ["vendor/dear-owl", "vendor/unheard-of"]}), 201)["added"]
    assert added == ["vendor/dear-owl", "vendor/unheard-of"]
    assert Model.objects.get(alias="vendor/dear-owl").listed_facts == {"tools": False}
    assert Model.objects.get(alias="vendor/dear-owl").prices.get().input_usd_per_mtok == 3
    again = ok(operator.post("candidates", {"endpoint": "hub", "served_names": ["vendor/dear-owl"]}), 201)
    assert again == {"added": []}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"endpoint": "hub", "served_names": []}, 400, "served_names"),
        ({"endpoint": "hub", "served_names": "x"}, 400, "served_names"),
        ({"endpoint": "hub", "served_names": ["x"] * 501}, 400, "served_names"),
        ({"endpoint": "hub", "served_names": [7]}, 400, "served_name"),
        ({"endpoint": "hub", "served_names": ["x"], "mode": "quick"}, 400, "mode"),
        ({"endpoint": 7, "served_names": ["x"]}, 400, "endpoint"),
        ({"endpoint": "nobody", "served_names": ["x"]}, 404, None),
    ],
)
def test_what_cannot_be_added_is_refused(operator: Api, listed: Endpoint, body: dict[str, object], status: int, field: str | None) -> None:
    problem(operator.post("candidates", body), status, field)
    assert not Model.objects.exists()


def test_a_model_that_is_there_keeps_its_alias(operator: Api, listed: Endpoint) -> None:
    make_model("owl", endpoint=listed, served_name="vendor/free-owl")
    assert ok(operator.post("candidates", {"endpoint": "hub", "served_names": ["vendor/free-owl"]}), 201) == {"added": []}
