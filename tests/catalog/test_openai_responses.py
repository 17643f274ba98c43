"""The provider that speaks Responses: its addresses, and what it shares with the chat API."""

from __future__ import annotations

import pytest

from catalog import providers

PROVIDER = providers.get("openai-responses")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.example.org", "https://api.example.org/v1/responses"),
        ("https://api.example.org/v1", "https://api.example.org/v1/responses"),
        ("https://api.example.org/v1/", "https://api.example.org/v1/responses"),
        ("https://api.example.org/v1/responses", "https://api.example.org/v1/responses"),
        ("https://api.example.org/v1/chat/completions", "https://api.example.org/v1/responses"),
        ("https://x.example.com/openai/v1?api-version=preview", "https://x.example.com/openai/v1/responses?api-version=preview"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/responses"),
    ],
)
def test_a_call_goes_to_the_right_path_however_the_base_url_is_written(base: str, url: str) -> None:
    assert PROVIDER.chat_url(base, "m", True) == url
    assert PROVIDER.count_url(base, "m") == url.replace("/responses", "/responses/input_tokens")
    assert PROVIDER.models_url(base) == url.replace("/responses", "/models")


def test_it_is_signed_and_refuses_as_the_chat_api_does() -> None:
    assert PROVIDER.headers("sk-1") == {"Authorization": "Bearer sk-1"}
    assert PROVIDER.headers("") == {}
    error = PROVIDER.read_error(429, {"retry-after": "7"}, b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}')
    assert (error.code, error.retry_after_s) == ("rate_limit_exceeded", 7.0)
    assert [m.served_name for m in PROVIDER.read_models({"object": "list", "data": [{"id": "gpt-x", "object": "model"}]})] == ["gpt-x"]
