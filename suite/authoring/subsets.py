"""Subsets and their versions. A frozen one has one version for good; a rolling one gets a version with each batch that brings something new.

subset_frozen      409 rows for a frozen one
task_conflict      409 another row under a task id that is taken
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Max
from django.db.models.functions import Collate
from django.utils import timezone

from suite import ids
from suite.api.problems import Conflict
from suite.authoring.rows import NewRow, version_digest
from suite.models import Benchmark, Row, Subset, Version

BATCH = 500


def create(
    benchmark: Benchmark,
    slug: str,
    name: str,
    description: str,
    rows: Sequence[NewRow],
    rolling: bool,
    grader: dict[str, Any] | None,
    by: str,
    recipe: dict[str, Any] | None = None,
) -> Subset:
    """Makes a subset with its first rows. Errors: Conflict for a slug that is taken."""
    now = timezone.now()
    with transaction.atomic():
        subset = Subset(
            id=ids.new_id("sub"),
            benchmark=benchmark,
            slug=slug,
            name=name,
            description=description,
            rolling=rolling,
            grader=grader,
            recipe=recipe or {},
            created_at=now,
            updated_at=now,
        )
        try:
            with transaction.atomic():
                subset.save(force_insert=True)
        except IntegrityError:
            raise Conflict("slug_taken", f"The benchmark has a subset {slug} already.") from None
        if rows:
            add(subset, rows, by, now, "created")
    return subset


def append(subset_id: str, rows: Sequence[NewRow], by: str) -> tuple[Subset, int, int]:
    """Adds rows to a rolling subset; the same row again is nothing new. Shape: the subset, how many were added, how many were there. Errors: Conflict."""
    with transaction.atomic():
        subset = Subset.objects.select_for_update().get(pk=subset_id)
        if not subset.rolling and subset.version > 0:
            raise Conflict("subset_frozen", f"The subset {subset.slug} is frozen: nothing is added to it. Make another, or one with rolling.")
        known = known_digests(subset, [row.task_id for row in rows])
        if clashes := [row.task_id for row in rows if row.task_id in known and known[row.task_id] != row.digest]:
            raise Conflict("task_conflict", f"{', '.join(clashes[:10])} is there with another content, and rows never change.", task_ids=clashes[:1000])
        new = [row for row in rows if row.task_id not in known]
        if new:
            add(subset, new, by, timezone.now(), f"{len(new)} appended")
    return subset, len(new), len(rows) - len(new)


def known_digests(subset: Subset, task_ids: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(task_ids), BATCH):
        found |= dict(Row.objects.filter(subset=subset, task_id__in=task_ids[start : start + BATCH]).values_list("task_id", "digest"))
    return found


def add(subset: Subset, rows: Sequence[NewRow], by: str, now: datetime, note: str) -> None:
    """Writes rows and the version that they make. In the caller's transaction, the subset locked."""
    number = subset.version + 1
    last = Row.objects.filter(subset=subset).aggregate(last=Max("position"))["last"]
    first = 0 if last is None else last + 1
    Row.objects.bulk_create(
        [
            Row(subset=subset, position=first + i, task_id=r.task_id, since=number, kind=r.kind, cluster=r.cluster, digest=r.digest, body=r.body)
            for i, r in enumerate(rows)
        ],
        batch_size=BATCH,
    )
    digest, count = version_digest(digests_of(subset))
    Version.objects.create(subset=subset, number=number, digest=digest, rows=count, note=note, created_by=by, created_at=now)
    subset.version, subset.updated_at = number, now
    subset.save(update_fields=["version", "updated_at"])


def digests_of(subset: Subset) -> Iterator[str]:
    """Gives the rows' digests by task id, character by character whatever the database's own order is, and never all of them at a time."""
    characters = "C" if connection.vendor == "postgresql" else "BINARY"
    rows = Row.objects.filter(subset=subset).order_by(Collate("task_id", characters))
    yield from rows.values_list("digest", flat=True).iterator(chunk_size=5000)
