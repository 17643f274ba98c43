"""Which errands probes, speed, retirement and drift are, and the settings that go with them."""

from __future__ import annotations

from access import preferences
from health import drift, errands, probes, rounds


def register() -> None:
    """Says what does each kind of errand, when the server starts."""
    errands.register("probe", probes.do_word)
    errands.register("perf", probes.do_perf)
    errands.register("drift", drift.do_drift)
    errands.register("judge", rounds.do_judge)
    errands.register("confirm", rounds.do_confirm)
    preferences.register(
        "health.confirm_after_minutes", 30, preferences.whole(1, 1440), "Minutes between a model's failure and the one call that decides whether it is retired."
    )
    preferences.register("health.failed_probes", 1, preferences.whole(1, 30), "On how many days in a row a model gives no answer before that one call is made.")
