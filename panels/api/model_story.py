"""What became of one model: its days, for charts, and what happened to it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from rest_framework.response import Response

from catalog.listing import ModelView
from health import days, events, spend
from health.costs import usd_text
from panels import tally
from panels.api.view import answer, listed
from wire.errors import CallerError

DAYS, DAYS_MAX = 90, 400
COUNTS = ("calls", "failed", "input_tokens", "output_tokens", "cache_read_tokens")


def history(alias: str, asked: str, now: datetime) -> Response:
    """Answers every day of a stretch up to today. Errors: CallerError."""
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) <= 4 and 1 <= int(asked) <= DAYS_MAX):
        raise CallerError("invalid_request", f"days must be a whole number from 1 to {DAYS_MAX}.", field="days")
    last = spend.today(now)
    first = last - timedelta(days=int(asked or DAYS) - 1)
    judged = tally.days_of_model(alias, first, last)
    found = [day_json(day, *judged.get(tally.number_of(day.day), (0.0, 0.0))) for day in days.of_model(alias, first, last)]
    return answer({"model": alias, "from": first, "to": last, "days": found})


def day_json(day: days.Day, useful: float, not_useful: float) -> dict[str, Any]:
    sums = day.sums
    return {
        "day": day.day,
        **{name: getattr(sums, name) if sums else 0 for name in COUNTS},
        "cost_usd": usd_text(sums.cost_pusd) if sums else "0",
        "unpriced_calls": sums.unpriced if sums else 0,
        "latency_ms": sums.latency_ms / sums.calls if sums else None,
        "useful": useful,
        "not_useful": not_useful,
        "ttft_ms": day.ttft_ms,
        "tokens_per_s": day.tokens_per_s,
    }


def evidence(model: ModelView, limit: int, page_token: str, now: datetime) -> Response:
    """Lists what happened to it, newest first. Errors: CallerError."""
    return listed(events.of_model(model.alias, model.endpoint, limit, page_token, now))
