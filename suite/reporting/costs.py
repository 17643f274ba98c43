"""What a run cost and for what: asking its subject, judging, and, once models author benchmarks, driving."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from health import purposes
from health.purposes import TOKENS, Purpose
from panels.api.wording import to_json
from suite.api.shapes import money, usd
from suite.models import Run

# By what the ledger calls them.
NAMES = {"trace": "suite", "judge": "judge", "driver": "driver"}
# A line may be committed a little after its run has ended.
LATE = timedelta(hours=1)


def of(run: Run) -> dict[str, Any]:
    """Shape: `metered_usd` is what the run counted, `ledger_usd` what its rows in the ledger come to; those go after their time, the count stays."""
    found = purposes.of_request(run.pk, run.created_at, (run.finished_at or timezone.now()) + LATE)
    metered = usd(run.cost_pusd)
    return {
        "object": "run_cost",
        "run": run.pk,
        "currency": "USD",
        "metered_usd": to_json(metered),
        "billed": money(metered),
        "billable": False,
        "complete": not run.has_unpriced,
        "ledger_usd": to_json(usd(sum(p.cost_pusd for p in found))),
        "limits": run.limits,
        **summed(found),
        "purposes": [{"purpose": name, **summed(own), "models": [by_model(p) for p in own]} for name, own in by_purpose(found)],
    }


def by_purpose(found: Iterable[Purpose]) -> list[tuple[str, list[Purpose]]]:
    """Gives each purpose of the contract, also one without a call; what else the ledger has goes under its own name."""
    rows = list(found)
    known = {spoken: name for name, spoken in NAMES.items()}
    names = [*NAMES, *sorted({p.purpose for p in rows} - set(known))]
    return [(name, [p for p in rows if known.get(p.purpose, p.purpose) == name]) for name in names]


def summed(rows: Iterable[Purpose]) -> dict[str, Any]:
    own = list(rows)
    return {
        "calls": sum(p.calls for p in own),
        "failed": sum(p.failed for p in own),
        "priced": sum(p.calls - p.unpriced for p in own),
        "unpriced": sum(p.unpriced for p in own),
        "estimated": sum(p.estimated for p in own),
        "cost_usd": to_json(usd(sum(p.cost_pusd for p in own))),
        "tokens": {name.removesuffix("_tokens"): sum(getattr(p, name) for p in own) for name in TOKENS},
    }


def by_model(row: Purpose) -> dict[str, Any]:
    return {"model": row.model, "endpoint": row.endpoint, **summed([row])}
