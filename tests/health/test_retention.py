"""What retention lets go of, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from access import preferences
from health import alerts, ledger, retention, rollups
from health.models import Alert, Attempt, DayTotal, PartTotal
from tests.health.conftest import row

pytestmark = pytest.mark.usefixtures("tables")

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def test_old_rows_of_the_ledger_go_and_their_sums_stay(folder: Path) -> None:
    old, edge = NOW - timedelta(days=401), datetime(2026, 11, 29, tzinfo=UTC) - timedelta(days=400)
    lines = [{"attempts": [row(started_at=old.isoformat()) for _ in range(retention.BATCH + 3)]}, {"attempts": [row("kept", started_at=edge.isoformat())]}]
    ledger.commit(lines, folder)
    assert retention.run(NOW, NOW)["calls"] == retention.BATCH + 3
    assert list(Attempt.objects.values_list("pk", flat=True)) == ["kept"]
    rollups.fold()
    assert sum(DayTotal.objects.values_list("calls", flat=True)) == retention.BATCH + 4
    assert sum(PartTotal.objects.filter(grain="month", part="model").values_list("calls", flat=True)) == retention.BATCH + 4


def test_how_long_rows_are_kept_is_a_setting(folder: Path) -> None:
    preferences.change(retention.CALLS_DAYS, 31, "ada")
    ledger.commit([{"attempts": [row(started_at=(NOW - timedelta(days=40)).isoformat())]}], folder)
    retention.run(NOW, NOW)
    assert not Attempt.objects.exists()


def test_alerts_that_somebody_has_seen_go_and_others_stay() -> None:
    for once in ("seen", "unseen"):
        alerts.raise_alert("drift", once, once, "It changed.")
    alerts.see(Alert.objects.get(subject="seen").pk, "ada")
    Alert.objects.update(at=NOW - timedelta(days=91))
    assert retention.run(NOW, NOW)["alerts"] == 1
    assert Alert.objects.get().subject == "unseen"
