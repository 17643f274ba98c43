"""Which served names mean the same model, and which only look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import identity

SAME = [
    ("meta/llama-3-3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct llama-3.3-70b-instruct meta-llama/llama-3.3-70b-instruct:free"),
    ("meta/llama-3-3-70b-instruct", "@cf/meta/llama-3.3-70b-instruct-fp8 meta/llama-3.3-70b-instruct-maas"),
    ("zai/glm-5-1", "zai-org/GLM-5.1 z-ai/glm-5.1 glm-5.1 accounts/fireworks/models/glm-5p1 TEE/glm-5.1 zai-org/GLM-5.1-FP8 glm-5.1-free"),
    ("anthropic/claude-haiku-4-5", "claude-haiku-4-5-20251001 claude-haiku-4.5 us.anthropic.claude-haiku-4-5-20251001-v1:0 claude-haiku-4-5@20251001"),
    ("openai/gpt-oss-120b", "gpt-oss:120b openai/gpt-oss-120b gpt-oss:120b-cloud hf:openai/gpt-oss-120b"),
    ("moonshotai/kimi-k2-thinking", "moonshotai/Kimi-K2-Thinking kimi-k2-thinking moonshot.kimi-k2-thinking"),
    ("google/gemini-3-flash", "models/gemini-3-flash google/gemini-3-flash ~google/gemini-3-flash"),
    ("acme/thing-7b", "acme/thing-7b thing-7b"),
]


@pytest.mark.parametrize(("model", "names"), SAME)
def test_one_model_under_many_names_is_one(model: str, names: str) -> None:
    assert identity.ids_of(names.split()) == dict.fromkeys(names.split(), model)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o-mini"),
        ("llama-3.1-8b", "llama-3.1-8b-instruct"),
        ("qwen3-32b", "qwen3-3-2b"),
        ("llama3:8b", "llama3:70b"),
        ("acme/auto", "bravo/auto"),
        ("acme/thing", "bravo/thing"),
        ("claude-sonnet-4", "claude-sonnet-4-5"),
        ("kimi-k2", "kimi-k2-thinking"),
        ("m:thinking", "m"),
    ],
)
def test_what_only_looks_alike_is_two(one: str, other: str) -> None:
    ids = identity.ids_of([one, other])
    assert ids[one] != ids[other]


def test_a_name_without_a_maker_joins_none_where_two_could_be_meant() -> None:
    ids = identity.ids_of(["acme/thing", "bravo/thing", "thing"])
    assert len(set(ids.values())) == 3


def test_of_several_dated_snapshots_each_is_its_own() -> None:
    ids = identity.ids_of(["gpt-4o-2024-05-13", "gpt-4o-2024-08-06", "gpt-4o"])
    assert sorted(ids.values()) == ["openai/gpt-4o", "openai/gpt-4o-20240513", "openai/gpt-4o-20240806"]


@given(st.lists(st.text(min_size=1, max_size=30), max_size=8))
def test_any_names_have_ids_and_the_order_does_not_matter(names: list[str]) -> None:
    ids = identity.ids_of(names)
    assert set(ids) == set(names)
    assert all(ids.values())
    assert identity.ids_of(reversed(names)) == ids
