"""Picking by record through the doors: who sits, who takes a turn, why, and that everybody plays."""

from __future__ import annotations

import itertools
from typing import Any

from panels import picking
from panels.picking import Belief, Beliefs
from tests.fake import reply
from tests.live import Bench, eventually


def members(bench: Bench, *names: str) -> list[str]:
    return [bench.model(name, reply(f"says {name}"), endpoint=bench.endpoint(f"at-{name}")) for name in names]


def asked(bench: Bench, core: str) -> tuple[str, dict[str, str]]:
    """One panel: its id, and the call of each model that sat. It is on record then, so that the next one knows of it in whichever worker."""
    told = bench.ask(core).json["bench"]
    panel_of(bench, told["panel"])
    return told["panel"], {seat["model"]: seat["call"] for seat in told["seats"]}


def judge(bench: Bench, calls: dict[str, str], good: str) -> None:
    for model, call in calls.items():
        bench.live.api("POST", "verdict", {"call": call, "useful": model == good})


def panel_of(bench: Bench, panel: str) -> Any:
    return bench.live.api("GET", f"panels/{panel}")


def test_before_any_verdict_the_first_members_sit_and_without_a_number_all_do(bench: Bench) -> None:
    a, b, c = members(bench, "a", "b", "c")
    some, everybody = bench.collection([a, b, c], "some", picking="record", seats=2), bench.collection([a, b, c], "everybody", picking="record")
    fixed = bench.collection([c, b, a], "fixed", seats=1)
    for _ in range(3):
        panel, calls = asked(bench, some)
        assert list(calls) == [a, b]
    assert panel_of(bench, panel)["picked"] is None
    assert set(asked(bench, everybody)[1]) == {a, b, c}
    assert list(asked(bench, fixed)[1]) == [c]


def test_verdicts_decide_who_sits_and_the_pick_can_be_made_again_from_what_is_kept(bench: Bench) -> None:
    a, b, c = members(bench, "a", "b", "c")
    core = bench.collection([a, b, c], picking="record", seats=1)
    whole = bench.collection([a, b, c], "whole")
    bench.load()
    name = core.removeprefix("bench/")
    # Verdicts in this collection: all sit for a while, and c alone is useful.
    bench.live.api("PATCH", f"collections/{name}", {"seats": None})
    for _ in range(6):
        judge(bench, asked(bench, core)[1], c)
    bench.live.api("PATCH", f"collections/{name}", {"seats": 1})
    panel, calls = asked(bench, core)
    assert list(calls) == [c]
    kept = panel_of(bench, panel)
    beliefs = Beliefs({alias: Belief(x, y) for alias, (x, y, _) in kept["picked"]["draws"].items()})
    assert set(beliefs.of) == {a, b, c}
    again = picking.draws([a, b, c], beliefs, kept["seed"])
    assert {alias: round(drawn, 4) for alias, drawn in again.items()} == {alias: round(d, 4) for alias, (_, _, d) in kept["picked"]["draws"].items()}
    assert kept["picked"]["forced"] == []
    # Verdicts elsewhere decide nothing here.
    assert set(asked(bench, whole)[1]) == {a, b, c}


def test_the_useful_member_takes_route_turns_and_keeps_its_conversation(bench: Bench) -> None:
    a, b = members(bench, "a", "b")
    core = bench.collection([a, b], picking="record", keep_text=True)

    def routed(prompt: Any) -> Any:
        return bench.ask(f"{core}:route", prompt)

    first = routed("begin here")
    assert first.headers["x-bench-model"] == a
    for _ in range(8):
        judge(bench, asked(bench, core)[1], b)
    # Each time another conversation: one that began before its worker had read the verdicts stays where it began.
    news = itertools.count(1)
    fresh = eventually(lambda: found if (found := routed(f"something new, {next(news)}")).headers["x-bench-model"] == b else None, "a pick by record")
    on = [{"role": "user", "content": "begin here"}, {"role": "assistant", "content": "says a"}, {"role": "user", "content": "and on"}]
    assert routed(on).headers["x-bench-model"] == a, "a conversation stays where it is"
    kept = panel_of(bench, fresh.headers["x-bench-panel"])
    assert set(kept["picked"]["draws"]) == {a, b}
    assert kept["seed"]


def test_every_member_sits_within_the_promised_panels_in_whichever_worker(bench: Bench) -> None:
    a, b, c = names = members(bench, "a", "b", "c")
    core = bench.collection(names, picking="record", seats=2)
    judge(bench, asked(bench, core)[1], a)
    within = picking.turn_within(3, 2)
    sat, forced = [], []
    for _ in range(within + within // 2):
        panel, calls = asked(bench, core)
        assert len(calls) == 2
        sat.append(set(calls))
        if c in calls:
            bench.live.api("POST", "verdict", {"call": calls[c], "useful": False})
            forced += (panel_of(bench, panel)["picked"] or {"forced": []})["forced"]
        elif len(sat) < 12:
            judge(bench, calls, a if len(sat) % 2 else b)
    for start in range(len(sat) - within + 1):
        assert set().union(*sat[start : start + within]) == set(names)
    assert set(forced) <= {c}


def test_a_member_that_cannot_is_passed_over_while_another_can(bench: Bench) -> None:
    small = bench.model("small", facts={"context_window": 100})
    [big] = members(bench, "big")
    core = bench.collection([small, big], picking="record", seats=1)
    told = bench.ask(core, "word " * 500).json["bench"]
    assert [(seat["model"], seat["status"]) for seat in told["seats"]] == [(big, "ok")]


def test_the_number_of_seats_is_a_field_like_any_other(bench: Bench) -> None:
    [a] = members(bench, "a")
    name = bench.collection([a], seats=3).removeprefix("bench/")
    bench.load()
    assert bench.live.api("GET", f"collections/{name}")["seats"] == 3
    assert bench.live.api("PATCH", f"collections/{name}", {"seats": None})["seats"] is None
    assert bench.live.api("PATCH", f"collections/{name}", {"seats": 0}, status=400)["field"] == "seats"
