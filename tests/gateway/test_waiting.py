"""How long a panel waits, and what happens to those who do not wait for it."""

from __future__ import annotations

import time

from tests.fake import hang, reply
from tests.gateway.shape import check_bench
from tests.http import content_of
from tests.live import Bench, eventually

AT_MOST_S = 20.0  # far more than any of these takes, far less than the limits that must not be what ended them


def test_a_quorum_ends_the_wait_after_its_grace(bench: Bench) -> None:
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", hang())
    core = bench.collection([quick, slow], quorum=1, grace_s=1, timeout_s=300)
    began = time.monotonic()
    told = bench.ask(core).json["bench"]
    assert time.monotonic() - began < AT_MOST_S
    ok, late = check_bench(told)
    assert (ok["status"], told["status"]) == ("ok", "degraded")
    assert late["status"] in ("timeout", "cancelled")


def test_a_late_answer_is_recorded_and_open_to_verdicts(bench: Bench) -> None:
    gate = bench.fake.gate()
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", reply("late words", usage=(5, 3)).after(gate))
    core = bench.collection([quick, slow], quorum=1, grace_s=0, timeout_s=60)
    told = bench.ask(core).json["bench"]
    late = check_bench(told)[1]
    assert late["text"] in ("", None)
    gate.open()
    seat = eventually(
        lambda: next((s for s in bench.live.api("GET", f"panels/{told['panel']}")["seats"] if s["call"] == late["call"] and s["status"] == "ok"), None),
        "the late answer on record",
    )
    assert seat["text"] == "late words"
    assert bench.live.api("POST", "verdict", {"call": late["call"], "useful": True})["call"] == late["call"]
    rows = bench.live.attempts(2, panel=told["panel"])
    assert sorted((r["model"], r["status"], r["output_tokens"]) for r in rows) == [(quick, "ok", 7), (slow, "ok", 3)]


def test_a_timeout_ends_the_wait_for_everyone(bench: Bench) -> None:
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", hang())
    began = time.monotonic()
    told = bench.ask(bench.collection([quick, slow], timeout_s=1)).json["bench"]
    assert time.monotonic() - began < AT_MOST_S
    assert [s["status"] for s in check_bench(told)] == ["ok", "timeout"]
    bench.fake.closed(slow)


def test_a_stream_whose_seats_are_slow_ends_at_its_timeout(bench: Bench) -> None:
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", reply(["one", "two"]).holding(bench.fake.gate(), after="one"))
    with bench.stream(bench.collection([quick, slow], timeout_s=2)) as stream:
        events = stream.events()
    assert events[-1] == "[DONE]"
    assert "quick" in content_of(events)
    bench.fake.closed(slow)


def test_silence_inside_a_stream_has_a_limit_of_its_own(bench: Bench) -> None:
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", reply(["one", "two"]).holding(bench.fake.gate(), after="one"))
    core = bench.collection([quick, slow], timeout_s=300, idle_timeout_s=1, first_token_timeout_s=30)
    with bench.stream(core) as stream:
        (told,) = [e["bench"] for e in stream.events() if isinstance(e, dict) and "bench" in e]
    assert check_bench(told)[1]["status"] in ("timeout", "partial")


def test_a_first_token_that_never_comes_has_a_limit_of_its_own(bench: Bench) -> None:
    quick, slow = bench.model("quick", reply("quick")), bench.model("slow", hang())
    core = bench.collection([quick, slow], timeout_s=300, first_token_timeout_s=1)
    with bench.stream(core) as stream:
        (told,) = [e["bench"] for e in stream.events() if isinstance(e, dict) and "bench" in e]
    assert [s["status"] for s in check_bench(told)] == ["ok", "timeout"]


def test_a_caller_that_hangs_up_on_a_stream_cancels_every_seat(bench: Bench) -> None:
    one = bench.model("one", reply(["begun ", "never"]).holding(bench.fake.gate(), after="begun "))
    two = bench.model("two", hang())
    stream = bench.stream(bench.collection([one, two]))
    bench.fake.wait_for(lambda: bench.fake.call(one).begun_at and bench.fake.calls_to(two), "both seats asked")
    gone = time.monotonic()
    stream.close()
    for name in (one, two):
        closed_at = bench.fake.closed(name).closed_at
        assert closed_at is not None
        assert closed_at - gone < AT_MOST_S
    rows = bench.live.attempts(2, panel=stream.headers["x-bench-panel"])
    assert {r["status"] for r in rows} == {"cancelled"}


def test_a_caller_that_hangs_up_on_a_whole_answer_cancels_too(bench: Bench) -> None:
    slow = bench.model("slow", hang())
    bench.load()
    import json
    import socket

    body = json.dumps({"model": slow, "messages": [{"role": "user", "content": "hi"}]}).encode()
    sock = socket.create_connection((bench.live.host, bench.live.port), timeout=30)
    sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    bench.fake.call(slow)
    sock.close()
    bench.fake.closed(slow)
    (row,) = bench.live.attempts(1, model=slow)
    assert row["status"] == "cancelled"


def test_what_a_gone_caller_had_received_is_on_record(bench: Bench) -> None:
    fast = bench.model("fast", reply(["one two three ", "never"]).holding(bench.fake.gate(), after="one two three "))
    with bench.stream(fast) as stream:
        stream.until("three")
    bench.fake.closed(fast)
    (row,) = bench.live.attempts(1, model=fast)
    assert row["status"] == "cancelled"
    assert row["estimated"] is True
    assert row["output_tokens"] > 0
    assert row["input_tokens"] > 0


def test_a_caller_that_leaves_once_the_answer_is_over_has_an_ok_call(bench: Bench) -> None:
    fast = bench.model("fast", reply("all of it", usage=(5, 3)).holding(bench.fake.gate(), after='"finish_reason": "stop"'))
    with bench.stream(fast) as stream:
        bench.fake.wait_for(lambda: bench.fake.call(fast).begun_at, "the answer's beginning")
        stream.until("all of it")
        # The finish reason follows the text at once; one more keepalive says that the gateway has read on.
        stream.until(": ")
    bench.fake.closed(fast)
    (row,) = bench.live.attempts(1, model=fast)
    assert row["status"] == "ok"
