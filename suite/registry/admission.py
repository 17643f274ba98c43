"""What a benchmark must stand before anything of it is published, and what is kept of how it did.

admission_failed   409, with what failed; an admin may publish in spite of it, with a reason that is kept
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from panels.api.wording import to_json
from suite.api.problems import Conflict
from suite.models import Benchmark, Impl, Row, Run, Subset, Version
from suite.registry import baselines
from suite.registry.baselines import Check, Task
from suite.running.rescoring import options_of
from suite.running.selection import rows_of

# So many rows, evenly over all, say enough.
MOST_ROWS = 400


def checked(subset: Subset, version: int, impl: Impl) -> dict[str, Any]:
    """Tries a version of a subset with an impl. Asks no model."""
    digest = Version.objects.filter(subset=subset, number=version).values_list("digest", flat=True).first() or "0"
    found = of_rows(subset, version, impl, int(digest[:12], 16)) if impl.language == "builtin" else of_code()
    return {
        "status": baselines.verdict(found),
        "subset": subset.pk,
        "version": version,
        "impl": impl.pk,
        "checks": [check.told() for check in found],
        "checked_at": to_json(timezone.now()),
    }


def of_rows(subset: Subset, version: int, impl: Impl, seed: int) -> list[Check]:
    grader = impl.grader or {}
    kind = str(grader.get("kind") or "")
    rows = rows_of(subset.pk, version)
    step = max(1, -(-rows.count() // MOST_ROWS))
    positions = list(rows.order_by("position").values_list("position", flat=True)[::step])
    tasks = [task_of(row, kind) for row in Row.objects.filter(subset=subset, position__in=positions).order_by("position")]
    return baselines.checks(tasks, options_of(grader), seed)


def task_of(row: Row, kind: str) -> Task:
    body = json.loads(row.body)
    return Task(row.task_id, kind or row.kind, body["input"], body["expected"])


def of_code() -> list[Check]:
    return [Check("oracle", None, "A scorer of one's own is tried by its dry run: POST /v1/impls/<id>/dry-run.")]


def admit(run: Run, override: str, by: str) -> dict[str, Any]:
    """Checks what a run would make public, once for each version and impl, and keeps what was found on the benchmark. Errors: Conflict."""
    name = f"{run.subset_id}@{run.version}:{run.impl_id}"
    kept: Mapping[str, Any] = ((run.benchmark.admission or {}).get("checked") or {}).get(name) or {}
    found = dict(kept) if kept and kept.get("status") != "failed" else checked(run.subset, run.version, run.impl)
    if found["status"] == "failed" and override:
        found |= {"status": "overridden", "reason": override, "by": by}
    with transaction.atomic():
        benchmark = Benchmark.objects.select_for_update().get(pk=run.benchmark_id)
        every = {**((benchmark.admission or {}).get("checked") or {}), name: found}
        benchmark.admission = {"status": found["status"], "checked": every}
        benchmark.save(update_fields=["admission"])
    if found["status"] == "failed":
        failed = [check for check in found["checks"] if check["ok"] is False]
        said = " ".join(str(check["said"]) for check in failed)
        raise Conflict(
            "admission_failed",
            f"The benchmark is not fit to be published. {said} Mend it, or have an admin publish it with a reason.",
            failed=failed,
            admission=found,
        )
    return found
