"""Model lists as servers write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import facts
from catalog.providers import get

read = get("openai").read_models


def listed(body: Any) -> dict[str, dict[str, Any]]:
    return {one.served_name: dict(one.facts) for one in read(body)}


ENTRIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai", {"id": "gpt", "object": "model", "created": 1, "owned_by": "openai"}, {}),
    (
        "openrouter",
        {
            "id": "a/b:free",
            "context_length": 1_000_000,
            "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
            "pricing": {
                "prompt": "0.000003",
                "completion": "0.000015",
                "input_cache_read": "0.0000003",
                "input_cache_write": "0.00000375",
                "web_search": "0.01",
            },
            "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000, "is_moderated": True},
            "supported_parameters": ["max_tokens", "tools", "reasoning"],
        },
        {
            "context_window": 200_000,
            "output_limit": 64_000,
            "tools": True,
            "vision": True,
            "audio": False,
            "files": True,
            "structured_output": False,
            "reasoning": True,
            "input_usd_per_mtok": "3",
            "output_usd_per_mtok": "15",
            "cache_read_usd_per_mtok": "0.3",
            "cache_write_usd_per_mtok": "3.75",
        },
    ),
    (
        "openrouter varies",
        {
            "id": "auto",
            "context_length": 2_000_000,
            "top_provider": {"context_length": None, "max_completion_tokens": None},
            "pricing": {"prompt": "-1", "completion": "-1"},
        },
        {"context_window": 2_000_000},
    ),
    ("openrouter free", {"id": "f", "pricing": {"prompt": "0", "completion": "0"}}, {"input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}),
    (
        "groq",
        {"id": "llama", "active": True, "context_window": 131072, "max_completion_tokens": 32768, "public_apps": None},
        {"context_window": 131072, "output_limit": 32768},
    ),
    ("vllm", {"id": "m", "owned_by": "vllm", "root": "m", "parent": None, "max_model_len": 32768, "permission": []}, {"context_window": 32768}),
    ("llama.cpp", {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 131072, "n_params": 5}}, {"context_window": 4096}),
    ("older llama.cpp", {"id": "m", "meta": {"n_ctx_train": 8192}}, {"context_window": 8192}),
    ("llama.cpp without a window", {"id": "m", "meta": None}, {}),
    (
        "together",
        {"id": "m", "type": "chat", "context_length": 8192, "pricing": {"hourly": 0, "input": 0.18, "output": 0.59, "base": 0}},
        {"context_window": 8192, "input_usd_per_mtok": "0.18", "output_usd_per_mtok": "0.59"},
    ),
    (
        "vercel",
        {"id": "m", "context_window": 1000, "max_tokens": 10, "pricing": {"input": "0.00000015", "output": "0.0000006"}},
        {"context_window": 1000, "input_usd_per_mtok": "0.15", "output_usd_per_mtok": "0.6"},
    ),
    (
        "litellm",
        {
            "model_name": "m",
            "litellm_params": {"model": "openai/m"},
            "model_info": {
                "id": "x",
                "max_input_tokens": 128000,
                "max_output_tokens": 16384,
                "input_cost_per_token": 2.5e-06,
                "output_cost_per_token": 1e-05,
                "supports_vision": True,
                "supports_function_calling": True,
                "supports_reasoning": None,
            },
        },
        {"context_window": 128000, "output_limit": 16384, "vision": True, "tools": True, "input_usd_per_mtok": "2.5", "output_usd_per_mtok": "10"},
    ),
    (
        "mistral",
        {"id": "m", "max_context_length": 131072, "capabilities": {"completion_chat": True, "function_calling": True, "vision": False}},
        {"context_window": 131072, "tools": True, "vision": False},
    ),
    (
        "lm studio",
        {
            "key": "m",
            "type": "llm",
            "max_context_length": 131072,
            "loaded_instances": [{"id": "m", "config": {"context_length": 8192}}],
            "capabilities": {"vision": True, "trained_for_tool_use": True},
        },
        {"context_window": 8192, "vision": True, "tools": True},
    ),
    (
        "ollama",
        {"name": "m:latest", "model": "m:latest", "details": {"context_length": 4096}, "capabilities": ["completion", "tools", "thinking"]},
        {"context_window": 4096, "tools": True, "reasoning": True},
    ),
    (
        "hugging face",
        {
            "id": "m",
            "architecture": {"input_modalities": ["text"]},
            "providers": [{"context_length": 8192, "supports_tools": True}, {"context_length": 4096, "supports_tools": False}, {}],
        },
        {"context_window": 4096, "tools": False, "vision": False, "audio": False, "files": False},
    ),
    (
        "copilot",
        {
            "id": "m",
            "capabilities": {"limits": {"max_context_window_tokens": 128000, "max_output_tokens": 4096}, "supports": {"tool_calls": True, "vision": True}},
        },
        {"context_window": 128000, "output_limit": 4096, "tools": True, "vision": True},
    ),
    (
        "nonsense",
        {
            "id": "m",
            "context_length": "many",
            "max_model_len": -5,
            "context_window": True,
            "pricing": {"prompt": "free", "completion": None},
            "supported_parameters": "tools",
        },
        {},
    ),
    ("numbers as text", {"id": "m", "context_length": "8192"}, {"context_window": 8192}),
    ("halves", {"id": "m", "context_length": 8192.0, "max_output_tokens": 10.5}, {"context_window": 8192}),
]


@pytest.mark.parametrize(("entry", "told"), [row[1:] for row in ENTRIES], ids=[row[0] for row in ENTRIES])
def test_entries_tell_only_what_they_say(entry: dict[str, Any], told: dict[str, Any]) -> None:
    name = entry.get("id") or entry.get("key") or entry.get("model") or entry.get("model_name")
    assert listed({"object": "list", "data": [entry]}) == {name: told}
    facts.checked(told)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"object": "list", "data": []}, []),
        ({"object": "list", "data": None}, []),
        ({"data": [{"id": "a"}, {"id": "b"}]}, ["a", "b"]),
        ([{"id": "a"}, {"id": "b"}], ["a", "b"]),
        ({"models": [{"name": "a", "model": "a"}]}, ["a"]),
        ({"data": ["a", "b"]}, ["a", "b"]),
        ({"data": [{"id": "a"}, {"id": "a"}]}, ["a"]),
        ({"data": [{"id": "a"}, {"id": ""}, {"id": 5}, {"id": "x\ny"}, {"other": 1}]}, ["a"]),
        ({"data": [{"id": "meta-llama/Llama-3.3-70B:free"}, {"id": "модель"}]}, ["meta-llama/Llama-3.3-70B:free", "модель"]),
    ],
)
def test_lists_of_every_shape_are_read_in_their_order(body: Any, names: list[str]) -> None:
    assert list(listed(body)) == names


def test_two_lists_in_one_answer_are_one_model_each() -> None:
    body = {
        "models": [{"name": "m", "model": "m", "capabilities": ["completion", "multimodal"], "details": {"family": ""}}],
        "object": "list",
        "data": [{"id": "m", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}],
    }
    assert listed(body) == {"m": {"context_window": 4096, "vision": True}}


@pytest.mark.parametrize(
    "body",
    [
        None,
        5,
        "models",
        True,
        {},
        {"data": 5},
        {"error": {"message": "x"}},
        {"data": [5]},
        {"data": [[]]},
        [None],
        {"data": [{"token": "abc123"}]},
        {"object": "list"},
    ],
)
def test_what_is_no_model_list_is_refused(body: Any) -> None:
    with pytest.raises(ValueError, match=r"list|name"):
        read(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "data", "models", "pricing", "prompt", "context_length", "capabilities", "meta", "n_ctx", "providers"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_list_or_a_value_error(body: Any) -> None:
    try:
        found = read(body)
    except ValueError:
        return
    for one in found:
        facts.checked(one.facts)


# ------------------------------------------------------------------ what does not chat


@pytest.mark.parametrize(
    ("entry", "chat"),
    [
        ({"id": "gpt-5"}, True),
        ({"id": "text-embedding-3-large"}, False),
        ({"id": "whisper-1"}, False),
        ({"id": "dall-e-3"}, False),
        ({"id": "gpt-image-1"}, False),
        ({"id": "omni-moderation-latest"}, False),
        ({"id": "BAAI/bge-m3"}, False),
        ({"id": "vendor/embedder-chat"}, True),
        ({"id": "image-reader-8b"}, True),
        ({"id": "text-embedding-chat", "type": "chat"}, True),
        ({"id": "m", "type": "embedding"}, False),
        ({"id": "m", "type": "rerank"}, False),
        ({"id": "m", "type": "model"}, True),
        ({"id": "m", "model_info": {"mode": "image_generation"}}, False),
        ({"id": "m", "model_info": {"mode": "responses"}}, True),
        ({"id": "m", "architecture": {"output_modalities": ["image", "text"]}}, True),
        ({"id": "m", "architecture": {"output_modalities": ["image"]}}, False),
        ({"id": "m", "supported_output_modalities": ["embeddings"]}, False),
        ({"id": "m", "capabilities": {"completion_chat": False}}, False),
        ({"id": "m", "capabilities": {"type": "embeddings"}}, False),
        ({"id": "m", "capabilities": ["embedding"]}, False),
        ({"id": "m", "capabilities": ["completion", "embedding"]}, True),
        ({"id": "m", "capabilities": ["streaming"]}, True),
        ({"id": "m", "supportedGenerationMethods": ["embedContent"]}, False),
    ],
)
def test_what_answers_no_prompt_with_text_is_marked(entry: dict[str, Any], chat: bool) -> None:
    assert [one.chat for one in read({"data": [entry]})] == [chat]


def nested(levels: int) -> Any:
    """A list in a list in a list, as JSON can hold it."""
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value", [*(nested(levels) for levels in (2, 300, 600, 900)), "1e999999", "9e999999", "1e400", "NaN", "-1", 1e308, float("inf"), float("nan"), 10**400]
)
@pytest.mark.parametrize("field", ["context_length", "supported_parameters", "capabilities", "supportedInputModalities", "type", "input_cost_per_token"])
def test_a_value_that_is_none_tells_nothing_and_costs_nobody_the_list(field: str, value: Any) -> None:
    found = read({"data": [{"id": "odd", field: value, "pricing": {"prompt": value, "input": value}}, {"id": "fine", "context_length": 8}]})
    assert [one.served_name for one in found] == ["odd", "fine"]
    assert not {"context_window", "input_usd_per_mtok"} & found[0].facts.keys()
