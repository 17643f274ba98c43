"""How near to a ceiling of cost a run comes with many calls at once, and with one that turns out dear: what is reckoned, and what that is worth."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from itertools import chain, repeat
from typing import Any

import pytest

from suite.running.standing import Ceilings, Standing

CALL = 1_000_000_000  # a tenth of a cent
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it. Shape: `dearer` is what the dearest calls that can be under way together cost above what they were reckoned at."""

    spent: int
    ended: int
    most_at_once: int
    dearer: int
    halting: str


def ran(most: int, costs: Iterable[int], seed: int = 7, member: str = "") -> Ran:
    """Plays a run whose samples cost so much, one after the other as they are started, and end in any order. `member` is whom the ceiling stands on."""
    standing = Standing(0, Ceilings({}, {member: most}) if member else Ceilings({"run.cost": most}), datetime(2026, 11, 30, tzinfo=UTC))
    under_way: dict[Any, int] = standing.under_way
    to_come, choice, truth = iter(costs), random.Random(seed), dict[object, int]()
    ended = most_at_once = 0
    dearer: list[int] = []
    while not standing.is_over:
        while len(under_way) < AT_ONCE and standing.may_spend():
            one = object()
            under_way[one], truth[one] = standing.expected_cost(), next(to_come)
        most_at_once = max(most_at_once, len(under_way))
        while under_way:
            one = choice.choice(list(under_way))
            reckoned = under_way.pop(one)
            dearer.append(max(0, truth[one] - reckoned))
            standing.add(truth[one], False, {member: truth[one]} if member else {})
            ended += 1
            if not standing.halting:
                break
    return Ran(standing.spent, ended, most_at_once, sum(nlargest(AT_ONCE, dearer)), standing.halting)


def test_calls_that_cost_the_same_overshoot_by_one_at_most_and_go_side_by_side() -> None:
    found = ran(200 * CALL + CALL // 2, repeat(CALL))
    assert found.halting == "limit_exceeded:run.cost"
    assert (found.spent, found.ended, found.most_at_once) == (201 * CALL, 201, AT_ONCE)


def test_a_ceiling_on_a_collections_member_is_reckoned_as_a_runs_is() -> None:
    found = ran(200 * CALL + CALL // 2, repeat(CALL), member="dear")
    assert found.halting == "limit_exceeded:run.model_cost"
    assert (found.spent, found.ended, found.most_at_once) == (201 * CALL, 201, AT_ONCE)


@pytest.mark.parametrize("dear", [10, 100, 1000])
@pytest.mark.parametrize("at", [1, 2, 51, 150, 200])
@pytest.mark.parametrize("seed", range(5))
def test_a_dear_one_overshoots_by_what_it_cost_and_by_no_other(dear: int, at: int, seed: int) -> None:
    most = 200 * CALL
    found = ran(most, chain(repeat(CALL, at - 1), [dear * CALL], repeat(CALL)), seed)
    assert found.halting == "limit_exceeded:run.cost"
    assert most <= found.spent < most + (dear + 1) * CALL


@pytest.mark.parametrize("seed", range(20))
def test_costs_that_vary_overshoot_by_what_those_under_way_were_dearer_and_one_call(seed: int) -> None:
    choice = random.Random(seed)
    costs = [int(CALL * choice.lognormvariate(0, 1.5)) for _ in range(5000)]
    found = ran(400 * CALL, costs, seed)
    assert found.halting == "limit_exceeded:run.cost"
    assert found.spent <= 400 * CALL + found.dearer + max(costs[: found.ended])


def test_once_a_dear_one_is_known_those_behind_it_are_reckoned_as_dear() -> None:
    standing = Standing(0, Ceilings({"run.cost": 200 * CALL}), datetime(2026, 11, 30, tzinfo=UTC))
    under_way: dict[Any, int] = standing.under_way
    for cost in [*repeat(CALL, 50), 60 * CALL]:
        standing.add(cost, False, {})
    while standing.may_spend():
        under_way[object()] = standing.expected_cost()
    assert len(under_way) == 1, "of the 90 that are left one such fits, not 32"


def test_a_ceiling_below_what_one_answer_may_cost_at_most_is_used_up_all_the_same() -> None:
    """An answer of this model could cost a thousand times as much: reserved at that, one at a time would go, if any."""
    found = ran(100 * CALL, repeat(CALL))
    assert (found.ended, found.most_at_once) == (100, AT_ONCE)
