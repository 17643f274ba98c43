"""Base URLs as they are copied from documentation, and the address each becomes."""

from __future__ import annotations

import pytest

from catalog.base_urls import check_base_url
from catalog.providers import every, get
from catalog.shape import ShapeError

CHAT = [
    ("http://h", "http://h/v1/chat/completions"),
    ("http://h/", "http://h/v1/chat/completions"),
    ("http://h//", "http://h/v1/chat/completions"),
    ("http://h/v1", "http://h/v1/chat/completions"),
    ("http://h/v1/", "http://h/v1/chat/completions"),
    ("http://h:9000/v1/", "http://h:9000/v1/chat/completions"),
    ("http://h/v1?api-version=1", "http://h/v1/chat/completions?api-version=1"),
    ("http://h?api-version=1", "http://h/v1/chat/completions?api-version=1"),
    ("http://h/v2", "http://h/v2/chat/completions"),
    ("https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions"),
    ("https://h/api/v1", "https://h/api/v1/chat/completions"),
    ("https://h/openai/v1", "https://h/openai/v1/chat/completions"),
    ("https://h/openai", "https://h/openai/v1/chat/completions"),
    ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
    ("https://h/compatible-mode/v1", "https://h/compatible-mode/v1/chat/completions"),
    ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
    ("https://h/v1/chat/completions/", "https://h/v1/chat/completions"),
    ("https://h/chat/completions", "https://h/v1/chat/completions"),
    ("https://h/v1/models", "https://h/v1/chat/completions"),
    ("https://h/models", "https://h/models/v1/chat/completions"),
    ("https://h/client/v4/accounts/abc/ai/v1", "https://h/client/v4/accounts/abc/ai/v1/chat/completions"),
    ("https://h/v1/accounts/a/gw/compat", "https://h/v1/accounts/a/gw/compat/chat/completions"),
    ("https://models.github.ai/inference", "https://models.github.ai/inference/chat/completions"),
    ("https://api.githubcopilot.com", "https://api.githubcopilot.com/chat/completions"),
    (
        "https://x.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21",
        "https://x.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
    ),
    ("https://x.openai.azure.com/openai/v1/", "https://x.openai.azure.com/openai/v1/chat/completions"),
    ("https://w.example/serving-endpoints", "https://w.example/serving-endpoints/chat/completions"),
    ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
    ("https://h/a%20b/v1", "https://h/a%20b/v1/chat/completions"),
    ("https://h/v1x", "https://h/v1x/v1/chat/completions"),
    ("https://h/vllm", "https://h/vllm/v1/chat/completions"),
]


@pytest.mark.parametrize(("base", "url"), CHAT)
def test_every_spelling_of_a_base_url_hits_one_right_path(base: str, url: str) -> None:
    provider = get("openai")
    assert provider.chat_url(base, "any", stream=False) == provider.chat_url(base, "any", stream=True) == url
    # GitHub's list stands apart from its calls.
    listed = "https://models.github.ai/catalog/models" if "models.github.ai" in base else url.replace("/chat/completions", "/models")
    assert provider.models_url(base) == listed


@pytest.mark.parametrize(("base", "url"), CHAT)
def test_an_address_made_once_stays_what_it_is(base: str, url: str) -> None:
    provider = get("openai")
    if "/v1" in url:
        assert provider.chat_url(url, "any", stream=False) == url


@pytest.mark.parametrize(
    "base",
    [
        "http://h",
        "https://h/v1?api-version=1",
        "http://127.0.0.1:9000/v1",
        "http://192.168.1.5:11434",
        "http://localhost",
        "http://ollama:11434/v1",
        "https://müller.example/v1",
        "http://[fd00::1]:80/",
    ],
)
def test_addresses_that_an_endpoint_may_have(base: str) -> None:
    assert check_base_url(base) == base


@pytest.mark.parametrize(
    "base",
    [
        "",
        "h/v1",
        "localhost:8000",
        "ftp://h",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://user:pass@h/v1",
        "http://user@h/v1",
        "http://h/v1#x",
        "http://h:0/v1",
        "http://h:99999/v1",
        "http://h:x/v1",
        "http://h /v1",
        "http://h/v1\n",
        "http://h\\@evil/v1",
        "http://[::1/v1",
        "https://h/v1?key=abc",
        "https://h/v1?API_KEY=abc",
        "https://h/v1?a=1&token=abc",
        "http://169.254.169.254/v1",
        "http://2852039166/v1",
        "http://0xa9fea9fe/v1",
        "http://0251.0376.0251.0376/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://[fe80::1]/v1",
        "http://[fd00:ec2::254]/v1",
        "http://metadata.google.internal/v1",
        "http://" + "h" * 500,
    ],
)
def test_addresses_that_no_endpoint_may_have(base: str) -> None:
    with pytest.raises(ShapeError) as caught:
        check_base_url(base)
    assert caught.value.field == "base_url"


def test_a_key_goes_into_its_header_and_no_key_into_none() -> None:
    assert get("openai").headers("sk-x") == {"Authorization": "Bearer sk-x"}
    assert get("openai").headers("") == {}


def test_kinds_are_found_by_walking_the_folder() -> None:
    assert "openai" in {provider.kind for provider in every()}
    with pytest.raises(KeyError):
        get("nothing")
