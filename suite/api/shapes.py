"""How things of the suite stand in JSON. `object` says what each is; times are UTC, money is exact text and, where the contract wants it, cents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django.conf import settings
from django.db.models import F

from panels.api.wording import to_json
from suite.models import Artifact, Benchmark, Event, Impl, Run, Subset, Task, Version
from suite.seeing import visibility_of

PUSD = Decimal(10) ** 12
AT_ONCE = 500


def usd(pusd: int | None) -> Decimal | None:
    return None if pusd is None else Decimal(pusd) / PUSD


def cents(amount: Decimal | None) -> int | None:
    """Rounds to cents, half to even: only at this border."""
    return None if amount is None else int((amount * 100).quantize(Decimal(1), ROUND_HALF_EVEN))


def money(amount: Decimal | None) -> dict[str, Any]:
    return {"amount_cents": cents(amount), "currency": "USD"}


def link(path: str) -> str:
    return f"{(settings.PUBLIC_URL or '').rstrip('/')}{path}" if settings.PUBLIC_URL else f"{settings.FORCE_SCRIPT_NAME or ''}{path}"


def benchmark(row: Benchmark, subsets: list[Subset] | None = None) -> dict[str, Any]:
    found = {
        "object": "benchmark",
        "id": row.pk,
        "name": row.name,
        "description": row.description,
        "category": row.category,
        "tags": row.tags,
        "parents": row.parents,
        "owner": row.owner,
        "visibility": visibility_of(row),
        "built_in": row.built_in or None,
        "admission": row.admission,
        "created_at": to_json(row.created_at),
        "updated_at": to_json(row.updated_at),
        "links": {"dashboard": link(f"/app/registry/{row.pk}")},
    }
    return found if subsets is None else {**found, "subsets": many_subsets(subsets)}


def many_subsets(rows: Sequence[Subset]) -> list[dict[str, Any]]:
    """Writes subsets with two questions to the database for each 500, not for each."""
    found = []
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        ids = [row.pk for row in part]
        newest = {one.subset_id: one for one in Version.objects.filter(subset_id__in=ids, number=F("subset__version"))}
        graded = set(Impl.objects.filter(subset_id__in=ids, deleted_at=None).values_list("subset_id", flat=True))
        found += [subset(row, newest.get(row.pk), is_graded_by_itself(row) or row.pk in graded) for row in part]
    return found


def subset(row: Subset, newest: Version | None = None, graded: bool | None = None) -> dict[str, Any]:
    newest = newest or (row.versions.filter(number=row.version).first() if row.version else None)
    graded = is_graded(row) if graded is None else graded
    return {
        "object": "subset",
        "id": row.pk,
        "benchmark": row.benchmark_id,
        "slug": row.slug,
        "name": row.name,
        "description": row.description,
        "rolling": row.rolling,
        "grader": row.grader,
        "recipe": row.recipe,
        "version": row.version,
        "version_id": f"{row.pk}@{row.version}" if row.version else None,
        "digest": newest.digest if newest else None,
        "tasks": newest.rows if newest else 0,
        "runnable": row.version > 0 and row.retired_at is None and graded,
        "retired_at": to_json(row.retired_at),
        "retired_because": row.retired_because or None,
        "replaced_by": row.replaced_by or None,
        "created_at": to_json(row.created_at),
        "updated_at": to_json(row.updated_at),
    }


def is_graded_by_itself(row: Subset) -> bool:
    return row.grader is not None or "impl" in row.recipe


def is_graded(row: Subset) -> bool:
    return is_graded_by_itself(row) or row.impls.filter(deleted_at=None).exists()


def version(row: Version) -> dict[str, Any]:
    return {
        "object": "subset_version",
        "id": f"{row.subset_id}@{row.number}",
        "subset": row.subset_id,
        "version": row.number,
        "digest": row.digest,
        "tasks": row.rows,
        "note": row.note,
        "created_by": row.created_by,
        "created_at": to_json(row.created_at),
    }


def impl(row: Impl) -> dict[str, Any]:
    return {
        "object": "impl",
        "id": row.pk,
        "digest": row.digest,
        "language": row.language,
        "label": row.label,
        "description": row.description,
        "benchmark": row.benchmark_id,
        "subset": row.subset_id,
        "grader": row.grader,
        "dependencies": row.dependencies,
        "from_run": row.from_run or None,
        "hidden": row.is_hidden,
        "owner": row.owner,
        "created_at": to_json(row.created_at),
        "updated_at": to_json(row.updated_at),
    }


def phase_of(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A phase as it is kept, its times in the form of all others."""
    times = {name: kept.get(name) for name in ("started_at", "finished_at")}
    return {**kept, **{name: said and to_json(datetime.fromisoformat(said)) for name, said in times.items()}}


