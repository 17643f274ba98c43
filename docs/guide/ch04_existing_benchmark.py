"""Chapter 4. An existing benchmark: one run as the anchor, every other run a replay of it, and how results are read.

python ch04_existing_benchmark.py mercury venus
"""

import material
from benchwright import APIError, Benchwright

bw = Benchwright()
model, other = material.models(2)[:2]
_, subset, impl = material.parallel_calls(bw)

# Look it up by name, as one would with a benchmark of somebody else's.
benchmark = bw.registry.benchmarks.find(name=material.CALLS)

anchor = bw.runs.launch(
    benchmark=benchmark.id,
    subset=subset.id,
    impl=impl,
    sut={"model": model},
    limits={"run": {"cost": 15.0}},
    metadata={"purpose": "baseline", "model_family": model},
)
anchor = bw.runs.wait(anchor.id)

# From then on replays: the same tasks by the same scorer, another model.
run = bw.runs.launch(replay={"from_run": anchor.id}, sut={"model": other})
run = bw.runs.wait(run.id)
assert run.impl.id == anchor.impl.id

# One call gives the rows and the summary of the whole run.
tasks = bw.runs.tasks(run.id)
print(tasks.summary)

# Rows are slim; what was asked, expected and answered comes for one task at a time.
failed = bw.runs.tasks(run.id, passed=False)
for task in failed.data[:5]:
    whole = failed.payload(task.id)
    print(task.task_id, "→", whole.output[:120])

# Metadata can be found again, here the baselines of this benchmark.
for found in bw.runs.list(filters={"metadata.purpose": "baseline", "benchmark": benchmark.id}, sort="-started_at", limit=5).data[:5]:
    print(found.id, found.model.identifier, found.status)

# The board shows both, since they share version and scorer; it would never mix them with others.
for board in bw.registry.subsets.leaderboard(subset.id):
    for row in board.rows:
        first, last = row.rank  # as the intervals allow: of two that they do not tell apart, both are 1 to 2
        print(f"{first}-{last}  {row.subject:<30} {row.pass_rate:.1%}")

# Another harness: refused by name where it is not installed, never replaced by ours in silence.
try:
    bw.runs.launch(
        request="Run MMLU abstract_algebra via Inspect",
        harness="inspect",
        sut={"model": model},
        metadata={"inspect_harness": {"task": "inspect_evals/mmlu_0_shot", "args": {"subjects": ["abstract_algebra"]}}, "limit": 50},
    )
except APIError as refused:
    print(f"inspect: {refused.status} {refused.code}")

# Where it is computed, for this run alone; it is kept as run.backend.
here = bw.runs.wait(bw.runs.launch(replay={"from_run": anchor.id}, compute="local-bwrap").id)
print("computed on", here.backend)
