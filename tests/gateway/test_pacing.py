"""Limits that a provider tells, through the door: learned, kept before a call is refused, waited for, shared by workers; and limits that only report."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fake import reply, status
from tests.live import Bench, eventually


def learned(bench: Bench, endpoint: str, count: int = 1) -> list[dict[str, Any]]:
    """What was learned of an endpoint, once it is there."""
    (row,) = bench.live.rows("catalog.Endpoint", name=endpoint)
    scope = f"endpoint:{row['id']}"
    return list(eventually(lambda: found if len(found := bench.live.rows("health.LearnedLimit", scope=scope)) >= count else None, "the learned limit"))


def rests(bench: Bench) -> dict[str, dict[str, Any]]:
    found = bench.live.rows("health.Rest", scope__contains=f":{bench.tag}-")
    return {row["scope"].replace(f"{bench.tag}-", ""): row for row in found}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_in_headers_is_kept_by_every_worker_before_the_provider_refuses(bench: Bench, streamed: bool) -> None:
    here = bench.endpoint("there")
    fast = bench.model("fast", reply("fine").with_headers(x_ratelimit_limit_requests="3", x_ratelimit_remaining_requests="2"), endpoint=here)
    other = bench.model("other", endpoint=here)
    core = bench.collection([fast, other], wait_max_s=0)
    if streamed:
        with bench.stream(fast) as stream:
            assert stream.whole.status == 200
    else:
        assert bench.ask(fast).status == 200
    assert [(r["measure"], r["window"], r["limit"], r["told_by"]) for r in learned(bench, here)] == [("requests", "minute", 3, "header")]
    left = eventually(lambda: bench.live.api("GET", f"models/{fast}")["limits_left"]["endpoint"], "what is left of it")
    assert left == {"requests": {"minute": 3}}
    # The models behind one key share its limit: three more, whichever they are asked of, then none.
    assert bench.ask(f"{core}:route").status == 200
    panel = bench.ask(core)
    assert [s["status"] for s in panel.json["bench"]["seats"]] == ["ok", "ok"]
    refused = bench.ask(f"{core}:route")
    assert (refused.status, refused.code) == (429, "rate_limit_exceeded")
    assert 50 <= int(refused.headers["retry-after"]) <= 61
    assert len(bench.fake.calls_to(fast)) + len(bench.fake.calls_to(other)) == 4


@pytest.mark.parametrize("door", ["direct", "panel"])
def test_a_refusal_without_a_time_rests_its_endpoint_whatever_was_asked_for(bench: Bench, door: str) -> None:
    here = bench.endpoint("there")
    fast, other = bench.model("fast", status(429), endpoint=here), bench.model("other", endpoint=here)
    asked = {"direct": fast, "panel": bench.collection([fast])}[door]
    assert bench.ask(asked).status == 429
    eventually(lambda: rests(bench), "the rest")
    # Two minutes, for all models behind the key; nothing is sent meanwhile.
    for again in (asked, other):
        refused = bench.ask(again)
        assert refused.status == 429
        assert 100 <= int(refused.headers["retry-after"]) <= 120
    assert (len(bench.fake.calls_to(fast)), len(bench.fake.calls_to(other))) == (1, 0)


def test_a_limit_that_a_person_set_goes_before_the_learned_one(bench: Bench) -> None:
    here = bench.endpoint("there", limits={"requests": {"minute": 4}})
    fast = bench.model("fast", reply("fine").with_headers(x_ratelimit_limit_requests="2"), endpoint=here)
    core = bench.collection([fast], wait_max_s=0)
    assert bench.ask(core).status == 200
    learned(bench, here)
    # The model's own learned limit stands beside the endpoint's.
    assert [bench.ask(core).status for _ in range(3)] == [200, 200, 429]


def test_a_learned_limit_smaller_than_a_call_lets_it_go_and_the_provider_speaks(bench: Bench) -> None:
    told = reply("fine").with_headers(x_ratelimit_limit_tokens="50", x_ratelimit_remaining_tokens="40")
    too_large = status(413, "Request too large for m on tokens per minute (TPM): Limit 50, Requested 900")
    here = bench.endpoint("there")
    fast, big = bench.model("fast", told, too_large, endpoint=here), bench.model("big", reply("big"), endpoint=bench.endpoint("elsewhere"))
    core = bench.collection([fast, big])
    assert bench.ask(fast).status == 200
    learned(bench, here)
    answer = bench.ask(f"{core}:route", max_tokens=500)
    assert (answer.status, answer.content) == (200, "big")
    assert len(bench.fake.calls_to(fast)) == 2
    assert not rests(bench)


@pytest.mark.parametrize("streamed", [False, True])
def test_nothing_left_in_a_good_answer_rests_the_connection_before_a_call_is_refused(bench: Bench, streamed: bool) -> None:
    last = reply("last").with_headers(x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="45s")
    here = bench.endpoint("there")
    fast, same = bench.model("fast", last, endpoint=here), bench.model("same", endpoint=here)
    other = bench.model("other", reply("other"), endpoint=bench.endpoint("elsewhere"))
    core = bench.collection([fast, same, other])
    if streamed:
        with bench.stream(fast) as stream:
            assert stream.whole.status == 200
    else:
        assert bench.ask(fast).status == 200
    refused = bench.ask(same)
    assert (refused.status, refused.code) == (429, "rate_limit_exceeded")
    assert 30 <= int(refused.headers["retry-after"]) <= 45
    assert bench.ask(f"{core}:route").content == "other"
    seats = bench.ask(core).json["bench"]["seats"]
    assert [s["status"] for s in seats] == ["skipped", "skipped", "ok"]
    assert len(bench.fake.calls_to(fast)) == 1
    assert not bench.fake.calls_to(same)
    assert set(rests(bench)) == {"endpoint:there"}
    (row,) = bench.live.rows("health.Allowance", scope=learned(bench, here)[0]["scope"], measure="requests")
    assert (row["limit"], row["remaining"]) == (9, 0)


def test_a_wait_that_a_panels_seat_was_told_is_kept_by_the_next_panel(bench: Bench) -> None:
    fast = bench.model("fast", status(429, headers={"retry-after": "40"}), endpoint=bench.endpoint("there"))
    other = bench.model("other", endpoint=bench.endpoint("elsewhere"))
    core = bench.collection([fast, other])
    assert [s["status"] for s in bench.ask(core).json["bench"]["seats"]] == ["rate_limited", "ok"]
    eventually(lambda: rests(bench), "the rest")
    assert [s["status"] for s in bench.ask(core).json["bench"]["seats"]] == ["skipped", "ok"]
    assert len(bench.fake.calls_to(fast)) == 1


def test_a_refusal_that_names_its_model_leaves_the_others_behind_the_key_alone(bench: Bench) -> None:
    words = "Rate limit reached for model `fast` in organization `o` on tokens per minute (TPM): Limit 6000, Used 6000, Requested 9. Please try again in 50s."
    here = bench.endpoint("there")
    fast, same = bench.model("fast", status(429, words), endpoint=here), bench.model("same", reply("same"), endpoint=here)
    core = bench.collection([fast, same])
    assert bench.ask(f"{core}:route").content == "same"
    assert set(rests(bench)) == {"model:fast"}
    assert bench.ask(same).status == 200


def test_a_call_waits_for_a_learned_window_where_it_may(bench: Bench) -> None:
    gate = bench.fake.gate()
    here = bench.endpoint("there", limits={"parallel": 1})
    slow = bench.model("slow", reply("one").after(gate), reply("two"), endpoint=here)
    bench.load()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bench.ask, slow)
        bench.fake.call(slow)
        second = pool.submit(bench.ask, slow)
        refused = bench.ask(bench.collection([slow], wait_max_s=0))
        assert (refused.status, refused.code) == (429, "rate_limit_exceeded")
        gate.open()
        assert {first.result().content, second.result().content} == {"one", "two"}


def test_a_request_that_was_refused_for_concurrency_uses_up_no_minute(bench: Bench) -> None:
    gate = bench.fake.gate()
    slow = bench.model("slow", reply("x").after(gate), reply("y"))
    key = bench.key(rpm=2, max_parallel=1)
    with bench.stream(slow, key=key) as first:
        bench.fake.call(slow)
        refused = bench.ask(slow, key=key)
        assert (refused.status, refused.code) == (429, "too_many_parallel")
        gate.open()
        first.rest()
    eventually(lambda: bench.ask(slow, key=key).status == 200, "the second request of the minute")
    assert bench.ask(slow, key=key).code == "rate_limit_exceeded"


def test_shadow_limits_refuse_nobody_and_are_counted(bench: Bench) -> None:
    shadow = {"requests": {"minute": 2}, "tokens": {"day": 10**9}}
    here = bench.endpoint("there", limits={"shadow": shadow})
    fast = bench.model("fast", reply("fine"), endpoint=here)
    assert [bench.ask(fast).status for _ in range(5)] == [200] * 5
    (row,) = bench.live.rows("catalog.Endpoint", name=here)
    scope = f"endpoint:{row['id']}"
    assert [(h["measure"], h["window"], h["calls"]) for h in bench.live.rows("health.ShadowHit", scope=scope)] == [("requests", "minute", 3)]
    shown = bench.live.api("GET", f"endpoints/{here}")
    assert shown["limits"] == {"shadow": shadow}
    assert bench.live.api("PATCH", f"endpoints/{here}", {"limits": {"shadow": {"parallel": 1}}})["limits"] == {"shadow": {"parallel": 1}}
    wrong = bench.live.send("PATCH", f"/bench/endpoints/{here}", {"limits": {"shadow": {"shadow": {}}}}, key=bench.live.operator_key)
    assert wrong.status == 400
    assert bench.live.api("GET", f"models/{fast}")["limits_left"]["endpoint"] == {}
