"""Chapter 2. A first run: launch it, watch it, read what it came to.

python ch02_first_run.py mercury
"""

import material
from benchwright import Benchwright

bw = Benchwright()
(model,) = material.models()[:1]
benchmark, subset, impl = material.algebra(bw)

run = bw.runs.launch(benchmark=benchmark.id, subset=subset.id, impl=impl, sut={"model": model})

# The stream ends when the run has.
for event in bw.runs.stream(run.id):
    if event.type in ("PhaseStarted", "PhaseCompleted"):
        print(f"{event.type}: {event.data.phase}")
    if event.type == "MaterializeTaskResult":
        print(f"  task {event.data.task_id}  score={event.data.score}")

run = bw.runs.get(run.id)
tasks = bw.runs.tasks(run.id)
print(f"\n{tasks.summary.pass_rate:.1%} pass rate, ${run.cost.billed.amount_cents / 100:.2f} billed")

# A rate of so few tasks says little by itself; the interval says how little.
low, high = tasks.summary.ci95
print(f"95% interval {low:.1%} to {high:.1%}, {tasks.summary.coverage:.0%} of the tasks scored")
print(run.links.dashboard)
