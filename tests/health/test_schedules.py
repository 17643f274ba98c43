"""Schedules: each moment once, missed ones made up for once, always forward, and what people change holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from access.models import AuditEntry
from health import errands, schedule_clock, schedules
from health.models import Alert, Errand, Lane, Schedule, ScheduleRun
from health.schedule_clock import tick
from health.schedule_runs import ERRAND
from tests.health.conftest import Victim

pytestmark = pytest.mark.usefixtures("tables")
ran: list[datetime] = []


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture(autouse=True)
def only_ours(settings: Any, tmp_path: Any) -> Iterator[None]:
    """Leaves the schedules and errands of the apps aside for a test."""
    settings.HOME = tmp_path
    kept = dict(schedules.registered), dict(errands.registered)
    schedules.registered.clear()
    errands.registered.clear()
    errands.register(ERRAND, schedule_clock.do, schedule_clock.gave_up)
    ran.clear()
    yield
    schedules.registered.clear()
    schedules.registered.update(kept[0])
    errands.registered.clear()
    errands.registered.update(kept[1])


def note(slot: datetime, now: datetime) -> dict[str, Any]:
    ran.append(slot)
    return {"noted": 1}


def noted(cron: str = "*/5 * * * *", enabled: bool = True, name: str = "noted", function: Any = note) -> None:
    schedules.register(name, function, cron, enabled, "Writes down when it ran.")


def due(name: str = "noted") -> datetime | None:
    return Schedule.objects.get(pk=name).next_run_at


def states() -> list[tuple[str, str, bool]]:
    return [(f"{r.slot:%m-%d %H:%M}", r.state, r.made_up) for r in ScheduleRun.objects.order_by("slot")]


def run() -> None:
    errands.work(5)


def test_what_is_due_runs_once_with_a_report_however_often_the_clock_is_looked_at() -> None:
    noted()
    assert tick(at("2026-11-29 12:01")) == []
    assert due() == at("2026-11-29 12:05")
    for now in ("12:05:00", "12:05:01", "12:05:20"):
        tick(at(f"2026-11-29 {now}"))
    run()
    run()
    assert ran == [at("2026-11-29 12:05")]
    (one,) = schedules.runs_of("noted")
    assert (one.state, one.report, one.by, one.made_up, one.error, one.failures, one.interruptions) == ("done", {"noted": 1}, "schedule", False, "", 0, 0)
    assert due() == at("2026-11-29 12:10")


def test_after_a_gap_the_next_run_is_counted_from_now() -> None:
    noted()
    tick(at("2026-11-29 10:04"))
    tick(at("2026-11-29 10:05"))
    assert due() == at("2026-11-29 10:10")
    assert tick(at("2026-11-29 12:40")) == ["noted"]
    assert due() == at("2026-11-29 12:45")
    run()
    assert ran == [at("2026-11-29 12:40")]
    assert [s for s in states() if s[1] != "skipped"] == [("11-29 12:40", "done", False)]
    assert tick(at("2026-11-29 12:41")) == []


def test_a_missed_run_is_made_up_for_once_and_older_ones_are_on_record_as_skipped() -> None:
    noted("30 4 * * *")
    tick(at("2026-11-20 12:00"))
    assert tick(at("2026-11-23 12:00")) == ["noted"]
    run()
    assert tick(at("2026-11-23 12:01")) == []
    assert states() == [("11-21 04:30", "skipped", False), ("11-22 04:30", "skipped", False), ("11-23 04:30", "done", True)]
    assert due() == at("2026-11-24 04:30")


def test_what_was_missed_for_more_than_a_week_is_not_made_up_for() -> None:
    noted("0 0 1 * *")
    tick(at("2026-10-15 00:00"))
    assert tick(at("2026-11-08 00:00:01")) == []
    assert states() == [("11-01 00:00", "skipped", False)]
    assert due() == at("2026-12-01 00:00")
    Schedule.objects.update(next_run_at=at("2026-11-01 00:00"))
    ScheduleRun.objects.all().delete()
    assert tick(at("2026-11-08 00:00")) == ["noted"]


def test_thousands_of_missed_moments_cost_no_thousands_of_rows() -> None:
    noted("* * * * *")
    tick(at("2026-01-01 00:00"))
    tick(at("2026-11-29 12:00:30"))
    assert ScheduleRun.objects.count() <= 22
    assert Alert.objects.get().message == "Schedule noted was missed more than 20 times, from 01 Jan 00:01 UTC on."


def test_an_alert_tells_of_more_than_two_missed_runs_and_not_of_one() -> None:
    noted("30 4 * * *")
    tick(at("2026-11-20 12:00"))
    tick(at("2026-11-22 12:00"))
    assert not Alert.objects.exists()
    tick(at("2026-11-25 12:00"))
    alert = Alert.objects.get()
    assert (alert.kind, alert.subject) == ("schedule", "noted")
    assert "missed 3 times" in alert.message


@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
def test_a_clock_change_itself_raises_no_alarm_and_skips_nothing(day: str) -> None:
    schedules.register("noted", note, "0 11,23 * * *", True, "…")
    Schedule.objects.create(name="noted", enabled=True, time_zone="Europe/Paris")
    now = at(f"{day} 00:00")
    for _ in range(3 * 24 * 2):
        tick(now)
        now += timedelta(minutes=30)
    run()
    assert not Alert.objects.exists()
    assert {state for _, state, _ in states()} <= {"done", "skipped"}
    hours = [s.slot.astimezone(ZoneInfo("Europe/Paris")).hour for s in schedules.runs_of("noted")]
    assert sorted(set(hours)) == [11, 23]
    assert len(hours) == 6


def test_switching_a_due_one_off_holds_and_next_runs_go_up_an_hour_at_a_time() -> None:
    noted("0 12 * * *")
    tick(at("2026-11-29 11:00"))
    assert due() == at("2026-11-29 12:00")
    schedules.change("noted", {"enabled": False}, "ann", at("2026-11-29 11:59:59.900000"))
    assert tick(at("2026-11-29 12:00:00.500000")) == []
    schedules.change("noted", {"cron": "0 * * * *"}, "ann", at("2026-11-29 12:00:01"))
    schedules.change("noted", {"enabled": True}, "ann", at("2026-11-29 12:00:02"))
    seen = [due()]
    now = at("2026-11-29 12:00:03")
    for _ in range(57):
        if tick(now):
            seen.append(due())
        now += timedelta(minutes=10)
    assert seen == [at("2026-11-29 13:00") + timedelta(hours=n) for n in range(10)]
    assert not ScheduleRun.objects.filter(slot=at("2026-11-29 12:00")).exists()


def test_switching_off_what_was_due_but_has_not_begun_holds_too() -> None:
    noted()
    tick(at("2026-11-29 12:04"))
    tick(at("2026-11-29 12:05"))
    assert states() == [("11-29 12:05", "waiting", False)]
    schedules.change("noted", {"enabled": False}, "ann", at("2026-11-29 12:05:10"))
    run()
    assert ran == []
    assert states() == [("11-29 12:05", "skipped", False)]
    assert Errand.objects.get().state == "cancelled"


def test_a_clock_set_back_runs_no_moment_again_and_stays_on_its_way() -> None:
    noted()
    tick(at("2026-11-29 12:01"))
    tick(at("2026-11-29 12:05"))
    assert tick(at("2026-11-29 12:04:58")) == []
    assert due() == at("2026-11-29 12:10")
    assert tick(at("2026-11-29 12:05:03")) == []
    # A clock that stood years ahead for a while does not keep it waiting for years.
    Schedule.objects.update(next_run_at=at("2031-01-01 00:00"))
    tick(at("2026-11-29 12:11"))
    assert due() == at("2026-11-29 12:15")


def test_a_new_default_counts_from_now_and_what_somebody_changed_stays() -> None:
    noted("30 4 * * *")
    tick(at("2026-11-29 12:00"))
    noted("0 18 * * *")
    tick(at("2026-11-29 12:01"))
    assert due() == at("2026-11-29 18:00")
    schedules.change("noted", {"cron": "15 20 * * *"}, "ann", at("2026-11-29 12:02"))
    noted("0 13 * * *")
    tick(at("2026-11-29 12:03"))
    assert due() == at("2026-11-29 20:15")
    schedules.change("noted", {"cron": ""}, "ann", at("2026-11-29 12:04"))
    assert due() == at("2026-11-29 13:00")


def test_what_is_off_by_default_has_no_row_until_somebody_switches_it_on() -> None:
    noted(enabled=False)
    assert tick(at("2026-11-29 12:05")) == []
    assert not Schedule.objects.exists()
    assert not schedules.shown("noted", at("2026-11-29 12:05")).next_runs
    shown = schedules.change("noted", {"enabled": True, "time_zone": "Europe/Paris"}, "ann", at("2026-11-29 12:06"))
    assert shown.next_run_at == at("2026-11-29 12:10")
    assert len(shown.next_runs) == 5
    assert tick(at("2026-11-29 12:10")) == ["noted"]
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target) == ("ann", "schedule.change", "noted")
    assert entry.changes == {"enabled": [False, True], "time_zone": ["", "Europe/Paris"]}


WRONG = [
    ({"enabled": "yes"}, "enabled"),
    ({"cron": "nightly"}, "cron"),
    ({"cron": 5}, "cron"),
    ({"time_zone": "Mars"}, "time_zone"),
    ({"enabled": None}, "enabled"),
]


@pytest.mark.parametrize(("given", "field"), WRONG)
def test_what_cannot_be_is_refused_by_field_and_changes_nothing(given: dict[str, Any], field: str) -> None:
    noted()
    with pytest.raises(schedules.ScheduleError) as refused:
        schedules.change("noted", given, "ann", timezone.now())
    assert refused.value.field == field
    assert not Schedule.objects.exists()
    assert not AuditEntry.objects.exists()


def test_what_is_hindered_cannot_be_switched_on_or_run_and_says_why() -> None:
    schedules.register("suite", note, "0 1 * * *", False, "…", hindered=lambda: "no benchmark is set up.")
    for attempt in (lambda: schedules.change("suite", {"enabled": True}, "ann", timezone.now()), lambda: schedules.run_now("suite", "ann", timezone.now())):
        with pytest.raises(schedules.ScheduleError, match="no benchmark is set up"):
            attempt()
    schedules.change("suite", {"cron": "0 2 * * *"}, "ann", timezone.now())
    with pytest.raises(schedules.UnknownSchedule):
        schedules.shown("nightly", timezone.now())


def test_a_run_asked_for_goes_whether_it_is_on_or_not_and_only_once_at_a_time() -> None:
    noted(enabled=False)
    first = schedules.run_now("noted", "ann", at("2026-11-29 12:01:02"))
    again = schedules.run_now("noted", "bob", at("2026-11-29 12:01:03"))
    assert again.id == first.id
    run()
    assert ran == [at("2026-11-29 12:01:02")]
    assert schedules.runs_of("noted")[0].by == "ann"
    assert schedules.shown("noted", timezone.now()).last_run is not None
    assert AuditEntry.objects.filter(action="schedule.run").count() == 2


def test_a_failed_run_says_why_and_two_in_a_row_raise_one_alert() -> None:
    def broken(slot: datetime, now: datetime) -> dict[str, Any]:
        raise ValueError("no such thing")

    noted(function=broken)
    now = at("2026-11-29 12:04")
    for count in range(4):
        tick(now)
        run()
        assert Alert.objects.count() == (1 if count > 2 else count // 2), count
        now += timedelta(minutes=5) - timedelta(minutes=4 if not count else 0)
    last = schedules.runs_of("noted")[0]
    assert (last.state, last.failures, last.error) == ("failed", 1, "ValueError: no such thing")
    assert "failed twice in a row" in Alert.objects.get().message


def test_a_run_that_has_not_begun_gives_way_to_the_next() -> None:
    noted()
    for now in ("12:04", "12:05", "12:10"):
        tick(at(f"2026-11-29 {now}"))
    assert [s[1] for s in states()] == ["skipped", "waiting"]
    run()
    assert ran == [at("2026-11-29 12:10")]


def test_a_restart_in_the_middle_is_an_interruption_and_no_failure(victim: Callable[..., Victim]) -> None:
    noted(enabled=False)
    schedules.run_now("noted", "ann", timezone.now())
    for _ in range(3):
        assert victim("scheduled_and_die").process.wait(60) == -9
        assert schedules.runs_of("noted")[0].state == "running"
        Lane.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert victim("scheduled").said() == ["ran"]
    (one,) = schedules.runs_of("noted")
    assert (one.state, one.failures, one.interruptions) == ("done", 0, 3)


def test_what_kills_its_process_each_time_ends_as_failed_and_tells(victim: Callable[..., Victim]) -> None:
    noted(enabled=False)
    schedules.run_now("noted", "ann", timezone.now())
    assert victim("scheduled_and_die").process.wait(60) == -9
    Errand.objects.update(interruptions=errands.MOST_INTERRUPTIONS)
    Lane.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    run()
    (one,) = schedules.runs_of("noted")
    assert (one.state, one.interruptions) == ("failed", errands.MOST_INTERRUPTIONS)
    assert "ended 20 times" in one.error
    assert ran == []


def test_several_processes_that_look_and_work_at_once_run_each_moment_once(victim: Callable[..., Victim]) -> None:
    several = [victim("look_at_clock") for _ in range(4)]
    said = [line for one in several for line in one.said()]
    assert sorted(said) == sorted({f"ran {minute:02}" for minute in range(5)})
    assert ScheduleRun.objects.filter(state="done").count() == 5


def test_a_run_that_takes_long_makes_way_and_goes_on_where_it_was() -> None:
    turns: list[int] = []

    def long(slot: datetime, now: datetime) -> dict[str, Any]:
        turns.append(1)
        if len(turns) == 1:
            while not errands.is_over():
                pass
            raise errands.Later(timezone.now(), "There is more.")
        return {"turns": len(turns)}

    noted(enabled=False, function=long)
    schedules.run_now("noted", "ann", timezone.now())
    assert not errands.is_over()
    errands.work(0.1)
    assert schedules.runs_of("noted")[0].state == "waiting"
    Errand.objects.update(due_at=timezone.now())
    run()
    (one,) = schedules.runs_of("noted")
    assert (one.state, one.report, one.interruptions, one.failures) == ("done", {"turns": 2}, 0, 0)
