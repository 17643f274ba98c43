"""Which errands probes, speed, retirement and drift are, and the settings that go with them."""

from __future__ import annotations

from datetime import datetime

from access import preferences
from catalog import gone
from catalog.load import load_models
from health import drift, errands, jobs, probes, rounds
from health.models import ModelHealth, Rest


def register() -> None:
    """Says what does each kind of errand, when the server starts."""
    errands.register("probe", probes.do_word)
    errands.register("perf", probes.do_perf)
    errands.register("drift", drift.do_drift)
    errands.register("judge", rounds.do_judge)
    errands.register("confirm", rounds.do_confirm)
    gone.on_gone(forget)
    jobs.register("gone", 3600, forget_gone)
    preferences.register(
        "health.confirm_after_minutes", 30, preferences.whole(1, 1440), "Minutes between a model's failure and the one call that decides whether it is retired."
    )
    preferences.register("health.failed_probes", 1, preferences.whole(1, 30), "On how many days in a row a model gives no answer before that one call is made.")


def forget(alias: str) -> None:
    """Forgets how a model was that left the roster: another one that takes its name is as unknown as any."""
    ModelHealth.objects.filter(pk=alias).delete()
    Rest.objects.filter(scope=f"model:{alias}").delete()


def forget_gone(now: datetime) -> int:
    """Forgets models that left without being deleted one by one, or that a probe under way brought back; returns how many they were."""
    kept = set(ModelHealth.objects.values_list("pk", flat=True))
    gone_ones = sorted(kept - load_models().keys()) if kept else []
    for alias in gone_ones:
        forget(alias)
    return len(gone_ones)
