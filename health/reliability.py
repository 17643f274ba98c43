"""How often models answered of late, from the day's totals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from django.db.models import Sum

from health.models import DayTotal


def answered_since(aliases: Sequence[str], since: date) -> dict[str, tuple[int, int]]:
    """Reads by alias how many of its calls were answered, and how many there were, but for those of the last minute. Who was not called is not in it."""
    found = DayTotal.objects.filter(model__in=aliases, day__gte=since).order_by().values_list("model").annotate(calls=Sum("calls"), failed=Sum("failed"))
    return {model: (calls - failed, calls) for model, calls, failed in found if calls}
