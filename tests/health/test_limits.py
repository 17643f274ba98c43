from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.limits import EXACT_ENTRIES, Admitted, Caps, Meter, Refused, admit, decode, encode, is_spent, settle, used


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone)).timestamp() * 1000)


NOON = at("2026-03-10T12:00:00")


def filled(caps: Caps, *entries: tuple[int, int]) -> Meter:
    """A meter after (milliseconds after noon, amount)."""
    meter = Meter()
    for after, amount in entries:
        answer = admit(meter, caps, amount, NOON + after)
        assert isinstance(answer, Admitted)
        meter = answer.meter
    return meter


REFUSALS = [
    # caps, what was let in, amount, ms after noon, refused by, wait, never
    (Caps(minute=2), [(0, 1), (10_000, 1)], 1, 30_000, "minute", 30.0, False),
    (Caps(minute=2), [(0, 1), (10_000, 1)], 2, 30_000, "minute", 40.0, False),
    (Caps(minute=100), [(0, 60), (5, 40)], 50, 20, "minute", 59.98, False),
    (Caps(minute=100), [], 101, 0, "minute", 0.0, True),
    (Caps(minute=0), [], 1, 0, "minute", 0.0, True),
    (Caps(day=10), [(0, 10)], 1, 0, "day", 43_200.0, False),
    (Caps(minute=5, day=5), [(0, 5)], 1, 0, "day", 43_200.0, False),
    (Caps(month=10), [(0, 10)], 1, 0, "month", 21.5 * 86_400, False),
    (Caps(day=10, month=3), [(0, 3)], 4, 0, "month", 21.5 * 86_400, True),
    (Caps(parallel=2), [(0, 1), (0, 1)], 1, 3_600_000, "parallel", 1.0, False),
]


@pytest.mark.parametrize(("caps", "before", "amount", "after", "window", "wait_s", "never"), REFUSALS)
def test_a_full_window_refuses_and_says_how_long(
    caps: Caps, before: list[tuple[int, int]], amount: int, after: int, window: str, wait_s: float, never: bool
) -> None:
    assert admit(filled(caps, *before), caps, amount, NOON + after) == Refused(window, wait_s, never)


def test_after_the_wait_it_fits() -> None:
    caps = Caps(minute=100)
    meter = filled(caps, (0, 60), (5, 40))
    answer = admit(meter, caps, 50, NOON + 20)
    assert isinstance(answer, Refused)
    just_before = NOON + 20 + int(answer.wait_s * 1000) - 1
    assert isinstance(admit(meter, caps, 50, just_before), Refused)
    assert isinstance(admit(meter, caps, 50, just_before + 1), Admitted)


def test_an_entry_leaves_sixty_seconds_after_it_was_made_and_not_at_the_full_minute() -> None:
    caps = Caps(minute=1)
    meter = filled(caps, (59_000, 1))
    assert isinstance(admit(meter, caps, 1, NOON + 60_000), Refused)
    assert isinstance(admit(meter, caps, 1, NOON + 118_999), Refused)
    assert isinstance(admit(meter, caps, 1, NOON + 119_000), Admitted)


def test_an_amount_that_fills_a_window_exactly_fits_and_nothing_is_over() -> None:
    caps = Caps(minute=10, day=10, month=10, parallel=10)
    assert used(filled(caps, (0, 4), (1, 6)), NOON + 1) == {"minute": 10, "day": 10, "month": 10, "parallel": 10}


@pytest.mark.parametrize(
    ("zone", "last", "first", "previous"),
    [
        ("UTC", "2026-01-31T23:59:59.999", "2026-02-01T00:00:00", "2026-01-01T00:00:00"),
        ("Asia/Tokyo", "2026-01-31T23:59:59.999", "2026-02-01T00:00:00", "2026-01-01T00:00:00"),
        ("Asia/Kathmandu", "2026-12-31T23:59:59.999", "2027-01-01T00:00:00", "2026-12-01T00:00:00"),
        ("America/New_York", "2026-10-31T23:59:59.999", "2026-11-01T00:00:00", "2026-10-01T00:00:00"),
        ("Europe/Berlin", "2026-03-31T23:59:59.999", "2026-04-01T00:00:00", "2026-03-01T00:00:00"),
        # Spring forward falls on midnight there: the day begins at one o'clock.
        ("Africa/Cairo", "2026-04-30T23:59:59.999", "2026-05-01T00:00:00", "2026-04-01T00:00:00"),
    ],
)
def test_a_month_rolls_over_at_midnight_in_its_own_time_zone(zone: str, last: str, first: str, previous: str) -> None:
    caps = Caps(month=5, zone=zone)
    begun = admit(Meter(), caps, 5, at(previous, zone))
    assert isinstance(begun, Admitted)
    answer = admit(begun.meter, caps, 1, at(last, zone))
    assert isinstance(answer, Refused)
    assert answer.wait_s == pytest.approx(0.001)
    assert isinstance(admit(begun.meter, caps, 5, at(first, zone)), Admitted)


def test_a_settlement_that_comes_after_midnight_leaves_the_new_month_alone() -> None:
    caps = Caps(month=100, day=100)
    old = admit(Meter(), caps, 80, at("2026-01-31T23:59:00"))
    assert isinstance(old, Admitted)
    new = admit(old.meter, caps, 70, at("2026-02-01T00:01:00"))
    assert isinstance(new, Admitted)
    after = settle(new.meter, old.windows, 80, 5, at("2026-01-31T23:59:00"), at("2026-02-01T00:02:00"))
    assert used(after, at("2026-02-01T00:02:00"))["month"] == 70


