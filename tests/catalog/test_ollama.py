"""Ollama as a provider: addresses, headers, its model list and its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog import providers
from wire.errors import Fault

OLLAMA = providers.get("ollama")


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/v1/chat/completions", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/api", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/api/generate", "http://127.0.0.1:11434"),
        ("https://ollama.example.org/behind/a/prefix/api/tags", "https://ollama.example.org/behind/a/prefix"),
        (" https://ollama.com ", "https://ollama.com"),
    ],
)
def test_a_call_goes_to_the_right_path_however_the_base_url_is_written(base_url: str, root: str) -> None:
    assert OLLAMA.chat_url(base_url, "m", True) == f"{root}/api/chat"
    assert OLLAMA.chat_url(base_url, "m", False) == f"{root}/api/chat"
    assert OLLAMA.models_url(base_url) == f"{root}/api/tags"
    assert OLLAMA.count_url(base_url, "m") is None


def test_a_key_is_sent_where_there_is_one() -> None:
    assert OLLAMA.headers("") == {}
    assert OLLAMA.headers("k1") == {"authorization": "Bearer k1"}


def test_its_list_names_what_it_serves() -> None:
    body = {"models": [{"name": "llama3:8b", "model": "llama3:8b"}, {"name": "old"}, {"model": 5}, "x", {}]}
    assert [m.served_name for m in OLLAMA.read_models(body)] == ["llama3:8b", "old"]


@pytest.mark.parametrize("body", [None, [], {}, {"models": None}, {"data": []}])
def test_what_is_no_list_is_an_error(body: Any) -> None:
    with pytest.raises(ValueError, match="no list"):
        OLLAMA.read_models(body)


@pytest.mark.parametrize(
    ("status", "body", "code", "fault"),
    [
        (404, {"error": "model 'x' not found"}, "upstream_error", Fault.MODEL),
        (400, {"error": '"x" does not support tools'}, "invalid_request", Fault.CALLER),
        (400, {"error": "the input length exceeds the context length"}, "context_too_small", Fault.CALLER),
        (401, {"error": "unauthorized"}, "upstream_error", Fault.KEY),
        (429, {"error": "you (x) have reached your hourly usage limit"}, "rate_limit_exceeded", Fault.KEY),
        (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}, "upstream_overloaded", Fault.MODEL),
        (500, {"error": "llama runner process has terminated"}, "upstream_error", Fault.SERVER),
        (500, "not json", "upstream_error", Fault.SERVER),
    ],
)
def test_a_refusal_tells_whose_fault_it_is(status: int, body: Any, code: str, fault: Fault) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = OLLAMA.read_error(status, {"content-type": "application/json"}, data)
    assert (error.code, error.fault, error.http_status) == (code, fault, status)
    assert error.message
