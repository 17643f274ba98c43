"""Speed: what is measured, medians of the newest five, and that a failure keeps what was known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.load import load_model
from health import probes
from health.models import Attempt, Errand, Probe
from health.speed import keep_medians, measure, medians
from tests.fake import FakeProvider, reply, status
from tests.health import probed


@pytest.mark.parametrize(
    ("measured", "ttft_ms", "tokens_per_s"),
    [
        ([(100, 50.0)], 100, 50.0),
        ([(100, 50.0), (300, 10.0), (200, 20.0)], 200, 20.0),
        ([(100, None), (300, 10.0)], 200, 10.0),
        ([(None, None)], None, None),
        ([(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (10_000, 0.1)], 3, 2.0),
    ],
)
def test_medians(measured: Any, ttft_ms: int | None, tokens_per_s: float | None) -> None:
    assert medians(measured) == {"ttft_ms": ttft_ms, "tokens_per_s": tokens_per_s}


def made(alias: str, kind: str, at: datetime, ttft_ms: int, outcome: str = "ok") -> None:
    Probe.objects.create(
        attempt=f"att-{kind}-{at.timestamp()}", model=alias, endpoint="here", kind=kind, at=at, outcome=outcome, status="ok", ttft_ms=ttft_ms, tokens_per_s=5
    )


@pytest.mark.django_db
def test_the_newest_five_good_ones_count() -> None:
    now = datetime.now(UTC)
    for n in range(8):
        made("m", "short", now - timedelta(days=7 * n), 100 + n)
    made("m", "short", now + timedelta(seconds=1), 9999, "failed")
    keep_medians("m")
    speed = probed.health("m").speed
    assert (speed["short"]["ttft_ms"], speed["short"]["of"], "long" in speed) == (102, 5, False)


@pytest.mark.usefixtures("tables")
def test_a_short_and_a_long_answer_are_streamed_and_kept(fake: FakeProvider) -> None:
    probed.model(fake, "m", reply(["a ", "b ", "c"], usage=(20, 60)).dripping(100, 0.002))
    model = load_model("m")
    assert model
    speed = measure(model, "onboard", "ada")
    assert speed.is_ok
    assert [c.json["max_tokens"] for c in fake.calls] == [48, 400]
    assert all(c.json["stream"] for c in fake.calls)
    assert speed.cost_pusd == 2 * (20 * 500_000 + 60 * 1_500_000)
    assert set(probed.health("m").speed) == {"short", "long"}


@pytest.mark.usefixtures("tables")
def test_an_answer_in_one_piece_has_no_tokens_a_second(fake: FakeProvider) -> None:
    probed.model(fake, "m", reply("all at once", stream=False, usage=(20, 60)))
    model = load_model("m")
    assert model
    assert [r.tokens_per_s for r in measure(model, "probe", "ada").results] == [None, None]


@pytest.mark.usefixtures("tables")
def test_a_failure_ends_it_and_says_why_and_what_was_known_stays(fake: FakeProvider) -> None:
    probed.model(fake, "m", reply("fine", usage=(20, 60)), status(500, "oops"))
    model = load_model("m")
    assert model
    speed = measure(model, "probe", "ada")
    assert [r.kind for r in speed.results] == ["short", "long"]
    assert speed.problem
    assert (speed.problem.kind, speed.problem.fault) == ("long", "server")
    assert set(probed.health("m").speed) == {"short"}


@pytest.mark.usefixtures("tables")
def test_a_run_measures_each_model_once_and_an_interrupted_one_only_what_is_missing(fake: FakeProvider) -> None:
    probed.model(fake, "m", reply("fine", usage=(20, 60)))
    probes.plan_perf(probed.SLOT, datetime.now(UTC))
    probed.work()
    assert len(fake.calls) == 2
    # The evidence was not kept any more: the ledger tells that the question is paid for, and how fast the answer was.
    Probe.objects.filter(kind="long").delete()
    Errand.objects.filter(kind="perf").update(state="running", worker="dead")
    probed.work()
    assert len(fake.calls) == 2
    assert Probe.objects.filter(kind="long", outcome="ok").count() == 1
    # The call itself was lost.
    Probe.objects.filter(kind="long").delete()
    Attempt.objects.filter(request__endswith="/long").update(status="lost")
    Errand.objects.filter(kind="perf").update(state="running", worker="dead")
    probed.work()
    assert len(fake.calls) == 3
    assert Errand.objects.get(kind="perf").state == "done"
