"""Chapter 5. What to do about failures: mend the scorer, look whether it was noise, try a larger model.

python ch05_iterating.py mercury venus
"""

import material
from benchwright import Benchwright, NotImplementedByServer

bw = Benchwright()
model, larger = material.models(2)[:2]
benchmark, subset, impl = material.parallel_calls(bw, scorer="in_order")
run = bw.runs.wait(bw.runs.launch(benchmark=benchmark.id, subset=subset.id, impl=impl, sut={"model": model}).id)
print(f"at first: {bw.runs.tasks(run.id).summary.pass_rate:.1%}")

# 5.1 The failures look like the scorer's: it wants calls in an order that nobody asked for. Fork the run with a scorer that compares sets.
change = "Calls may come in any order: compare sets of name and arguments instead of lists."
try:
    bw.runs.fork(run.id, description=change, from_phase="atomize")
except NotImplementedByServer as later:
    print(f"{later.feature}: not yet, so the scorer goes along")
fix = bw.runs.fork(
    run.id,
    description=change,
    from_phase="atomize",
    code=material.code("parallel_calls"),
    label="any order",
    idempotency_key=f"fix-order-scorer-{run.id}",
)
fix = bw.runs.wait(fix.id)
print(f"mended:   {bw.runs.tasks(fix.id).summary.pass_rate:.1%}, derived from {fix.derived_from}, scorer {run.impl.id} → {fix.impl.id}")

# 5.2 Was it noise? The same tasks by the same scorer with fresh samples.
again = bw.runs.wait(bw.runs.launch(replay={"from_run": fix.id}).id)
before, after = bw.runs.tasks(fix.id).summary.pass_rate, bw.runs.tasks(again.id).summary.pass_rate
print(f"noise:    {before:.1%} → {after:.1%}")

# 5.3 Is it the model? The same tasks by the same scorer, another model.
bigger = bw.runs.wait(bw.runs.launch(replay={"from_run": fix.id}, sut={"model": larger}).id)
print(f"larger:   {bw.runs.tasks(bigger.id).summary.pass_rate:.1%}")
pair = bw.compare([bigger.id, fix.id]).pairs[0]
print(f"          {pair.verdict} beside {model}, {pair.wins} tasks to {pair.losses}, p {pair.p:.2g}")

# Only what failed, or only some tasks: such a run is never ranked beside whole ones.
if bw.runs.tasks(fix.id, passed=False).data:
    part = bw.runs.wait(bw.runs.launch(replay={"from_run": fix.id, "only_failed": True}, sut={"model": larger}).id)
    print(f"failed:   {part.progress.total} asked again, scope {part.scope}")
