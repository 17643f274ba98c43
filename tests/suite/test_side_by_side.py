"""Runs beside each other: who is slow, or hangs, holds up nobody else's."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from django_q.signing import SignedPackage

from panels import rosterfile
from suite.models import Run
from suite.running import engine, holding
from suite.running.concurrency import MOST
from suite.running.pace import Pace, now, silent
from tests import factories
from tests.fake import FakeProvider, hang
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums
from tests.suite.durably import ANSWER, Hosts, assert_whole


def test_who_hangs_holds_up_its_own_runs_alone_also_those_that_come_later(bench: Bench) -> None:
    driver = Driver(bench)
    slow, quick = bench.model("hanging", hang()), bench.model("ready", ANSWER)
    bench.load()
    hanging = [driver.launch(driver.subset(sums(40)), slow) for _ in range(6)]
    eventually(lambda: len(bench.fake.calls_to(bench.models[slow]["served_name"])) >= 8, "all places taken by calls that hang")
    for _ in range(3):  # at the same endpoint
        driver.ended(driver.launch(driver.subset(sums(3)), quick)["id"])
    states = [driver.api("GET", f"runs/{run['id']}")["status"] for run in hanging]
    assert states.count("running") == holding.OF_A_SUBJECT
    assert states.count("queued") == 2
    for run in hanging:
        driver.api("POST", f"runs/{run['id']}/halt")


@pytest.fixture
def hosts(transactional_db: None, tmp_path: Path, fake: FakeProvider) -> Hosts:
    return Hosts(tmp_path, fake)


def test_of_the_runs_that_wait_those_of_the_subject_with_the_fewest_in_hand_go_first(hosts: Hosts) -> None:
    subset = hosts.subset(sums(1), {"kind": "math"})
    at, names = f"{hosts.model}-at", [f"{hosts.model}-{letter}" for letter in "abc"]
    rosterfile.load(json.dumps({"endpoints": [factories.endpoint(at, hosts.fake.url)], "models": [factories.model(name, at) for name in names]}))
    for name in [names[0]] * 6 + [names[1]] * 2 + [names[2]]:
        hosts.launch(subset, sut=name)
    held: dict[str, int] = {}
    order = []
    while claimed := holding.claim("one", held=held):
        held[claimed.subject] = held.get(claimed.subject, 0) + 1
        order.append(claimed.subject[-1])
    assert order == ["a", "b", "c", "a", "b", "a", "a"]
    urgent = Run.objects.filter(worker="").latest("created_at")
    Run.objects.filter(pk=urgent.pk).update(priority=1)
    assert holding.claim("two", held={urgent.subject: 3}) == holding.Claimed(urgent.pk, urgent.subject), "what is urgent goes first"
    assert holding.claim("two", held={urgent.subject: 4}) is None


async def test_one_place_is_kept_for_each_run_that_has_none() -> None:
    pace = Pace("endpoint:one")
    pace.watchers |= dict.fromkeys(("hanging", "other", "third"), silent)
    async with AsyncExitStack() as stack:
        for _ in range(6):  # of eight
            await stack.enter_async_context(pace.place("hanging"))
        waits = asyncio.create_task(stack.enter_async_context(pace.place("hanging")))
        await asyncio.sleep(0)
        assert not waits.done()
        async with pace.place("other"), pace.place("third"):
            assert pace.under_way == 8
            one_more = asyncio.create_task(stack.enter_async_context(pace.place("other")))
            await asyncio.sleep(0)
            assert not one_more.done()
        await asyncio.sleep(0)
        assert not waits.done(), "both others have none now, and two places are free"
        assert one_more.done()
        pace.watchers.pop("third")
        pace.admit()
        await waits
        assert pace.held == {"hanging": 7, "other": 1}
    assert pace.under_way == 0


@pytest.mark.parametrize(
    ("most", "cools_s", "come"),
    [(MOST, 0, 2), (9, 0, 1), (8, 0, 0), (MOST, 60, 0)],
    ids=["both", "as many as a person allows", "none", "none while the provider says that it is too much"],
)
async def test_who_comes_when_all_places_are_taken_gets_one_besides(most: int, cools_s: int, come: int) -> None:
    pace = Pace("endpoint:one", most)
    pace.watchers |= {"hanging": silent}
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(pace.place("hanging"))
        pace.controller.found = replace(pace.controller.found, cool_until=now() + cools_s)
        waits = asyncio.create_task(stack.enter_async_context(pace.place("hanging")))
        pace.watchers |= {"late": silent, "later": silent}
        late, later = (asyncio.create_task(stack.enter_async_context(pace.place(name))) for name in ("late", "later"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert ([late.done(), later.done()].count(True), waits.done()) == (come, False)
        for task in (waits, late, later):
            task.cancel()
        await asyncio.gather(waits, late, later, return_exceptions=True)
    assert pace.under_way == 0


def test_the_queue_sets_no_limit_of_time_to_work_that_takes_as_long_as_answers_do() -> None:
    queued: list[bytes] = []
    engine.queue(SimpleNamespace(enqueue=queued.append, list_key="tests"))
    task = SignedPackage.loads(queued[0])
    assert (task["func"], task["timeout"]) == ("suite.running.engine.work", -1)


def test_a_process_that_is_stuck_ends_itself_and_says_where(hosts: Hosts) -> None:
    run = hosts.sums(3)
    one = hosts.work("stuck")
    _, said = one.communicate(timeout=120)
    assert one.returncode == 1
    assert "Timeout" in said
    assert "in endless" in said
    run.refresh_from_db()
    assert run.status == "running"
    hosts.worked()
    assert_whole(run, len(hosts.fake.calls_to(hosts.model)))
