"""Stopping what runs: one seat, a whole panel, a single call; from any worker, and only by who asked or an operator."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests import factories
from tests.fake import reply
from tests.gateway.asking import ask, events_in, named, signed_in, started
from tests.http import Reply, Stream
from tests.live import Bench, eventually


def held(bench: Bench, name: str, gate: Any = None) -> str:
    """A model that says a word and then waits."""
    answer = reply([f"{name} begins ", "and ends"]).holding(gate or bench.fake.gate(), f"{name} begins ")
    return bench.model(name, answer, endpoint=bench.endpoint(name), facts=dict(factories.PRICES))


def cancel(bench: Bench, what: str, name: str, key: str | None = None) -> Reply:
    return bench.live.send("POST", f"/bench/{what}/{name}/cancel", key=key)


def test_one_seat_is_stopped_and_the_panel_goes_on(bench: Bench) -> None:
    gate = bench.fake.gate()
    slow, other = held(bench, "slow"), held(bench, "other", gate)
    core = bench.collection([slow, other])
    with ask(bench, core) as stream:
        panel = started(stream)
        stream.until('"text":"slow begins ')
        call = panel["seats"][0]["call"]
        answer = cancel(bench, "calls", call)
        assert (answer.status, answer.json) == (202, {"call": call, "status": "cancelling"})
        stream.until("event: seat\n")
        eventually(lambda: bench.fake.calls_to(slow)[0].closed_at, "the provider's connection is closed")
        gate.open()
        events = events_in(stream.rest())
    first, second = named(events, "seat")
    assert (first["call"], first["status"], first["text"], first["error"]["code"]) == (call, "cancelled", "slow begins ", "cancelled")
    assert (second["status"], second["text"]) == ("ok", "other begins and ends")
    assert named(events, "done")[0]["status"] == "degraded"
    kept = eventually(lambda: k if (k := bench.live.api("GET", f"panels/{panel['panel']}"))["status"] == "degraded" else None, "the panel is on record")
    assert [(s["status"], s["text"]) for s in kept["seats"]] == [("cancelled", "slow begins "), ("ok", "other begins and ends")]
    assert {row["model"]: row["status"] for row in bench.live.attempts(2, panel=panel["panel"])} == {slow: "cancelled", other: "ok"}


def test_a_whole_panel_is_stopped(bench: Bench) -> None:
    core = bench.collection([held(bench, "a"), held(bench, "b")])
    with ask(bench, core) as stream:
        panel = started(stream)
        stream.until("a begins ")
        stream.until("b begins ")
        answer = cancel(bench, "panels", panel["panel"])
        assert (answer.status, answer.json) == (202, {"panel": panel["panel"], "status": "cancelling"})
        events = events_in(stream.rest())
    assert [s["status"] for s in named(events, "seat")] == ["cancelled", "cancelled"]
    assert (events[-1][0], events[-1][1]["code"], events[-1][1]["status"]) == ("error", "cancelled", 409)


def test_a_stopped_panel_is_not_merged(bench: Bench) -> None:
    quick = [bench.model(n, reply(n)) for n in ("one", "two")]
    merger = bench.model("merger", reply("merged"))
    core = bench.collection([*quick, held(bench, "slow")], mergers=[merger])
    with ask(bench, f"{core}:merged") as stream:
        panel = started(stream)
        stream.until("slow begins ")
        eventually(lambda: stream.until("event: seat\n").count("event: seat\n") >= 1, "a seat is over")
        assert cancel(bench, "panels", panel["panel"]).status == 202
        done = named(events_in(stream.rest()), "done")[0]
    assert done["text"] is None
    assert "stopped" in done["reason"]
    assert not bench.fake.calls_to(merger)


def test_a_merger_that_is_stopped_leaves_the_answers_side_by_side(bench: Bench) -> None:
    quick = [bench.model(n, reply(n)) for n in ("one", "two")]
    mergers = [held(bench, "merger"), bench.model("next", reply("next"))]
    core = bench.collection(quick, mergers=mergers)
    with ask(bench, f"{core}:merged") as stream:
        stream.until("merger begins ")
        call = named(events_in(stream.got), "seat_started")[0]["call"]
        assert cancel(bench, "calls", call).status == 202
        events = events_in(stream.rest())
    assert named(events, "seat")[-1]["status"] == "cancelled"
    done = named(events, "done")[0]
    assert (done["text"], "unmerged" in done["reason"]) == (None, True)
    assert not bench.fake.calls_to(mergers[1])


@pytest.mark.parametrize("mode", ["direct", "route"])
@pytest.mark.parametrize("what", ["calls", "panels"])
def test_a_single_call_is_stopped_with_what_had_come(bench: Bench, mode: str, what: str) -> None:
    alias = held(bench, "slow")
    core = bench.collection([alias, bench.model("next", reply("next"))])
    with ask(bench, alias if mode == "direct" else f"{core}:route") as stream:
        panel = started(stream)
        stream.until("slow begins ")
        assert cancel(bench, what, panel["seats"][0]["call"] if what == "calls" else panel["panel"]).status == 202
        events = events_in(stream.rest())
    (seat,) = named(events, "seat")
    assert (seat["status"], seat["text"], seat["model"]) == ("cancelled", "slow begins ", alias)
    assert events[-1][1]["code"] == "cancelled"
    assert not bench.fake.calls_to(f"{bench.tag}-next")
    assert [row["status"] for row in bench.live.attempts(1, panel=panel["panel"])] == ["cancelled"]


def test_a_chat_completion_is_stopped_by_its_call_from_any_worker(bench: Bench) -> None:
    alias = held(bench, "slow")
    with bench.stream(alias) as stream:
        stream.until("slow begins ")
        call = stream.headers["x-bench-call"]
        # Nothing in the database names a direct call before its end: the worker that runs it hears of it all the same.
        assert cancel(bench, "calls", call).status == 202
        assert b'"code":"cancelled"' in stream.rest().replace(b'": ', b'":')
    assert [row["status"] for row in bench.live.attempts(1, call=call)] == ["cancelled"]


def test_a_seat_that_still_waits_for_a_limit_is_stopped_unasked(bench: Bench) -> None:
    gate = bench.fake.gate()
    alias = bench.model("limited", reply(["begun ", "over"]).holding(gate, "begun "), limits={"parallel": 1})
    core = bench.collection([alias, alias])
    with ask(bench, core) as stream:
        stream.until('"text":"begun ')
        panel = started(stream)
        begun = named(events_in(stream.got), "seat_started")[0]["call"]
        waiting = next(s["call"] for s in panel["seats"] if s["call"] != begun)
        assert cancel(bench, "calls", waiting).status == 202
        stream.until("event: seat\n")
        gate.open()
        events = events_in(stream.rest())
    seats = {s["call"]: s for s in named(events, "seat")}
    assert (seats[waiting]["status"], seats[waiting]["tries"]) == ("cancelled", [])
    assert seats[begun]["status"] == "ok"
    assert len(bench.fake.calls_to(alias)) == 1


def refused_cancel(bench: Bench, what: str, name: str) -> Reply | None:
    answer = cancel(bench, what, name)
    return None if answer.status == 202 else answer


# ------------------------------------------------------------------ who may


def test_only_who_asked_may_stop_and_operators(bench: Bench) -> None:
    alias = held(bench, "slow")
    core = bench.collection([alias])
    mine, other = bench.key(), bench.key()
    viewer = signed_in(bench.live, f"{bench.tag}-judge", "judge")
    with ask(bench, core, key=mine) as stream:
        panel = started(stream)
        stream.until("slow begins ")
        call = panel["seats"][0]["call"]
        for _ in range(4):  # whichever worker is asked
            assert (refused := cancel(bench, "calls", call, other)).status == 403, refused.body
            assert cancel(bench, "panels", panel["panel"], other).status == 403
            assert cancel(bench, "panels", panel["panel"]).status == 403  # a keyless caller is not the key
            assert viewer.post(f"/bench/calls/{call}/cancel").status == 403
        assert cancel(bench, "calls", call, bench.live.operator_key).status == 202
        assert named(events_in(stream.rest()), "seat")[0]["status"] == "cancelled"


def test_somebody_elses_direct_call_is_refused_by_whoever_runs_it(bench: Bench) -> None:
    alias = held(bench, "slow")
    mine, other = bench.key(), bench.key()
    with bench.stream(alias, key=mine) as stream:
        stream.until("slow begins ")
        call = stream.headers["x-bench-call"]
        for _ in range(4):
            assert cancel(bench, "calls", call, other).status == 403
        assert cancel(bench, "calls", call, mine).status == 202
        stream.rest()


def test_what_is_over_and_what_never_was(bench: Bench) -> None:
    core = bench.collection([bench.model("quick", reply("x"))])
    with ask(bench, core) as stream:
        panel = started(stream)
        stream.rest()
    call = panel["seats"][0]["call"]
    for what, name in (("calls", call), ("panels", panel["panel"])):
        over = eventually(partial(refused_cancel, bench, what, name), "the end is on record")
        assert (over.status, over.json["code"]) == (409, "already_over")
    for what, name in (("calls", "call_00000000000000000000000000"), ("panels", "pan_00000000000000000000000000"), ("calls", "nonsense")):
        unknown = cancel(bench, what, name)
        assert (unknown.status, unknown.json["code"], unknown.headers["content-type"]) == (404, "not_found", "application/problem+json")
    assert bench.live.send("GET", f"/bench/calls/{call}/cancel", key=bench.live.operator_key).status == 405


def test_a_users_call_is_stopped_by_the_users_page(bench: Bench) -> None:
    alias = held(bench, "slow")
    core = bench.collection([alias])
    bench.load()
    kim = signed_in(bench.live, f"{bench.tag}-kim", "judge")
    stream = Stream(
        bench.live.host, bench.live.port, "/bench/ask", json.dumps({"model": core, "messages": [{"role": "user", "content": "hi"}]}).encode(), kim.headers()
    )
    with stream:
        panel = started(stream)
        stream.until("slow begins ")
        assert kim.post(f"/bench/panels/{panel['panel']}/cancel").status == 202
        assert named(events_in(stream.rest()), "seat")[0]["status"] == "cancelled"
