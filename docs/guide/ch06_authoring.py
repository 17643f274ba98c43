"""Chapter 6. A benchmark of one's own: rows, a scorer, a run, and who may see it; then a correction.

python ch06_authoring.py mercury
"""

import uuid

import material
from benchwright import Benchwright

bw = Benchwright()
(model,) = material.models()[:1]
mine = uuid.uuid4().hex[:8]  # so that the chapter can be run again

# 6.1 A benchmark. Nobody else sees it until a run of it is shown.
benchmark = bw.benchmarks.create(
    name=f"Parallel calls (my mirror {mine})",
    description="Questions that want several function calls at once.",
    category="tool-use",
    tags=["function-calling", "parallel"],
)
print(benchmark.id, benchmark.visibility)

# 6.2 Rows: {task_id, input, expected}, from wherever. A request takes 1,000; append_tasks takes more.
subset = bw.benchmarks.subsets.create(
    benchmark=benchmark.id,
    slug=f"parallel-{mine}",
    name="Parallel calls",
    description="Four questions, to begin with.",
    tasks=material.CALL_ROWS,
)
print(subset.id, subset.tasks, "rows, digest", subset.digest[:12])

# 6.3 A scorer: three methods, in a file of its own. It is looked at before it is kept, can be tried without asking any model, and runs in the sandbox alone.
impl = bw.impls.create(
    benchmark=benchmark.id,
    subset=subset.id,
    label="sets, v1",
    language="python",
    code=material.code("parallel_calls"),
    description="Compares sets of calls, in any order.",
)
tried = bw.impls.dry_run(impl.id)
print(impl.id, f"tried on {len(tried.rows)} rows by a right answer and by none")
for finding in tried.findings:  # this one cannot read an empty answer, which its own solve never gives
    print("  ", finding)

# 6.4 Run it.
run = bw.runs.launch(benchmark=benchmark.id, subset=subset.id, impl=impl.id, sut={"model": model}, limits={"run": {"cost": 15.0}})
run = bw.runs.wait(run.id)
print(bw.runs.tasks(run.id).summary)

# 6.5 Show it: a benchmark is seen by whoever sees one of its runs.
bw.runs.update(run.id, visibility="public")
print(bw.registry.benchmarks.get(benchmark.id).visibility)

# 6.6 Something was wrong with it. A recipe changes in place, and the next run has another scorer id; changed rows make a new subset, and the old one retires.
recipe = bw.built.set_recipe(subset.slug, {"run_timeout": 900, "trials": 2}, note="the model starts slowly")
fix = {**material.CALL_ROWS[3], "input": {**material.CALL_ROWS[3]["input"], "question": "What is the weather in Kyiv right now?"}}
changed = bw.built.set_samples(subset.slug, note="the question left out when", upsert=[fix])
print("recipe:", recipe.config, "scorer", recipe.impl_before, "→", recipe.impl)
print("rows:", changed.before, "→", changed.after, dict(changed.counts))
print("before:", bw.runs.get(run.id).subset_id == subset.id, "- the run keeps what it measured")
