"""Errands: queued once, ended once, one at a time a connection, whichever process does them and whatever kills it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import CharField
from django.utils import timezone

from health import errands, jobs, schedules
from health.errands import Failed, Later, New, Task
from health.models import Errand, Heartbeat, Lane
from tests.health.conftest import Victim

pytestmark = pytest.mark.usefixtures("tables")
done: list[str] = []
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def only_ours(settings: Any, tmp_path: Any) -> Iterator[None]:
    settings.HOME = tmp_path
    kept = dict(errands.registered)
    errands.registered.clear()
    errands.register("note", lambda task: done.append(task.subject) or {"noted": task.subject})
    done.clear()
    yield
    errands.registered.clear()
    errands.registered.update(kept)


def new(subject: str, endpoint: str = "here", **more: Any) -> New:
    return New(once=f"note:{endpoint}:{subject}", subject=subject, endpoint=endpoint, **{"kind": "note", **more})


def state(subject: str) -> str:
    return Errand.objects.get(subject=subject).state


def test_the_same_word_is_queued_once_and_done_once() -> None:
    assert errands.queue([new("a"), new("a"), new("b")]) == 2
    assert errands.queue([new("a")]) == 0
    assert errands.work(5) == 2
    assert errands.work(5) == 0
    assert done == ["a", "b"]
    assert Errand.objects.get(subject="a").outcome == {"noted": "a"}
    assert errands.queue([new("a")]) == 0, "not again after its end, either"


def test_lower_numbers_go_first_and_then_what_was_due_first() -> None:
    soon = timezone.now() - timedelta(minutes=1)
    errands.queue([new("late", priority=70), new("first", priority=10), new("second", due_at=soon), new("third")])
    errands.work(5)
    assert done == ["first", "second", "third", "late"]


def test_what_is_not_due_waits() -> None:
    errands.queue([new("tomorrow", due_at=timezone.now() + timedelta(days=1)), new("now")])
    assert errands.work(5) == 1
    assert done == ["now"]
    assert state("tomorrow") == "waiting"


def test_a_kind_that_nobody_registered_waits_for_who_knows_it() -> None:
    errands.queue([new("odd", kind="of a gone plugin"), new("a")])
    assert errands.work(5) == 1
    assert state("odd") == "waiting"
    errands.register("of a gone plugin", lambda task: done.append(task.subject) or None)
    assert errands.work(5) == 1
    assert done == ["a", "odd"]


@pytest.mark.parametrize("name", errands.LENGTHS)
def test_a_name_that_no_column_holds_is_refused_and_says_so_on_every_database(name: str) -> None:
    most = errands.LENGTHS[name]
    assert errands.queue([new(**{"subject": "fits", name: "k" * most})]) == 1
    with pytest.raises(ValueError, match=f"An errand's {name} has {most + 1} characters, at most {most} are kept"):
        errands.queue([new("a"), new(**{"subject": "b", name: "k" * (most + 1)})])
    assert Errand.objects.count() == 1, "nothing of it was queued"


def test_a_kind_that_is_too_long_cannot_be_registered() -> None:
    with pytest.raises(ValueError, match="An errand's kind has 21 characters"):
        errands.register("k" * 21, lambda task: None)
    with pytest.raises(ValueError, match="A job's name has 41 characters"):
        jobs.register("j" * 41, 60, lambda now: None)
    with pytest.raises(ValueError, match="A schedule's name has 21 characters"):
        schedules.register("s" * 21, lambda slot, now: {}, "0 0 * * *", False, "")


def test_lengths_are_those_of_the_columns() -> None:
    columns = {f.name: f.max_length for f in Errand._meta.get_fields() if isinstance(f, CharField)}
    assert errands.LENGTHS.items() <= columns.items()
    assert (columns["once"], columns["error"]) == (errands.ONCE_LENGTH, errands.SAID_LENGTH)


def test_words_that_differ_only_far_behind_are_two_errands() -> None:
    long = "x" * 300
    two = [New(once=f"note:{long}:{n}", kind="note", subject=str(n), endpoint="here") for n in range(2)]
    assert errands.queue(two) == 2
    assert errands.queue(two) == 0
    assert errands.work(5) == 2
    assert done == ["0", "1"]


def test_what_an_errand_said_fits_whatever_it_is() -> None:
    odd = "a NUL \0, half a pair \ud83d, and " + "more " * 200

    def fails(task: Task) -> None:
        raise {"failed": Failed, "broken": KeyError, "later": lambda said: Later(timezone.now() + timedelta(days=1), said)}[task.subject](odd)

    errands.register("fails", fails)
    errands.register("odd", lambda task: {"said": odd})
    errands.queue([new("failed", kind="fails"), new("broken", kind="fails"), new("later", kind="fails"), new("done", kind="odd")])
    assert errands.work(5) == 3
    assert {r.subject: r.state for r in Errand.objects.all()} == {"failed": "failed", "broken": "failed", "later": "waiting", "done": "done"}
    assert all("a NUL" in r.error and len(r.error) == 500 for r in Errand.objects.exclude(subject="done"))
    assert Errand.objects.get(subject="done").outcome["said"].startswith("a NUL \ufffd, half a pair \ufffd,")


def test_later_waits_on_and_counts_as_nothing() -> None:
    until = timezone.now() + timedelta(hours=1)

    def resting(task: Task) -> None:
        raise Later(until, "resting until later")

    errands.register("rest", resting)
    errands.queue([new("a", kind="rest"), new("b")])
    assert errands.work(5) == 1
    row = Errand.objects.get(subject="a")
    assert (row.state, row.due_at, row.error, row.failures, row.interruptions) == ("waiting", until, "resting until later", 0, 0)
    assert done == ["b"]


def test_later_than_a_moment_that_is_over_does_not_keep_a_thread_busy() -> None:
    tries: list[float] = []

    def again(task: Task) -> None:
        tries.append(1)
        raise Later(timezone.now() - timedelta(hours=1))

    errands.register("again", again)
    errands.queue([new("a", kind="again")])
    errands.work(0.5)
    assert len(tries) == 1


def test_failures_are_stamped_with_what_they_said() -> None:
    def refused(task: Task) -> None:
        raise Failed("There is no such model.")

    def broken(task: Task) -> None:
        raise KeyError("oops")

    errands.register("refused", refused)
    errands.register("broken", broken)
    errands.queue([new("a", kind="refused"), new("b", kind="broken"), new("c")])
    assert errands.work(5) == 3
    assert {r.subject: (r.state, r.failures, r.error) for r in Errand.objects.all()} == {
        "a": ("failed", 1, "There is no such model."),
        "b": ("failed", 1, "KeyError: 'oops'"),
        "c": ("done", 0, ""),
    }


def test_what_waits_never_starts_once_cancelled_and_what_runs_sees_it() -> None:
    begun, go = threading.Event(), threading.Event()
    seen: list[bool] = []

    def slow(task: Task) -> dict[str, Any]:
        begun.set()
        assert go.wait(PATIENCE_S)
        seen.append(task.is_cancelled())
        return {"came": "of it"}

    errands.register("slow", slow)
    errands.queue([new("a", kind="slow", batch="x"), new("b", batch="x"), new("c", batch="y")])
    worker = in_thread(errands.work, 30)
    assert begun.wait(PATIENCE_S)
    assert errands.cancel(batch="x") == 2
    go.set()
    worker.join()
    assert seen == [True]
    assert done == ["c"]
    assert [state(s) for s in "abc"] == ["cancelled", "cancelled", "done"]
    assert Errand.objects.get(subject="a").outcome == {}


def in_thread(work: Callable[..., Any], *arguments: Any) -> threading.Thread:
    def run() -> None:
        try:
            work(*arguments)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_connections_go_side_by_side_and_each_one_at_a_time() -> None:
    together, most = threading.Barrier(3, timeout=PATIENCE_S), Counter[str]()
    now: Counter[str] = Counter()
    lock = threading.Lock()

    def count(task: Task) -> None:
        with lock:
            now[task.endpoint] += 1
            most[task.endpoint] = max(most[task.endpoint], now[task.endpoint])
        together.wait()
        with lock:
            now[task.endpoint] -= 1

    errands.register("count", count)
    errands.queue([new(f"{n}", endpoint, kind="count") for endpoint in ("x", "y", "z") for n in range(3)])
    assert errands.work(30) == 9
    assert most == {"x": 1, "y": 1, "z": 1}


def test_a_lane_that_comes_up_while_another_is_busy_does_not_wait_for_it() -> None:
    other_done = threading.Event()

    def long(task: Task) -> None:
        errands.queue([new("b", "another", kind="quick")])
        assert other_done.wait(PATIENCE_S)

    errands.register("long", long)
    errands.register("quick", lambda task: other_done.set())
    errands.queue([new("a", kind="long")])
    assert errands.work(60) == 2


def test_a_ring_that_comes_while_another_is_on_its_way_out_is_not_lost() -> None:
    turned_away: list[int] = []

    def queued_meanwhile() -> None:
        try:
            errands.queue([new("b")])
            turned_away.append(errands.work(5))
        finally:
            connection.close()

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if done == ["a"] and not turned_away and "GROUP BY" in sql and "health_errand" in sql:
            # It has just seen that nothing is due, and still holds the lock.
            in_thread(queued_meanwhile).join()
        return result

    errands.queue([new("a")])
    with connection.execute_wrapper(watch):
        assert errands.work(30) == 2
    assert turned_away == [0]
    assert done == ["a", "b"]


def test_after_its_slice_a_lane_takes_up_nothing_more_and_the_rest_stays() -> None:
    def until_told(task: Task) -> None:
        assert task.stop.wait(PATIENCE_S)

    errands.register("until_told", until_told)
    errands.queue([new("a", kind="until_told"), new("b")])
    assert errands.work(0.2) == 1
    assert (state("a"), state("b")) == ("done", "waiting")
    assert errands.work(5) == 1


def test_a_queue_that_ends_tells_what_runs_and_takes_up_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    closing = threading.Event()
    monkeypatch.setattr(errands, "closing", closing)

    def closes(task: Task) -> None:
        closing.set()
        assert task.stop.wait(PATIENCE_S)

    errands.register("closes", closes)
    errands.queue([new("a", kind="closes"), new("b")])
    assert errands.work(60) == 1
    assert state("b") == "waiting"


def test_the_queue_beats_and_jobs_run_while_an_errand_takes_long() -> None:
    begun, go = threading.Event(), threading.Event()

    def long(task: Task) -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    errands.register("long", long)
    errands.queue([new("a", kind="long")])
    worker = in_thread(errands.work, 60)
    try:
        assert begun.wait(PATIENCE_S)
        assert errands.work(5) == 0, "a second call gives its worker back at once"
        later = timezone.now() + timedelta(seconds=45)
        jobs.ring(later)
        assert Heartbeat.objects.filter(at__gte=later - timedelta(seconds=50)).exists()
    finally:
        go.set()
        worker.join()


def test_who_holds_a_lane_elsewhere_is_left_to_it_until_its_lease_is_over() -> None:
    errands.queue([new("a"), new("b", "there")])
    Lane.objects.create(endpoint="here", leased_until=timezone.now() + timedelta(seconds=50), worker="another host")
    assert errands.work(5) == 1
    assert done == ["b"]
    Lane.objects.filter(endpoint="here").update(leased_until=timezone.now() - timedelta(seconds=1))
    assert errands.work(5) == 1


def test_a_worker_that_lost_its_lane_writes_nothing_over_its_successors() -> None:
    def slow(task: Task) -> dict[str, Any]:
        # Meanwhile somebody else found the lane free and did it.
        Errand.objects.filter(pk=task.id).update(state="done", worker="another host", outcome={"by": "another"})
        return {"by": "me"}

    errands.register("slow", slow)
    errands.queue([new("a", kind="slow")])
    assert errands.work(5) == 0
    assert Errand.objects.get().outcome == {"by": "another"}


def test_what_ended_long_ago_is_forgotten_and_what_waits_is_not() -> None:
    errands.queue([new("old"), new("open", kind="nobody's")])
    errands.work(5)
    errands.forget(timezone.now() + timedelta(days=89))
    assert Errand.objects.count() == 2
    errands.forget(timezone.now() + timedelta(days=91))
    assert [r.subject for r in Errand.objects.all()] == ["open"]
    assert not Lane.objects.exists()


# ------------------------------------------------------------------ processes


def test_several_processes_share_the_lanes_and_do_each_errand_once(victim: Callable[..., Victim]) -> None:
    errands.queue([new(f"{n}", f"lane-{n % 4}", kind="say") for n in range(40)])
    several = [victim("work_errands", str(n)) for n in range(3)]
    assert sorted(int(line) for one in several for line in one.said()) == list(range(40))
    assert Errand.objects.filter(state="done").count() == 40


def test_a_killed_workers_errand_is_done_by_the_next_of_its_folder_at_once(victim: Callable[..., Victim]) -> None:
    errands.queue([new("1", kind="say"), new("2", kind="say")])
    assert victim("work_errands_and_die", "0").process.wait(60) == -9
    assert state("1") == "running"
    assert victim("work_errands", "another").said() == [], "another host minds the lease"
    assert sorted(victim("work_errands", "0").said()) == [1, 2]
    row = Errand.objects.get(subject="1")
    assert (row.state, row.failures, row.interruptions) == ("done", 0, 1)


def test_a_killed_workers_errand_is_done_by_another_host_once_its_lease_is_over(victim: Callable[..., Victim]) -> None:
    errands.queue([new("1", kind="say")])
    assert victim("work_errands_and_die", "0").process.wait(60) == -9
    Lane.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert victim("work_errands", "another").said() == [1]


def test_what_was_cancelled_while_its_process_died_stays_cancelled(victim: Callable[..., Victim]) -> None:
    errands.queue([new("1", kind="say", batch="x")])
    assert victim("work_errands_and_die", "0").process.wait(60) == -9
    errands.cancel(batch="x")
    assert victim("work_errands", "0").said() == []
    assert state("1") == "cancelled"


def test_what_kills_its_process_each_time_is_given_up(victim: Callable[..., Victim]) -> None:
    told: list[str] = []
    errands.register("say", lambda task: {}, lambda task, why: told.append(f"{task.subject}: {why}"))
    errands.queue([new("1", kind="say"), new("2", kind="say")])
    assert victim("work_errands_and_die", "0").process.wait(60) == -9
    Errand.objects.filter(subject="1").update(interruptions=errands.MOST_INTERRUPTIONS)
    Lane.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert errands.work(5) == 1
    assert (state("1"), state("2")) == ("failed", "done")
    assert told == ["1: Its process ended 20 times while it ran."]
