"""Chapter 9. A benchmark that is never done: rows are appended day by day, and each night the panel is asked the fresh ones.

python ch09_rolling.py mercury venus
"""

import datetime
import uuid

import material
from benchwright import Benchwright, Conflict

bw = Benchwright()
panel = material.models()
mark = uuid.uuid4().hex[:8]

benchmark = bw.benchmarks.create(name=f"Live questions {mark}", category="math", tags=["rolling"])
subset = bw.benchmarks.subsets.create(benchmark=benchmark.id, slug="daily", name="Daily", rolling=True, grader={"kind": "math"})


def fetch(day: int) -> list[dict]:
    """Stands in for a tracker or a feed: what came in that day."""
    return [{"id": f"d{day}-{n}", "question": f"What is {day} + {n}?", "answer": day + n} for n in range(1, 4)]


def append(day: int) -> list[str]:
    rows = fetch(day)
    added = bw.benchmarks.subsets.append_tasks(
        subset.id,
        tasks=[{"task_id": r["id"], "input": {"question": r["question"]}, "expected": {"value": r["answer"]}} for r in rows],
        idempotency_key=f"append-{mark}-{datetime.date(2026, 11, day)}",  # however often the job is started that day
    )
    print(f"day {day}: version {added.version}, {added.added} new, {added.tasks} in all")
    return [r["id"] for r in rows]


# The first day's rows, and a run of each model as its anchor.
append(1)
anchors = {}
for model in panel:
    run = bw.runs.launch(benchmark=benchmark.id, subset=subset.id, sut={"model": model}, idempotency_key=f"anchor-{mark}-{model}")
    anchors[model] = bw.runs.wait(run.id)


def nightly(day: int) -> None:
    fresh = append(day)
    for model in panel:
        run = bw.runs.launch(
            replay={"from_run": anchors[model].id, "task_ids": fresh},  # of the newest version, and of that only what is new
            sut={"model": model},
            idempotency_key=f"panel-{mark}-{day}-{model}",
        )
        run = bw.runs.wait(run.id)
        summary = bw.runs.tasks(run.id).summary
        print(f"  {model:<30} {summary.passed}/{summary.total}  scope {run.scope}, version {run.subset_version}")


for day in (2, 3):
    nightly(day)
append(3)  # the same key again is the same answer; without a key the same rows would be nothing new

# Frozen, for good.
bw.benchmarks.subsets.update(subset.id, rolling=False)
try:
    append(4)
except Conflict as refused:
    print(refused.code)
