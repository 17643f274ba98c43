"""The weekly self-check: pairs of runs that measured the same thing twice, compared as if somebody wanted to know who is better."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from suite.models import Run, SelfCheck
from suite.registry.comparing import scores_of
from suite.statistics.selfcheck import a_a

log = logging.getLogger(__name__)
PAIRS, TRIALS, WITHIN = 5, 100, timedelta(days=90)
FEWEST_TASKS = 20


def run(now: datetime) -> int:
    """Checks some pairs of replays that nothing but chance tells apart; gives how many."""
    replays = Run.objects.filter(status=Run.Status.OK, scope="full", finished_at__gt=now - WITHIN, parent__status=Run.Status.OK, total__gte=FEWEST_TASKS)
    checked = set(SelfCheck.objects.values_list("first", flat=True))
    count = 0
    for one in replays.select_related("parent").order_by("-finished_at")[:50]:
        if count >= PAIRS or one.parent is None or one.pk in checked or one.fingerprint != one.parent.fingerprint:
            continue
        (first, clusters, _), (second, _, _) = scores_of(one), scores_of(one.parent)
        if len(first.keys() & second.keys()) < FEWEST_TASKS:
            continue
        found = a_a(first, second, clusters or None, seed=one.seed, trials=TRIALS)
        SelfCheck.objects.create(
            first=one.pk, second=one.parent.pk, trials=found.trials, alarms=found.alarms, alpha=found.alpha, is_sound=found.is_sound, created_at=now
        )
        if not found.is_sound:
            log.warning("The comparison called equals different in %d of %d tries on %s.", found.alarms, found.trials, one.pk)
        count += 1
    return count
