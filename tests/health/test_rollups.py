"""Sums by day and month: what they say is what the rows say, whatever order, time and end calls come in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health import budgets, figures, ledger, rollups, spend, sums
from health.models import Attempt, DayTotal, FreshCalls, PartTotal
from tests.health.conftest import assert_sums_are_those_of_the_ledger, row

pytestmark = pytest.mark.usefixtures("tables")

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
rows = st.fixed_dictionaries(
    {
        "name": st.sampled_from([f"r{n}" for n in range(8)]),
        "model": st.sampled_from(["fast", "slow"]),
        "status": st.sampled_from(["ok", "lost", "error", "truncated", "cancelled"]),
        "key_id": st.sampled_from([None, 7]),
        "team": st.sampled_from(["", "platform"]),
        "estimated": st.booleans(),
        "cost_pusd": st.none() | st.integers(0, 10**12),
        "input_tokens": st.integers(0, 10**6),
        "started_at": st.integers(0, 40 * 24).map(lambda hours: (NOON + timedelta(hours=hours)).isoformat()),
    }
)


@given(batches=st.lists(st.lists(rows, max_size=6), max_size=6))
def test_sums_are_those_of_the_rows_whatever_comes_twice_or_late(tmp_path_factory: pytest.TempPathFactory, batches: list[list[dict[str, Any]]]) -> None:
    for table in (Attempt, DayTotal, FreshCalls, PartTotal):
        table.objects.all().delete()
    folder = tmp_path_factory.mktemp("outbox")
    for batch in batches:
        ledger.commit([{"attempts": [row(**one)]} for one in batch], folder)
    assert_sums_are_those_of_the_ledger()


def test_an_end_that_comes_after_a_loss_counts_as_one_call_with_its_own_cost(folder: Path) -> None:
    lost = row("a", status="lost", estimated=True, output_tokens=4096, cost_pusd=900, started_at=NOON.isoformat())
    ledger.commit([{"attempts": [lost]}], folder)
    ledger.commit([{"attempts": [row("a", cost_pusd=5, started_at=(NOON + timedelta(days=30)).isoformat())]}], folder)
    assert_sums_are_those_of_the_ledger()
    assert {m.period: (m.calls, m.cost_pusd) for m in PartTotal.objects.filter(grain="month", part="model")} == {"2026-03": (0, 0), "2026-04": (1, 5)}


def test_a_days_end_is_that_of_the_time_zone(folder: Path, settings: Any) -> None:
    settings.BENCH_TIME_ZONE = "Pacific/Auckland"
    ledger.commit([{"attempts": [row(started_at="2026-10-31T10:59:59+00:00"), row(started_at="2026-10-31T11:00:00+00:00")]}], folder)
    rollups.fold()
    assert set(DayTotal.objects.values_list("day", flat=True)) == {date(2026, 10, 31), date(2026, 11, 1)}
    assert_sums_are_those_of_the_ledger()


def test_one_statement_adds_a_batch_of_one_kind(folder: Path) -> None:
    ledger.commit([{"attempts": [row(started_at=NOON.isoformat()) for _ in range(300)]}], folder)
    assert FreshCalls.objects.count() == 1
    assert (rollups.fold(), rollups.fold()) == (1, 0)
    assert DayTotal.objects.get().calls == PartTotal.objects.get(grain="month", part="model").calls == 300


@pytest.mark.parametrize("text", ["2026-03-10T23:59:59Z", "2026-03-11T00:59:59+01:00", "2026-03-10T23:59:59.123456+00:00", "2026-03-10T20:59:59.9-03:00"])
def test_a_rows_day_is_that_of_its_moment_however_it_is_written(folder: Path, text: str) -> None:
    ledger.commit([{"attempts": [row(started_at=text)]}], folder)
    rollups.fold()
    assert DayTotal.objects.get().day == date(2026, 3, 10)
    assert_sums_are_those_of_the_ledger()


def test_a_sum_that_no_column_holds_keeps_no_other_out(folder: Path) -> None:
    """What a provider says of its tokens may be anything."""
    at = NOON.isoformat()
    for name, model, cost in (("a", "huge", 2**62), ("b", "huge", 2**62), ("c", "plain", 5), ("d", "huge", 2**63 - 1)):
        ledger.commit([{"attempts": [row(name, model=model, cost_pusd=cost, started_at=at)]}], folder)
    assert rollups.fold() == 4
    assert not FreshCalls.objects.exists()
    assert DayTotal.objects.get(model="plain").cost_pusd == 5
    assert DayTotal.objects.get(model="huge").calls >= 1


def test_readers_see_what_was_just_committed(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", started_at=NOON.isoformat(), cost_pusd=5)]}], folder)
    assert [(s.name, s.calls) for s in sums.each("model")] == [("fast", 1)]
    ledger.commit([{"attempts": [row("b", started_at=NOON.isoformat(), cost_pusd=7)]}], folder)
    assert budgets.spent_in("2026-03")["team", ""] == 12
    ledger.commit([{"attempts": [row("c", started_at=NOON.isoformat())]}], folder)
    assert spend.since(NOON.date()).calls == 3
    ledger.commit([{"attempts": [row("d", started_at=NOON.isoformat())]}], folder)
    assert sum(one.calls for one in figures.of_day(NOON)) == 4
    ledger.commit([{"attempts": [row("e", started_at=NOON.isoformat())]}], folder)
    assert [s.calls for s in sums.days_of("model", "fast", [NOON.date()])] == [5]


def test_sums_are_made_anew_from_the_rows(folder: Path) -> None:
    times = [NOON + timedelta(days=days, hours=days) for days in range(0, 45, 3)]
    ledger.commit([{"attempts": [row(started_at=at.isoformat(), key_id=key) for at in times for key in (None, 0, 7)]}], folder)
    rollups.fold()
    DayTotal.objects.update(calls=1, cost_pusd=3)
    PartTotal.objects.all().delete()
    assert rollups.rebuild() == 45  # from the first day to the last
    assert_sums_are_those_of_the_ledger()


def test_a_day_whose_rows_retention_took_keeps_its_sums(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", started_at=NOON.isoformat()), row("b", started_at=NOON.isoformat())]}], folder)
    Attempt.objects.filter(pk="a").delete()
    assert rollups.rebuild() == 0
    assert DayTotal.objects.get().calls == PartTotal.objects.get(grain="month", part="team").calls == 2
