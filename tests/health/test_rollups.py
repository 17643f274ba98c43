"""Sums by day and month: what they say is what the rows say, whatever order, time and end calls come in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health import ledger, rollups
from health.models import Attempt, DayTotal, PartTotal
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
    for table in (Attempt, DayTotal, PartTotal):
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
    assert set(DayTotal.objects.values_list("day", flat=True)) == {date(2026, 10, 31), date(2026, 11, 1)}
    assert_sums_are_those_of_the_ledger()


def test_one_statement_adds_a_batch_of_one_kind(folder: Path) -> None:
    ledger.commit([{"attempts": [row(started_at=NOON.isoformat()) for _ in range(300)]}], folder)
    assert DayTotal.objects.get().calls == PartTotal.objects.get(grain="month", part="model").calls == 300


def test_sums_are_made_anew_from_the_rows(folder: Path) -> None:
    times = [NOON + timedelta(days=days, hours=days) for days in range(0, 45, 3)]
    ledger.commit([{"attempts": [row(started_at=at.isoformat(), key_id=key) for at in times for key in (None, 0, 7)]}], folder)
    DayTotal.objects.update(calls=1, cost_pusd=3)
    PartTotal.objects.all().delete()
    assert rollups.rebuild() == 45  # from the first day to the last
    assert_sums_are_those_of_the_ledger()


def test_a_day_whose_rows_retention_took_keeps_its_sums(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", started_at=NOON.isoformat()), row("b", started_at=NOON.isoformat())]}], folder)
    Attempt.objects.filter(pk="a").delete()
    assert rollups.rebuild() == 0
    assert DayTotal.objects.get().calls == PartTotal.objects.get(grain="month", part="team").calls == 2
