"""Chapter 10. Many models by one scorer: an anchor and replays, a table, and the same as one call.

python ch10_sweep.py mercury venus mars
"""

import uuid

import material
from benchwright import Benchwright

bw = Benchwright()
models = material.models(2)
sweep = f"sweep-{uuid.uuid4().hex[:8]}"
benchmark, subset, impl = material.parallel_calls(bw)

# 1. The anchor first, then the others, all at once. Under these keys a broken connection launches none twice.
anchor = bw.runs.launch(
    benchmark=benchmark.id,
    subset=subset.id,
    impl=impl,
    sut={"model": models[0]},
    idempotency_key=f"{sweep}-{models[0]}",
)
bw.runs.wait(anchor.id)
peers = [anchor.id]
for model in models[1:]:
    run = bw.runs.launch(replay={"from_run": anchor.id}, sut={"model": model}, idempotency_key=f"{sweep}-{model}")
    peers.append(run.id)

# 2. Wait for all, then put them side by side.
rows = []
for peer in peers:
    run = bw.runs.wait(peer)
    summary = bw.runs.tasks(peer).summary
    rows.append((run.model.identifier, summary.pass_rate, summary.passed, summary.total, run.cost.billed.amount_cents))
rows.sort(key=lambda row: -row[1])
print(benchmark.name)
for model, rate, passed, total, cents in rows:
    print(f"  {model:<44} {rate:>6.1%}  {passed}/{total}  ${cents / 100:.2f}")

# Two rates apart are no difference yet: task by task, and honest about how many were compared.
for pair in bw.compare(peers).pairs:
    print(f"  first beside {pair.second}: {pair.verdict}")

# The same by the server, under one key.
made = bw.sweeps.create(anchor=anchor.id, models=models[1:], name=sweep, idempotency_key=sweep)
for entry in made.runs:
    bw.runs.wait(entry.run)
print(f"{made.id}: {bw.sweeps.get(made.id).status}, {len(made.runs)} runs")
