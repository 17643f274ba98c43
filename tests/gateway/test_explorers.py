"""Explorer seats: the models that have gone unused longest get a turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import factories
from tests.fake import reply
from tests.gateway.shape import check_bench
from tests.live import Bench


@pytest.fixture
def explorable(bench: Bench) -> Iterator[list[str]]:
    """Three models that may explore; afterwards none of them may any more."""
    bench.no_explorers_but_mine()
    names = [bench.model(f"new{n}", reply(f"explored {n}"), ad_hoc=False, facts={"context_window": 100_000}) for n in range(3)]
    yield names
    for name in names:
        bench.models[name]["ad_hoc"] = True
    bench._changed = True
    bench.load()


def explorers(bench: Bench, core: str, prompt: str = "hi") -> list[str]:
    """Who explored in one panel; its rows are written then, so that the next panel knows of it in whichever worker."""
    told = bench.ask(core, prompt).json["bench"]
    seats = check_bench(told)
    bench.live.attempts(sum(s["status"] != "skipped" for s in seats), panel=told["panel"])
    return [s["model"] for s in seats if s["seat"] == "explorer"]


def test_the_models_unused_longest_take_turns(bench: Bench, explorable: list[str]) -> None:
    core = bench.collection([bench.model("fixed")], explorers=1)
    first_round = [explorers(bench, core)[0] for _ in range(3)]
    assert sorted(first_round) == sorted(explorable)
    assert [explorers(bench, core)[0] for _ in range(3)] == first_round


def test_several_explorers_are_different_models(bench: Bench, explorable: list[str]) -> None:
    core = bench.collection([bench.model("fixed")], explorers=2)
    seated = explorers(bench, core)
    assert len(set(seated)) == 2
    assert set(explorable) - set(seated) <= set(explorers(bench, core))


def test_a_member_does_not_explore_beside_itself(bench: Bench, explorable: list[str]) -> None:
    core = bench.collection(explorable[:2], explorers=3)
    assert explorers(bench, core) == [explorable[2]]


def test_a_model_that_the_prompt_does_not_fit_is_not_picked(bench: Bench, explorable: list[str]) -> None:
    small = explorable[0]
    bench.models[small]["facts"] = {"context_window": 100}
    bench._changed = True
    core = bench.collection([bench.model("fixed")], explorers=3)
    assert small not in explorers(bench, core, "word " * 500)
    assert not bench.fake.calls_to(small)


def test_a_budget_passes_over_explorers_of_unknown_price(bench: Bench, explorable: list[str]) -> None:
    bench.models[explorable[2]]["facts"] = {"context_window": 100_000, **factories.PRICES}
    bench._changed = True
    core = bench.collection([bench.model("fixed", facts=dict(factories.PRICES))], explorers=3)
    key = bench.key(budget_usd="5")
    told = bench.ask(core, key=key).json["bench"]
    assert [s["model"] for s in told["seats"] if s["seat"] == "explorer"] == [explorable[2]]
    assert sorted(explorers(bench, core)) == sorted(explorable)


def test_the_seed_that_broke_ties_is_recorded(bench: Bench, explorable: list[str]) -> None:
    core = bench.collection([bench.model("fixed")], explorers=1)
    seeds = set()
    for _ in range(3):
        panel = bench.ask(core).json["bench"]["panel"]
        (row,) = bench.live.rows("panels.Panel", id=panel) or (bench.live.api("GET", f"panels/{panel}") and bench.live.rows("panels.Panel", id=panel))
        seeds.add(row["seed"])
    assert len(seeds) == 3
