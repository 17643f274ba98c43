"""The ledger: one true row an upstream call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests import factories
from tests.fake import reply, status
from tests.live import Bench


def test_a_call_is_one_row_that_tells_the_truth(bench: Bench) -> None:
    usage = {
        "prompt_tokens": 812,
        "completion_tokens": 240,
        "total_tokens": 1052,
        "prompt_tokens_details": {"cached_tokens": 12},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    fast = bench.model("fast", reply("x", usage=usage), served_name=f"{bench.tag}/served", facts=dict(factories.PRICES))
    key = bench.key(name=f"{bench.tag}-key", owner="ann")
    before = datetime.now(UTC)
    answer = bench.ask(fast, key=key)
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["call"], row["panel"], row["request"]) == (answer.headers["x-bench-call"], answer.headers["x-bench-panel"], answer.headers["x-request-id"])
    assert (row["purpose"], row["seat"], row["collection"]) == ("direct", "direct", "")
    assert (row["judge"], row["key_name"], row["endpoint"], row["served_name"]) == ("ann", f"{bench.tag}-key", f"{bench.tag}-here", f"{bench.tag}/served")
    assert (row["status"], row["http_status"], row["code"], row["error"], row["finish_reason"]) == ("ok", 200, "", "", "stop")
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "estimated")
    assert tuple(row[c] for c in counts) == (812, 240, 12, 0, 40, False)
    assert row["cost_pusd"] == 766_000_000
    started = datetime.fromisoformat(row["started_at"])
    assert before - timedelta(seconds=5) < started < datetime.now(UTC)
    assert 0 <= row["latency_ms"] < 60_000


def test_a_panel_is_one_row_a_seat_with_one_panel_id(bench: Bench) -> None:
    core = bench.collection([bench.model("one", reply("x", usage=(5, 3))), bench.model("two", status(429, "slow down"))])
    told = bench.ask(core).json["bench"]
    one, two = sorted(bench.live.attempts(2, panel=told["panel"]), key=lambda r: r["model"])
    assert [one["call"], two["call"]] == [s["call"] for s in told["seats"]]
    assert {one["purpose"], two["purpose"]} == {"panel"}
    assert {one["collection"], two["collection"]} == {core.removeprefix("bench/")}
    assert (one["status"], two["status"], two["http_status"], two["code"]) == ("ok", "rate_limited", 429, "rate_limit_exceeded")
    assert two["output_tokens"] == 0
    assert not two["cost_pusd"]


def test_a_skipped_seat_made_no_call_and_has_no_row(bench: Bench) -> None:
    core = bench.collection([bench.model("small", facts={"context_window": 100}), bench.model("large")])
    told = bench.ask(core, "word " * 500).json["bench"]
    assert [r["model"] for r in bench.live.attempts(1, panel=told["panel"])] == [f"{bench.tag}-large"]


def test_a_stream_has_the_time_of_its_first_token(bench: Bench) -> None:
    fast = bench.model("fast", reply(["a", "b"]))
    with bench.stream(fast) as stream:
        stream.rest()
    (row,) = bench.live.attempts(1, model=fast)
    assert row["ttft_ms"] is not None
    assert 0 <= row["ttft_ms"] <= row["latency_ms"]


def test_a_refused_request_leaves_no_row(bench: Bench) -> None:
    fast = bench.model("fast")
    assert bench.ask(fast, max_tokens="many").status == 400
    assert bench.ask(fast, key="bw_live_wrong").status == 401
    assert bench.ask(fast).status == 200
    bench.live.attempts(1, model=fast)


def test_a_price_of_a_day_is_used_from_that_day_on(bench: Bench) -> None:
    fast = bench.model("fast", reply("x", usage=(1_000_000, 0)), facts={"input_usd_per_mtok": "2", "output_usd_per_mtok": "1"})
    bench.ask(fast)
    (row,) = bench.live.attempts(1, model=fast)
    assert row["cost_pusd"] == 2 * 10**12


def test_a_panel_can_be_read_back_as_it_was_answered(bench: Bench) -> None:
    core = bench.collection([bench.model("one", reply("said"), facts=dict(factories.PRICES)), bench.model("two", status(500))])
    told = bench.ask(core).json["bench"]
    read = bench.live.api("GET", f"panels/{told['panel']}")
    for field in ("panel", "collection", "mode", "status", "cost_usd"):
        assert read[field] == told[field]
    for was, now in zip(told["seats"], read["seats"], strict=True):
        for field in ("call", "model", "seat", "status", "text", "finish_reason", "usage", "cost_usd", "error"):
            assert now[field] == was[field], field


def test_a_direct_call_is_a_panel_of_one_seat_without_its_text(bench: Bench) -> None:
    answer = bench.ask(bench.model("fast", reply("private words")))
    read = bench.live.api("GET", f"panels/{answer.headers['x-bench-panel']}")
    assert [s["call"] for s in read["seats"]] == [answer.headers["x-bench-call"]]
    assert "private words" not in str(read)
