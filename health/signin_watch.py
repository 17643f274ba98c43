"""Renews what people signed in for, and raises an alert where somebody must sign in again."""

from __future__ import annotations

from datetime import datetime

from catalog import renewing
from health.alerts import raise_alert


def watch(now: datetime) -> int:
    """Gives how many sign-ins are in trouble."""
    troubles = renewing.refresh_due(now)
    for trouble in troubles:
        raise_alert("signin", trouble.endpoint, trouble.once, trouble.message)
    return len(troubles)
