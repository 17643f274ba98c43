"""What endpoints mean by their refusals: whose fault, which code, how long to wait."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.providers import get
from wire import refusals
from wire.errors import Fault, TimedOut

NOW = 1_790_000_000.0
KEY, MODEL, CALLER, SERVER = Fault.KEY, Fault.MODEL, Fault.CALLER, Fault.SERVER


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": text, **more}}


ROWS: list[tuple[int, Any, Fault, str]] = [
    # keys
    (401, message("invalid api key"), KEY, "upstream_error"),
    (401, {"detail": "Unauthorized"}, KEY, "upstream_error"),
    (401, "Missing API key", KEY, "upstream_error"),
    (401, {"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]}, KEY, "upstream_error"),
    (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***xx."}, KEY, "upstream_error"),
    (400, message("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"), KEY, "upstream_error"),
    (403, message("Method doesn't allow unregistered callers. Please use API Key.", status="PERMISSION_DENIED"), KEY, "upstream_error"),
    (403, {"detail": "Use of API key is not enabled in the environment."}, KEY, "upstream_error"),
    (403, b"", KEY, "upstream_error"),
    (403, "<html><meta content='policy'>blocked</html>", KEY, "upstream_error"),
    # content
    (403, message("content policy"), CALLER, "content_policy"),
    (403, message("Your request was flagged by moderation"), CALLER, "content_policy"),
    (400, message("The response was filtered due to the prompt triggering content management policy.", code="content_filter"), CALLER, "content_policy"),
    (400, message("Your request was rejected as a result of our safety system.", code="content_policy_violation"), CALLER, "content_policy"),
    # credit
    (402, message("out of credit"), KEY, "no_credit"),
    (402, b"", KEY, "no_credit"),
    (402, {"error": "You have depleted your monthly included credits."}, KEY, "no_credit"),
    (400, message("Your credit balance is too low to access the API."), KEY, "no_credit"),
    (400, message("Budget has been exceeded! Current cost: 10.0", type="budget_exceeded"), KEY, "no_credit"),
    (429, message("You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"), KEY, "no_credit"),
    (429, {"code": "x", "error": "Your team has either used all available credits or reached its monthly spending limit."}, KEY, "no_credit"),
    # models
    (404, message("model not found"), MODEL, "upstream_error"),
    (404, {"error": "model 'llama9' not found"}, MODEL, "upstream_error"),
    (404, {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404}, MODEL, "upstream_error"),
    (410, {"status": 410, "title": "Gone", "detail": "The model has reached its end of life."}, MODEL, "upstream_error"),
    (400, message("The model `m` has been decommissioned and is no longer supported.", code="model_decommissioned"), MODEL, "upstream_error"),
    (400, message("/chat/completions: Invalid model name passed in model=nope."), MODEL, "upstream_error"),
    (400, message("The requested model 'acme/nope' is not supported by any provider you have enabled.", code="model_not_supported"), MODEL, "upstream_error"),
    # too long, in every vendor's words
    (400, message("limit 1000", code="context_length_exceeded"), CALLER, "context_too_small"),
    (400, message("This model's maximum context length is 8192 tokens. However, your messages resulted in 10001 tokens."), CALLER, "context_too_small"),
    (400, message("request (13392 tokens) exceeds the available context size (8192 tokens)", type="exceed_context_size_error"), CALLER, "context_too_small"),
    (400, message("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), CALLER, "context_too_small"),
    (400, message("prompt is too long: 210000 tokens > 200000 maximum"), CALLER, "context_too_small"),
    (400, message("prompt token count of 150000 exceeds the limit of 128000", code="model_max_prompt_tokens_exceeded"), CALLER, "context_too_small"),
    (400, message("Prompt exceeds max length", code="1261"), CALLER, "context_too_small"),
    (400, message("Input is too long for requested model."), CALLER, "context_too_small"),
    (400, message("Range of input length should be [1, 30720]"), CALLER, "context_too_small"),
    (400, {"object": "error", "message": "Requested tokens (9000) exceed context window of 4096", "code": 400}, CALLER, "context_too_small"),
    (413, message("Request body too large for m model. Max size: 8000 tokens.", code="tokens_limit_reached"), CALLER, "context_too_small"),
    (422, message("too many tokens: 5000"), CALLER, "context_too_small"),
    (500, message("the request exceeds the available context size"), CALLER, "context_too_small"),
    (
        429,
        message("Request too large for m on tokens per min (TPM): Limit 30000, Requested 31538. The input or output tokens must be reduced"),
        CALLER,
        "context_too_small",
    ),
    (413, message("too large"), CALLER, "body_too_large"),
    # the caller's
    (400, message("messages.0.content is required", code="invalid_request_error"), CALLER, "invalid_request"),
    (400, message("max_tokens is too large: 100000. This model supports at most 16384 completion tokens."), CALLER, "invalid_request"),
    (422, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}, CALLER, "invalid_request"),
    (400, b"", CALLER, "invalid_request"),
    # limits
    (429, message("slow down"), KEY, "rate_limit_exceeded"),
    (429, b"", KEY, "rate_limit_exceeded"),
    (429, message("Rate limit reached on requests per day (RPD). Add a payment method at https://p.example/account/billing."), KEY, "rate_limit_exceeded"),
    (429, message("You exceeded your current quota, please check your plan and billing details.", status="RESOURCE_EXHAUSTED"), KEY, "rate_limit_exceeded"),
    (429, message("Requests have exceeded token rate limit of your current pricing tier."), KEY, "rate_limit_exceeded"),
    (429, {"message": "Tokens per minute limit exceeded", "code": "token_quota_exceeded"}, KEY, "rate_limit_exceeded"),
    # servers
    (503, message("overloaded"), MODEL, "upstream_overloaded"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, MODEL, "upstream_overloaded"),
    (503, message("Loading model", type="unavailable_error"), MODEL, "upstream_overloaded"),
    (504, b"", SERVER, "upstream_timeout"),
    (500, message("x"), SERVER, "upstream_error"),
    (502, message("bad gateway"), SERVER, "upstream_error"),
    (520, "<html>error 520</html>", SERVER, "upstream_error"),
    (405, {"detail": "Method Not Allowed"}, SERVER, "upstream_error"),
    (302, b"", SERVER, "upstream_error"),
    (418, b"teapot", SERVER, "upstream_error"),
]


def raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()


@pytest.mark.parametrize(("status", "body", "fault", "code"), ROWS)
def test_refusals_say_whose_fault_they_are(status: int, body: Any, fault: Fault, code: str) -> None:
    error = get("openai").read_error(status, {}, raw(body))
    assert (error.fault, error.code, error.http_status) == (fault, code, status)
    assert error.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (message("  spread\n over\t lines  "), "spread over lines"),
        ({"error": "as a text"}, "as a text"),
        ({"message": "flat"}, "flat"),
        ({"detail": "fastapi"}, "fastapi"),
        ({"detail": [{"msg": "field required"}]}, "field required"),
        ({"errors": [{"message": "in a list"}]}, "in a list"),
        ({"title": "Too Many Requests", "status": 429}, "Too Many Requests"),
        ([message("in a bare list")], "in a bare list"),
        (message("Provider returned error", metadata={"raw": "the provider's own words"}), "Provider returned error: the provider's own words"),
        ("plain text", "plain text"),
        ('event: error\ndata: {"error": {"message": "in an event"}}\n\n', "in an event"),
        ('﻿{"error": "behind a mark"}', "behind a mark"),
        (b"", "answered without a text"),
        (b"\xff\xfe", "��"),
        ({}, "answered without a text"),
        ([], "answered without a text"),
        ({"error": {"message": 5}}, "answered without a text"),
        (message("\x1b[31mred\x00"), "[31mred"),
        (message("lone \ud800 half"), "lone half"),
        ("<!DOCTYPE html><html><body>secret page</body></html>", "answered with HTML"),
        ("  <html>x", "answered with HTML"),
        (b"[" * 100_000, None),
    ],
)
def test_the_message_is_one_line_of_the_endpoints_own_words(body: Any, said: str | None) -> None:
    error = refusals.read(500, {}, raw(body), NOW)
    assert len(error.message) <= 300
    assert said is None or error.message == said
    error.message.encode()


def test_a_long_message_is_cut() -> None:
    error = refusals.read(400, {}, raw(message("word " * 500)), NOW)
    assert len(error.message) == 300
    assert error.message.endswith("…")


def test_html_is_told_by_its_content_type_too() -> None:
    assert refusals.read(502, {"Content-Type": "text/html; charset=utf-8"}, b"Bad gateway", NOW).message == "answered with HTML"


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {"retry-after": "20"}, message("x"), 20),
        (429, {"Retry-After": "soon"}, message("x"), None),
        (429, {}, message("Please try again in 9.816s."), 9.816),
        (529, {"retry-after": "3"}, message("busy"), 3),
        (503, {"retry-after": "3"}, "<html></html>", 3),
        (402, {"retry-after": "60"}, message("x"), 60),
        (400, {"retry-after": "20"}, message("x"), None),
        (401, {"retry-after": "20"}, message("x"), None),
        (500, {"retry-after": "20"}, message("x"), None),
    ],
)
def test_a_wait_is_told_where_waiting_helps(status: int, headers: dict[str, str], body: Any, wait: float | None) -> None:
    assert refusals.read(status, headers, raw(body), NOW).retry_after_s == wait


def test_a_timeout_of_the_servers_own_is_one() -> None:
    assert isinstance(refusals.read(504, {}, b"", NOW), TimedOut)


def test_a_redirect_says_what_to_do() -> None:
    assert "check the base URL" in refusals.read(301, {"location": "https://elsewhere.example"}, b"Moved", NOW).message


@given(st.integers(100, 599), st.dictionaries(st.text(max_size=20), st.text(max_size=30), max_size=4), st.binary(max_size=200))
def test_any_answer_is_some_error(status: int, headers: dict[str, str], body: bytes) -> None:
    error = refusals.read(status, headers, body, NOW)
    assert 0 < len(error.message) <= 300
    assert error.message.isprintable()
    assert error.http_status == status
