"""What of several states of a thing is meant: the newest impl of a subset."""

from __future__ import annotations

from suite.models import Impl, Subset


def latest_impl(subset: Subset, *, official: bool) -> Impl | None:
    """Gives the newest impl that was made for a subset; official ones are those of the benchmark's owner."""
    rows = Impl.objects.filter(subset=subset, deleted_at=None)
    if official:
        rows = rows.filter(owner=subset.benchmark.owner)
    return rows.order_by("-created_at").first()
