"""Anthropic's own API as a provider: addresses, headers, its model list and its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog import providers
from wire.errors import Fault

ANTHROPIC = providers.get("anthropic")


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages/count_tokens", "https://api.anthropic.com/v1"),
        ("https://api.example.org/anthropic", "https://api.example.org/anthropic/v1"),
        ("http://127.0.0.1:8080/v2", "http://127.0.0.1:8080/v2"),
    ],
)
def test_every_base_url_leads_to_one_address(base_url: str, root: str) -> None:
    assert ANTHROPIC.chat_url(base_url, "m", True) == f"{root}/messages"
    assert ANTHROPIC.count_url(base_url, "m") == f"{root}/messages/count_tokens"
    assert ANTHROPIC.models_url(base_url) == f"{root}/models?limit=1000"


def test_a_query_of_the_base_url_stays() -> None:
    assert ANTHROPIC.chat_url("https://example.org/v1?tenant=a", "m", False) == "https://example.org/v1/messages?tenant=a"
    assert ANTHROPIC.models_url("https://example.org/v1?tenant=a") == "https://example.org/v1/models?tenant=a&limit=1000"


def test_the_key_stands_in_its_own_header() -> None:
    assert ANTHROPIC.headers("sk-ant-x") == {"anthropic-version": "2023-06-01", "x-api-key": "sk-ant-x"}
    assert ANTHROPIC.headers("") == {"anthropic-version": "2023-06-01"}


def test_the_model_list_tells_facts() -> None:
    flags = {name: {"supported": name != "pdf_input"} for name in ("image_input", "pdf_input", "structured_outputs", "thinking")}
    body = {
        "data": [
            {"type": "model", "id": "claude-x", "display_name": "X", "max_input_tokens": 200_000, "max_tokens": 64_000, "capabilities": flags},
            {"type": "model", "id": "old", "display_name": "Old", "created_at": "2024-01-01T00:00:00Z", "max_tokens": None, "capabilities": None},
            {"id": "local", "object": "model", "meta": {"n_ctx": 8192}},
        ],
        "has_more": False,
    }
    listed = {m.served_name: dict(m.facts) for m in ANTHROPIC.read_models(body)}
    assert listed["claude-x"] == {
        "context_window": 200_000,
        "output_limit": 64_000,
        "vision": True,
        "files": False,
        "structured_output": True,
        "reasoning": True,
        "tools": True,
    }
    assert listed["old"] == {}
    assert listed["local"] == {"context_window": 8192}


@pytest.mark.parametrize("body", [None, "x", {}, {"data": 7}, {"data": [7]}])
def test_what_is_no_list_is_said_to_be_none(body: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ANTHROPIC.read_models(body)


@pytest.mark.parametrize(
    ("status", "kind", "message", "fault", "code"),
    [
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", Fault.CALLER, "context_too_small"),
        (400, "invalid_request_error", "messages.1: bad", Fault.CALLER, "invalid_request"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", Fault.KEY, "no_credit"),
        (401, "authentication_error", "invalid x-api-key", Fault.KEY, "upstream_error"),
        (402, "billing_error", "pay", Fault.KEY, "no_credit"),
        (403, "permission_error", "Your API key does not have permission", Fault.KEY, "upstream_error"),
        (404, "not_found_error", "model: nobody", Fault.MODEL, "upstream_error"),
        (413, "request_too_large", "Request exceeds the maximum size", Fault.CALLER, "body_too_large"),
        (429, "rate_limit_error", "This request would exceed the rate limit", Fault.KEY, "rate_limit_exceeded"),
        (500, "api_error", "Internal server error", Fault.SERVER, "upstream_error"),
        (529, "overloaded_error", "Overloaded", Fault.MODEL, "upstream_overloaded"),
    ],
)
def test_refusals_are_blamed_on_whom_they_concern(status: int, kind: str, message: str, fault: Fault, code: str) -> None:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    error = ANTHROPIC.read_error(status, {"content-type": "application/json"}, json.dumps(body).encode())
    assert (error.fault, error.code, error.http_status) == (fault, code, status)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2999-01-01T00:00:00Z"}, 31 * 86_400),
        ({}, None),
    ],
)
def test_waits_are_read_from_its_headers(headers: dict[str, str], wait: float | None) -> None:
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    assert ANTHROPIC.read_error(429, headers, json.dumps(body).encode()).retry_after_s == wait