def run(row: Run, expand: Mapping[str, Any] | None = None) -> dict[str, Any]:
    cost = usd(row.cost_pusd)
    phase = next((p["name"] for p in row.phases if p["status"] == "running"), None)
    found: dict[str, Any] = {
        "object": "run",
        "id": row.pk,
        "status": row.status,
        "phase": phase,
        "phases": [phase_of(p) for p in row.phases],
        "mode": row.mode,
        "request": row.launch.get("request") or f"Run {row.benchmark.name} / {row.subset.slug} on {row.subject}",
        "harness": row.harness,
        "backend": row.backend,
        "benchmark_id": row.benchmark_id,
        "benchmark_name": row.benchmark.name,
        "subset_id": row.subset_id,
        "subset_slug": row.subset.slug,
        "subset_version": row.version,
        "impl": {"id": row.impl_id, "requested": row.requested_impl or None},
        "graded_by": row.graded_by,
        "model": {"identifier": row.subject},
        "sut": row.sut,
        "driver": row.driver or None,
        "source": row.source,
        "trials": row.trials,
        "scope": row.scope,
        "selection": {name: value for name, value in row.selection.items() if name != "positions"},
        "limits": row.limits,
        "metadata": row.metadata,
        "tags": row.tags,
        "cost": {"billed": money(cost), "metered_usd": to_json(cost), "complete": not row.has_unpriced, "billable": False},
        "progress": {"done": row.done, "total": row.total},
        "scoring": row.scoring,
        "visibility": row.visibility,
        "review_resolution": row.review_resolution or None,
        "error": row.error or None,
        "warnings": row.launch.get("warnings", []),
        "halt_reason": row.halt_reason or None,
        "halt_note": row.halt_note or None,
        "derived_from": row.parent_id,
        "sweep": row.sweep or None,
        "fingerprint": row.fingerprint,
        "seed": row.seed,
        "owner": row.owner,
        "team": row.team or None,
        "interruptions": row.interruptions,
        "created_at": to_json(row.created_at),
        "started_at": to_json(row.started_at),
        "finished_at": to_json(row.finished_at),
        "etag": row.etag,
        "links": {
            "self": link(f"/v1/runs/{row.pk}"),
            "dashboard": link(f"/app/runs/{row.pk}"),
            "tasks": link(f"/v1/runs/{row.pk}/tasks"),
            "events": link(f"/v1/runs/{row.pk}/events"),
            "report": link(f"/v1/runs/{row.pk}/report"),
        },
    }
    return {**found, **(expand or {})}


def tombstone(row: Run) -> dict[str, Any]:
    """What is left of a run that was deleted."""
    return {
        "object": "run",
        "id": row.pk,
        "status": "deleted",
        "deleted_at": to_json(row.deleted_at),
        "fingerprint": row.fingerprint,
        "selection": {"digest": row.selection.get("digest")},
        "benchmark_id": row.benchmark_id,
        "subset_id": row.subset_id,
        "impl": {"id": row.impl_id},
        "reason": row.halt_note or None,
    }


def task(row: Task) -> dict[str, Any]:
    return {
        "object": "task",
        "id": row.pk,
        "task_id": row.task_id,
        "position": row.position,
        "kind": row.kind or None,
        "outcome": row.outcome,
        "score": row.score,
        "passed": row.passed,
        "trials": row.trials,
        "trials_passed": row.trials_passed,
        "trials_scored": row.trials_scored,
        "error_class": row.reason or None,
        "preview": row.preview,
        "truncated": row.preview_cut,
        "duration_ms": row.duration_ms,
        "cost_usd": to_json(usd(row.cost_pusd)),
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "version": row.scoring,
    }


def event(row: Event) -> dict[str, Any]:
    return {"seq": row.seq, "type": row.type, "at": to_json(row.at), "data": row.data}


def artifact(row: Artifact) -> dict[str, Any]:
    return {
        "object": "artifact",
        "id": row.pk,
        "run": row.run_id,
        "type": row.type,
        "name": row.name,
        "version": row.version,
        "media_type": row.media_type,
        "size": row.blob.size,
        "digest": row.blob_id,
        "created_at": to_json(row.created_at),
    }
