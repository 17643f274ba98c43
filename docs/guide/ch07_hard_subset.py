"""Chapter 7. A hard subset out of a sweep: what a whole panel failed becomes a benchmark of its own.

python ch07_hard_subset.py mercury venus mars
"""

import json
import uuid
from collections import Counter

import material
from benchwright import Benchwright

bw = Benchwright()
panel = material.models(2)
sweep = f"hard-{uuid.uuid4().hex[:8]}"
benchmark, subset, impl = material.algebra(bw)

# 1. The first model's run is the anchor, and the others replay it: one scorer for all.
anchor = bw.runs.launch(
    benchmark=benchmark.id,
    subset=subset.id,
    impl=impl,
    sut={"model": panel[0]},
    metadata={"sweep": sweep, "model": panel[0]},
    idempotency_key=f"{sweep}-{panel[0]}",
)
bw.runs.wait(anchor.id)
runs = [anchor] + [
    bw.runs.launch(
        replay={"from_run": anchor.id},
        sut={"model": model},
        metadata={"sweep": sweep, "model": model},
        idempotency_key=f"{sweep}-{model}",
    )
    for model in panel[1:]
]
for run in runs:
    bw.runs.wait(run.id)

# 2. How many of the panel failed each task.
failures, payloads = Counter(), {}
for run in runs:
    tasks = bw.runs.tasks(run.id, passed=False)
    for row in tasks.data:
        failures[row.task_id] += 1
        if row.task_id not in payloads:
            whole = tasks.payload(row.id)
            payloads[row.task_id] = {
                "task_id": row.task_id,
                "input": whole.input,
                "expected": whole.expected,
                "source": {"benchmark": benchmark.id, "subset": subset.id, "task_id": row.task_id},
            }
hard = [payloads[task_id] for task_id, count in failures.items() if count == len(panel)]
print(f"{len(hard)} universally hard tasks")

# The ids of the runs are what one finds them by again.
with open("sweep-manifest.json", "w", encoding="utf-8") as file:
    json.dump({"sweep": sweep, "runs": [run.id for run in runs]}, file)
if not hard:
    raise SystemExit("This panel failed no task together, so there is no hard subset to make.")

# 3. A benchmark of its own, which names what it comes from.
gauntlet = bw.benchmarks.create(
    name=f"Algebra gauntlet ({sweep})",
    description=f"Tasks that each of {len(panel)} models failed.",
    category="reasoning",
    tags=["curated", "hard", "regression"],
    parents=[benchmark.id],
)
made = bw.benchmarks.subsets.create(benchmark=gauntlet.id, slug="v1", name="Gauntlet v1", description="Distilled by hand.", tasks=hard)

# 4. The scorer of the runs that they come from.
inherited = bw.impls.create_from_run(from_run=runs[0].id, benchmark=gauntlet.id, subset=made.id, label="inherited")

# 5. One run of it, shown, and the benchmark is there for others.
reference = bw.runs.launch(benchmark=gauntlet.id, subset=made.id, impl=inherited.id, sut={"model": panel[0]})
bw.runs.wait(reference.id)
bw.runs.update(reference.id, visibility="public")
print("live at", bw.registry.benchmarks.get(gauntlet.id).links.dashboard)

# The server does steps 2 to 4 in one call as well.
distilled = bw.subsets.distill(runs=[run.id for run in runs], rule="failed_by_all", benchmark=gauntlet.id, slug="v1-by-the-server")
print("the same by one call:", sorted(task["task_id"] for task in hard) == sorted(row.task_id for row in bw.built.samples(distilled.id)))
