"""What a benchmark must stand before anything of it is published, and what is kept of how it did.

admission_failed   409, with what failed; an admin may publish in spite of it, with a reason that is kept
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from panels.api.wording import to_json
from suite import grading
from suite.api.problems import Conflict
from suite.grading.contract import options_of
from suite.grading.outcomes import Outcome
from suite.models import Admission, Benchmark, Impl, Row, Run, Subset, Version
from suite.registry import baselines
from suite.registry.baselines import Check, Task
from suite.running import dryrun
from suite.running.dryrun import FAILINGS
from suite.running.lines import Item
from suite.running.selection import rows_of
from suite.sandbox import box

# So many rows, evenly over all, say enough.
MOST_ROWS, MOST_RUN = 400, 3


def tried(subset: Subset, version: int, impl: Impl, *, fresh: bool = False) -> dict[str, Any]:
    """Tells how a version of a subset stands the checks with an impl: as it was found before, since neither ever changes, else tried now and kept.

    What could not be told is not kept: a sandbox may be there tomorrow. Shape: as `checked` gives it.
    """
    there = None if fresh else kept(subset, version, impl)
    if there is not None:
        return there
    found = checked(subset, version, impl)
    if found["status"] != "unchecked":
        Admission.objects.update_or_create(subset=subset, version=version, impl=impl, defaults={"found": json.dumps(found)})
    return found


def kept(subset: Subset, version: int, impl: Impl) -> dict[str, Any] | None:
    row = Admission.objects.filter(subset=subset, version=version, impl=impl).first()
    found: dict[str, Any] | None = json.loads(row.found) if row else None
    return found


def checked(subset: Subset, version: int, impl: Impl) -> dict[str, Any]:
    """Tries a version of a subset with an impl. Asks no model."""
    digest = Version.objects.filter(subset=subset, number=version).values_list("digest", flat=True).first() or "0"
    grader = impl.grader or {}
    kind = str(grader.get("kind") or "") if impl.language == "builtin" else ""
    tasks = some_of(subset, version, kind)
    found = baselines.checks([task for _, task in tasks], options_of(grader), int(digest[:12], 16)) if impl.language == "builtin" else []
    if all(check.ok is None for check in found) and (run_ones := [(row, task) for row, task in tasks if needs_a_run(impl, task)][:MOST_RUN]):
        found = of_runs(impl, run_ones)
    return {
        "status": baselines.verdict(found),
        "subset": subset.pk,
        "version": version,
        "impl": impl.pk,
        "checks": [check.told() for check in found],
        "checked_at": to_json(timezone.now()),
    }


def some_of(subset: Subset, version: int, kind: str) -> list[tuple[Row, Task]]:
    """Reads rows evenly over all of a version."""
    rows = rows_of(subset.pk, version)
    step = max(1, -(-rows.count() // MOST_ROWS))
    positions = list(rows.order_by("position").values_list("position", flat=True)[::step])
    found = []
    for row in Row.objects.filter(subset=subset, position__in=positions).order_by("position"):
        body = json.loads(row.body)
        found.append((row, Task(row.task_id, kind or row.kind, body["input"], body["expected"])))
    return found


def needs_a_run(impl: Impl, task: Task) -> bool:
    """Tells whether a row is graded by running something, and says what is right."""
    if impl.language != "builtin":
        return True
    kind = grading.every().get(task.kind)
    return kind is not None and kind.needs_sandbox and not baselines.is_nothing(kind.oracle(task.input, task.expected))


def of_runs(impl: Impl, rows: Sequence[tuple[Row, Task]]) -> list[Check]:
    """Tries some rows in the sandbox, by the right answer and by none. That a scorer wants another form than `expected` has does not count against it."""
    if missing := box.trouble():
        return [Check("oracle", None, f"There is no sandbox to try it in: {missing}")]
    told = dryrun.tried(impl, [Item(row.position, 1, task.task_id, task.kind, row.cluster, task.input, task.expected) for row, task in rows])["rows"]
    right = [row["task_id"] for row in told if row["oracle"]["outcome"] == Outcome.PASSED]
    broken = [row["task_id"] for row in told if {row["oracle"]["outcome"], row["empty"]["outcome"]} <= FAILINGS]
    through = [row["task_id"] for row in told if row["empty"]["outcome"] == Outcome.PASSED]
    said = f"The right answer passes {len(right)} of {len(told)} tasks that were tried" + (f"; the scorer itself fails on {len(broken)}." if broken else ".")
    # A row's own solution is in the form that its tests want; of a scorer of somebody's own that is not known.
    is_right = True if len(right) == len(told) else False if broken or impl.language == "builtin" else None
    empty = "An empty answer passes nowhere." if not through else f"An empty answer passes {len(through)} of {len(told)} tasks that were tried."
    return [
        Check("oracle", is_right, said, len(right) / len(told), 1.0, len(told), tuple(row["task_id"] for row in told if row["task_id"] not in right)),
        Check("empty", not through, empty, len(through) / len(told), 0.0, len(told), tuple(through)),
    ]


def admit(run: Run, override: str, by: str) -> dict[str, Any]:
    """Checks what a run would make public, once for each version and impl, and keeps what was found on the benchmark. Errors: Conflict."""
    published: Mapping[str, Any] = ((run.benchmark.admission or {}).get("checked") or {}).get(name_of(run.subset_id, run.version, run.impl_id)) or {}
    found = dict(published or kept(run.subset, run.version, run.impl) or {})
    if not found or found["status"] == "failed":
        found = tried(run.subset, run.version, run.impl, fresh=True)
    if found["status"] == "failed" and override:
        found |= {"status": "overridden", "reason": override, "by": by}
    write(run.benchmark_id, found)
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


def name_of(subset: str, version: int, impl: str) -> str:
    return f"{subset}@{version}:{impl}"


def write(benchmark: str, found: Mapping[str, Any]) -> None:
    """Keeps on a benchmark what stands in it for everybody, and how that fared."""
    with transaction.atomic():
        row = Benchmark.objects.select_for_update().get(pk=benchmark)
        there = {**((row.admission or {}).get("checked") or {}), name_of(found["subset"], found["version"], found["impl"]): dict(found)}
        row.admission = {"status": found["status"], "checked": there}
        row.save(update_fields=["admission"])
