"""Errors: keys never stand in messages."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import errors
from wire.errors import redacted

# As vendors write keys; none of them is one.
SHAPES = [
    "sk-proj-abcdefghijklmnop1234",
    "sk_live_abcdefghijklmnop",
    "sk-ant-api03-abcdefghijklmnop",
    "gsk_abcdefghijklmnop1234",
    "xai-abcdefghijklmnop1234",
    "hf_abcdefghijklmnop1234",
    "nvapi-abcdefghijklmnop",
    "bw_live_abcdefghijklmnop",
    "bw_live_pat_abcdefghijklmnop",
    "AIzaSyAbcdefghijklmnop1234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123",
]


@pytest.mark.parametrize("key", SHAPES)
@pytest.mark.parametrize("around", ["%s", "Incorrect API key provided: %s. See the docs.", '{"key": "%s"}', "https://x.example/v1?a=1&key=%s", "(%s)"])
def test_what_looks_like_a_key_is_taken_out(key: str, around: str) -> None:
    assert key not in redacted(around % key)


@pytest.mark.parametrize(
    "text", ["Authorization: Bearer abcdef0123456789", "authorization: bearer ABCDEF0123456789==", "?key=plain-word", "&api_key=plain-word&x=1"]
)
def test_what_stands_where_keys_stand_is_taken_out(text: str) -> None:
    for secret in ("abcdef0123456789", "ABCDEF0123456789", "plain-word"):
        assert secret not in redacted(text)


@given(
    secret=st.text(string.ascii_letters + string.digits + "-_.+/ =", min_size=4, max_size=40).filter(lambda s: s not in "[key]"),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_a_secret_that_is_known_is_taken_out_whatever_it_looks_like(secret: str, before: str, after: str) -> None:
    assert secret not in redacted(before + secret + after, secret) or secret in (before + after)


@pytest.mark.parametrize(
    "text", ["", "Model fast is unknown.", "The task-list is skipped.", "Endpoint groq-eu refused the key (401).", "risk-averse desk-research"]
)
def test_ordinary_words_stay(text: str) -> None:
    assert redacted(text) == text
    assert redacted(text, "") == text


def test_every_upstream_error_has_a_code_of_the_contract_and_a_fault() -> None:
    kinds = [errors.UpstreamError, errors.Unreachable, errors.TimedOut, errors.Truncated, errors.Garbage, errors.Empty]
    codes = {"upstream_error", "upstream_timeout", "upstream_truncated", "upstream_garbage", "empty_response"}
    assert {kind("x").code for kind in kinds} == codes
    assert all(isinstance(kind("x").fault, errors.Fault) for kind in kinds)
    assert errors.Unreachable("x").fault is errors.Fault.NETWORK
