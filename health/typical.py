"""What a model's answers usually come to, from the ledger: for telling what a question will cost before it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from health.models import Attempt

# Of so many of its newest calls, not older than so long: a model's manner changes, and nobody waits for a long look.
NEWEST, WITHIN = 200, timedelta(days=90)
GOOD = frozenset({Attempt.Status.OK, Attempt.Status.TRUNCATED})
# Probes and the suite ask other things than people do.
ASKED_BY_PEOPLE = frozenset({"panel", "merged", "route", "direct", "shadow"})


def output_tokens(aliases: Iterable[str], now: datetime) -> dict[str, int]:
    """Reads the mean output of each model's good answers; one without any is not in it. Units: tokens."""
    found = {}
    for alias in dict.fromkeys(aliases):
        rows = Attempt.objects.filter(model=alias, started_at__gte=now - WITHIN).order_by("-started_at")
        newest = rows.values_list("status", "purpose", "output_tokens")[:NEWEST]
        said = [tokens for status, purpose, tokens in newest if status in GOOD and purpose in ASKED_BY_PEOPLE]
        if said:
            found[alias] = -(-sum(said) // len(said))
    return found
