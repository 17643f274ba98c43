"""What the suite knows of models, for whoever decides who plays: the record asks, verdicts count first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db.models import Count, Q
from django.utils import timezone

from panels.picking import Word
from suite.models import DRY, Run, Task

WITHIN = timedelta(days=180)
# However many tasks a benchmark has, it is worth so many verdicts at most: it asks one kind of thing.
MOST_WEIGHT = 20.0
TASKS_A_VERDICT = 5.0


def of(collection: str, aliases: Sequence[str]) -> Mapping[str, Word]:
    """Gives each model's share of tasks passed, over its newest whole run of each subset. `collection` is not asked after: a benchmark knows none."""
    del collection
    runs = Run.objects.filter(subject__in=list(aliases), status=Run.Status.OK, scope="full", finished_at__gt=timezone.now() - WITHIN, sut__kind="model")
    runs = runs.exclude(source=DRY)
    newest: dict[tuple[str, str], tuple[str, int]] = {}
    for run_id, subject, subset, scoring, impl, scorer in runs.order_by("finished_at").values_list(
        "id", "subject", "subset_id", "scoring", "impl_id", "scorer_id"
    ):
        newest[(subject, subset)] = (run_id, scoring if scorer in (None, "", impl) else 1)  # what another scorer makes of it is no word on the model
    found: dict[str, Word] = {}
    for alias in aliases:
        mine = [run for (subject, _), run in newest.items() if subject == alias]
        if not mine:
            continue
        either = Q()
        for run_id, scoring in mine:
            either |= Q(run_id=run_id, scoring=scoring)
        counted = Task.objects.filter(either).aggregate(passes=Count("id", filter=Q(passed=True)), scored=Count("id", filter=Q(passed__isnull=False)))
        if counted["scored"]:
            weight = min(MOST_WEIGHT, counted["scored"] / TASKS_A_VERDICT)
            found[alias] = Word(counted["passes"] / counted["scored"], weight)
    return found
