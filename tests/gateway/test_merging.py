"""The merged answer: who writes it, what that model reads, and what becomes of a panel that cannot be merged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake import reply, status
from tests.gateway.shape import check_bench
from tests.live import Bench


def read_by(bench: Bench, writer: str, n: int = 0) -> str:
    """What a merger was sent last."""
    return str(bench.fake.call(writer, n).json["messages"][-1]["content"])


def test_a_merger_reads_answers_without_names_in_an_order_that_is_recorded(bench: Bench) -> None:
    said = {"alpha": "the first says yes", "beta": "the second says no", "gamma": "the third cannot tell"}
    members = [bench.model(name, reply(text)) for name, text in said.items()]
    writer = bench.model("writer", reply("merged"))
    core = f"{bench.collection(members, mergers=[writer])}:merged"
    orders = set()
    for n in range(6):
        told = bench.ask(core, f"Is it so? ({n})").json["bench"]
        seats = {s["call"]: s for s in check_bench(told)}
        prompt = read_by(bench, writer, n)
        assert f"Is it so? ({n})" in prompt
        for seat in seats.values():
            assert seat["call"] not in prompt
            assert seat["model"] not in prompt
        bench.live.attempts(4, panel=told["panel"])
        (row,) = bench.live.rows("panels.Panel", id=told["panel"])
        order = row["merge_order"]
        assert sorted(order) == sorted(call for call, s in seats.items() if s["seat"] == "member")
        places = [prompt.index(seats[call]["text"]) for call in order]
        assert places == sorted(places), "the record tells the order that was read"
        orders.add(tuple(seats[call]["model"] for call in order))
    assert len(orders) > 1, "it is another order now and then"


def test_the_labels_of_a_merged_text_are_told(bench: Bench) -> None:
    one, two, writer = bench.model("one", reply("alpha")), bench.model("two", reply("beta")), bench.model("writer", reply("A and B agree."))
    answer = bench.ask(f"{bench.collection([one, two], mergers=[writer])}:merged")
    text = answer.content
    assert text.startswith("A and B agree.")
    for seat in check_bench(answer.json["bench"])[:2]:
        assert f"{seat['model']} · member · {seat['call']}" in text
    assert "Answer A: " in text
    assert "Answer B: " in text
    assert "consensus" in read_by(bench, writer), "two answers are none"


@pytest.mark.parametrize("others", [[status(500)], [status(500), status(429)], []])
def test_one_answer_alone_is_returned_as_its_seats(bench: Bench, others: list[Any]) -> None:
    only = bench.model("only", reply("alpha"))
    writer = bench.model("writer", reply("merged"))
    members = [only, *(bench.model(f"bad{n}", answer) for n, answer in enumerate(others))]
    answer = bench.ask(f"{bench.collection(members, mergers=[writer])}:merged")
    assert not bench.fake.calls_to(writer)
    assert "alpha" in answer.content
    assert f"{only} · member" in answer.content
    told = answer.json["bench"]
    assert (told["mode"], told["status"]) == ("merged", "degraded" if others else "complete")


@pytest.mark.parametrize("streamed", [False, True])
def test_the_next_merger_writes_where_one_fails(bench: Bench, streamed: bool) -> None:
    one, two = bench.model("one", reply("alpha")), bench.model("two", reply("beta"))
    bad, good = bench.model("bad", status(503)), bench.model("good", reply("merged by the second"))
    core = f"{bench.collection([one, two], mergers=[bad, good])}:merged"
    if streamed:
        with bench.stream(core) as stream:
            events = stream.events()
        (told,) = [e["bench"] for e in events if isinstance(e, dict) and "bench" in e]
    else:
        answer = bench.ask(core)
        assert "merged by the second" in answer.content
        told = answer.json["bench"]
    assert [(s["model"], s["status"]) for s in check_bench(told) if s["seat"] == "merger"] == [(bad, "error"), (good, "ok")]
    rows = bench.live.attempts(4, panel=told["panel"])
    assert {r["purpose"] for r in rows} == {"merged"}


def test_without_mergers_of_its_own_the_members_merge_in_order(bench: Bench) -> None:
    one, two = bench.model("one", reply("alpha"), reply("merged by a member"), ad_hoc=False), bench.model("two", reply("beta"), ad_hoc=False)
    try:
        answer = bench.ask(f"{bench.collection([one, two])}:merged")
        assert "merged by a member" in answer.content
    finally:
        for name in (one, two):
            bench.models[name]["ad_hoc"] = True
        bench._changed = True
        bench.load()


def test_a_collections_own_prompt_is_what_its_merger_reads(bench: Bench) -> None:
    one, two, writer = bench.model("one", reply("<alpha> & co")), bench.model("two", reply("{{ beta }}")), bench.model("writer", reply("merged"))
    own = "Weigh {{ count }} for: {{ question }}\n{% for a in answers %}[{{ a.label }}] {{ a.text }}\n{% endfor %}"
    bench.ask(f"{bench.collection([one, two], mergers=[writer], merge_prompt=own)}:merged", "why <this>?")
    prompt = read_by(bench, writer)
    assert prompt.startswith("Weigh 2 for: why <this>?")
    assert "<alpha> & co" in prompt, "it is no page"
    assert "{{ beta }}" in prompt, "an answer is text and never a template"


@pytest.mark.parametrize(
    "broken",
    [
        "{% if %}",
        "{% nothing %}",
        "{{ answers|nothing }}",
        "{% include 'no/such.html' %}",
        "{% include 'admin/login.html' %}",
        "{% endautoescape %}",
        "{% load static %}",
    ],
)
def test_a_prompt_that_is_no_template_is_refused_where_it_is_written(bench: Bench, broken: str) -> None:
    one, two, writer = bench.model("one", reply("alpha")), bench.model("two", reply("beta")), bench.model("writer", reply("merged"))
    core = bench.collection([one, two], mergers=[writer])
    bench.load()
    path = f"/bench/collections/{core.removeprefix('bench/')}"
    refused = bench.live.send("PATCH", path, {"merge_prompt": broken}, key=bench.live.operator_key)
    assert refused.status == 400, refused.body[:300]
    assert "merge_prompt is no template" in refused.text
    assert "merged" in bench.ask(f"{core}:merged").content


def test_a_prompt_that_fails_on_what_was_answered_leaves_the_answers_side_by_side(bench: Bench) -> None:
    one, two, writer = bench.model("one", reply("alpha")), bench.model("two", reply("beta")), bench.model("writer", reply("merged"))
    # It is filled in with short answers; with these a tag of it fails.
    own = "{% for a in answers %}{% if a.text %}{% include 'no/such.html' %}{% endif %}{% endfor %}"
    core = f"{bench.collection([one, two], mergers=[writer], merge_prompt=own)}:merged"
    answer = bench.ask(core)
    told = answer.json["bench"]
    assert (told["mode"], told["status"]) == ("merged", "degraded")
    assert told["reason"].startswith("unmerged")
    assert "alpha" in answer.content
    assert "beta" in answer.content
    assert not bench.fake.calls_to(writer)


def test_a_merger_that_does_not_hold_all_answers_is_passed_over(bench: Bench) -> None:
    one, two = bench.model("one", reply("alpha " * 300)), bench.model("two", reply("beta " * 300))
    small, large = bench.model("small", facts={"context_window": 700}), bench.model("large", reply("merged"), facts={"context_window": 100_000})
    answer = bench.ask(f"{bench.collection([one, two], mergers=[small, large])}:merged")
    assert "merged" in answer.content
    assert not bench.fake.calls_to(small)
    told = answer.json["bench"]
    seats = check_bench(told)
    assert [(s["model"], s["status"]) for s in seats if s["seat"] == "merger"] == [(small, "skipped"), (large, "ok")]
    kept = bench.live.api("GET", f"panels/{told['panel']}")["seats"]
    assert [(s["model"], s["status"]) for s in kept if s["seat"] == "merger"] == [(small, "skipped"), (large, "ok")]
