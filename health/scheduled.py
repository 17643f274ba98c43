"""The schedules that there are, by name: what each does is a function of its own module. All but `catalog` are off until somebody switches them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from catalog import candidates, reading
from health import drift, errands, jobs, onboarding_stages, probes, retention, schedule_clock, schedules
from health.estimates import estimate
from health.onboarding import ERRAND as ONBOARD
from health.schedule_runs import ERRAND

NO_SUITE = "no benchmark is set up on this server, so there is nothing to run."

Run = Callable[[datetime, datetime], Mapping[str, Any]]
suite: dict[str, tuple[Run, Callable[[], bool]]] = {}


def fill_suite(function: Run, is_set_up: Callable[[], bool]) -> None:
    """Gives the schedule `suite` something to do, and tells whether there is something just now."""
    suite["run"] = function, is_set_up


def has_suite() -> bool:
    return "run" in suite and suite["run"][1]()


def run_suite(slot: datetime, now: datetime) -> Mapping[str, Any]:
    if not has_suite():
        raise errands.Failed(NO_SUITE)
    return suite["run"][0](slot, now)


def read_catalogs(slot: datetime, now: datetime) -> Mapping[str, Any]:
    """Reads the public catalogs, then what each endpoint lists; an endpoint that does not answer is told of and keeps its last list."""
    report = reading.run(now)
    lists = candidates.refresh_many()
    return {**report, "lists": {one.endpoint: {"models": len(one.models), "hub": one.hub, "error": one.error} for one in lists}}


def register() -> None:
    """Registers all of it, in the app's `ready`."""
    errands.register(ERRAND, schedule_clock.do, schedule_clock.gave_up)
    errands.register(ONBOARD, onboarding_stages.do, onboarding_stages.gave_up)
    jobs.register("schedules", 20, schedule_clock.tick)
    jobs.register("errands", 86_400, errands.forget)
    schedules.register(
        "catalog",
        read_catalogs,
        "20 5 * * *",
        True,
        "Reads the public catalogs for facts, prices and new models, and what endpoints list. Calls no model, costs nothing.",
    )
    schedules.register(
        "probe",
        probes.plan_word,
        "30 4 * * *",
        False,
        "Asks every model for one word, and retires the dead after a second look.",
        cost=partial(estimate, "word"),
    )
    schedules.register(
        "perf", probes.plan_perf, "0 3 * * 0", False, "Measures every model's speed with a short and a long answer.", cost=partial(estimate, "perf")
    )
    schedules.register(
        "drift",
        drift.plan,
        "0 2 * * *",
        False,
        "Asks every model the same fixed questions and tells when something else seems to answer.",
        cost=partial(estimate, "drift"),
    )
    schedules.register("suite", run_suite, "0 1 * * 6", False, "Runs the benchmarks.", hindered=lambda: "" if has_suite() else NO_SUITE)
    schedules.register("retention", retention.run, "10 6 * * *", False, "Deletes old rows of the ledger, probes and alerts in small batches; the sums stay.")
