"""How long an endpoint asks to be left alone, in every unit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import waits

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z
MONTH = 31 * 86400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("17ms", 0.017),
        ("370ms", 0.37),
        ("6ms", 0.006),
        ("1m26.4s", 86.4),
        ("1m30.5s", 90.5),
        ("28m48s", 1728),
        ("1h43m56s", 6236),
        ("23h47m36.6s", 85656.6),
        ("2d", 172800),
        ("1d2h3m4s", 93784),
        ("9.816s", 9.816),
        ("50.597142857s", 50.597142857),
        ("900.2ms", 0.9002),
        ("7 seconds", 7),
        ("1 second", 1),
        ("11 sec", 11),
        ("2 minutes", 120),
        ("1 hour and 5 minutes", 3900),
        ("1 minute, 30 seconds", 90),
        ("3 hrs", 10800),
        ("250 milliseconds", 0.25),
        ("0s", 0),
        ("", None),
        ("42", None),
        ("s", None),
        ("1 month", None),
        ("5 tokens", None),
        ("-1s", None),
        ("1s!", None),
        ("1e3s", None),
        ("１s", None),
    ],
)
def test_durations_are_read_whole_or_not_at_all(text: str, seconds: float | None) -> None:
    found = waits.duration_s(text)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("value", "unit", "seconds"),
    [
        ("42", "s", 42),
        (42, "s", 42),
        (1.5, "s", 1.5),
        ("0", "s", 0),
        ("0.5", "s", 0.5),
        ("11.382867097854614", "s", 11.382867),
        ("2500", "ms", 2.5),
        ("1790000060", "s", 60),
        (1790000060, "s", 60),
        ("1790000060000", "s", 60),
        ("1790000060.5", "s", 60.5),
        ("1789999000", "s", 0),
        ("2026-09-21T14:14:20Z", "s", 60),
        ("2026-09-21T14:14:20.500Z", "s", 60.5),
        ("2026-09-21T16:14:20+02:00", "s", 60),
        ("2026-09-21 14:14:20", "s", 60),
        ("Mon, 21 Sep 2026 14:14:20 GMT", "s", 60),
        ("Mon, 21 Sep 2026 14:00:00 GMT", "s", 0),
        ("6m0s", "s", 360),
        ("99999999", "s", MONTH),
        ("40d", "s", MONTH),
        ("2028-01-01T00:00:00Z", "s", MONTH),
        ("-5", "s", None),
        (-5, "s", None),
        ("soon", "s", None),
        ("", "s", None),
        (True, "s", None),
        (None, "s", None),
        ([], "s", None),
        (math.nan, "s", None),
        (math.inf, "s", None),
        ("inf", "s", None),
        ("nan", "s", None),
        ("1_000", "s", None),
        ("9" * 400, "s", None),
        ("2026-99-99T00:00:00Z", "s", None),
    ],
)
def test_values_are_read_in_every_unit(value: Any, unit: str, seconds: float | None) -> None:
    found = waits.wait_of(value, NOW, unit)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:50 GMT"}, 30),
        ({"retry-after": "1790000060"}, 60),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "7", "retry-after-ms": "6480"}, 7),
        ({"retry-after": "soon", "retry-after-ms": "300"}, 0.3),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"x-ratelimit-reset-requests": "1m30.5s", "x-ratelimit-remaining-requests": "0"}, 90.5),
        ({"x-ratelimit-reset-tokens": "450ms", "x-ratelimit-remaining-tokens": "0"}, 0.45),
        # Only the used-up window counts, and of several the last to begin anew.
        (
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9s"}, 9),
        (
            {
                "x-ratelimit-remaining-requests": "19",
                "x-ratelimit-reset-requests": "1790000060",
                "x-ratelimit-remaining-requests-day": "0",
                "x-ratelimit-reset-requests-day": "1790086400",
            },
            86400,
        ),
        ({"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "0.5"}, 0.5),
        ({"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1790021600000"}, 21600),
        ({"x-ratelimit-reset": "1790000030000"}, 30),
        ({"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "3"}, 3),
        ({"anthropic-ratelimit-requests-reset": "2026-09-21T14:14:05Z"}, 45),
        ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-09-21T14:14:05Z"}, 45),
        (
            {
                "Anthropic-Ratelimit-Unified-Status": "rejected",
                "Anthropic-Ratelimit-Unified-5h-Status": "rejected",
                "Anthropic-Ratelimit-Unified-5h-Reset": "1790018000",
                "Anthropic-Ratelimit-Unified-7d-Status": "allowed",
                "Anthropic-Ratelimit-Unified-7d-Reset": "1790604800",
            },
            18000,
        ),
        (
            {
                "x-codex-primary-used-percent": "100",
                "x-codex-primary-reset-after-seconds": "380613",
                "x-codex-secondary-used-percent": "0",
                "x-codex-secondary-reset-after-seconds": "0",
            },
            380613,
        ),
        ({"x-ratelimit-reset": "1", "x-ratelimit-remaining": "9", "x-tokenlimit-remaining": "0", "x-tokenlimit-reset": "2"}, 2),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "50"}, 50),
        # A used-up window that does not say when it begins anew, beside one that has nothing to do with it.
        ({"x-ratelimit-remaining-tokens-5-minute": "0", "x-ratelimit-reset-req-minute": "1"}, None),
        # Nothing is used up: the cause is another.
        ({"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s"}, None),
        # Which of the two it is, nobody says.
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "9s"}, None),
    ],
)
def test_headers_are_read(headers: dict[str, str], seconds: float | None) -> None:
    found = waits.asked(headers, None, "", NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"message": "slow down"}}, None),
        ({"error": {"message": "Rate limit reached. Please try again in 1.2s. See the docs."}}, 1.2),
        ({"error": {"message": "Limit 10000, Used 8554. Please try again in 6ms."}}, 0.006),
        ({"error": {"message": "Please retry after 60 seconds. Please go here"}}, 60),
        ({"error": {"message": "Rate limit of 10 per 60s exceeded. Please wait 42 seconds before retrying."}}, 42),
        ({"error": {"message": "Token limit is exceeded. Try again in 11 seconds.. Received"}}, 11),
        ({"error": {"message": "Your quota will reset after 1h43m56s."}}, 6236),
        ({"error": {"message": "You will regain access on 2026-09-22 at 14:13 UTC."}}, 86380),
        ({"error": {"message": "Please retry shortly, or add your own key"}}, None),
        ({"error": {"message": "Please retry in 54.8s.", "details": [{"@type": "RetryInfo", "retryDelay": "54s"}]}}, 54),
        ({"error": {"details": [{" @type": "RetryInfo", "retryDelay": "600s"}]}}, 600),
        ({"error": {"message": "limit reached", "resets_in_seconds": 120}}, 120),
        ({"retry_after_ms": 1500}, 1.5),
        ({"error": {"retry_after": "1790000060"}}, 60),
        ({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1790021600000"}}}}, 21600),
        # A quota by day, and a limit of nothing, come with a short wait that helps nobody.
        (
            {
                "error": {
                    "message": "Please retry in 34s.",
                    "details": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}, {"retryDelay": "34s"}],
                }
            },
            None,
        ),
        ({"error": {"message": "Quota exceeded, limit: 0. Please retry in 59s."}}, None),
        ({"retryDelay": -5}, None),
        ({"retryDelay": {"seconds": 5}}, None),
    ],
)
def test_bodies_are_read(body: dict[str, Any], seconds: float | None) -> None:
    found = waits.asked({}, body, str(body), NOW)
    assert found == (None if seconds is None else pytest.approx(seconds, abs=0.5 if seconds == 86380 else 1e-6))


def test_the_header_of_its_own_goes_before_the_body_and_the_body_before_the_windows() -> None:
    windows = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    assert waits.asked({**windows, "retry-after": "5"}, None, "try again in 9s", NOW) == 5
    assert waits.asked(windows, None, "try again in 9s", NOW) == 9
    assert waits.asked(windows, None, "", NOW) == 360


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*waits.BODY_FIELDS, "headers", "error"]) | st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "anthropic-ratelimit-x-reset"]), st.text(max_size=40)
    ),
    JSON,
    st.text(max_size=200),
)
def test_whatever_comes_a_wait_is_between_nothing_and_a_month(headers: dict[str, str], body: Any, text: str) -> None:
    found = waits.asked(headers, body, text, NOW)
    assert found is None or 0 <= found <= MONTH


def test_a_long_text_of_nearly_durations_is_read_in_a_moment() -> None:
    assert waits.in_words("try again in " + "1 " * 4000, NOW) is None
    assert waits.duration_s("1s " * 33 + "x") is None
