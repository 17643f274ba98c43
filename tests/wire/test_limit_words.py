"""Limits as refusals tell them in their bodies: in fields, in headers that they repeat, in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire import refusals
from wire.limit_headers import Told
from wire.limit_words import in_refusal

NOW = 1_790_000_000.0


def said(unit: str, window: str | None, limit: float | None = None, remaining: float | None = None, direction: str = "") -> Told:
    return Told(unit, window, limit, remaining, None, direction, "refusal")


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


QUOTA = {
    "error": {
        "message": "Quota exceeded for metric: x.googleapis.com/generate_content_free_tier_requests, limit: 15",
        "details": [
            {" @type": "QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "15"}]},
            {"@type": "QuotaFailure", "violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute", "quotaValue": "250000"}]},
        ],
    }
}
REPEATED = error("Rate limit exceeded: free-models-per-day. ", metadata={"headers": {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0"}})

ROWS: list[tuple[int, Any, list[Told]]] = [
    # status, body, limits
    (429, error("Limit hit for m on tokens per min (TPM): Limit 9000, Used 8000, Requested 2000."), [said("tokens", "minute", 9000, 1000)]),
    (429, error("Limit hit for m on requests per day (RPD): Limit 40, Used 40, Requested 1."), [said("requests", "day", 40, 0)]),
    (429, error("Limit hit for m on tokens per min. Limit: 9,000 / min."), [said("tokens", "minute", 9000)]),
    (413, error("Request too large for m on tokens per minute (TPM): Limit 6000, Requested 7000"), [said("tokens", "minute", 6000)]),
    (429, error("This would exceed your limit of 8,000 output tokens per minute."), [said("tokens", "minute", 8000, None, "output")]),
    (429, error("The maximum rate limit for this model is 60 queries per minute."), [said("requests", "minute", 60)]),
    (429, {"message": "Tokens per day limit exceeded - too many."}, [said("tokens", "day", None, 0)]),
    (429, "Requests per Second (actual/limit): 3/2", [said("requests", "second", 2, 0)]),
    (429, {"message": "Your key is limited to 10 API calls / minute."}, [said("requests", "minute", 10, 0)]),
    (429, error("Rate limit of 15 per 86400s exceeded for UserByModelByDay."), [said("requests", "day", 15, 0)]),
    (429, error("Rate limit of 2 per 0s exceeded for UserConcurrentRequests."), [said("concurrent", None, 2, 0)]),
    (402, {"error": "You used up your monthly included credits."}, [said("credits", "month", None, 0)]),
    (429, {"errors": [{"message": "used up your daily free allocation of 5,000 neurons"}]}, [said("neurons", "day", 5000, 0)]),
    (429, {"error": "2 requests already queued (max: 2)"}, [said("concurrent", None, 2, 0)]),
    (429, error("current rpm: 3, rpm limit: 3, current tpm: 1, tpm limit: 9223372036854775807"), [said("requests", "minute", 3, 0)]),
    (429, {"detail": "You exceeded the maximum number of tokens allowed within a given time frame."}, [said("tokens", None, None, 0)]),
    (429, error("You may have a maximum of 3 concurrent requests."), [said("concurrent", None, 3, 0)]),
    (429, QUOTA, [said("requests", "day", 15, 0), said("tokens", "minute", 250_000, 0, "input")]),
    (429, error("Quota exceeded for metric: x/generate_content_free_tier_requests, limit: 0\nretry in 9s"), [said("requests", None, 0, 0)]),
    (429, REPEATED, [Told("requests", "day", 20, 0)]),
    # What is none of this key's, what is no refusal for a limit, and what is no API.
    (429, error("busy", metadata={"limit_source": "shared_pool", "raw": "Requests per minute limit exceeded"}), []),
    (400, error("Your limit of 8,000 output tokens per minute."), []),
    (429, "<html><body>limited to 10 API calls / minute</body></html>", []),
    (429, error("Rate limit exceeded"), []),
    (429, b"\xff\xfe", []),
]


@pytest.mark.parametrize(("status", "body", "expected"), ROWS, ids=[str(n) for n in range(len(ROWS))])
def test_a_refusal_tells_the_limit_that_it_is_about(status: int, body: Any, expected: list[Told]) -> None:
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    assert list(in_refusal(status, {}, data, "http://127.0.0.1/v1", NOW)) == expected


def test_headers_and_words_of_one_limit_are_one() -> None:
    headers = {"x-ratelimit-limit-tokens-minute": "60000", "x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "3"}
    body = json.dumps({"message": "Tokens per minute limit exceeded."}).encode()
    assert in_refusal(429, headers, body, "", NOW) == (Told("tokens", "minute", 60_000, 0, 3.0),)


def test_an_error_that_is_no_limit_still_tells_limits_in_its_headers() -> None:
    assert in_refusal(400, {"x-trial-endpoint-call-limit": "20"}, b'{"message": "invalid"}', "", NOW) == (Told("requests", "minute", 20),)


ABOUT = [
    ("Rate limit reached for model `m` in organization `o` on requests per day (RPD): Limit 5", True),
    ("Rate limit reached for gpt-x in organization org-1 on tokens per min (TPM): Limit 5", True),
    ("You have reached the rate limit specific to this model m.", True),
    ("m is temporarily rate-limited upstream.", True),
    ("Rate limit of 10 per 60s exceeded for UserByModelByMinute.", True),
    ("Rate limit reached for requests", False),
    ("You exceeded your weekly limit.", False),
    ("x", False),
]


@pytest.mark.parametrize(("message", "about_model"), ABOUT)
def test_a_refusal_is_about_one_model_only_where_it_says_so(message: str, about_model: bool) -> None:
    body = json.dumps(error(message)).encode()
    assert refusals.read(429, {}, body, NOW).about_model is about_model
    assert not refusals.read(401, {}, body, NOW).about_model


def test_a_limit_of_nothing_is_no_credit_whatever_wait_stands_beside_it() -> None:
    found = refusals.read(429, {}, json.dumps(error("Quota exceeded for metric: x_requests\nlimit: 0. Please retry in 59s.")).encode(), NOW)
    assert (found.code, found.retry_after_s) == ("no_credit", None)


@pytest.mark.parametrize("number", ["1000000000000000", "9223372036854775808", "99999999999999999999", "9" * 400, "-1", "1e400", "٣", "²"])
def test_a_refusal_tells_no_number_that_no_table_holds(number: str) -> None:
    violations = [{"quotaId": "GenerateRequestsPerDayPerProject", "quotaValue": number}]
    bodies = [
        {"error": {"message": "Quota exceeded.", "details": [{"violations": violations}]}},
        error(f"would exceed your rate limit of {number} tokens per minute"),
        error(f"Rate limit reached on tokens per min (TPM): Limit {number}, Used {number}"),
        error(f"Rate limit of {number} per {number}s exceeded for UserByModel"),
        error(f"limit of {number} concurrent requests"),
    ]
    for body in bodies:
        for one in in_refusal(429, {}, json.dumps(body).encode(), "http://127.0.0.1/v1", NOW):
            assert all(said is None or 0 <= said < 10**15 for said in (one.limit, one.remaining))
