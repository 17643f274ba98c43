"""A panel that goes on when its caller leaves, as that of a page which is loaded anew."""

from __future__ import annotations

import pytest

from tests.fake import reply
from tests.gateway.asking import ask, body_of, events_in, named
from tests.gateway.test_panels import panel_of
from tests.live import Bench, eventually

DETACHED = {"detached": True}


def panel_id(bench: Bench, collection: str) -> str:
    found = bench.live.api("GET", f"panels?collection={collection.removeprefix('bench/')}")["data"]
    return str(found[0]["panel"])


@pytest.mark.parametrize("mode", ["", ":merged"])
def test_it_is_answered_whole_and_kept(bench: Bench, mode: str) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one"), reply(["three ", "four"]).holding(gate, "three"))
    with ask(bench, core + mode, wishes=DETACHED) as stream:
        stream.until('"text":"one')
        stream.until('"text":"three')
    gate.open()
    panel = panel_id(bench, core)
    eventually(lambda: bench.live.api("GET", f"panels/{panel}")["status"] != "running", "the panel goes on to its end")
    members = [seat for seat in bench.live.api("GET", f"panels/{panel}")["seats"] if seat["seat"] == "member"]
    assert [(seat["status"], seat["text"]) for seat in members] == [("ok", "one two"), ("ok", "three four")]


def test_a_direct_call_goes_on_as_well(bench: Bench) -> None:
    gate = bench.fake.gate()
    alias = bench.model("fast", reply(["one ", "two"]).holding(gate, "one"))
    with ask(bench, alias, wishes=DETACHED) as stream:
        stream.until('"text":"one')
    gate.open()
    assert [row["status"] for row in bench.live.attempts(1, model=alias)] == ["ok"]


def test_it_is_stopped_by_its_id(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one"), reply(["three ", "four"]).holding(gate, "three"))
    with ask(bench, core, wishes=DETACHED) as stream:
        stream.until('"text":"one')
        stream.until('"text":"three')
    panel = panel_id(bench, core)
    bench.live.api("POST", f"panels/{panel}/cancel", {}, status=202)
    eventually(lambda: bench.live.api("GET", f"panels/{panel}")["status"] != "running", "the panel is stopped")
    assert {seat["status"] for seat in bench.live.api("GET", f"panels/{panel}")["seats"]} == {"cancelled"}


def test_whoever_stays_hears_it_as_ever(bench: Bench) -> None:
    core = panel_of(bench, reply("alpha"))
    with ask(bench, core, wishes=DETACHED) as stream:
        assert named(events_in(stream.rest()), "done")[0]["status"] == "complete"


def test_the_wish_is_true_or_false(bench: Bench) -> None:
    core = panel_of(bench, reply("alpha"))
    refused = bench.load().live.send("POST", "/bench/ask", body_of(core, wishes={"detached": "yes"}))
    assert (refused.status, refused.json["field"]) == (400, "bench.detached")
