"""Several hosts on one database, and what comes too late."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from health import ledger
from suite.grading.contract import Options, Output
from suite.grading.outcomes import Grade, Outcome
from suite.models import Connection, Event, Impl, Run, Sample, Task
from suite.running import recording, summary
from suite.running.asking import Said
from suite.running.lines import Item, line_of
from tests.fake import FakeProvider
from tests.live import eventually
from tests.suite.driving import sums
from tests.suite.durably import A_CALL, ANSWER, Hosts, assert_whole


@pytest.fixture
def hosts(transactional_db: None, tmp_path: Path, fake: FakeProvider) -> Iterator[Hosts]:
    found = Hosts(tmp_path, fake)
    yield found
    found.close()


def test_two_hosts_share_the_runs_of_one_database_and_do_none_twice(hosts: Hosts) -> None:
    gate = hosts.fake.gate()
    hosts.fake.script(hosts.model, ANSWER.after(gate))
    hosts.roster()
    subset = hosts.subset(sums(6), {"kind": "math"})
    runs = [hosts.launch(subset) for _ in range(6)]
    both = [hosts.work(home="one"), hosts.work(home="two")]
    # One works on four at once at most, so the others are a second one's.
    eventually(lambda: len(set(Run.objects.exclude(worker="").values_list("worker", flat=True))) == 2, "two at work")
    gate.open()
    for one in both:
        _, said = one.communicate()
        assert one.returncode == 0, said[-3000:]
    assert len(hosts.fake.calls_to(hosts.model)) == 36
    for run in runs:
        assert_whole(run, 6)


def test_work_that_breaks_off_each_time_without_a_result_is_given_up(hosts: Hosts) -> None:
    run = hosts.sums(2)
    Impl.objects.update(grader={"kind": "none of these"})
    for _ in range(3):
        assert hosts.worked() == 0
    assert hosts.worked() == 1
    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", "Work on it broke off 3 times without one new result.")
    assert Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True).last() == "RunFinished"


def test_what_a_connection_takes_outlives_the_process_that_found_out(hosts: Hosts) -> None:
    hosts.sums(40)
    hosts.worked()
    row = Connection.objects.get(name=f"endpoint:{hosts.model}-at")
    assert row.at_once > 8
    again = hosts.launch(Run.objects.get().subset)
    hosts.worked(home="two")
    told = [data["message"] for data in Event.objects.filter(run=again, type="Log").values_list("data", flat=True)]
    assert told[0].endswith(f": 8 to {row.at_once} (as other processes found).")


def test_a_limit_of_calls_at_once_that_a_person_set_is_never_tried_beyond(hosts: Hosts) -> None:
    hosts.roster(limits={"parallel": 3})
    hosts.launch(hosts.subset(sums(30), {"kind": "math"}))
    hosts.worked()
    assert Connection.objects.get().at_once == 3


def test_an_answer_that_comes_too_late_is_kept_as_superseded_and_once(hosts: Hosts, tmp_path: Path) -> None:
    run = hosts.sums(3)
    hosts.worked()
    assert_whole(run, 3)
    before = summary.of(run)
    begun = datetime.now(UTC) - timedelta(minutes=1)
    item = Item(1, 1, "t1", "math", "", {"question": "?"}, {"value": 4})
    said = Said(Output("ANSWER: 5"), cost_pusd=A_CALL, calls=("call_late",))
    line = line_of(run.pk, item, 1, said, Grade(Outcome.FAILED, 0.0), 1, begun, begun + timedelta(seconds=2), said.calls, A_CALL, Options())
    for _ in range(2):  # as a line that two drains commit
        ledger.commit([{recording.SAMPLES: [line]}], tmp_path)
    assert list(Sample.objects.filter(run=run, position=1).order_by("superseded").values_list("superseded", "outcome")) == [(0, "passed"), (1, "failed")]
    assert Task.objects.get(run=run, position=1).outcome == "passed"
    run.refresh_from_db()
    assert run.cost_pusd == 4 * A_CALL, "what it cost was spent"
    assert (run.done, Event.objects.filter(run=run).count()) == (3, run.last_seq)
    after = summary.of(run)
    assert (after["passed"], before["cost_usd"], after["cost_usd"]) == (3, "0.000108", "0.000144")


def test_twenty_who_bring_the_same_sample_make_one_task(hosts: Hosts, tmp_path: Path) -> None:
    run = hosts.sums(1)
    begun = datetime.now(UTC)
    item = Item(0, 1, "t0", "math", "", {"question": "?"}, {"value": 4})
    said = Said(Output("ANSWER: 4"), cost_pusd=A_CALL, calls=("call_1",))
    line = line_of(run.pk, item, 1, said, Grade(Outcome.PASSED, 1.0), 1, begun, begun, said.calls, A_CALL, Options())

    def bring(_: int) -> None:
        try:
            ledger.commit([{recording.SAMPLES: [line]}], tmp_path)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bring, range(20)))
    run.refresh_from_db()
    assert (Sample.objects.filter(run=run).count(), Task.objects.filter(run=run).count(), run.done, run.cost_pusd) == (1, 1, 1, A_CALL)
    assert Event.objects.filter(run=run, type="MaterializeTaskResult").count() == 1
    assert not list(tmp_path.glob("rejected*"))


@pytest.mark.parametrize("text", ["x", "ANSWER: 4" * 200, "\x00\ud800\u202e" * 100, ""])
def test_what_was_said_is_kept_as_it_came(hosts: Hosts, tmp_path: Path, text: str) -> None:
    run = hosts.sums(1)
    begun = datetime.now(UTC)
    item = Item(0, 1, "t0", "math", "", {"question": "?"}, {"value": 4})
    said = Said(Output(text), finish_reason=text[:300], calls=("call_1",))
    grade = Grade(Outcome.UNPARSED, 0.0, text[:50], text[:300])
    ledger.commit([{recording.SAMPLES: [line_of(run.pk, item, 1, said, grade, 1, begun, begun, said.calls, 0, Options())]}], tmp_path)
    sample = Sample.objects.get(run=run)
    kept = recording.unpacked(sample.payload)
    assert (kept["output"], kept["answer"]) == (text, text[:50])
    assert len(sample.finish_reason) <= 40
    assert base64.b64decode(recording.packed(kept)) == bytes(sample.payload)
