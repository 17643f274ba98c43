"""Alerts: the same is raised once, and what only begins alike is not the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from health import alerts, ledger
from health.models import Alert

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LONG = ["x" * 200, "🦉" * 200, "x" * 190]


@pytest.mark.django_db
@pytest.mark.parametrize("name", LONG)
def test_alerts_of_long_names_are_told_apart_by_what_stands_behind_them(name: str) -> None:
    assert alerts.raise_alert("drift", name, f"drift:{name}:2026-11-01", "It changed.")
    assert not alerts.raise_alert("drift", name, f"drift:{name}:2026-11-01", "It changed.")
    assert alerts.raise_alert("drift", name, f"drift:{name}:2026-11-29", "It changed again.")
    assert Alert.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LONG)
def test_an_alert_that_goes_by_the_ledger_is_the_same_as_one_that_does_not(name: str, folder: object) -> None:
    once = f"budget:{name}:refused"
    ledger.commit([alerts.line_of("budget", name, once, "Refused.", NOW)], folder)  # type: ignore[arg-type]
    assert not alerts.raise_alert("budget", name, once, "Refused.")
    assert Alert.objects.count() == 1
