"""What `kill -9` leaves of a scoring that is being made: nothing that anybody sees, until all of it is there. Going on needs no hand, and asks no model."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from suite.authoring import impls
from suite.models import Impl, Regrade, Rescoring, Run, Task
from suite.running import rescoring, targets
from suite.sandbox import box
from tests.fake import FakeProvider
from tests.suite.durably import OWNER, Hosts
from tests.suite.test_scorers import one_method

TASKS, TRIALS = 12, 2
boxed = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")


@pytest.fixture
def hosts(transactional_db: None, tmp_path: Path, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    monkeypatch.setattr(rescoring, "MOST_AT_ONCE", TASKS * TRIALS - 1)
    found = Hosts(tmp_path, fake)
    found.environment["AT_ONCE"] = "4"
    yield found
    found.close()


def ended(hosts: Hosts) -> Run:
    run = hosts.sums(TASKS, trials=TRIALS)
    hosts.worked()
    run.refresh_from_db()
    assert (run.status, run.scoring) == ("ok", 1)
    return run


def looser(run: Run) -> Impl:
    subset = copy.copy(run.subset)
    subset.grader = {"kind": "math", "tolerance": 0.5}
    return targets.builtin_impl(OWNER.owner, OWNER.team, subset)


def assert_unseen(run: Run) -> None:
    run.refresh_from_db()
    assert (run.scoring, run.scorer_id) == (1, None)


def assert_made(hosts: Hosts, run: Run, row: Rescoring) -> None:
    run.refresh_from_db()
    row.refresh_from_db()
    assert (row.status, row.done, row.total, row.worker) == ("ok", TASKS, TASKS, "")
    assert (run.scoring, run.graded_by) == (2, row.impl_id)
    assert Counter(Task.objects.filter(run=run, scoring=2).values_list("position", flat=True)) == Counter(range(TASKS))
    graded = Counter(Regrade.objects.filter(rescoring=row).values_list("position", "trial"))
    assert graded == Counter((position, trial) for position in range(TASKS) for trial in range(1, TRIALS + 1))
    assert len(hosts.fake.calls_to(hosts.model)) == TASKS * TRIALS


POINTS = [
    # one after the other, each of a process of its own, and the how-manieth time
    [("regrade_claimed", 1), ("regrade_in_the_transaction", 2), ("regrade_kept", 1)],
    [("regrade_ending", 1), ("regrade_in_the_end", 1)],
    [("regrade_kept", 1), ("regrade_kept", 1), ("regrade_kept", 1)],
]


@pytest.mark.parametrize("points", POINTS, ids=lambda points: " ".join(point for point, _ in points))
def test_a_scoring_killed_on_its_way_is_not_seen_and_is_gone_on_with(hosts: Hosts, points: list[tuple[str, int]]) -> None:
    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    for point, count in points:
        hosts.killed(point, count)
        assert_unseen(run)
    hosts.worked()
    assert_made(hosts, run, row)


def test_a_scoring_killed_once_it_is_there_stays_once(hosts: Hosts) -> None:
    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    hosts.killed("regrade_ended")
    hosts.worked()
    assert_made(hosts, run, row)


@boxed
def test_a_scorer_that_was_grading_when_its_process_died_grades_again(hosts: Hosts) -> None:
    run = ended(hosts)
    impl, _ = impls.create(OWNER, one_method(score='return 1.0 if output.endswith("4") else 0.0'), "python", "", "", None, None)
    row = rescoring.ask(OWNER, run, impl)
    hosts.killed("scoring", 3)
    assert_unseen(run)
    hosts.worked()
    assert_made(hosts, run, row)


def test_what_kills_its_process_each_time_ends_without_a_scoring(hosts: Hosts) -> None:
    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    hosts.killed("regrade_kept")  # so that there is something to take away
    for _ in range(3):
        hosts.killed("regrade_claimed")
    hosts.worked()
    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", "worker_died")
    assert_unseen(run)
    assert set(Task.objects.filter(run=run).values_list("scoring", flat=True)) == {1}
    assert not Regrade.objects.exists()
    assert rescoring.ask(OWNER, run, looser(run)).status == "queued"


def test_another_host_goes_on_once_the_lease_is_over(hosts: Hosts) -> None:
    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    hosts.killed("regrade_kept", home="one")
    hosts.worked(home="two")
    assert_unseen(run)
    Rescoring.objects.update(leased_until=timezone.now())
    hosts.worked(home="two")
    assert_made(hosts, run, row)


def test_outputs_that_are_kept_no_longer_end_it(hosts: Hosts) -> None:
    from suite.running import retention

    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    hosts.killed("regrade_kept")
    retention.emptied(run.pk)
    hosts.worked()
    row.refresh_from_db()
    assert (row.status, row.error) == ("failed", "outputs_gone")
    assert_unseen(run)
    assert set(Task.objects.filter(run=run).values_list("scoring", flat=True)) == {1}


def test_a_scoring_at_once_leaves_no_trace_where_somebody_was_faster(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(hosts)
    row = rescoring.ask(OWNER, run, looser(run))
    monkeypatch.setattr(rescoring, "MOST_AT_ONCE", TASKS * TRIALS)
    with pytest.raises(rescoring.Conflict):
        rescoring.ask(OWNER, run, looser(run))
    assert list(Rescoring.objects.values_list("id", flat=True)) == [row.pk]
    hosts.worked()
    assert_made(hosts, run, row)
    stale = Run.objects.get(pk=run.pk)
    stale.scoring = 1
    with pytest.raises(rescoring.Conflict):
        rescoring.ask(OWNER, stale, looser(run))
    assert Rescoring.objects.count() == 1
