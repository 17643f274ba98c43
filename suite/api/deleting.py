"""Taking away what nothing was measured by. What runs refer to is history and stays."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.response import Response

from access import audit
from suite.api.problems import Conflict
from suite.api.view import View
from suite.models import Benchmark, Impl, Run, Subset


def taken_away(view: View, row: Benchmark | Subset | Impl, noun: str, why_not: str, target: str) -> Response:
    """Marks a row as deleted; it is not found any more. Errors: Conflict while runs refer to it."""
    runs = Run.objects.filter(**{noun: row}).exclude(status=Run.Status.DELETED)
    if runs.exists() or (isinstance(row, Impl) and row.rescorings.exists()):
        raise Conflict(f"{noun}_in_use", why_not)
    row.deleted_at = timezone.now()
    row.save(update_fields=["deleted_at"])
    audit.record(view.actor, f"{noun}.delete", target)
    return Response(status=204)
