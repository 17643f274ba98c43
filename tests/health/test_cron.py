"""When a cron text is due: tables over both clock changes, and what holds for all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from health.cron import CronError, check_cron, check_zone, next_run, runs, runs_back, words

PARIS = "Europe/Paris"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


DUE = [
    # cron, zone, after, next (UTC)
    ("*/5 * * * *", "UTC", "2026-11-29 12:40", "2026-11-29 12:45"),
    ("*/5 * * * *", "UTC", "2026-11-29 12:40:01", "2026-11-29 12:45"),
    ("30 4 * * *", "UTC", "2026-11-29 04:30", "2026-11-30 04:30"),
    ("30 4 * * 0", "UTC", "2026-11-23 00:00", "2026-11-29 04:30"),
    ("30 4 * * 7", "UTC", "2026-11-23 00:00", "2026-11-29 04:30"),
    ("0 0 29 2 *", "UTC", "2026-11-29 00:00", "2028-02-29 00:00"),
    ("0 11,23 * * *", PARIS, "2026-03-28 22:00", "2026-03-29 09:00"),
    # the clock jumps from 2:00 to 3:00 on 29 March: 2:30 is not there, and due right after the jump
    ("30 2 * * *", PARIS, "2026-03-28 02:00", "2026-03-29 01:00"),
    ("30 2 * * *", PARIS, "2026-03-29 01:00", "2026-03-30 00:30"),
    ("*/30 * * * *", PARIS, "2026-03-29 00:30", "2026-03-29 01:00"),
    ("0 * * * *", PARIS, "2026-03-29 00:00", "2026-03-29 01:00"),
    ("0 2,3 * * *", PARIS, "2026-03-29 01:00", "2026-03-30 00:00"),
    # and back from 3:00 to 2:00 on 25 October: 2:30 comes twice, and is due the first time
    ("30 2 * * *", PARIS, "2026-10-24 12:00", "2026-10-25 00:30"),
    ("30 2 * * *", PARIS, "2026-10-25 00:30", "2026-10-26 01:30"),
    ("30 2 * * *", PARIS, "2026-10-25 01:15", "2026-10-26 01:30"),
    ("*/30 * * * *", PARIS, "2026-10-25 00:30", "2026-10-25 01:00"),
    ("0 * * * *", PARIS, "2026-10-25 00:00", "2026-10-25 01:00"),
    ("15 1 * * *", "America/Havana", "2026-03-07 12:00", "2026-03-08 05:15"),
    ("0 12 * * *", "Asia/Kathmandu", "2026-11-29 00:00", "2026-11-29 06:15"),
]


@pytest.mark.parametrize(("cron", "zone", "after", "then"), DUE)
def test_the_next_run_is_where_the_zones_clock_says(cron: str, zone: str, after: str, then: str) -> None:
    assert next_run(cron, zone, at(after)) == at(then)


TEXTS = some.sampled_from(["*/5 * * * *", "0 * * * *", "30 2 * * *", "0 2,3 * * *", "15 1-3 * * *", "0 */2 * * *", "59 1 * * 0", "30 4 * * *"])
ZONES = some.sampled_from([PARIS, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Tehran", "America/Havana"])
CHANGES = some.sampled_from([at("2026-03-29 01:00"), at("2026-10-25 01:00"), at("2026-03-08 07:00"), at("2026-11-01 06:00"), at("2026-04-04 15:00")])


@given(TEXTS, ZONES, CHANGES, some.integers(-200_000, 200_000))
def test_runs_go_forward_only_and_back_again_the_same_way(cron: str, zone: str, change: datetime, off_s: int) -> None:
    after = change + timedelta(seconds=off_s)
    found = list(islice(runs(cron, zone, after), 30))
    assert found[0] > after
    assert found == sorted(set(found))
    for moment, later in pairwise(found):
        assert next_run(cron, zone, moment) == later
        assert next_run(cron, zone, later - timedelta(seconds=1)) == later
    back = list(islice(runs_back(cron, zone, found[-1]), 30))
    assert back == found[::-1]
    assert next(runs_back(cron, zone, found[-1] + timedelta(seconds=0.5))) == found[-1]


@pytest.mark.parametrize(
    "text", ["", "* * * *", "* * * * * *", "61 * * * *", "@daily", "a b c d e", "0 0 30 2 *", "* * * * 8", "*/0 * * * *", None, 5, ["*"], "1 " * 80]
)
def test_what_is_no_cron_text_is_refused_with_what_one_is(text: object) -> None:
    with pytest.raises(CronError, match=r"^(must|cannot|never)"):
        check_cron(text)


def test_a_cron_text_is_kept_with_single_spaces() -> None:
    assert check_cron("  30   4 * *  * ") == "30 4 * * *"
    assert words("30 4 * * *") == "At 04:30 every day"


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", None, 3, "\0"])
def test_what_is_no_time_zone_is_refused(name: object) -> None:
    with pytest.raises(CronError, match="time zone"):
        check_zone(name)
