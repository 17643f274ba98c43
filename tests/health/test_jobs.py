from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from health import jobs
from health.models import Heartbeat, JobRun
from tests.health.conftest import Victim

pytestmark = pytest.mark.usefixtures("tables")
NOON = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
ran: list[tuple[str, datetime]] = []


@pytest.fixture(autouse=True)
def only_ours() -> Iterator[None]:
    """Leaves the jobs of the apps aside for a test."""
    before = dict(jobs.registered)
    jobs.registered.clear()
    ran.clear()
    yield
    jobs.registered.clear()
    jobs.registered.update(before)


def noted(name: str, period_s: int) -> None:
    jobs.register(name, period_s, lambda now: ran.append((name, now)))


def test_the_apps_register_the_sweep_the_drain_and_the_clock() -> None:
    from django.apps import apps

    apps.get_app_config("health").ready()
    assert {"sweep": 60, "drain": 30, "schedules": 20}.items() <= {name: job.period_s for name, job in jobs.registered.items()}.items()


def test_a_slot_runs_once_however_often_it_is_rung() -> None:
    noted("hourly", 3600)
    noted("minutely", 60)
    assert sorted(jobs.ring(NOON)) == ["hourly", "minutely"]
    assert jobs.ring(NOON) == []
    assert jobs.ring(NOON + timedelta(seconds=29)) == []
    assert jobs.ring(NOON + timedelta(seconds=30)) == ["minutely"]
    assert jobs.ring(NOON + timedelta(hours=1)) == ["hourly", "minutely"]
    assert {name for name, _ in ran} == {"hourly", "minutely"}
    assert ran[-1][1] == NOON + timedelta(hours=1)


def test_slots_that_nobody_rang_for_are_not_made_up_for() -> None:
    noted("minutely", 60)
    jobs.ring(NOON)
    assert jobs.ring(NOON + timedelta(minutes=10)) == ["minutely"]
    assert len(ran) == 2


def test_a_job_that_fails_is_stamped_and_keeps_no_other_from_running() -> None:
    def broken(now: datetime) -> None:
        raise ValueError("no such thing")

    jobs.register("a_broken", 60, broken)
    noted("b_fine", 60)
    assert jobs.ring(NOON) == ["a_broken", "b_fine"]
    assert JobRun.objects.get(job="a_broken").error == "ValueError: no such thing"
    assert JobRun.objects.get(job="a_broken").finished_at is not None
    assert JobRun.objects.get(job="b_fine").error == ""


def test_a_slot_under_a_lease_is_left_to_its_holder_until_the_lease_is_over() -> None:
    noted("daily", 86_400)
    jobs.ring(NOON)
    JobRun.objects.update(finished_at=None, leased_until=timezone.now() + timedelta(seconds=60), worker="another host")
    assert jobs.ring(NOON + timedelta(minutes=1)) == []
    JobRun.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert jobs.ring(timezone.now()) != []
    assert JobRun.objects.filter(finished_at=None).count() == 0


def test_a_job_does_not_begin_its_next_slot_while_the_last_one_still_runs() -> None:
    noted("minutely", 60)
    JobRun.objects.create(job="minutely", slot=NOON - timedelta(minutes=5), leased_until=timezone.now() + timedelta(seconds=60), worker="another host")
    assert jobs.ring(NOON) == []
    JobRun.objects.filter(worker="another host").update(finished_at=timezone.now(), leased_until=None)
    assert jobs.ring(NOON) == ["minutely"]


def test_what_ends_the_process_leaves_the_slot_to_be_run_again() -> None:
    def timed_out(now: datetime) -> None:
        raise SystemExit

    jobs.register("daily", 86_400, timed_out)
    with pytest.raises(SystemExit):
        jobs.ring(NOON)
    assert JobRun.objects.get().finished_at is None
    noted("daily", 86_400)
    assert jobs.ring(NOON) == []
    JobRun.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert jobs.ring(NOON) == ["daily"]


def test_a_ring_says_that_its_queue_lives() -> None:
    jobs.ring(NOON)
    jobs.ring(NOON + timedelta(seconds=30))
    assert Heartbeat.objects.get().at == NOON + timedelta(seconds=30)


def test_old_slots_are_deleted_but_never_a_present_one() -> None:
    noted("monthly", 30 * 86_400)
    noted("minutely", 60)
    jobs.ring(NOON)
    present = JobRun.objects.get(job="monthly").slot
    for days in (1, 3, 70):
        for name in ("minutely", "monthly", "of_a_plugin_that_went"):
            JobRun.objects.create(job=name, slot=NOON - timedelta(days=days, seconds=1), finished_at=NOON)
    jobs.ring(NOON)
    left = {(run.job, (NOON - run.slot).days) for run in JobRun.objects.exclude(slot=present)}
    assert ("minutely", 1) in left
    assert ("minutely", 3) not in left
    assert ("of_a_plugin_that_went", 3) in left
    assert ("of_a_plugin_that_went", 70) not in left
    assert JobRun.objects.filter(job="monthly", slot=present).exists()


def test_several_processes_that_ring_at_once_run_a_slot_once(victim: Callable[..., Victim]) -> None:
    several = [victim("ring") for _ in range(4)]
    assert [said for one in several for said in one.said()] == ["ran"]


def test_a_killed_workers_slot_is_run_again_once_its_lease_is_over(victim: Callable[..., Victim]) -> None:
    assert victim("ring_and_die").process.wait(60) == -9
    assert victim("ring").said() == []
    JobRun.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert victim("ring").said() == ["ran"]
    assert victim("ring").said() == []
