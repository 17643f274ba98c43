"""Runs that nobody launches by hand: which subsets, which models, and as whose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake import FakeProvider, reply
from tests.live import Bench, Live, eventually
from tests.suite.driving import Driver, sums


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of its own: a pass asks every model that plays."""
    server = Live(tmp_path_factory.mktemp("passes"), BENCH_WORKERS="1")
    server.start()
    yield server
    assert server.stop() == []


def test_passes_run_what_is_marked_on_models_that_play_and_leave_ad_hoc_ones_alone(alone: Live, fake: FakeProvider) -> None:
    bench = Bench(alone, fake)
    driver = Driver(bench)
    answer = reply("ANSWER: 4", usage=(20, 8))
    model, old, spare = bench.model("plays", answer, ad_hoc=False), bench.model("old", answer, ad_hoc=False), bench.model("spare", answer, ad_hoc=True)
    bench.load()
    alone.api("POST", f"models/{old}/retire", {"reason": "replaced"})
    driver.subset(sums(2), slug="by-hand")
    marked = driver.subset(sums(3), slug="weekly", recipe={"passes": True})
    alone.api("POST", "schedules/suite/run", {})
    found = eventually(lambda: driver.api("GET", "runs?filter[source]=scheduled")["data"], "a pass")
    driver.ended(found[0]["id"])
    every = driver.api("GET", "runs")["data"]
    assert [(r["subset_id"], r["model"]["identifier"], r["source"]) for r in every] == [(marked["id"], model, "scheduled")]
    assert fake.calls_to(spare) == fake.calls_to(old) == []
