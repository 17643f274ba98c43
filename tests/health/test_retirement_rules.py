"""The rules of retirement by tables: what one run of an endpoint's models comes to, and what the confirming call decides."""

from __future__ import annotations

import pytest

from health.faults import judged
from health.retirement import Second, Seen, confirm, judge

DAYS = 3


def ok(alias: str, **more: object) -> Seen:
    return Seen(alias, "ok", **more)  # type: ignore[arg-type]


def bad(alias: str, fault: str, days: int = 1, **more: object) -> Seen:
    return Seen(alias, "failed", fault, days, **more)  # type: ignore[arg-type]


def dunno(alias: str, fault: str, **more: object) -> Seen:
    return Seen(alias, "unknown", fault, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "list_state", "suspects"),
    [
        ([ok("a"), bad("b", "model"), ok("c")], "ok", {"b": "model"}),
        ([bad("a", "model")], "ok", {"a": "model"}),
        ([bad("a", "model")], "none", {"a": "model"}),
        # One error of a server, and two days of them, are borne with; a third is looked into while its endpoint is up.
        ([ok("a"), bad("b", "server", 1)], "ok", {}),
        ([ok("a"), bad("b", "server", 2)], "ok", {}),
        ([ok("a"), bad("b", "server", 3)], "ok", {"b": "server"}),
        ([ok("a"), bad("b", "server", 3)], "none", {"b": "server"}),
        ([bad("b", "server", 9)], "ok", {"b": "server"}),
        ([bad("b", "server", 9)], "none", {}),
        ([ok("a"), ok("c"), ok("d"), bad("b", "server", 9), bad("e", "server", 1)], "ok", {}),
        # What is refused, limited or asleep is unknown.
        ([ok("a"), dunno("b", "request")], "ok", {}),
        ([dunno("b", "request")], "ok", {}),
        ([ok("a"), dunno("b", "limit")], "ok", {}),
        ([dunno("a", "lost"), ok("b")], "ok", {}),
        # No longer listed: suspected only where it does not answer.
        ([ok("a"), ok("b", is_unlisted=True)], "ok", {}),
        ([ok("a"), ok("c"), dunno("b", "request", is_unlisted=True)], "ok", {"b": "unlisted"}),
        ([ok("a"), ok("c"), bad("b", "server", 1, is_unlisted=True)], "ok", {"b": "unlisted"}),
        ([ok("a"), dunno("b", "request", is_unlisted=True), dunno("c", "request", is_unlisted=True)], "ok", {}),
        ([dunno("b", "request", is_unlisted=True)], "ok", {"b": "unlisted"}),
        # Live calls count as well, until a probe is answered.
        ([ok("a"), Seen("b", live_fault="model")], "ok", {"b": "live"}),
        ([ok("a"), ok("b", live_fault="model")], "ok", {}),
        ([ok("a"), Seen("b", live_fault="server")], "ok", {}),
        ([ok("a"), Seen("b", live_fault="request")], "ok", {}),
    ],
)
def test_whom_a_run_suspects(seen: list[Seen], list_state: str, suspects: dict[str, str]) -> None:
    found = judge(seen, list_state, DAYS)
    assert {s.alias: s.why for s in found.suspects} == suspects
    assert not found.connection


@pytest.mark.parametrize(
    ("seen", "list_state", "why"),
    [
        ([bad("a", "connection"), bad("b", "connection"), bad("c", "connection")], "connection", "API"),
        ([bad("a", "connection", 30)], "none", "API"),
        ([dunno("a", "key"), dunno("b", "key"), dunno("c", "key")], "key", "key"),
        ([dunno("a", "key")], "none", "key"),
        ([bad("a", "model"), dunno("b", "request")], "key", "key"),
        ([bad("a", "model"), dunno("b", "request")], "connection", "API"),
        # A base URL that leads nowhere answers 404 for all.
        ([bad("a", "model"), bad("b", "model")], "none", "2 of its 2"),
        ([bad("a", "model"), bad("b", "server"), ok("c")], "ok", "2 of its 3"),
        ([bad("a", "server", 9), bad("b", "server", 9), bad("c", "server", 9)], "ok", "3 of its 3"),
    ],
)
def test_an_outage_of_the_endpoint_blames_no_model(seen: list[Seen], list_state: str, why: str) -> None:
    found = judge(seen, list_state, DAYS)
    assert why in found.connection
    assert not found.suspects


def test_a_missing_model_among_good_ones_and_then_a_refused_key_are_told_apart() -> None:
    first = judge([ok("m1"), bad("m2", "model"), ok("m3")], "ok", DAYS)
    assert [s.alias for s in first.suspects] == ["m2"]
    second = judge([dunno("m1", "key"), dunno("m2", "key", is_suspect=True), dunno("m3", "key")], "key", DAYS)
    assert "key" in second.connection
    assert not second.suspects
    assert not second.cleared
    assert confirm(Second("model", "unknown", "key", "key", 0, 2)) == "wait"


