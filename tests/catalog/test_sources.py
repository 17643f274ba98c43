"""What each public catalog says, read from small bodies of our own in its shape."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import facts, sources
from catalog.sources import Catalog, Offered

# ------------------------------------------------------------------ models.dev


def model(**more: Any) -> dict[str, Any]:
    return {
        "id": "owl-1",
        "name": "Owl 1",
        "attachment": False,
        "reasoning": True,
        "tool_call": True,
        "release_date": "2026-02-03",
        "last_updated": "2026-03-04",
        "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
        "open_weights": False,
        "limit": {"context": 200_000, "output": 32_000},
        "cost": {"input": 1.5, "output": 6},
        **more,
    }


def provider(models: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "nest",
        "name": "Nest",
        "npm": "@ai-sdk/openai-compatible",
        "api": "https://api.nest.example/v1",
        "env": ["NEST_API_KEY"],
        "models": models,
        **more,
    }


def read(body: Any, name: str = "models_dev") -> Catalog:
    return sources.get(name).read(body)


def one(of: str = "nest", **more: Any) -> Offered:
    return read({of: provider({"owl-1": model(**more)})}).offers[0]


def test_the_sources_are_the_files_of_the_folder_in_the_order_they_are_believed() -> None:
    assert [source.name for source in sources.every()] == ["models_dev", "openrouter", "freellmapi"]
    assert [source.title for source in sources.every()] == ["models.dev", "OpenRouter", "FreeLLMAPI"]


def test_models_dev_tells_facts_and_prices_by_our_names() -> None:
    offer = one(structured_output=True, knowledge="2025-12", family="owl")
    assert (offer.provider, offer.served_name, offer.title) == ("nest", "owl-1", "Owl 1")
    assert offer.facts == {
        "context_window": 200_000,
        "output_limit": 32_000,
        "tools": True,
        "vision": True,
        "audio": False,
        "files": True,
        "structured_output": True,
        "reasoning": True,
    }
    assert offer.prices == {"input_usd_per_mtok": "1.5", "output_usd_per_mtok": "6"}
    assert (offer.free, offer.own_app) == (False, False)
    assert offer.about["released"] == "2026-02-03"
    assert facts.checked(offer.facts) == offer.facts


def test_models_dev_tells_where_a_provider_is_and_what_it_speaks() -> None:
    body = {
        "nest": provider({"a": model()}),
        "crow": provider({"a": model()}, npm="@ai-sdk/anthropic", api=None, env=["CROW_ACCOUNT", "CROW_API_KEY"], name="Crow", doc="https://crow.example"),
        "vault": provider({"a": model()}, npm="@ai-sdk/amazon-bedrock", api=None),
    }
    nest, crow, vault = read(body).providers
    assert (nest.base_url, nest.kind, nest.key_env) == ("https://api.nest.example/v1", "openai", "NEST_API_KEY")
    assert (crow.base_url, crow.kind, crow.key_env, crow.title, crow.doc) == ("", "anthropic", "CROW_API_KEY", "Crow", "https://crow.example")
    assert (vault.base_url, vault.kind) == ("", "")


@pytest.mark.parametrize(
    ("cost", "prices"),
    [
        (
            {"input": 2, "output": 12, "cache_read": 0.2, "cache_write": 2.5, "reasoning": 20, "input_audio": 7},
            {
                "input_usd_per_mtok": "2",
                "output_usd_per_mtok": "12",
                "cache_read_usd_per_mtok": "0.2",
                "cache_write_usd_per_mtok": "2.5",
                "reasoning_usd_per_mtok": "20",
            },
        ),
        ({"input": 0.1, "output": 0.30000000000000004}, {"input_usd_per_mtok": "0.1", "output_usd_per_mtok": "0.3"}),
        ({"input": 1e-6, "output": 8.333333e-2}, {"input_usd_per_mtok": "0.000001", "output_usd_per_mtok": "0.083333"}),
        (
            {"input": 1, "output": 2, "tiers": [{"input": 3, "output": 4, "cache_read": 0.5, "tier": {"type": "context", "size": 128_000}}]},
            {
                "input_usd_per_mtok": "1",
                "output_usd_per_mtok": "2",
                "tiers": [{"above_tokens": 128_000, "input_usd_per_mtok": "3", "output_usd_per_mtok": "4", "cache_read_usd_per_mtok": "0.5"}],
            },
        ),
        # The older copy counts only where there are no tiers.
        (
            {"input": 1, "output": 2, "tiers": [{"input": 3, "tier": {"type": "context", "size": 9}}], "context_over_200k": {"input": 5}},
            {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "tiers": [{"above_tokens": 9, "input_usd_per_mtok": "3"}]},
        ),
        (
            {"input": 1, "output": 2, "context_over_200k": {"input": 5}},
            {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "tiers": [{"above_tokens": 200_000, "input_usd_per_mtok": "5"}]},
        ),
        # A tier by something that a call's tokens do not tell.
        (
            {"input": 1, "output": 2, "tiers": [{"input": 3, "tier": {"type": "batch", "size": 9}}]},
            {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"},
        ),
        (None, {}),
        ({}, {}),
    ],
)
def test_models_dev_prices_stand_per_million_tokens(cost: Any, prices: dict[str, Any]) -> None:
    assert one(cost=cost).prices == prices


@pytest.mark.parametrize("limit", [{"context": 0, "output": 0}, {}, None, {"context": -1, "output": "many"}, {"context": 10**12, "output": True}])
def test_sizes_that_are_none_are_not_known(limit: Any) -> None:
    assert {"context_window", "output_limit"}.isdisjoint(one(limit=limit).facts)


@pytest.mark.parametrize(
    ("reads", "writes", "why"),
    [
        (["text"], ["image"], "It answers with image, so its price is not one of text tokens."),
        (["text"], ["video", "audio"], "It answers with video and audio, so its price is not one of text tokens."),
        (["audio"], ["text"], "It reads only audio, so its price is not one of text tokens."),
    ],
)
def test_a_model_without_text_has_facts_and_no_price_a_token(reads: list[str], writes: list[str], why: str) -> None:
    offer = one(modalities={"input": reads, "output": writes}, cost={"input": 0, "output": 0})
    assert (offer.prices, offer.free, offer.about["unpriced"]) == ({}, False, why)
    assert offer.facts["context_window"] == 200_000


@pytest.mark.parametrize(
    ("name", "cost", "free", "own_app"),
    [
        ("nest", {"input": 0, "output": 0}, True, False),
        ("nest", {"input": 0, "output": 1}, False, False),
        ("nest", {"input": 0}, False, False),
        ("nest", None, False, False),
        # Paid for by a subscription, or by one's own machine.
        ("nest-coding-plan", {"input": 0, "output": 0}, False, False),
        ("github-copilot", {"input": 0, "output": 0}, False, False),
        ("lmstudio", {"input": 0, "output": 0}, False, False),
        ("opencode", {"input": 0, "output": 0}, True, True),
        ("opencode", {"input": 1, "output": 2}, False, False),
    ],
)
def test_free_is_what_costs_nothing_and_no_subscription(name: str, cost: Any, free: bool, own_app: bool) -> None:
    offer = one(name, cost=cost)
    assert (offer.free, offer.own_app) == (free, own_app)


def test_what_makes_pictures_besides_text_is_not_called_free() -> None:
    assert not one(modalities={"input": ["text"], "output": ["text", "audio"]}, cost={"input": 0, "output": 0}).free


def test_one_model_that_another_api_serves_says_so() -> None:
    assert one(provider={"npm": "@ai-sdk/anthropic"}).about["kind"] == "anthropic"
    assert "kind" not in one(provider={"shape": "responses"}).about


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"cost": {"input": "cheap", "output": 1}}, "A price of it is no number."),
        ({"cost": {"input": True, "output": 1}}, "A price of it is no number."),
        ({"cost": {"input": float("nan"), "output": 1}}, "A price of it is no number."),
        ({"cost": {"input": float("inf"), "output": 1}}, "A price of it is no number."),
        ({"cost": {"input": "1e400000", "output": 1}}, "A price of it is no number."),
        ({"cost": {"input": -1, "output": -1}}, "Its price varies (a negative one is given)."),
    ],
)
def test_a_bad_entry_is_skipped_with_its_reason_and_the_rest_is_read(broken: dict[str, Any], reason: str) -> None:
    found = read({"nest": provider({"bad": model(**broken), "good": model()})})
    assert [offer.served_name for offer in found.offers] == ["good"]
    assert [(entry.entry, entry.reason) for entry in found.skipped] == [("nest/bad", reason)]


@pytest.mark.parametrize("name", ["", " ", "x" * 301, "a\nb", "a\x00b", " a"])
def test_a_name_that_cannot_be_said_is_skipped(name: str) -> None:
    found = read({"nest": provider({name: model(), "good": model()})})
    assert [offer.served_name for offer in found.offers] == ["good"]
    assert len(found.skipped) == 1


def test_texts_of_a_catalog_are_one_printable_line_each() -> None:
    assert one(name="Owl\n\x1b[31m  one " + "x" * 999).title == ("Owl [31m one " + "x" * 999)[:300]


@pytest.mark.parametrize(
    "body", [{}, [], None, "text", 7, {"nest": {}}, {"nest": None}, {"nest": {"models": []}}, {"nest": provider({})}, {"error": "over quota"}]
)
@pytest.mark.parametrize("name", ["models_dev", "openrouter", "freellmapi"])
def test_what_is_not_the_catalog_is_no_catalog(name: str, body: Any) -> None:
    with pytest.raises(ValueError, match="it "):
        read(body, name)


@pytest.mark.parametrize(
    "entry", [None, 7, "text", [], {}, {"id": 7}, {"id": "x", "pricing": 7, "architecture": [], "top_provider": "y", "supported_parameters": {}}]
)
def test_an_entry_of_any_other_shape_harms_no_other(entry: Any) -> None:
    good = {"id": "nest/owl", "modelId": "owl", "platform": "nest"}
    assert "owl-1" in {offer.served_name for offer in read({"nest": provider({"x": entry, "owl-1": model()})}).offers}
    assert "nest/owl" in {offer.served_name for offer in read({"data": [entry, good]}, "openrouter").offers}
    assert "owl" in {offer.served_name for offer in read({"models": [entry, good]}, "freellmapi").offers}


# ------------------------------------------------------------------ OpenRouter


def routed(**more: Any) -> dict[str, Any]:
    return {
        "id": "nest/owl-1",
        "name": "Nest: Owl 1",
        "created": 1_770_000_000,
        "context_length": 400_000,
        "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
        "pricing": {"prompt": "0.0000015", "completion": "0.000006"},
        "top_provider": {"context_length": 200_000, "max_completion_tokens": 32_000},
        "supported_parameters": ["tools", "reasoning", "structured_outputs"],
        "hugging_face_id": "nest/owl",
        **more,
    }


def of_router(**more: Any) -> Offered:
    return read({"data": [routed(**more)]}, "openrouter").offers[0]


def test_openrouter_tells_facts_and_prices_by_our_names() -> None:
    offer = of_router()
    assert (offer.provider, offer.served_name) == ("openrouter", "nest/owl-1")
    assert offer.facts == {
        "context_window": 200_000,
        "output_limit": 32_000,
        "tools": True,
        "vision": True,
        "audio": False,
        "files": True,
        "structured_output": True,
        "reasoning": True,
    }
    assert offer.prices == {"input_usd_per_mtok": "1.5", "output_usd_per_mtok": "6"}
    assert (offer.about["released"], offer.about["open_weights"]) == ("2026-02-02", True)


def test_openrouter_without_limits_of_its_first_provider_tells_the_models_own() -> None:
    offer = of_router(top_provider={"context_length": None, "max_completion_tokens": None})
    assert (offer.facts["context_window"], offer.facts.get("output_limit")) == (400_000, None)


@pytest.mark.parametrize(
    ("pricing", "prices"),
    [
        (
            {"prompt": "0.00000025", "completion": "0.0000015", "input_cache_read": "0.000000025", "input_cache_write": "0.00000008333333333333334"},
            {"input_usd_per_mtok": "0.25", "output_usd_per_mtok": "1.5", "cache_read_usd_per_mtok": "0.025", "cache_write_usd_per_mtok": "0.083333"},
        ),
        (
            {"prompt": "0.000001", "completion": "0.000002", "internal_reasoning": "0.000003"},
            {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "reasoning_usd_per_mtok": "3"},
        ),
        # Nothing besides the output's price, not thinking for nothing.
        ({"prompt": "0.000001", "completion": "0.000002", "internal_reasoning": "0"}, {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}),
        # What is charged by image, by request or by search is no price of tokens.
        (
            {"prompt": "0.000001", "completion": "0.000002", "image": "0.04", "request": "0.01", "web_search": "0.01"},
            {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"},
        ),
    ],
)
def test_openrouter_prices_per_token_become_prices_per_million(pricing: dict[str, str], prices: dict[str, str]) -> None:
    assert of_router(pricing=pricing).prices == prices


@pytest.mark.parametrize(
    ("besides", "free"), [({}, True), ({"image": "0"}, True), ({"web_search": "0.01"}, True), ({"image": "0.04"}, False), ({"request": "0.001"}, False)]
)
def test_openrouter_is_free_only_where_nothing_is_charged(besides: dict[str, str], free: bool) -> None:
    assert of_router(id="nest/owl-1:free", pricing={"prompt": "0", "completion": "0", **besides}).free is free


def test_a_price_that_varies_is_left_out_and_said() -> None:
    found = read({"data": [routed(id="openrouter/any", pricing={"prompt": "-1", "completion": "-1"}), routed()]}, "openrouter")
    assert [(offer.served_name, bool(offer.prices)) for offer in found.offers] == [("openrouter/any", False), ("nest/owl-1", True)]
    assert [(entry.entry, entry.reason) for entry in found.skipped] == [
        ("openrouter/openrouter/any", "Its price is left out, not its facts. Its price varies from call to call.")
    ]


def test_a_moving_alias_is_skipped() -> None:
    found = read({"data": [routed(id="~nest/owl-latest"), routed()]}, "openrouter")
    assert [offer.served_name for offer in found.offers] == ["nest/owl-1"]
    assert found.skipped[0].entry == "openrouter/~nest/owl-latest"


@pytest.mark.parametrize(
    ("links", "following"),
    [(None, None), ({}, None), ({"next": None}, None), ({"next": ""}, None), ({"next": 3}, None), ({"next": "/x?offset=5"}, "/x?offset=5")],
)
def test_openrouter_may_have_further_pages(links: Any, following: str | None) -> None:
    assert sources.get("openrouter").next_page({"data": [], "links": links}) == following


# ------------------------------------------------------------------ FreeLLMAPI


def free(**more: Any) -> dict[str, Any]:
    return {
        "platform": "nest",
        "modelId": "owl-1",
        "displayName": "Owl 1 (Nest)",
        "intelligenceRank": 4,
        "limits": {"rpm": 30, "rpd": 1000, "tpm": None, "tpd": 200_000},
        "monthlyTokenBudget": "~6M",
        "contextWindow": 131_072,
        "enabled": True,
        "supportsVision": False,
        "supportsTools": True,
        "quirks": [{"slug": "slow", "title": "Slow", "body": "It takes its time.", "severity": "info"}],
        **more,
    }


def test_freellmapi_tells_limits_and_facts_and_no_price() -> None:
    found = read({"version": "2026.09.18.ab", "platforms": [{"id": "nest", "name": "Nest"}], "models": [free()]}, "freellmapi")
    offer = found.offers[0]
    assert found.version == "2026.09.18.ab"
    assert (offer.provider, offer.served_name, offer.free, offer.prices) == ("nest", "owl-1", True, {})
    assert offer.limits == {"requests": {"minute": 30, "day": 1000}, "tokens": {"day": 200_000}}
    assert offer.facts == {"context_window": 131_072, "tools": True, "vision": False}
    assert offer.about == {"rank": 4, "budget": "~6M", "notes": ["Slow: It takes its time."]}


@pytest.mark.parametrize(
    ("platform", "provider"), [("ollama", "ollama-cloud"), ("github", "github-models"), ("ovh", "ovhcloud"), ("groq", "groq"), ("nest", "nest")]
)
def test_its_platforms_have_the_ids_of_models_dev(platform: str, provider: str) -> None:
    assert read({"models": [free(platform=platform)]}, "freellmapi").offers[0].provider == provider


def test_platforms_that_models_dev_does_not_know_have_an_address_of_our_table() -> None:
    told = {
        one.provider: one
        for one in read({"models": [free()], "platforms": [{"id": "llm7", "name": "LLM7"}, {"id": "groq", "name": "Groq"}]}, "freellmapi").providers
    }
    assert (told["llm7"].title, told["llm7"].base_url, told["llm7"].kind) == ("LLM7", "https://api.llm7.io/v1", "openai")
    assert told["groq"].base_url == ""


@pytest.mark.parametrize(("more", "reason"), [({"enabled": False}, "The catalog has switched it off."), ({"modality": "image"}, "It makes image, no text.")])
def test_what_cannot_be_asked_is_skipped(more: dict[str, Any], reason: str) -> None:
    found = read({"models": [free(modelId="x", **more), free()]}, "freellmapi")
    assert [(entry.entry, entry.reason) for entry in found.skipped] == [("nest/x", reason)]


def test_a_model_that_does_not_work_at_present_says_so() -> None:
    assert read({"models": [free(quirks=[{"title": "Hangs", "severity": "blocker"}])]}, "freellmapi").offers[0].about["blocked"] is True
