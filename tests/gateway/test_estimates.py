"""What a question would cost, told before it is asked: nothing is sent and nothing is spent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.fake import reply, status
from tests.gateway.asking import body_of
from tests.live import Bench

PRICED = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "vision": False, "context_window": 100_000, "output_limit": 5_000}


def estimate(bench: Bench, model: str, prompt: Any = "hi", wishes: Any = None, *, key: str | None = None, **more: Any) -> Any:
    answer = bench.load().live.send("POST", "/bench/estimate", body_of(model, prompt, wishes, **more), key=key)
    assert answer.status == 200, answer.body
    return answer.json


def test_a_panel_is_reckoned_seat_by_seat_and_nobody_is_asked(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply("x"), facts=PRICED) for n in range(2)]
    core = bench.collection(members)
    told = estimate(bench, core, max_completion_tokens=1_000)
    tokens = told["input_tokens"]
    assert tokens > 0
    assert (told["model"], told["mode"], told["unknown"]) == (core, "panel", [])
    for alias, seat in zip(members, told["seats"], strict=True):
        usual, most = Decimal(tokens + 2 * 800) / 10**6, Decimal(tokens + 2 * 1_000) / 10**6
        assert {**seat, "cost_usd": None} == {
            "model": alias,
            "seat": "member",
            "status": "ready",
            "reason": None,
            "input_tokens": tokens,
            "output_tokens": {"typical": 800, "most": 1_000},
            "cost_usd": None,
        }
        assert {name: Decimal(usd) for name, usd in seat["cost_usd"].items()} == {"typical": usual, "most": most}
    assert {name: Decimal(usd) for name, usd in told["cost_usd"].items()} == {"typical": 2 * usual, "most": 2 * most}
    assert not [c for m in members for c in bench.fake.calls_to(m)]


def test_the_usual_output_is_what_a_models_good_answers_came_to(bench: Bench) -> None:
    alias = bench.model("fast", reply("x", usage=(5, 100)), reply("x", usage=(5, 201)), status(500), reply("x", usage=(5, 9)), facts=PRICED)
    for _ in range(3):
        bench.ask(alias)
    bench.live.attempts(3, model=alias)
    assert estimate(bench, alias)["seats"][0]["output_tokens"] == {"typical": 151, "most": 5_000}
    assert estimate(bench, alias, max_completion_tokens=50)["seats"][0]["output_tokens"] == {"typical": 50, "most": 50}


def test_a_merger_reads_all_answers_and_stands_last(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply("x"), facts=PRICED) for n in range(2)]
    merger = bench.model("merger", reply("x"), facts=PRICED)
    told = estimate(bench, f"{bench.collection(members, mergers=[merger])}:merged")
    last = told["seats"][-1]
    assert (last["model"], last["seat"]) == (merger, "merger")
    assert last["input_tokens"] > told["input_tokens"] + 2 * 800
    assert Decimal(last["cost_usd"]["most"]) > Decimal(last["cost_usd"]["typical"])


def test_a_model_without_a_price_is_named_and_left_out_of_the_sums(bench: Bench) -> None:
    known, unknown = bench.model("known", reply("x"), facts=PRICED), bench.model("unknown", reply("x"))
    told = estimate(bench, bench.collection([known, unknown]))
    assert told["unknown"] == [unknown]
    assert told["seats"][1]["cost_usd"] is None
    assert told["cost_usd"] == told["seats"][0]["cost_usd"]
    assert estimate(bench, unknown)["cost_usd"] == {"typical": None, "most": None}


def test_who_cannot_take_it_is_skipped_with_the_reason_and_costs_nothing(bench: Bench) -> None:
    small = bench.model("small", reply("x"), facts={**PRICED, "context_window": 100})
    told = estimate(bench, bench.collection([small, bench.model("big", reply("x"), facts=PRICED)]), "word " * 1_000)
    seat = told["seats"][0]
    assert (seat["status"], seat["reason"]["code"], seat["input_tokens"], seat["cost_usd"]) == ("skipped", "context_too_small", 0, None)


@pytest.mark.parametrize("mode", ["direct", "route"])
def test_one_model_alone(bench: Bench, mode: str) -> None:
    alias = bench.model("fast", reply("x"), facts=PRICED)
    core = bench.collection([alias, bench.model("other", reply("x"), facts=PRICED)])
    told = estimate(bench, alias if mode == "direct" else f"{core}:route")
    assert [(s["model"], s["seat"]) for s in told["seats"]] == [(alias, mode)]
    assert told["mode"] == mode


def test_seats_by_name_are_reckoned_as_they_would_sit(bench: Bench) -> None:
    a, b = bench.model("a", reply("x"), facts=PRICED), bench.model("b", reply("x"), facts=PRICED)
    told = estimate(bench, bench.collection([a]), wishes={"seats": [b, b]})
    assert [s["model"] for s in told["seats"]] == [b, b]


def test_what_would_be_refused_is_refused_here_too(bench: Bench) -> None:
    core = bench.collection([bench.model("a", reply("x"), facts=PRICED)])
    key = bench.key(collections=["another"])
    live = bench.live
    assert live.send("POST", "/bench/estimate", body_of(core), key=key).status == 403
    assert live.send("POST", "/bench/estimate", body_of("no-such-model")).json["code"] == "model_not_found"
    assert live.send("POST", "/bench/estimate", body_of(core, n=2)).json["field"] == "n"
