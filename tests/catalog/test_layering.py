"""Whose word holds: per provider that serves a model, by hand over the endpoint's list over models.dev over OpenRouter over FreeLLMAPI."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from access import preferences
from catalog import facts, known, layering, listing, load, offers, prices, roster
from catalog.known import KnownProvider
from catalog.models import Endpoint, Model, Offer, Price
from catalog.models import KnownProvider as KnownRow

NOW = datetime(2026, 1, 10, 6, tzinfo=UTC)
LATER = NOW + timedelta(days=3)
D0, D1, D2 = date(2026, 11, 1), date(2026, 11, 10), date(2026, 11, 20)


def offer(source: str = "models_dev", provider: str = "nest", name: str = "owl-1", **more: Any) -> Offer:
    said = {"facts": {"context_window": 1000}, "prices": {}, "digest": "x", "first_seen_at": NOW, "seen_at": NOW, **more}
    return Offer.objects.create(source=source, provider=provider, served_name=name, **said)


@pytest.fixture
def nest(db: None) -> Endpoint:
    KnownRow.objects.create(source="models_dev", provider="nest", base_url="https://api.nest.example/v1", kind="openai")
    return Endpoint.objects.create(name="nest", kind="openai", base_url="https://api.nest.example/v1")


def model(endpoint: Endpoint, name: str = "owl-1", **more: Any) -> Model:
    return Model.objects.create(alias=name, endpoint=endpoint, served_name=name, **more)


def shown(alias: str = "owl-1") -> dict[str, tuple[Any, str]]:
    found = listing.model(alias)
    assert found is not None
    return {name: (fact.value, fact.source) for name, fact in found.facts.items()}


# ------------------------------------------------------------------ which provider an endpoint is

PROVIDERS = [
    KnownProvider("models_dev", name, name, url, "openai", "", "")
    for name, url in (
        ("nest", "https://api.nest.example/v1"),
        ("zed", "https://api.zed.example/api/paas/v4"),
        ("zed-coding-plan", "https://api.zed.example/api/coding/paas/v4"),
        ("mini", "https://api.mini.example/anthropic/v1"),
        ("mini-coding-plan", "https://api.mini.example/anthropic/v1"),
        ("machine", "http://127.0.0.1:1234/v1"),
        ("flake", "https://${ACCOUNT}.flake.example/v1"),
        ("openai", "https://api.openai.com/v1"),
    )
]


@pytest.mark.parametrize(
    ("stated", "base_url", "provider"),
    [
        ("", "https://api.nest.example/v1", "nest"),
        ("", "https://API.NEST.example", "nest"),
        ("", "https://api.nest.example:443/v1/chat/completions", "nest"),
        ("other", "https://api.nest.example/v1", "other"),
        ("", "https://api.zed.example/api/paas/v4", "zed"),
        ("", "https://api.zed.example/api/coding/paas/v4/", "zed-coding-plan"),
        # The provider itself, where a plan of it has the same address.
        ("", "https://api.mini.example/anthropic", "mini"),
        ("", "https://eu.api.openai.com/v1", "openai"),
        ("", "https://api.openai.com.evil.example/v1", ""),
        ("", "https://us-central1-aiplatform.googleapis.com/v1", "google-vertex"),
        ("", "https://mine.openai.azure.com/openai/v1", "azure"),
        ("", "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "amazon-bedrock"),
        # Anything may serve at a private address.
        ("", "http://127.0.0.1:1234/v1", ""),
        ("", "http://10.0.0.7/v1", ""),
        ("", "http://gpu-box/v1", ""),
        ("", "https://unheard.example/v1", ""),
        ("", "not an address", ""),
        ("", "", ""),
    ],
)
def test_an_endpoint_is_the_provider_that_its_address_tells(stated: str, base_url: str, provider: str) -> None:
    assert known.provider_of(stated, base_url, PROVIDERS) == provider


@pytest.mark.django_db
def test_well_known_providers_have_addresses_before_any_catalog_was_read() -> None:
    found = offers.known_providers()
    assert (found["anthropic"].base_url, found["anthropic"].kind) == ("https://api.anthropic.com/v1", "anthropic")
    assert offers.provider_of("", "https://api.groq.com/openai/v1", found) == "groq"
    KnownRow.objects.create(source="models_dev", provider="groq", title="Groq", key_env="GROQ_API_KEY", kind="openai")
    groq = offers.known_providers()["groq"]
    assert (groq.title, groq.key_env, groq.base_url) == ("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1")


# ------------------------------------------------------------------ whose word holds


def test_each_fact_comes_from_the_most_believed_that_tells_it(nest: Endpoint) -> None:
    KnownRow.objects.create(source="openrouter", provider="openrouter", base_url="https://openrouter.ai/api/v1", kind="openai")
    router = Endpoint.objects.create(name="router", kind="openai", base_url="https://openrouter.ai/api/v1")
    model(router, facts={"context_window": 1}, listed_facts={"context_window": 2, "output_limit": 2})
    offer("models_dev", "openrouter", facts={"context_window": 3, "output_limit": 3, "tools": True})
    offer("openrouter", "openrouter", facts={"context_window": 4, "output_limit": 4, "tools": False, "vision": True})
    offer("freellmapi", "openrouter", facts={"context_window": 5, "output_limit": 5, "tools": False, "vision": False, "audio": True})
    offer("models_dev", "nest", facts={"context_window": 6, "files": True})
    layering.apply_offers(NOW)
    assert shown() == {
        "context_window": (1, "hand"),
        "output_limit": (2, "endpoint list"),
        "tools": (True, "models_dev"),
        "vision": (True, "openrouter"),
        "audio": (True, "freellmapi"),
    }
    loaded = load.load_model("owl-1")
    assert loaded is not None
    assert loaded.facts == {"context_window": 1, "output_limit": 2, "tools": True, "vision": True, "audio": True}


def test_a_fact_shows_since_when_its_source_says_so(nest: Endpoint) -> None:
    model(nest)
    row = offer(facts={"context_window": 1000, "tools": True})
    layering.apply_offers(NOW)
    row.facts = {"context_window": 2000, "tools": True}
    row.save()
    assert layering.apply_offers(LATER).models == ("owl-1",)
    found = listing.model("owl-1")
    assert found is not None
    assert found.facts["context_window"] == facts.Fact(2000, "models_dev", LATER)
    assert found.facts["tools"] == facts.Fact(True, "models_dev", NOW)


def test_only_what_changes_is_written(nest: Endpoint) -> None:
    for name in ("owl-1", "owl-2"):
        model(nest, name)
        offer(name=name, prices={"input_usd_per_mtok": "1"})
    assert layering.apply_offers(NOW).models == ("owl-1", "owl-2")
    before = version()
    assert layering.apply_offers(LATER) == layering.Applied()
    assert version() == before
    Offer.objects.filter(served_name="owl-2").update(facts={"context_window": 7})
    assert layering.apply_offers(LATER).models == ("owl-2",)
    assert version() > before


def version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version FROM access_rosterversion WHERE id = 1")
        found = cursor.fetchone()
    return int(found[0]) if found else 0


@pytest.mark.parametrize(
    ("served_name", "listed", "found"),
    [
        ("owl-1", ["owl-1"], "owl-1"),
        ("Owl-1", ["owl-1"], "owl-1"),
        ("models/owl-1", ["owl-1"], "owl-1"),
        ("owl-1:latest", ["owl-1"], "owl-1"),
        ("owl-1", ["OWL-1", "owl-1"], "owl-1"),
        # Alike to two: nobody knows which.
        ("Owl-1", ["OWL-1", "owl-1"], None),
        ("owl-1", ["owl-1-mini", "owl-1:free", "nest/owl-1", "owl-1-2026-02-03"], None),
    ],
)
def test_a_served_name_is_matched_to_the_letter_or_where_one_alone_is_alike(nest: Endpoint, served_name: str, listed: list[str], found: str | None) -> None:
    model(nest, served_name)
    for name in listed:
        offer(name=name)
    layering.apply_offers(NOW)
    kept = Model.objects.get().catalog_facts
    assert kept.get("models_dev", {}).get("offer") == (f"nest/{found}" if found else None)


def test_openrouter_tells_of_a_model_elsewhere_what_is_the_models_own_and_no_price(nest: Endpoint) -> None:
    model(nest)
    told = {"context_window": 9, "output_limit": 9, "tools": True, "vision": True, "structured_output": True, "reasoning": False}
    offer("openrouter", "openrouter", "nest/owl-1", facts=told, prices={"input_usd_per_mtok": "1"})
    layering.apply_offers(NOW)
    assert shown() == {name: (told[name], "openrouter") for name in ("context_window", "tools", "vision", "reasoning")}


def test_what_a_catalog_says_of_the_very_provider_is_nearer_than_openrouter_on_the_model_elsewhere(nest: Endpoint) -> None:
    model(nest)
    offer("openrouter", "openrouter", "nest/owl-1", facts={"context_window": 200_000, "vision": True})
    offer("freellmapi", "nest", facts={"context_window": 8192})
    layering.apply_offers(NOW)
    assert shown() == {"context_window": (8192, "freellmapi"), "vision": (True, "openrouter")}


@pytest.mark.parametrize("names", [["a/owl-1", "b/owl-1"], ["nest/owl-1:free"], ["nest/owl-1-mini"]])
def test_openrouter_tells_nothing_where_it_is_not_clear_which_model_is_meant(nest: Endpoint, names: list[str]) -> None:
    model(nest)
    for name in names:
        offer("openrouter", "openrouter", name)
    layering.apply_offers(NOW)
    assert shown() == {}


def test_a_server_of_ones_own_may_have_cut_the_window(db: None) -> None:
    model(Endpoint.objects.create(name="box", kind="openai", base_url="http://127.0.0.1:8080/v1"))
    offer("openrouter", "openrouter", "nest/owl-1", facts={"context_window": 200_000, "vision": True})
    layering.apply_offers(NOW)
    assert shown() == {"vision": (True, "openrouter")}


def test_a_routing_name_of_openrouter_has_its_models_facts_and_no_price(db: None) -> None:
    model(Endpoint.objects.create(name="router", kind="openai", base_url="https://openrouter.ai/api/v1", provider="openrouter"), "nest/owl-1:nitro")
    offer("openrouter", "openrouter", "nest/owl-1", prices={"input_usd_per_mtok": "1"})
    applied = layering.apply_offers(NOW)
    assert shown("nest/owl-1:nitro") == {"context_window": (1000, "openrouter")}
    assert [left.reason for left in applied.left] == ["It is a way to route, and costs what the provider that is chosen costs."]


def test_what_a_catalog_no_longer_lists_stays_as_it_was_last_said(nest: Endpoint) -> None:
    model(nest)
    row = offer(prices={"input_usd_per_mtok": "1"})
    layering.apply_offers(NOW)
    row.gone_at = LATER
    row.save()
    layering.apply_offers(LATER)
    assert shown() == {"context_window": (1000, "models_dev"), "input_usd_per_mtok": ("1", "models_dev")}
    assert Model.objects.get().catalog_facts["models_dev"]["gone"] == LATER.isoformat()


def test_what_a_catalog_said_goes_where_it_is_switched_off_and_yesterdays_price_stays_yesterdays(nest: Endpoint) -> None:
    model(nest)
    offer(prices={"input_usd_per_mtok": "1"})
    layering.apply_offers(NOW)
    preferences.change("catalog.sources", {"models_dev": False}, "ann")
    layering.apply_offers(LATER)
    assert shown() == {}
    loaded = load.load_model("owl-1")
    assert loaded is not None
    assert [loaded.price_on(day.date()) for day in (NOW, LATER)] == [roster.Price(NOW.date(), Decimal(1)), roster.Price(LATER.date())]


def test_a_model_at_another_endpoint_is_another_providers(nest: Endpoint) -> None:
    row = model(nest)
    offer(prices={"input_usd_per_mtok": "1"})
    offer(provider="crow", facts={"context_window": 5})
    layering.apply_offers(NOW)
    row.endpoint = Endpoint.objects.create(name="crow", kind="openai", base_url="https://crow.example/v1", provider="crow")
    row.save()
    layering.apply_offers(LATER, [row.pk])
    assert shown() == {"context_window": (5, "models_dev")}


# ------------------------------------------------------------------ prices by day


def test_a_catalogs_price_holds_from_the_day_it_was_read_and_only_a_change_makes_a_row(nest: Endpoint) -> None:
    model(nest)
    row = offer(prices={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "tiers": [{"above_tokens": 9, "input_usd_per_mtok": "3"}]})
    layering.apply_offers(NOW)
    layering.apply_offers(NOW + timedelta(days=1))
    row.prices = {**row.prices, "output_usd_per_mtok": "4"}
    row.save()
    applied = layering.apply_offers(LATER)
    assert applied.prices == {"owl-1": {"models_dev": {"output_usd_per_mtok": ["2", "4"]}}}
    assert Price.objects.count() == 2
    loaded = load.load_model("owl-1")
    assert loaded is not None
    tier = roster.Tier(9, Decimal(3), Decimal(2))
    assert loaded.price_on(NOW.date()) == roster.Price(NOW.date(), Decimal(1), Decimal(2), tiers=(tier,))
    assert loaded.price_on(LATER.date()) == roster.Price(LATER.date(), Decimal(1), Decimal(4), tiers=(roster.Tier(9, Decimal(3), Decimal(4)),))
    assert loaded.price_on(NOW.date() - timedelta(days=1)) is None
    found = listing.model("owl-1")
    assert found is not None
    assert {name: fact.since.date() for name, fact in found.facts.items() if fact.since} == {
        "context_window": NOW.date(),
        "input_usd_per_mtok": NOW.date(),
        "output_usd_per_mtok": LATER.date(),
        "tiers": NOW.date(),
    }


def test_two_changes_in_one_day_are_one_row(nest: Endpoint) -> None:
    model(nest)
    row = offer(prices={"input_usd_per_mtok": "1"})
    layering.apply_offers(NOW)
    row.prices = {"input_usd_per_mtok": "2"}
    row.save()
    layering.apply_offers(NOW + timedelta(hours=1))
    assert [price.input_usd_per_mtok for price in Price.objects.all()] == [2]


TIERS = [{"above_tokens": 100, "input_usd_per_mtok": "5", "output_usd_per_mtok": "6"}]


def row(since: date, source: str = "hand", tiers: Any = (), **amounts: str) -> Price:
    return Price(since=since, source=source, tiers=list(tiers), **{f"{name}_usd_per_mtok": Decimal(amount) for name, amount in amounts.items()})


def price(since: date, **amounts: Any) -> roster.Price:
    tiers = amounts.pop("tiers", ())
    return roster.Price(since, **{name: Decimal(said) for name, said in amounts.items()}, tiers=tiers)


def tier(above: int, **amounts: str) -> roster.Tier:
    return roster.Tier(above, **{name: Decimal(said) for name, said in amounts.items()})


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        # The order of sources holds on every day, whatever the age of what they say.
        (
            [row(D0, "models_dev", input="1"), row(D1, "openrouter", input="9", output="8"), row(D2, "freellmapi", input="7", output="7", reasoning="7")],
            [price(D2, input="1", output="8", reasoning="7"), price(D1, input="1", output="8"), price(D0, input="1")],
        ),
        ([row(D2, "endpoint list", input="1"), row(D1, "models_dev", input="2")], [price(D2, input="1"), price(D1, input="2")]),
        # A source that takes its word back leaves it to the next.
        (
            [row(D0, "openrouter", input="2"), row(D1, "models_dev", input="1"), row(D2, "models_dev")],
            [price(D2, input="2"), price(D1, input="1"), price(D0, input="2")],
        ),
        # By hand wins for long prompts as well, for the price that was set and no other.
        (
            [row(D0, "models_dev", TIERS, input="1", output="2"), row(D1, "hand", input="3")],
            [
                price(D1, input="3", output="2", tiers=(tier(100, input="3", output="6"),)),
                price(D0, input="1", output="2", tiers=(tier(100, input="5", output="6"),)),
            ],
        ),
        # A tier keeps what it does not name; several add up.
        (
            [
                row(
                    D0,
                    "models_dev",
                    [{"above_tokens": 10, "input_usd_per_mtok": "2"}, {"above_tokens": 20, "output_usd_per_mtok": "9"}],
                    input="1",
                    output="1",
                    cache_read="0.5",
                )
            ],
            [
                price(
                    D0,
                    input="1",
                    output="1",
                    cache_read="0.5",
                    tiers=(tier(10, input="2", output="1", cache_read="0.5"), tier(20, input="2", output="9", cache_read="0.5")),
                )
            ],
        ),
    ],
)
def test_sources_are_laid_over_each_other_by_rank_for_every_day(rows: list[Price], found: list[roster.Price]) -> None:
    assert list(prices.timeline(rows)) == found
    assert list(prices.timeline(reversed(rows))) == found


def test_a_shown_price_is_the_one_that_calls_are_reckoned_by() -> None:
    rows = [row(D0, "models_dev", TIERS, input="1", output="2"), row(D1, "hand", input="3"), row(D1, "openrouter", cache_read="0.1")]
    found = prices.facts_on(rows, D2)
    assert {name: (fact.value, fact.source) for name, fact in found.items()} == {
        "input_usd_per_mtok": ("3", "hand"),
        "output_usd_per_mtok": ("2", "models_dev"),
        "cache_read_usd_per_mtok": ("0.1", "openrouter"),
        "tiers": ([{"above_tokens": 100, "output_usd_per_mtok": "6"}], "models_dev"),
    }
    assert prices.facts_on(rows, D0)["input_usd_per_mtok"].value == "1"


@pytest.mark.parametrize(
    ("said", "before", "wrong"),
    [
        ({"input_usd_per_mtok": "600"}, {}, None),
        ({"input_usd_per_mtok": "10000"}, {}, None),
        ({"input_usd_per_mtok": "10000.01"}, {}, "more than any model costs"),
        ({"input_usd_per_mtok": "1", "tiers": [{"above_tokens": 5, "output_usd_per_mtok": "88000"}]}, {}, "above 5 tokens of 88000"),
        ({"input_usd_per_mtok": "100"}, {"input_usd_per_mtok": "1"}, None),
        ({"input_usd_per_mtok": "101"}, {"input_usd_per_mtok": "1"}, "rose from 1 to 101"),
        ({"input_usd_per_mtok": "0.01"}, {"input_usd_per_mtok": "1"}, None),
        ({"input_usd_per_mtok": "0.009"}, {"input_usd_per_mtok": "1"}, "fell from 1 to 0.009"),
        ({"input_usd_per_mtok": "0"}, {"input_usd_per_mtok": "1"}, None),
        ({"input_usd_per_mtok": "9"}, {"input_usd_per_mtok": "0"}, None),
        ({}, {"input_usd_per_mtok": "1"}, None),
        ({"input_usd_per_mtok": "9"}, {"output_usd_per_mtok": "1"}, None),
    ],
)
def test_a_price_that_cannot_be_is_not_believed(said: dict[str, Any], before: dict[str, Any], wrong: str | None) -> None:
    odd = prices.disbelieved(said, before)
    assert (odd is None) == (wrong is None)
    assert odd is None or wrong is None or wrong in odd.reason
