"""A run that goes on, followed in a real browser: what happens comes by its stream, a stream that breaks off is taken up again, and the end shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser import CHROMIUM, DESK, PHONE, axe
from tests.cutting import Road
from tests.fake import hang, reply
from tests.live import Bench, Live, eventually
from tests.suite.driving import Driver, sums

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]

ANSWER = reply("2 + 2 makes four.\nANSWER: 4", usage=(20, 8))
FIRST_PAGE = 25


@pytest.fixture
def road(live: Live) -> Iterator[Road]:
    made = Road(live.port)
    yield made
    made.close()


def streams(road: Road, run: str) -> list[str]:
    """The heads of the requests for a run's stream."""
    return [head for head in road.asked if f"/v1/runs/{run}/events" in head]


def names(page: Any) -> list[str]:
    return list(page.locator("#task-list tbody th a").all_inner_texts())


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desk", "phone"])
def test_a_page_follows_its_run_over_a_cut_stream_to_the_end(
    bench: Bench, live: Live, signed_in: Any, road: Road, viewport: dict[str, int], scheme: str
) -> None:
    second, third = bench.fake.gate(), bench.fake.gate()
    model = bench.model("steady", ANSWER, ANSWER, *[ANSWER.after(second)] * 2, *[ANSWER.after(third)] * 2, facts={"input_usd_per_mtok": "1"})
    bench.load()
    driver = Driver(bench)
    run = driver.launch(driver.subset(sums(6, wrong=1)), model)["id"]
    heard: list[tuple[int, str]] = []
    with signed_in(f"/app/runs/{run}", viewport, scheme, road.url, lambda seq, kind: heard.append((seq, kind))) as watched:
        page = watched.page
        page.evaluate("window.isTheSamePage = true")
        # The two that nothing holds: counters and rows.
        expect(page.locator("#live")).to_contain_text("2 of 6 tasks", timeout=30_000)
        expect(page.locator("#task-list tbody tr")).to_have_count(2)
        expect(page.locator("#log")).to_contain_text("Queued: 6 tasks")
        expect(page.locator("[data-status]")).to_have_attribute("data-status", "running")
        assert page.locator("#halt").is_visible()
        assert axe(page) == []
        assert watched.overflow() <= 0
        watched.pictured(f"run-going-{viewport['width']}")

        # The stream breaks off, and what happens meanwhile is not lost.
        assert road.cut(f"/v1/runs/{run}/events") == 1
        told = driver.api("GET", f"runs/{run}/events?limit=1")["last_seq"]
        second.open()
        eventually(lambda: driver.api("GET", f"runs/{run}")["progress"]["done"] == 4, "two more answers")
        road.mend()
        expect(page.locator("#live")).to_contain_text("4 of 6 tasks", timeout=30_000)
        expect(page.locator("#task-list tbody tr")).to_have_count(4)
        first, *again = streams(road, run)
        assert again, "the stream was asked for again"
        assert "last-event-id" not in first.lower()
        after = re.search(r"last-event-id: (\d+)", again[0].lower())
        assert after, again[0]
        assert int(after[1]) <= told, "it goes on after the last event that had come"
        # The browser's own words for a connection that was cut are no fault of the page.
        watched.wrong = [said for said in watched.wrong if "net::ERR_" not in said]
        assert page.evaluate("window.isTheSamePage") is True, "no reload was needed"
        assert len(set(names(page))) == 4

        # The end: said by the page itself, then drawn whole.
        third.open()
        expect(page.locator("#live")).to_have_attribute("data-status", "ok", timeout=30_000)
        expect(page.get_by_role("link", name="Run again")).to_be_visible(timeout=30_000)
        expect(page.locator("#live")).to_contain_text("6 of 6 tasks")
        expect(page.locator("#live")).to_contain_text("5 of 6 scored")
        expect(page.locator("#task-list tbody tr")).to_have_count(6)
        assert page.locator("#halt").count() == 0
        assert sorted(names(page)) == [f"t{n}" for n in range(6)]
        page.locator("#log summary").click()
        log = page.locator("#log li").all_inner_texts()
        assert sum("Queued: 6 tasks" in line for line in log) == 1
        assert sum(line.endswith("Finished.") for line in log) == 1
        assert watched.overflow() <= 0
        watched.pictured(f"run-ended-{viewport['width']}")
    numbers = [seq for seq, _ in heard]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "each event once, in order, without a gap"
    assert heard[-1][1] == "RunFinished"
    assert sum(kind == "MaterializeTaskResult" for _, kind in heard) >= 4


def test_the_end_waits_with_drawing_anew_while_somebody_is_in_a_field(bench: Bench, signed_in: Any) -> None:
    gate = bench.fake.gate()
    model = bench.model("steady", ANSWER, ANSWER.after(gate))
    bench.load()
    driver = Driver(bench)
    run = driver.launch(driver.subset(sums(2)), model)["id"]
    with signed_in(f"/app/runs/{run}") as watched:
        page = watched.page
        expect(page.locator("#live")).to_contain_text("1 of 2 tasks", timeout=30_000)
        page.fill("#task_id", "t1")
        page.evaluate("window.isTheSamePage = true")
        gate.open()
        expect(page.locator("#told")).to_contain_text("ok: 2 of 2 passed", timeout=30_000)
        expect(page.locator("#messages")).to_contain_text("The run is ok.")
        assert page.locator("#task_id").input_value() == "t1"
        assert page.evaluate("document.activeElement.id") == "task_id"
        assert page.evaluate("window.isTheSamePage") is True
        expect(page.locator("#task-list tbody th a")).to_have_text(["t1"])


def test_a_halted_run_says_so_on_the_page_that_follows_it(bench: Bench, signed_in: Any) -> None:
    model = bench.model("steady", ANSWER, hang())
    bench.load()
    driver = Driver(bench)
    run = driver.launch(driver.subset(sums(20)), model)["id"]
    with signed_in(f"/app/runs/{run}", PHONE) as watched:
        page = watched.page
        expect(page.locator("#live")).to_contain_text("1 of 20 tasks", timeout=30_000)
        driver.api("POST", f"runs/{run}/halt", {"reason": "enough"})
        expect(page.locator("#live")).to_have_attribute("data-status", "halted", timeout=30_000)
        expect(page.locator("#live")).to_contain_text("enough")
        expect(page.get_by_role("link", name="Run again")).to_be_visible(timeout=30_000)
        assert watched.overflow() <= 0