def test_a_suspect_that_answers_is_cleared_in_an_outage_too() -> None:
    assert judge([ok("a", is_suspect=True), bad("b", "server"), bad("c", "server")], "ok", DAYS).cleared == ("a",)


@pytest.mark.parametrize(
    ("second", "decision"),
    [
        (Second("model", "ok", "", "ok", 2), "clear"),
        (Second("unlisted", "ok", "", "ok"), "clear"),
        (Second("model", "failed", "model", "ok", 2), "retire"),
        (Second("live", "failed", "model", "none", 1), "retire"),
        (Second("model", "failed", "model", "none"), "retire"),
        (Second("unlisted", "failed", "model", "ok", 1), "retire"),
        (Second("unlisted", "failed", "server", "ok", 1), "retire"),
        (Second("server", "failed", "server", "ok"), "retire"),
        (Second("server", "failed", "server", "none", 2), "retire"),
        (Second("server", "failed", "server", "none"), "wait"),
        (Second("server", "failed", "server", "ok", 3, 1), "wait"),
        (Second("model", "failed", "server", "ok", 2), "wait"),
        (Second("model", "failed", "connection", "ok", 2), "wait"),
        (Second("model", "failed", "model", "key", 2), "wait"),
        (Second("model", "failed", "model", "connection", 2), "wait"),
        (Second("model", "failed", "model", "ok", 0, 1), "wait"),
        (Second("model", "unknown", "request", "ok", 2), "wait"),
        (Second("unlisted", "unknown", "request", "ok", 2), "wait"),
        (Second("model", "unknown", "limit", "ok", 2), "wait"),
        (Second("model", "unknown", "key", "ok", 2), "wait"),
    ],
)
def test_what_the_confirming_call_decides(second: Second, decision: str) -> None:
    assert confirm(second) == decision


@pytest.mark.parametrize(
    ("status", "http_status", "code", "message", "outcome", "fault"),
    [
        ("ok", 200, "", "", "ok", ""),
        ("truncated", 200, "", "", "ok", ""),
        ("refused", 200, "", "", "ok", ""),
        ("partial", 200, "upstream_truncated", "cut", "ok", ""),
        ("error", 404, "upstream_error", "The model `x` does not exist or you do not have access to it.", "failed", "model"),
        ("error", 410, "upstream_error", "This deployment was retired.", "failed", "model"),
        ("error", 404, "upstream_error", "No endpoints found for x.", "failed", "model"),
        ("error", 400, "upstream_error", "model_decommissioned: The model x has been decommissioned", "failed", "model"),
        ("error", 404, "upstream_error", "answered with HTML", "failed", "server"),
        ("error", 404, "upstream_error", "answered without a text", "failed", "server"),
        ("error", 400, "upstream_error", "API key not valid. Please pass a valid API key.", "unknown", "key"),
        ("error", 400, "invalid_request", "temperature is out of range", "unknown", "request"),
        ("error", 422, "invalid_request", "no", "unknown", "request"),
        ("error", None, "unfit", "no word for it", "unknown", "request"),
        ("error", 413, "body_too_large", "too large", "unknown", "request"),
        ("refused", 400, "content_policy", "flagged", "ok", ""),
        ("error", 401, "upstream_error", "no", "unknown", "key"),
        ("no_credit", 402, "no_credit", "no", "unknown", "key"),
        ("no_credit", 429, "no_credit", "no", "unknown", "key"),
        ("error", 403, "upstream_error", "no", "unknown", "key"),
        ("rate_limited", 429, "rate_limit_exceeded", "no", "unknown", "limit"),
        ("timeout", None, "upstream_timeout", "No answer within 60 s.", "failed", "server"),
        ("error", 500, "upstream_error", "oops", "failed", "server"),
        ("error", 503, "upstream_overloaded", "busy", "failed", "server"),
        ("error", 200, "empty_response", "nothing", "failed", "server"),
        ("error", 200, "upstream_garbage", "The endpoint answered with something that is no JSON.", "failed", "server"),
        ("error", 200, "upstream_garbage", "The endpoint answered with HTML.", "failed", "connection"),
        ("error", 301, "upstream_error", "a redirect", "failed", "connection"),
        ("error", None, "upstream_error", "No connection.", "failed", "connection"),
        ("lost", None, "lost", "", "unknown", "lost"),
        ("cancelled", None, "", "", "unknown", "lost"),
    ],
)
def test_whose_fault_a_call_was(status: str, http_status: int | None, code: str, message: str, outcome: str, fault: str) -> None:
    found = judged(status, http_status, code, message)
    assert (found.outcome, found.fault) == (outcome, fault)
