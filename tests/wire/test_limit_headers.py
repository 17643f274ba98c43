"""Limits as headers tell them: the same names with each provider's own meaning, by its address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.limit_headers import Told, habits_of, told
from wire.waits import LONGEST_S

NOW = 1_790_000_000.0
ANYWHERE, OPENAI, GROQ = "http://127.0.0.1:9000/v1", "https://api.openai.com/v1", "https://api.groq.com/openai/v1"
TOGETHER, ANTHROPIC = "https://api.together.xyz/v1", "https://api.anthropic.com"

ROWS: dict[str, tuple[str, dict[str, str], list[Told]]] = {
    "a minute where nothing else is said": (
        OPENAI,
        {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-reset-requests": "120ms",
            "x-ratelimit-limit-tokens": "30000",
            "x-ratelimit-remaining-tokens": "29000",
            "x-ratelimit-reset-tokens": "1m2s",
        },
        [Told("requests", "minute", 500, 499, 0.12), Told("tokens", "minute", 30_000, 29_000, 62.0)],
    ),
    "the same names, a day of requests": (
        GROQ,
        {"x-ratelimit-limit-requests": "1000", "x-ratelimit-remaining-requests": "998", "x-ratelimit-limit-tokens": "8000"},
        [Told("requests", "day", 1000, 998), Told("tokens", "minute", 8000)],
    ),
    "windows in the names": (
        ANYWHERE,
        {
            "x-ratelimit-limit-requests-hour": "100",
            "x-ratelimit-remaining-requests-hour": "3",
            "x-ratelimit-limit-tokens-5-minute": "9000",
            "x-ratelimit-limit-req-minute": "30",
            "x-ratelimit-remaining-tokens-month": "5",
        },
        [Told("requests", "hour", 100, 3), Told("tokens", "5minute", 9000), Told("requests", "minute", 30), Told("tokens", "month", None, 5)],
    ),
    "a minute and a day of one unit are two limits": (
        ANYWHERE,
        {"x-ratelimit-limit-requests": "20", "x-ratelimit-limit-requests-day": "200", "x-ratelimit-remaining-requests-day": "0"},
        [Told("requests", "minute", 20), Told("requests", "day", 200, 0)],
    ),
    "input and output apart": (
        ANTHROPIC,
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-09-21T14:13:50Z",
            "anthropic-ratelimit-input-tokens-limit": "40000",
            "anthropic-ratelimit-output-tokens-remaining": "7999",
        },
        [
            Told("requests", "minute", 50, 0, 30.0),
            Told("tokens", "minute", 40_000, None, None, "input"),
            Told("tokens", None, None, 7999, None, "output"),
        ],
    ),
    "a subscription's windows, of which only the closed one counts": (
        ANTHROPIC,
        {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": "1790000600",
            "anthropic-ratelimit-unified-7d-status": "rejected",
            "anthropic-ratelimit-unified-7d-reset": "1790000600",
            "anthropic-ratelimit-unified-5h-status": "allowed",
            "anthropic-ratelimit-unified-5h-reset": "1790000500",
        },
        [Told("requests", "week", None, 0, 600.0)],
    ),
    "prompt tokens": (
        ANYWHERE,
        {"x-ratelimit-limit-tokens-prompt": "60000", "x-ratelimit-remaining-tokens-generated": "12", "x-ratelimit-over-limit": "yes"},
        [Told("tokens", "minute", 60_000, None, None, "input"), Told("tokens", None, None, 12, None, "output")],
    ),
    "names without a unit, per second there": (
        TOGETHER,
        {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "7", "x-ratelimit-reset": "1", "x-tokenlimit-limit": "3000"},
        [Told("requests", "second", 10, 7, 1.0), Told("tokens", "second", 3000)],
    ),
    "names without a unit, nobody knows per what": (
        ANYWHERE,
        {"x-ratelimit-limit": "50", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790003600000"},
        [Told("requests", None, 50, 0, 3600.0)],
    ),
    "what is left of something unsaid": (ANYWHERE, {"x-ratelimit-remaining-requests": "9"}, [Told("requests", None, None, 9)]),
    "the renewal's period": (
        ANYWHERE,
        {"x-ratelimit-limit-requests": "10", "x-ratelimit-renewalperiod-requests": "86400", "x-ratelimit-remaining-requests": "4"},
        [Told("requests", "day", 10, 4)],
    ),
    "the draft with a list": (
        ANYWHERE,
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "40", "ratelimit-reset": "12"},
        [Told("requests", "minute", 100, 40, 12.0)],
    ),
    "the draft with policies": (ANYWHERE, {"ratelimit": '"a";r=5;t=30', "ratelimit-policy": '"a";q=100;w=3600'}, [Told("requests", "hour", 100, 5, 30)]),
    "percent of a subscription": (
        ANYWHERE,
        {"x-codex-primary-used-percent": "62.5", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-after-seconds": "77"},
        [Told("percent", "5h", 100, 37.5, 77.0)],
    ),
    "names of their own": (
        ANYWHERE,
        {"x-endpoint-monthly-call-limit": "1000", "x-trial-endpoint-call-limit": "40", "x-trial-endpoint-call-remaining": "38"},
        [Told("requests", "month", 1000), Told("requests", "minute", 40, 38)],
    ),
    "a number that means none": (ANYWHERE, {"x-ratelimit-limit-tokens": "9223372036854775807", "x-ratelimit-remaining-tokens": "9223372036854775800"}, []),
    "minus one means none, less than nothing is nothing": (
        ANYWHERE,
        {"x-ratelimit-limit-requests": "-1", "x-ratelimit-limit-tokens": "10", "x-ratelimit-remaining-tokens": "-55"},
        [Told("tokens", "minute", 10, 0)],
    ),
    "costs are no limits": (ANYWHERE, {"x-ratelimit-tokens-query-cost": "21", "cf-ai-neurons": "2", "x-ratelimit-limit-images": "7"}, []),
    "nothing at all": (ANYWHERE, {"content-type": "application/json", "retry-after": "7"}, []),
}


@pytest.mark.parametrize("name", ROWS)
def test_headers_tell_limits_as_each_provider_means_them(name: str) -> None:
    base_url, headers, expected = ROWS[name]
    assert sorted(told(headers, base_url, NOW), key=repr) == sorted(expected, key=repr)


def test_an_address_tells_the_provider_also_under_a_name_of_its_own() -> None:
    assert habits_of("https://my-team.openai.azure.com/openai/deployments/x").per_model
    assert habits_of("https://generativelanguage.googleapis.com/v1beta").zone == "America/Los_Angeles"
    assert not habits_of("https://notapi.groq.com.example/v1").windows
    assert not habits_of("http://[broken").per_model
    assert not habits_of("http://localhost:4000").per_model  # all models behind one key share its limits


names = st.lists(
    st.sampled_from(["limit", "remaining", "reset", "requests", "tokens", "minute", "day", "5", "60", "input", "unified", "status", "over", "x"]), max_size=6
)
values = st.one_of(st.text(max_size=30), st.integers().map(str), st.floats().map(str))


@given(
    st.dictionaries(
        st.builds(lambda start, words: start + "-".join(words), st.sampled_from(["x-ratelimit-", "ratelimit-", "anthropic-ratelimit-"]), names), values
    )
)
def test_whatever_headers_say_nothing_breaks_and_nothing_is_negative(headers: dict[str, str]) -> None:
    for one in told(headers, ANYWHERE, NOW):
        assert all(value is None or value >= 0 for value in (one.limit, one.remaining, one.reset_s))


HUGE = [
    "999999999999999",
    "1000000000000000",
    "9223372036854775808",
    "99999999999999999999",
    "99999999999999999999.9",
    "9" * 400,
    "1e18",
    "NaN",
    "inf",
    "0x10",
    "²",
]
EVERYWHERE = [
    f"{start}{what}{rest}" for start in ("x-ratelimit-", "ratelimit-", "x-tokenlimit-") for what in ("limit", "remaining") for rest in ("", "-tokens-minute")
]


@pytest.mark.parametrize("value", HUGE)
def test_no_number_is_larger_than_a_table_holds_and_no_time_further_than_a_month(value: str) -> None:
    cases = [{name: value, "x-ratelimit-reset": value} for name in EVERYWHERE]
    cases += [{"ratelimit": f'"a";r={value};t={value}', "ratelimit-policy": f'"a";q={value};w=60'}, {"ratelimit": f'"a";r=0;t={value}'}]
    for headers in cases:
        for one in told(headers, ANYWHERE, NOW):
            assert all(said is None or 0 <= said < 2**53 for said in (one.limit, one.remaining))
            assert one.reset_s is None or 0 <= one.reset_s <= LONGEST_S


@pytest.mark.parametrize("number", ["0", "100", "99999999", "²", "05"])
def test_windows_without_an_end_of_numbers_are_none(number: str) -> None:
    assert told({f"x-ratelimit-limit-tokens-{number}-minute": "9000"}, ANYWHERE, NOW) == ()