def test_the_truth_takes_the_reservations_place_in_every_window() -> None:
    caps = Caps(minute=100, day=100, month=100)
    meter = filled(caps, (0, 60), (10, 30))
    meter = settle(meter, ("minute", "day", "month"), 60, 12, NOON, NOON + 20)
    assert used(meter, NOON + 20) == {"minute": 42, "day": 42, "month": 42, "parallel": 0}
    # More than was reserved is the truth too.
    meter = settle(meter, ("minute", "day", "month"), 30, 130, NOON + 10, NOON + 30)
    assert used(meter, NOON + 30) == {"minute": 142, "day": 142, "month": 142, "parallel": 0}


def test_a_settlement_after_the_minute_still_corrects_the_day() -> None:
    meter = settle(filled(Caps(minute=100, day=100), (0, 60), (30_000, 10)), ("minute", "day"), 60, 1, NOON, NOON + 61_000)
    assert used(meter, NOON + 61_000)["minute"] == 10
    assert used(meter, NOON + 61_000)["day"] == 11


def test_what_was_under_way_goes_whatever_the_truth_is() -> None:
    meter = filled(Caps(parallel=3), (0, 1), (0, 1))
    assert settle(meter, ("parallel",), 1, 1, NOON, NOON).parallel == 1
    assert settle(meter, ("parallel",), 1, 0, NOON, NOON).parallel == 1


def test_a_window_that_a_reservation_was_never_entered_in_is_not_corrected() -> None:
    before = filled(Caps(minute=100), (0, 40))
    meter = admit(before, Caps(minute=100, day=100), 10, NOON + 1)
    assert isinstance(meter, Admitted)
    after = settle(meter.meter, ("minute",), 40, 0, NOON, NOON + 2)
    assert used(after, NOON + 2) == {"minute": 10, "day": 10, "month": 0, "parallel": 0}


def test_a_meter_is_spent_once_nothing_of_it_counts() -> None:
    meter = filled(Caps(minute=5, day=5), (0, 1))
    assert not is_spent(meter, NOON + 59_999)
    assert not is_spent(meter, NOON + 60_000)  # the day still counts
    assert is_spent(meter, at("2026-03-11T00:00:00"))
    assert is_spent(settle(meter, ("minute", "day"), 1, 0, NOON, NOON + 1), NOON + 1)
    assert not is_spent(filled(Caps(parallel=1), (0, 1)), at("2027-01-01T00:00:00"))


steps = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 40), st.integers(0, 4000), st.integers(0, 200_000)),  # ms since the step before
        st.integers(1, 12),  # amount
        st.integers(0, 12),  # what was really used of it
        st.integers(0, 5),  # how many steps later it is settled
    ),
    max_size=120,
)


@given(steps, st.integers(1, 60))
def test_no_rolling_minute_ever_holds_more_than_its_cap(steps: list[tuple[int, int, int, int]], cap: int) -> None:
    caps = Caps(minute=cap, day=cap * 40)
    meter, now = Meter(), NOON
    made: list[list[int]] = []  # time, what counts of it now
    unsettled: list[tuple[int, int, int, int, tuple[str, ...]]] = []
    for number, (pause, amount, really, later) in enumerate(steps):
        now += pause
        for one in [one for one in unsettled if one[0] <= number]:
            unsettled.remove(one)
            _, index, reserved, truth, windows = one
            meter = settle(meter, windows, reserved, truth, made[index][0], now)
            made[index][1] = truth
        answer = admit(decode(encode(meter)), caps, amount, now)
        held = sum(counts for when, counts in made if when > now - 60_000)
        today = sum(counts for _, counts in made)
        if isinstance(answer, Admitted):
            assert held + amount <= cap
            meter = answer.meter
            made.append([now, amount])
            unsettled.append((number + 1 + later, len(made) - 1, amount, min(really, amount), answer.windows))
        else:
            assert held + amount > cap or today + amount > cap * 40
            assert answer.never == (amount > cap)
        assert all(entry[1] > 0 for entry in meter.minute)
        assert min(used(meter, now).values()) >= 0


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 3)), min_size=EXACT_ENTRIES, max_size=700), st.randoms())
def test_a_crowded_minute_is_merged_and_lets_nothing_leave_early(entries: list[tuple[int, int]], random: object) -> None:
    caps = Caps(minute=1_000_000)
    meter, now = Meter(), NOON
    made: list[tuple[int, int]] = []
    for pause, amount in entries:
        now += pause
        answer = admit(meter, caps, amount, now)
        assert isinstance(answer, Admitted)
        meter = answer.meter
        made.append((now, amount))
        assert len(meter.minute) <= EXACT_ENTRIES
    exact = sum(amount for when, amount in made if when > now - 60_000)
    with_a_second_more = sum(amount for when, amount in made if when > now - 61_000)
    assert exact <= used(meter, now)["minute"] <= with_a_second_more
    for when, amount in made:
        meter = settle(meter, ("minute",), amount, 0, when, now)
    # What is left has left the exact minute already, and a bucket keeps it for less than a second more.
    assert used(meter, now)["minute"] <= with_a_second_more - exact


def test_hosts_whose_clocks_differ_share_a_meter_without_losing_entries() -> None:
    caps = Caps(minute=3)
    meter = filled(caps, (500, 1), (0, 1), (700, 1))
    assert isinstance(admit(meter, caps, 1, NOON + 100), Refused)
    assert used(settle(meter, ("minute",), 1, 0, NOON, NOON + 800), NOON + 800)["minute"] == 2


def test_an_unused_row_is_an_empty_meter() -> None:
    assert decode("") == Meter()
