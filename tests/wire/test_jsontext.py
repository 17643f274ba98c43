"""JSON in: strict for callers, patient with providers, and never a crash."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import CallerError
from wire.jsontext import MAX_DEPTH, parse_body, parse_upstream

REFUSED = {
    "nothing": b"",
    "spaces": b"  \n",
    "half an object": b'{"model": "a"',
    "two values": b"{} {}",
    "NaN": b'{"t": NaN}',
    "an infinity": b'{"t": -Infinity}',
    "a number beyond a double": b'{"t": 1e400}',
    "a number of thousands of digits": b'{"t": ' + b"9" * 4300 + b"}",
    "invalid UTF-8": b'{"t": "\xff"}',
    "UTF-16": '{"t": "x"}'.encode("utf-16"),
    "single quotes": b"{'t': 1}",
    "a trailing comma": b'{"t": 1,}',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep lists without end": b"[" * 100_000,
    "deep objects": b'{"a":' * 1_000 + b"1" + b"}" * 1_000,
    "just too deep": b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2),
    "form fields": b"model=a&stream=1",
    "a null byte": b'{"a": 1}\x00',
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_no_clean_json_is_refused_as_the_callers_fault(body: bytes) -> None:
    with pytest.raises(CallerError) as caught:
        parse_body(body)
    assert (caught.value.status, caught.value.code) == (400, "invalid_request")
    assert caught.value.message.endswith(".")


def test_brackets_inside_strings_are_no_depth() -> None:
    assert parse_body(json.dumps({"a": "[" * 5000 + '\\"' + "{" * 5000}).encode())["a"].count("[") == 5000
    assert len(parse_body(b"[" + b"[]," * 5000 + b"[]]")) == 5001


@pytest.mark.parametrize(
    "body",
    [b'{"a": "' + b'\\"' * 1_000_000, b'{"a": "' + b'\\"' * 1_000_000 + b"\\", b'{"a": ' + b'"' * 2_000_001, b"[" + b"[]," * 700_000 + b"[}", b"[" * 2_000_000],
    ids=["quotes in an open string", "and half an escape", "quotes", "flat lists", "open lists"],
)
def test_what_is_no_json_is_refused_in_time_that_grows_as_its_length(body: bytes) -> None:
    """A look at each quote's own rest of these would take hours."""
    with pytest.raises(CallerError):
        parse_body(body)
    with pytest.raises(ValueError):  # noqa: PT011 - any of them says the same
        parse_upstream(body)


def test_depth_is_told_the_same_by_few_and_by_many_brackets() -> None:
    for around in (b"", b"[]," * 10_000):
        just = b"[" + around + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"]"
        assert parse_body(just)
        with pytest.raises(CallerError, match="levels deep"):
            parse_body(b"[" + just + b"]")


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert parse_body(b'{"\\ud800k": "a\\udfffb", "l": ["\\ud83d\\ude42"]}') == {"\ufffdk": "a\ufffdb", "l": ["🙂"]}


def test_a_byte_order_mark_is_forgiven() -> None:
    assert parse_body(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON.map(json.dumps))
def test_clean_json_is_read_as_it_is(text: str) -> None:
    wanted = json.loads(text)
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in json.dumps(wanted, ensure_ascii=False)):
        assert parse_body(text.encode()) == wanted == parse_upstream(text.encode())


@given(st.binary(max_size=60) | ANY_JSON.map(lambda v: json.dumps(v).encode()[:-1]))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read, refusal in ((parse_body, CallerError), (parse_upstream, ValueError)):
        try:
            assert clean(read(data))
        except refusal:
            pass


def clean(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any(0xD800 <= ord(c) <= 0xDFFF for c in value)
    if isinstance(value, dict):
        return all(clean(k) and clean(v) for k, v in value.items())
    return all(map(clean, value)) if isinstance(value, list) else True


@pytest.mark.parametrize("body", [b'{"t": NaN, "a": 1}', b'{"t": 1e400, "a": 1}', b'{"a": 1, "t": ' + b"9" * 5000 + b"}", b'{"a": 1, "t": "\xff"}'])
def test_a_providers_oddities_are_borne_with(body: bytes) -> None:
    found = parse_upstream(body)
    assert found["a"] == 1
    assert clean(found)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[" * 100_000, b'{"a":' * 5000])
def test_a_providers_garbage_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_upstream(body)
