"""How many calls at once a connection is given, as it answers, and what several processes make of it together. Rules, told the time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.running.concurrency import COOLDOWN_S, Controller, Found, together


def rounds(controller: Controller, count: int, now: float = 0.0, in_use: float = 1.0) -> list[int]:
    """Plays rounds in which all goes well. Shape: the limit after each."""
    found = []
    for _ in range(count):
        size = controller.share
        controller.started(round(in_use * size))
        for _ in range(size):
            controller.succeeded(now)
        found.append(controller.found.limit)
    return found


def test_it_doubles_until_its_most_while_all_goes_well() -> None:
    assert rounds(Controller(), 5) == [16, 32, 64, 100, 100]
    assert rounds(Controller(most=12), 2) == [12, 12]


def test_after_a_cut_it_grows_by_a_twentieth_a_round() -> None:
    controller = Controller(Found(100))
    controller.limited(1000.0)
    assert controller.found == Found(80, False, 1000.0 + COOLDOWN_S)
    assert rounds(controller, 1, 1000.0 + COOLDOWN_S - 1) == [80], "not while it cools"
    assert rounds(controller, 3, 1000.0 + COOLDOWN_S) == [84, 88, 92]


@pytest.mark.parametrize(("in_use", "after"), [(1.0, 16), (0.9, 16), (0.7, 8), (0.0, 8)])
def test_it_grows_only_where_four_fifths_were_in_use(in_use: float, after: int) -> None:
    assert rounds(Controller(), 1, in_use=in_use) == [after]


def test_several_refusals_at_once_are_one_episode() -> None:
    controller = Controller(Found(50))
    for second in range(10):
        controller.limited(1000.0 + second)
    assert controller.found.limit == 40
    controller.limited(1000.0 + 9 + COOLDOWN_S)
    assert controller.found.limit == 32


def test_a_provider_that_names_a_longer_wait_is_cut_once_in_it() -> None:
    controller = Controller(Found(50))
    controller.limited(1000.0, retry_after_s=120)
    controller.limited(1100.0)
    assert controller.found.limit == 40


def test_a_failing_server_is_given_no_more_and_no_less() -> None:
    controller = Controller()
    controller.failed(1000.0)
    assert rounds(controller, 2, 1001.0) == [8, 8]
    assert rounds(controller, 1, 1000.0 + COOLDOWN_S) == [16]


def test_it_never_falls_below_one() -> None:
    controller = Controller(Found(2))
    for episode in range(5):
        controller.limited(1000.0 * (episode + 1))
    assert controller.found.limit == controller.share == 1


def test_each_change_is_told_with_its_reason() -> None:
    told: list[tuple[int, int, str]] = []
    controller = Controller(changes=lambda before, after, why: told.append((before, after, why)))
    rounds(controller, 1)
    controller.limited(1000.0)
    rounds(controller, 1, 2000.0)
    assert told == [(8, 16, "slow start"), (16, 12, "rate limited"), (12, 13, "a clean round")]


@pytest.mark.parametrize(("limit", "processes", "share"), [(8, 1, 8), (8, 2, 4), (9, 2, 4), (3, 4, 1)])
def test_a_process_takes_its_share(limit: int, processes: int, share: int) -> None:
    assert Controller(Found(limit), processes=processes).share == share


SEEN = Found(40, False, 0.0)
CUT = replace(SEEN, limit=32, cool_until=1015.0)
TOGETHER = [
    # what this process found, what another has written, what holds
    (SEEN, SEEN, SEEN),
    (replace(SEEN, limit=42), SEEN, replace(SEEN, limit=42)),
    (SEEN, replace(SEEN, limit=42), replace(SEEN, limit=42)),
    (replace(SEEN, limit=42), replace(SEEN, limit=42), replace(SEEN, limit=42)),
    (CUT, replace(SEEN, limit=42), CUT),
    (replace(SEEN, limit=42), CUT, CUT),
    (CUT, replace(CUT, limit=25), replace(CUT, limit=25)),
]


@pytest.mark.parametrize(("mine", "theirs", "both"), TOGETHER)
def test_a_cut_is_everybodys_and_growth_is_counted_once(mine: Found, theirs: Found, both: Found) -> None:
    assert together(SEEN, mine, theirs) == both
