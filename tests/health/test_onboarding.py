"""Onboarding under the hood: stages that are paid once whatever dies, what a limit puts off, and what a check that fails leaves behind."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from catalog.models import Endpoint, Model
from health import errands, ledger, onboarding, onboarding_stages
from health.models import Attempt, Errand, Lane, Onboarding, Permit
from health.sweep import sweep
from tests.fake import FakeProvider, reply, status
from tests.health.conftest import Victim

pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture(autouse=True)
def only_ours(settings: Any, tmp_path: Path, folder: Path) -> Iterator[None]:
    settings.HOME = tmp_path
    settings.OUTBOX_FOLDER = folder
    kept = dict(errands.registered)
    errands.registered.clear()
    errands.register(onboarding.ERRAND, onboarding_stages.do, onboarding_stages.gave_up)
    yield
    errands.registered.clear()
    errands.registered.update(kept)
    onboarding_stages.suite_hook.clear()


@pytest.fixture
def at(fake: FakeProvider) -> FakeProvider:
    Endpoint.objects.create(name="here", kind="openai", base_url=fake.url)
    fake.models = ["a", "b", "c"]
    return fake


def begin(*names: str, mode: str = "full") -> str:
    batch = onboarding.start("here", list(names), mode, "ann").batch
    assert batch
    return batch


def one(name: str = "a") -> Onboarding:
    return Onboarding.objects.filter(served_name=name).latest("pk")


def stages(name: str = "a") -> dict[str, str]:
    return {stage: came["outcome"] for stage, came in one(name).stages_done.items()}


def free_lanes() -> None:
    Lane.objects.update(leased_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    "point", ["register", "check", "speed", "suite", "in check", "in speed", "after check", "after speed", "unnoted check", "unnoted speed"]
)
def test_a_process_killed_at_any_stage_pays_for_none_twice(victim: Callable[..., Victim], at: FakeProvider, tmp_path: Path, point: str) -> None:
    begin("a")
    assert victim("onboard_and_die", point, str(tmp_path)).process.wait(60) == -9
    assert one().state == "running"
    free_lanes()
    errands.work(30)
    row = one()
    assert (row.state, stages()) == ("done", {"register": "ok", "check": "ok", "speed": "ok", "suite": "skipped"})
    assert "Taken up again" in str(row.log)
    # Only what was in flight when it was killed is asked again.
    assert len(at.calls_to("a")) == (4 if point.startswith("in ") else 3)
    assert Errand.objects.get().interruptions == 1
    assert Model.objects.count() == 1
    sweep(timezone.now() + timedelta(hours=1))
    assert Counter(Attempt.objects.values_list("status", flat=True)) == ({"ok": 3, "lost": 1} if point.startswith("in ") else {"ok": 3})
    assert not Permit.objects.exists()


def test_a_model_that_is_called_otherwise_here_is_not_paid_for_twice_either(victim: Callable[..., Victim], at: FakeProvider, tmp_path: Path) -> None:
    Model.objects.create(alias="a", endpoint=Endpoint.objects.create(name="other", kind="openai", base_url=at.url), served_name="somebody else")
    begin("a")
    assert victim("onboard_and_die", "unnoted speed", str(tmp_path)).process.wait(60) == -9
    errands.work(30)
    row = one()
    assert (row.state, row.alias == "a", len(at.calls_to("a"))) == ("done", False, 3)


@pytest.mark.parametrize("is_settled", [True, False])
def test_another_hosts_call_is_waited_for_until_its_end_is_known(victim: Callable[..., Victim], at: FakeProvider, tmp_path: Path, is_settled: bool) -> None:
    begin("a")
    assert victim("onboard_and_die", "in speed", str(tmp_path / "another host")).process.wait(60) == -9
    free_lanes()
    errands.work(5)
    assert (one().state, len(at.calls_to("a")), Errand.objects.get().state) == ("waiting", 2, "waiting")
    if is_settled:  # the other host commits what stood in its outbox
        permit = Permit.objects.get()
        row = {**json.loads(permit.attempt), "status": "ok", "ttft_ms": 5, "latency_ms": 900, "output_tokens": 20}
        ledger.commit([{"attempts": [row], "settle": [{"permit": permit.pk}]}])
    else:
        sweep(timezone.now() + timedelta(hours=1))
    for _ in range(3):
        Errand.objects.update(due_at=timezone.now())
        errands.work(5)
    assert (one().state, len(at.calls_to("a"))) == ("done", 3 if is_settled else 4)
    assert sum(s == "ok" for s in Attempt.objects.values_list("status", flat=True)) == 3


def test_a_slice_that_ends_between_two_calls_of_a_stage_leaves_the_other_for_the_next(at: FakeProvider) -> None:
    begin("a")
    slow, stop, put_off = at.gate(), threading.Event(), list[Exception]()
    at.script("a", reply("OK"), reply("short").holding(slow), reply("long"))

    def work() -> None:
        try:
            onboarding_stages.do(errands.task_of(Errand.objects.get(), stop))
        except errands.Later as later:
            put_off.append(later)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    at.wait_for(lambda: len(at.calls_to("a")) == 2, "the short answer's call")
    stop.set()
    slow.open()
    worker.join()
    assert len(put_off) == 1
    assert (one().state, len(at.calls_to("a")), "speed" in stages()) == ("waiting", 2, False)
    errands.work(30)
    assert (one().state, len(at.calls_to("a")), stages()["speed"]) == ("done", 3, "ok")


def test_the_cost_is_the_ledgers(at: FakeProvider) -> None:
    row = Model.objects.create(alias="a", endpoint=Endpoint.objects.get(), served_name="a")
    row.prices.create(since="2026-01-01", input_usd_per_mtok="1", output_usd_per_mtok="2")
    begin("a")
    errands.work(30)
    spent = sum(cost for cost in Attempt.objects.values_list("cost_pusd", flat=True) if cost)
    assert (one().cost_pusd, one().unpriced) == (spent, 0)
    assert spent > 0


def test_a_limit_puts_it_off_and_costs_nobody_the_place(at: FakeProvider) -> None:
    at.script("a", status(429, headers={"retry-after": "30"}), reply("OK"))
    begin("a", mode="quick")
    errands.work(30)
    assert (one().state, len(at.calls_to("a"))) == ("waiting", 1)
    assert Model.objects.get().status == "active"
    assert Errand.objects.get().due_at > timezone.now()
    pass_the_time()
    errands.work(30)
    assert (one().state, stages()["check"]) == ("done", "ok")


def pass_the_time() -> None:
    from health.models import Rest

    Rest.objects.all().delete()
    Errand.objects.update(due_at=timezone.now())


def test_a_limit_that_lasts_a_day_ends_it(at: FakeProvider) -> None:
    at.script("a", status(429, headers={"retry-after": "30"}))
    begin("a", mode="quick")
    errands.work(30)
    Onboarding.objects.update(started_at=timezone.now() - timedelta(hours=25))
    pass_the_time()
    errands.work(30)
    assert one().state == "failed"
    assert Model.objects.get().status == "retired"


def test_a_server_that_fails_is_asked_three_times(at: FakeProvider) -> None:
    at.script("a", status(500, "broken"))
    begin("a", mode="quick")
    for _ in range(5):
        errands.work(30)
        pass_the_time()
    assert (one().state, len(at.calls_to("a"))) == ("failed", 3)
    assert Model.objects.get().status == "retired"


def test_a_refused_key_ends_it_at_once_with_the_providers_words(at: FakeProvider) -> None:
    for name in "abc":
        at.script(name, status(401, "Incorrect API key provided"))
    begin("a", "b", "c", mode="quick")
    errands.work(30)
    assert Counter(Onboarding.objects.values_list("state", flat=True)) == {"failed": 3}
    assert "Incorrect API key" in one("a").message
    assert len(at.calls) == 1, "the endpoint rests, so the others need no call to know"


def test_one_that_was_on_the_roster_before_is_not_retired_for_one_bad_answer(at: FakeProvider) -> None:
    Model.objects.create(alias="mine", endpoint=Endpoint.objects.get(), served_name="a")
    at.script("a", status(404, "The model a does not exist", error_code="model_not_found"))
    begin("a")
    errands.work(30)
    assert (one().state, one().alias) == ("failed", "mine")
    assert Model.objects.get().status == "active"


def test_a_slow_answer_to_the_timed_questions_keeps_nobody_off(at: FakeProvider) -> None:
    at.script("a", reply("OK"), status(400, "no streaming here"))
    begin("a")
    errands.work(30)
    assert (one().state, stages()["speed"]) == ("done", "unknown")
    assert "no streaming here" in one().message


def test_the_suite_is_handed_the_model_once_there_is_one(at: FakeProvider) -> None:
    asked: list[tuple[str, str]] = []
    onboarding_stages.fill_suite(lambda alias, batch, task: asked.append((alias, batch)) or {"said": "Passed 7 of 9.", "passed": 7})
    batch = begin("a")
    errands.work(30)
    assert asked == [("a", batch)]
    assert one().stages_done["suite"]["passed"] == 7


def test_a_model_that_somebody_deletes_meanwhile_ends_it_clearly(at: FakeProvider) -> None:
    onboarding_stages.fill_suite(lambda alias, batch, task: {})
    begin("a")
    gone = at.gate()
    at.script("a", reply("OK").holding(gone))
    Onboarding.objects.update(alias="a", stages_done={"register": {"outcome": "ok", "said": "", "new": True}})
    errands.work(30)
    assert one().state == "failed"
    assert "taken off the roster" in one().message


def test_an_endpoint_that_went_ends_it_clearly(at: FakeProvider) -> None:
    begin("a")
    Endpoint.objects.all().delete()
    errands.work(30)
    assert "no endpoint here any more" in one().message


def test_a_cancelled_one_whose_process_died_stays_cancelled(victim: Callable[..., Victim], at: FakeProvider, tmp_path: Path) -> None:
    batch = begin("a", "b")
    assert victim("onboard_and_die", "in check", str(tmp_path)).process.wait(60) == -9
    assert onboarding.cancel(batch, "ann") == 2
    free_lanes()
    errands.work(30)
    assert Counter(Onboarding.objects.values_list("state", flat=True)) == {"cancelled": 2}
    assert len(at.calls) == 1
    assert onboarding.cancel(batch, "ann") == 0
    assert onboarding.shown(batch).state == "cancelled"


def test_what_kills_its_process_each_time_ends_as_failed(victim: Callable[..., Victim], at: FakeProvider, tmp_path: Path) -> None:
    begin("a")
    assert victim("onboard_and_die", "register", str(tmp_path)).process.wait(60) == -9
    Errand.objects.update(interruptions=errands.MOST_INTERRUPTIONS)
    free_lanes()
    errands.work(30)
    assert one().state == "failed"
    assert "ended 20 times" in one().message


def test_an_embedding_model_is_put_on_the_bench_without_a_question(at: FakeProvider) -> None:
    at.models = ["text-embedding-3-small"]
    begin("text-embedding-3-small")
    errands.work(30)
    assert stages("text-embedding-3-small") == {"register": "ok", "check": "skipped", "speed": "skipped", "suite": "skipped"}
    assert not at.calls


def test_many_models_ask_for_the_list_once(at: FakeProvider) -> None:
    begin("a", "b", "c", mode="quick_ad_hoc")
    errands.work(30)
    assert Counter(Onboarding.objects.values_list("state", flat=True)) == {"done": 3}
    assert len([call for call in at.others if call.path.endswith("/models")]) <= 2
