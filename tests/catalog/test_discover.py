"""Discover: one row a model, its routes, what is new, and what is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from access import preferences
from access.ids import new_id
from catalog import candidates, discover
from catalog.discover import Wanted
from catalog.models import Endpoint, KnownProvider, Listing, Model, Offer, Source

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=60)


def offer(provider: str, served_name: str, source: str = "models_dev", seen: datetime = LONG_AGO, **fields: Any) -> Offer:
    row: dict[str, Any] = {"title": "", "facts": {}, "prices": {}, "about": {}, "limits": {}, "digest": "x", "seen_at": NOW}
    made = Offer.objects.create(source=source, provider=provider, served_name=served_name, first_seen_at=seen, **{**row, **fields})
    Source.objects.update_or_create(name=source, defaults={"digest": new_id("digest"), "offers": Offer.objects.count()})
    return made


def priced(went: str, came: str) -> dict[str, str]:
    return {"input_usd_per_mtok": went, "output_usd_per_mtok": came}


def lists(endpoint: Endpoint, *names: str, **fields: Any) -> None:
    models = [{"name": name, "facts": {}, "chat": "embed" not in name} for name in names]
    Listing.objects.update_or_create(endpoint=endpoint, defaults={"served": models, "listed_at": NOW, "tried_at": NOW, **fields})


def rows(**wanted: Any) -> list[discover.Row]:
    return discover.find(Wanted(**wanted), NOW, 500, "")[0].data


def ids(**wanted: Any) -> list[str]:
    return [row.model for row in rows(**wanted)]


@pytest.fixture
def groq(db: None) -> Endpoint:
    return Endpoint.objects.create(name="groq-eu", kind="openai", base_url="https://api.groq.com/openai/v1")


def test_one_model_at_many_providers_is_one_row_with_a_route_each(groq: Endpoint) -> None:
    KnownProvider.objects.create(source="models_dev", provider="acme", title="Acme", base_url="https://api.acme.example/v1", kind="openai", key_env="ACME_KEY")
    offer("groq", "llama-3.3-70b-instruct", prices=priced("0.5", "0.7"), facts={"context_window": 131072, "tools": True})
    offer("openrouter", "meta-llama/llama-3.3-70b-instruct:free", source="openrouter", free=True)
    offer("acme", "Llama-3.3-70B-Instruct", prices=priced("0.1", "0.2"))
    [row] = rows()
    assert (row.model, row.is_free, row.is_reachable) == ("meta/llama-3-3-70b-instruct", True, True)
    assert [(r.kind, r.provider, r.endpoint) for r in row.routes] == [("direct", "groq", "groq-eu"), ("hub", "openrouter", ""), ("direct", "acme", "")]
    assert row.routes[2].needs is not None
    assert (row.routes[2].needs.kind, row.routes[2].needs.base_url, row.routes[2].needs.key_env) == ("openai", "https://api.acme.example/v1", "ACME_KEY")
    assert row.cheapest is not None
    assert row.cheapest.provider == "acme"
    assert (row.facts["context_window"].value, row.facts["context_window"].source) == (131072, "models_dev")


def test_two_catalogs_on_one_provider_are_one_route_and_the_more_believed_holds() -> None:
    offer("groq", "m-1", facts={"context_window": 1000}, prices=priced("1", "2"))
    offer("groq", "M-1", source="freellmapi", free=True, facts={"context_window": 5, "vision": True}, limits={"requests": {"day": 50}})
    [row] = rows()
    [route] = row.routes
    assert (route.sources, route.free, route.limits, route.context_window) == (("models_dev", "freellmapi"), True, {"requests": {"day": 50}}, 1000)
    assert {name: fact.value for name, fact in row.facts.items()} == {"context_window": 1000, "vision": True}


def test_the_maker_knows_its_model_best_and_else_most_decide() -> None:
    offer("deepinfra", "kimi-k9", facts={"context_window": 1}, title="wrong")
    offer("moonshotai", "kimi-k9", facts={"context_window": 9}, title="Kimi K9")
    offer("a", "glm-77", facts={"context_window": 5}, title="GLM 77")
    offer("b", "glm-77", facts={"context_window": 7}, title="GLM 77")
    offer("c", "glm-77", facts={"context_window": 7}, title="glm")
    found = {row.model: row for row in rows()}
    assert (found["moonshotai/kimi-k9"].facts["context_window"].value, found["moonshotai/kimi-k9"].title) == (9, "Kimi K9")
    assert (found["zai/glm-77"].facts["context_window"].value, found["zai/glm-77"].title) == (7, "GLM 77")


def test_what_an_endpoints_own_list_lacks_cannot_be_reached_there(groq: Endpoint) -> None:
    offer("groq", "here-1")
    offer("groq", "gone-1")
    assert {row.model: row.routes[0].is_listed for row in rows()} == {"here-1": None, "gone-1": None}
    lists(groq, "here-1")
    assert {row.model: (row.routes[0].is_listed, row.is_reachable) for row in rows()} == {"here-1": (True, True), "gone-1": (False, False)}
    lists(groq, "here-1", error="No.", tried_at=NOW + timedelta(days=1))
    assert {row.model: row.routes[0].is_listed for row in rows()} == {"here-1": None, "gone-1": None}


def test_what_a_hub_here_lists_is_a_route_and_what_only_embeds_is_none() -> None:
    hub = Endpoint.objects.create(name="lab", kind="openai", base_url="http://127.0.0.1:4000/v1")
    offer("groq", "llama-3.3-70b-instruct", facts={"tools": True})
    lists(hub, "meta-llama/Llama-3.3-70B-Instruct", "my-own-7b", "my-embed", hub="litellm")
    found = {row.model: row for row in rows()}
    assert set(found) == {"meta/llama-3-3-70b-instruct", "my-own-7b"}
    first = found["meta/llama-3-3-70b-instruct"].routes[0]
    assert (first.kind, first.endpoint, first.served_name, first.sources) == ("hub", "lab", "meta-llama/Llama-3.3-70B-Instruct", ("endpoint list",))
    assert ids(reachable=True) == sorted(found)
    assert ids(provider="lab") == sorted(found)


def test_what_makes_pictures_alone_is_left_out() -> None:
    offer("x", "paint-1", about={"output": ["image"]})
    offer("x", "talk-1", about={"output": ["text", "image"]})
    assert ids() == ["talk-1"]


def test_models_free_to_a_providers_own_app_are_hidden_until_a_setting_shows_them() -> None:
    offer("opencode", "secret-1", free=True, own_app=True)
    offer("opencode", "both-1", free=True, own_app=True)
    offer("groq", "both-1")
    assert ids() == ["both-1"]
    assert [route.provider for route in rows()[0].routes] == ["groq"]
    preferences.change("discover.own_app", {"opencode": "show"}, "admin")
    assert {row.model: sorted(r.own_app for r in row.routes) for row in rows()} == {"both-1": [False, True], "secret-1": [True]}
    preferences.change("discover.own_app", {"opencode": "hide"}, "admin")
    assert ids() == ["both-1"]


@pytest.mark.parametrize("value", [[], {"opencode": True}, {"": "show"}, {"opencode": "maybe"}, "show"])
def test_the_setting_for_own_apps_is_checked(value: Any) -> None:
    with pytest.raises(preferences.PreferenceError):
        preferences.change("discover.own_app", value, "admin")


def test_what_came_with_a_catalogs_first_reading_is_not_new() -> None:
    yesterday = NOW - timedelta(days=1)
    offer("x", "old-1")
    offer("x", "new-1", seen=yesterday)
    offer("x", "older-than-a-week-1", seen=NOW - timedelta(days=8))
    # Another catalog, switched on yesterday: all of it is from its first reading.
    offer("y", "first-1", source="openrouter", seen=yesterday)
    offer("y", "old-1", source="openrouter", seen=yesterday)
    assert ids(new=True) == ["new-1"]
    assert discover.find(Wanted(new=True), NOW + timedelta(days=7), 50, "")[1] == 0


def test_aliases_of_the_roster_are_shown_whatever_name_their_endpoint_has(groq: Endpoint) -> None:
    offer("groq", "llama-3.3-70b-instruct")
    offer("groq", "other-1")
    Model.objects.create(alias="fast", endpoint=groq, served_name="meta-llama/Llama-3.3-70B-Instruct")
    assert {row.model: row.on_roster for row in rows()} == {"meta/llama-3-3-70b-instruct": ("fast",), "other-1": ()}
    assert ids(missing=True) == ["other-1"]


def test_filters_must_hold_on_one_and_the_same_route() -> None:
    offer("cheap", "m-1", prices=priced("0.1", "0.2"), facts={"context_window": 8000})
    offer("long", "m-1", prices=priced("5", "9"), facts={"context_window": 1_000_000})
    assert ids(min_context=500_000) == ["m-1"]
    assert ids(max_price=Decimal("0.2")) == ["m-1"]
    assert ids(min_context=500_000, max_price=Decimal(1)) == []
    assert ids(provider="cheap", min_context=9000) == []
    assert ids(max_price=Decimal("0.15")) == []


def test_a_price_of_nothing_within_a_plan_is_not_cheap_and_not_the_cheapest() -> None:
    offer("a-coding-plan", "m-1", prices=priced("0", "0"), about={"plan": True})
    offer("b", "m-1", prices=priced("1", "1"))
    [row] = rows()
    assert row.cheapest is not None
    assert row.cheapest.provider == "b"
    assert ids(max_price=Decimal("0.5")) == []
    assert ids(free=True) == []


def test_filters_on_what_a_model_can_and_is() -> None:
    offer("x", "a-1", facts={"tools": True, "vision": True}, about={"open_weights": True, "released": "2026-05-01"})
    offer("x", "b-1", facts={"tools": True, "vision": False}, about={"open_weights": False, "released": "2026-06-01"})
    offer("x", "c-1", about={"status": "deprecated", "released": "2026-07-01"}, title="Sea Owl")
    assert ids(can=("tools", "vision")) == ["a-1"]
    assert ids(open_weights=True) == ["a-1"]
    assert ids() == ["b-1", "a-1"]
    assert ids(with_deprecated=True) == ["c-1", "b-1", "a-1"]
    assert ids(with_deprecated=True, text="OWL c-1") == ["c-1"]
    assert ids(text="owl b-1") == []


def test_what_answers_no_prompt_is_not_offered_whatever_its_catalog_calls_its_output() -> None:
    for name in ("owl-embed-2", "owl-rerank-2", "owl-2"):
        offer("x", name, about={"output": ["text"]})
    assert ids() == ["owl-2"]


def test_a_word_is_looked_for_in_names_and_at_the_beginning_of_providers() -> None:
    KnownProvider.objects.create(source="models_dev", provider="ollama-cloud", title="Ollama Cloud", base_url="https://ollama.com/v1", kind="openai")
    offer("ollama-cloud", "owl-77")
    offer("x", "codellama-7")
    assert ids(text="llama") == ["codellama-7"]
    assert ids(text="ollama") == ["owl-77"]
    assert ids(text="cloud owl") == ["owl-77"]


@pytest.mark.parametrize(
    ("sort", "found"),
    [("name", ["a", "b", "c"]), ("price", ["c", "b", "a"]), ("context", ["b", "a", "c"]), ("released", ["b", "c", "a"]), ("first_seen", ["c", "a", "b"])],
)
def test_orders(sort: str, found: list[str]) -> None:
    offer("x", "a", title="A", prices=priced("9", "9"), facts={"context_window": 900}, about={"released": "2025-01"})
    offer("x", "b", title="b", prices=priced("1", "1"), facts={"context_window": 100_000}, about={"released": "2026-01-02"})
    offer("x", "c", title="C", free=True, about={"released": "2026-01-01"}, seen=NOW)
    assert [row.model for row in rows(sort=sort)] == found


def test_pages_follow_each_other_and_say_how_many_there_are() -> None:
    for n in range(5):
        offer("x", f"m-{n}", about={"released": "2026-01-01"})
    first, total = discover.find(Wanted(), NOW, 2, "")
    assert first.next is not None
    second, _ = discover.find(Wanted(), NOW, 3, first.next)
    assert (total, [row.model for row in first.data + second.data], second.next) == (5, [f"m-{n}" for n in range(5)], None)


def test_rows_are_merged_again_when_something_changes_and_only_then(groq: Endpoint, django_assert_max_num_queries: Any) -> None:
    offer("groq", "m-1")
    before = discover.what()
    with django_assert_max_num_queries(8):
        assert discover.what() is before
    Model.objects.create(alias="fast", endpoint=groq, served_name="m-1")
    after = discover.what()
    assert after is not before
    assert after[0].on_roster == ("fast",)
    lists(groq, "m-1", "m-2")
    assert {row.model for row in discover.what()} == {"m-1", "m-2"}
    offer("groq", "m-3")
    assert len(discover.what()) == 3


def test_adding_a_model_takes_along_what_catalogs_say(groq: Endpoint) -> None:
    offer("groq", "m-1", facts={"context_window": 4242}, prices=priced("1", "2"))
    lists(groq, "m-1", tried_at=datetime.now(UTC), listed_at=datetime.now(UTC))
    assert candidates.add("groq-eu", ["m-1"], "admin") == ["m-1"]
    row = Model.objects.get()
    assert row.merged_facts()["context_window"].value == 4242
