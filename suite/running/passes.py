"""Passes that nobody launches by hand: a model's first, when it is onboarded, and the scheduled ones, over the subsets whose recipe says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from access import preferences
from access.caller import Caller
from catalog.load import load_models
from health import errands
from suite.models import Run, Subset
from suite.review import packs
from suite.running import engine, launching

WAIT = timedelta(seconds=30)
AGAIN = timedelta(days=6)
# What a pass asks of each subset at the most: not a whole large benchmark each week. Each subset of the starter pack is smaller, since only whole
# runs are ranked and count in the record.
TASKS = 100


# Whose budget passes count against, and who owns their runs.
SERVER = Caller(kind="user", judge="server", scopes=frozenset({"ask", "admin", "runs:write", "registry:read"}))


# Whether passes run the starter pack, and load it where it is missing. Off: nothing is spent by itself until somebody says so.
STARTER = "suite.starter"
STARTER_TELLS = "Whether onboarding in full and the weekly schedule ask models the starter pack of review tasks; it is loaded when it is first needed."


def subsets() -> list[Subset]:
    """The subsets that passes run: those marked by their recipe, and the starter pack where it is switched on."""
    pack = packs.loaded(packs.find(packs.STARTER)) or packs.load(packs.STARTER, "server") if preferences.value(STARTER) else []
    there = Subset.objects.filter(deleted_at=None, retired_at=None, version__gt=0, benchmark__deleted_at=None)
    wanted = Q(recipe__passes=True) | Q(pk__in=[row.pk for row in pack])
    return list(there.filter(wanted).select_related("benchmark").order_by("created_at"))


def is_set_up() -> bool:
    return bool(preferences.value(STARTER)) or bool(subsets())


def launch(alias: str, source: str, reference: str) -> list[Run]:
    """Launches what a pass runs on one model, once for each reference."""
    made = []
    for subset in subsets():
        there = Run.objects.filter(subset=subset, subject=alias, source=source, metadata__pass_of=reference).first()
        if there is None:
            body = {
                "benchmark": subset.benchmark_id,
                "subset": subset.pk,
                "sut": alias,
                "source": source,
                "metadata": {"pass_of": reference, "limit": TASKS},
            }
            there = launching.launch(SERVER, body)
        made.append(there)
    if made:
        engine.ring()
    return made


def onboarded(alias: str, batch: str, task: errands.Task) -> Mapping[str, Any]:
    """The suite's stage of onboarding: launches, then waits in the queue until all have ended."""
    runs = launch(alias, "onboarding", f"{batch}:{alias}"[:200])
    if not runs:
        return {
            "outcome": "skipped",
            "said": "No benchmark is switched on for passes: nothing is spent. The setting suite.starter switches the starter pack on.",
        }
    if open_ones := [run for run in runs if run.status in (Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.HALTING)]:
        if task.is_cancelled():
            return {"outcome": "skipped", "said": "Cancelled."}
        done, total = sum(r.done for r in open_ones), sum(r.total for r in open_ones)
        raise errands.Later(timezone.now() + WAIT, f"{done} of {total} tasks of the suite are done.")
    told = [f"{run.subset.slug} {run.status}" for run in runs]
    return {
        "outcome": "ok" if all(run.status == Run.Status.OK for run in runs) else "failed",
        "said": f"The suite has run: {', '.join(told)}.",
        "runs": [r.pk for r in runs],
    }


def scheduled(slot: datetime, now: datetime) -> Mapping[str, Any]:
    """The weekly pass: every model that plays and is not ad hoc, unless it had one lately."""
    count = 0
    for alias, model in load_models().items():
        if model.retired or model.ad_hoc:
            continue
        if Run.objects.filter(subject=alias, source="scheduled", created_at__gt=now - AGAIN).exists():
            continue
        count += len(launch(alias, "scheduled", f"{slot:%Y-%m-%d}"))
    return {"launched": count}
