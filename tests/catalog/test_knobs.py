"""Limits and quirks as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import limits, quirks
from catalog.shape import ShapeError


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"parallel": 1}, {"parallel": 1}),
        ({"requests": {"minute": 30, "day": 1000, "month": 20000}}, {"requests": {"minute": 30, "day": 1000, "month": 20000}}),
        ({"requests": {}, "tokens": None, "parallel": None}, {}),
        ({"requests": {"minute": None, "day": 5}}, {"requests": {"day": 5}}),
        ({"tokens": {"month": 1, "minute": 2}, "parallel": 4}, {"tokens": {"minute": 2, "month": 1}, "parallel": 4}),
    ],
)
def test_limits_are_kept_without_what_says_nothing(given: dict[str, Any], found: dict[str, Any]) -> None:
    assert limits.checked(given) == found
    assert limits.checked(found) == found


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (None, "limits"),
        ([], "limits"),
        (30, "limits"),
        ({"request": {"minute": 1}}, "limits.request"),
        ({"requests": 30}, "limits.requests"),
        ({"requests": {"minutes": 30}}, "limits.requests.minutes"),
        ({"requests": {"hour": 30}}, "limits.requests.hour"),
        ({"requests": {"minute": 0}}, "limits.requests.minute"),
        ({"requests": {"minute": -1}}, "limits.requests.minute"),
        ({"requests": {"minute": "30"}}, "limits.requests.minute"),
        ({"requests": {"minute": 1.5}}, "limits.requests.minute"),
        ({"requests": {"minute": True}}, "limits.requests.minute"),
        ({"tokens": {"day": 10**16}}, "limits.tokens.day"),
        ({"parallel": 0}, "limits.parallel"),
        ({"parallel": {"minute": 1}}, "limits.parallel"),
        ({5: 1}, "limits"),
    ],
)
def test_wrong_limits_name_the_field(given: Any, field: str) -> None:
    with pytest.raises(ShapeError) as caught:
        limits.checked(given)
    assert caught.value.field == field
    assert str(caught.value).startswith(field)


def test_a_mistyped_limit_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ShapeError, match=r"Did you mean requests\?"):
        limits.checked({"reqests": {}})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"token_param": "max_completion_tokens"},
        {"token_param": "max_tokens", "system_role": "developer", "stream_options": False},
        {"no_seed": True, "temperature": 0.5, "max_images": 3, "note": "text"},
    ],
)
def test_quirks_are_kept(given: dict[str, Any]) -> None:
    assert quirks.checked(given) == given


def test_quirks_without_a_value_fall_away() -> None:
    assert quirks.checked({"token_param": None, "flag": None}) == {}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("max_tokens", "quirks"),
        ({"token_param": "tokens"}, "quirks.token_param"),
        ({"token_param": True}, "quirks.token_param"),
        ({"token_param": ["max_tokens"]}, "quirks.token_param"),
        ({"system_role": "boss"}, "quirks.system_role"),
        ({"stream_options": "false"}, "quirks.stream_options"),
        ({"stream_option": False}, "quirks.stream_option"),
        ({"token_parm": "max_tokens"}, "quirks.token_parm"),
        ({"Flag": True}, "quirks.Flag"),
        ({"a b": True}, "quirks.a b"),
        ({"flag": {"a": 1}}, "quirks.flag"),
        ({"flag": "x" * 501}, "quirks.flag"),
        ({f"f{n}": True for n in range(41)}, "quirks"),
    ],
)
def test_wrong_quirks_name_the_field(given: Any, field: str) -> None:
    with pytest.raises(ShapeError) as caught:
        quirks.checked(given)
    assert caught.value.field == field
