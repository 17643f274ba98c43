"""Google's Gemini API as a provider: addresses, the key's header, its model list and its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog import providers
from wire.errors import Fault

GEMINI = providers.get("gemini")
ROOT = "https://generativelanguage.googleapis.com"


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        (ROOT, f"{ROOT}/v1beta"),
        (f"{ROOT}/", f"{ROOT}/v1beta"),
        (f"{ROOT}/v1beta", f"{ROOT}/v1beta"),
        (f"{ROOT}/v1", f"{ROOT}/v1"),
        (f"{ROOT}/v1beta/models", f"{ROOT}/v1beta"),
        (f"{ROOT}/v1beta/openai/", f"{ROOT}/v1beta"),
        (f"{ROOT}/v1beta/models/gemini-3.1-pro:generateContent", f"{ROOT}/v1beta"),
        ("https://aiplatform.googleapis.com/v1/publishers/google", "https://aiplatform.googleapis.com/v1/publishers/google"),
        ("https://example.org/models", "https://example.org/models/v1beta"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1beta"),
    ],
)
def test_every_base_url_leads_to_one_address(base_url: str, root: str) -> None:
    assert GEMINI.chat_url(base_url, "m", False) == f"{root}/models/m:generateContent"
    assert GEMINI.chat_url(base_url, "m", True) == f"{root}/models/m:streamGenerateContent?alt=sse"
    assert GEMINI.count_url(base_url, "m") == f"{root}/models/m:countTokens"
    assert GEMINI.models_url(base_url) == f"{root}/models?pageSize=1000"


def test_a_query_of_the_base_url_stays() -> None:
    assert GEMINI.chat_url("https://example.org/v1?tenant=a", "m", True) == "https://example.org/v1/models/m:streamGenerateContent?tenant=a&alt=sse"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("models/gemini-3", "models/gemini-3"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("vendor/a:b", "models/vendor/a:b"),
        ("a b?c#d%e", "models/a%20b%3Fc%23d%25e"),
    ],
)
def test_a_served_name_is_written_into_the_address(name: str, written: str) -> None:
    assert GEMINI.chat_url("http://h", name, False) == f"http://h/v1beta/{written}:generateContent"


def test_the_key_stands_in_its_own_header() -> None:
    assert GEMINI.headers("AIza-x") == {"x-goog-api-key": "AIza-x"}
    assert GEMINI.headers("") == {}


def test_the_model_list_tells_facts_of_what_answers_prompts() -> None:
    body = {
        "models": [
            {
                "name": "models/gemini-3.1-pro",
                "baseModelId": "x",
                "displayName": "Gemini",
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
                "thinking": True,
            },
            {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
            {"name": "tunedModels/mine", "supportedGenerationMethods": ["generateContent"]},
        ],
        "nextPageToken": "x",
    }
    assert [(m.served_name, dict(m.facts), m.chat) for m in GEMINI.read_models(body)] == [
        ("gemini-3.1-pro", {"context_window": 1_048_576, "output_limit": 65_536, "reasoning": True}, True),
        ("embedding-1", {}, False),
        ("tunedModels/mine", {}, True),
    ]


@pytest.mark.parametrize("body", [None, [], {}, {"models": "x"}, {"error": {"code": 400}}, "x"])
def test_what_is_no_model_list_is_refused(body: Any) -> None:
    if body == []:
        assert GEMINI.read_models(body) == []
        return
    with pytest.raises(ValueError, match=r".+"):
        GEMINI.read_models(body)


DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.66s"}


@pytest.mark.parametrize(
    ("status", "error", "code", "fault", "wait"),
    [
        (
            429,
            {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED", "details": [DELAY]},
            "rate_limit_exceeded",
            Fault.KEY,
            26.66,
        ),
        (429, {"code": 429, "message": "Quota exceeded. Please retry in 59.44s.", "status": "RESOURCE_EXHAUSTED"}, "rate_limit_exceeded", Fault.KEY, 59.44),
        (503, {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, "upstream_overloaded", Fault.MODEL, None),
        (400, {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}, "upstream_error", Fault.KEY, None),
        (
            400,
            {"code": 400, "message": "The input token count (12) exceeds the maximum number of tokens allowed (8)."},
            "context_too_small",
            Fault.CALLER,
            None,
        ),
        (404, {"code": 404, "message": "models/x is not found for API version v1beta", "status": "NOT_FOUND"}, "upstream_error", Fault.MODEL, None),
        (400, {"code": 400, "message": "Invalid value at 'contents'", "status": "INVALID_ARGUMENT"}, "invalid_request", Fault.CALLER, None),
    ],
)
def test_refusals_are_read(status: int, error: dict[str, Any], code: str, fault: Fault, wait: float | None) -> None:
    for body in ({"error": error}, [{"error": error}]):
        found = GEMINI.read_error(status, {"content-type": "application/json"}, json.dumps(body).encode())
        assert (found.code, found.fault, found.http_status) == (code, fault, status)
        assert found.retry_after_s == pytest.approx(wait) if wait else found.retry_after_s is None
        assert found.message == error["message"]
