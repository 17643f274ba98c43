"""What `kill -9` leaves of a run, at every point of its way: what had ended is kept and paid once, and exactly the rest is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.models import Event, Run
from suite.sandbox import box
from tests.fake import FakeProvider
from tests.suite.durably import Hosts, assert_whole
from tests.suite.test_scorers import ASK

TASKS = 24


@pytest.fixture
def hosts(transactional_db: None, tmp_path: Path, fake: FakeProvider, settings: object) -> Iterator[Hosts]:
    found = Hosts(tmp_path, fake)
    yield found
    found.close()


ASKING = [
    # the point, the how-manieth time, whether calls go out before it
    ("asked", 15, True),
    ("begun", 1, False),
    ("claimed", 1, False),
    ("answered", 3, True),
    ("half_a_line", 2, True),
    ("recorded", 2, True),
]


@pytest.mark.formats
def test_a_run_killed_while_it_asks_goes_on_each_time_and_asks_nothing_twice(hosts: Hosts) -> None:
    run, asked = hosts.sums(40), 0
    for point, count, asks in ASKING:
        hosts.killed(point, count)
        before, asked = asked, len(hosts.fake.calls_to(hosts.model))
        assert (asked > before) is asks, point
    hosts.worked()
    assert_whole(run, len(hosts.fake.calls_to(hosts.model)))


POINTS = [
    # one after the other, each of a process of its own
    ["in_the_transaction", "not_truncated"],
    ["ending"],
    ["in_the_end"],
    ["ended"],
]


@pytest.mark.parametrize("points", POINTS, ids=" ".join)
def test_a_run_killed_while_it_is_written_down_is_gone_on_with_and_nothing_is_counted_twice(hosts: Hosts, points: list[str]) -> None:
    run = hosts.sums(12)
    for point in points:
        hosts.killed(point)
    hosts.worked()
    assert_whole(run, len(hosts.fake.calls_to(hosts.model)))


@pytest.mark.formats
def test_whatever_kills_its_process_again_and_again_without_a_result_ends_the_run(hosts: Hosts) -> None:
    run = hosts.sums(3)
    for _ in range(3):
        hosts.killed("asked")
    hosts.worked()
    run.refresh_from_db()
    assert (run.status, run.interruptions) == ("failed", 3)
    assert "broke off 3 times without one new result" in run.error


def test_trials_and_their_task_are_counted_once_whatever_dies_between_them(hosts: Hosts) -> None:
    run = hosts.sums(6, trials=3)
    hosts.killed("recorded", 8)
    hosts.killed("in_the_transaction")
    hosts.worked()
    assert_whole(run, len(hosts.fake.calls_to(hosts.model)))


SCORING = ["solved", pytest.param("scoring", marks=pytest.mark.formats), pytest.param("scored", marks=pytest.mark.formats)]


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
@pytest.mark.parametrize("point", SCORING)
def test_an_answer_whose_grading_died_is_graded_unasked(hosts: Hosts, point: str) -> None:
    run = hosts.coded(2, ASK)
    hosts.killed(point)
    asked = len(hosts.fake.calls_to(hosts.model))
    hosts.worked()
    # Those of the other task whose scorer was still asking are lost with it.
    assert len(hosts.fake.calls_to(hosts.model)) <= asked + 1
    run.refresh_from_db()
    assert (run.status, run.done) == ("ok", 2)


def test_a_ceiling_that_was_reached_before_a_death_holds_after_it(hosts: Hosts) -> None:
    run = hosts.sums(TASKS, limits={"run": {"cost": 0.0002}})
    hosts.killed("recorded", 3)
    hosts.worked()
    run.refresh_from_db()
    assert (run.status, run.halt_reason) == ("halted", "limit_exceeded:run.cost")
    assert 0.0002e12 <= run.cost_pusd <= 0.0003e12
    types = list(Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True))
    assert (types.count("RunHalting"), types.count("LimitWarning"), types[-1]) == (1, 1, "RunFinished")


def test_what_the_run_was_launched_with_has_changed_so_it_does_not_go_on(hosts: Hosts) -> None:
    run = hosts.sums(TASKS)
    hosts.killed("recorded", 5)
    Run.objects.filter(pk=run.pk).update(trials=2)
    asked = len(hosts.fake.calls_to(hosts.model))
    hosts.worked()
    run.refresh_from_db()
    assert run.status == "failed"
    assert run.error.startswith("fingerprint_changed")
    assert len(hosts.fake.calls_to(hosts.model)) == asked
