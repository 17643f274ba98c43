"""Chapter 8. One benchmark out of several: hard tasks of four kinds, one scorer that knows them all, a rate for each kind.

python ch08_composite.py mercury venus -- mars     the panel, and the model to measure by what they failed
"""

import json
import sys
import uuid
from collections import Counter, defaultdict

import material
from benchwright import Benchwright

bw = Benchwright()
words = material.models(2)
panel, final = (words[: words.index("--")], words[-1]) if "--" in words else (words, words[-1])
mark = uuid.uuid4().hex[:8]

SOURCES = [
    {"bm": material.ALGEBRA, "kind": "multiple_choice", "rows": material.ALGEBRA_ROWS[:4]},
    {"bm": material.CALLS, "kind": "function_call", "rows": material.CALL_ROWS},
    {"bm": material.NUMBERS, "kind": "math", "rows": material.NUMBER_ROWS},
    {"bm": material.PROGRAMS, "kind": "code", "rows": material.PROGRAM_ROWS},
]


# ------------------------------------------------------------------ 8.1 the shape that the scorer routes on


def shape_input(kind, raw):
    """Gives an input of the composite; the kind stands in it, since `solve` sees nothing else."""
    if kind == "multiple_choice":
        return {"kind": kind, "question": raw["question"], "choices": raw["choices"]}
    if kind == "function_call":
        return {"kind": kind, "question": raw["question"], "functions": raw["functions"]}
    if kind == "math":
        return {"kind": kind, "question": raw.get("question") or raw["problem"]}
    if kind == "code":
        return {"kind": kind, "prompt": raw["prompt"]}
    raise ValueError(kind)


def shape_expected(kind, raw, raw_input):
    """Gives what is expected, with the kind again, since `score` sees no input."""
    if kind == "code":
        return {"kind": kind, "test_code": raw_input["test"]}
    return {"kind": kind, "value": raw["value"] if isinstance(raw, dict) else raw}


# The sources have been run by the panel before, as in chapter 7. Here that is made up for: each source in the composite's shape, by the same scorer.
manifest = {"sweep": mark, "runs": []}
for source in SOURCES:
    kind = source["kind"]
    shaped = [
        {"task_id": r["task_id"], "input": {**r["input"], "kind": kind}, "expected": shape_expected(kind, r["expected"], r["input"])} for r in source["rows"]
    ]
    parent = bw.benchmarks.create(name=f"{source['bm']} {mark}", category="guide")
    rows = bw.subsets.create(benchmark=parent, slug="all", tasks=shaped)
    scorer = bw.impls.create(benchmark=parent, subset=rows, label="dispatching", code=material.code("dispatching"))
    source["name"] = parent.name
    for model in panel:
        manifest["runs"].append(bw.runs.launch(benchmark=parent, subset=rows, impl=scorer, sut={"model": model}, metadata={"sweep": mark}).id)
for run in manifest["runs"]:
    bw.runs.wait(run)
with open("sweep-manifest.json", "w", encoding="utf-8") as file:
    json.dump(manifest, file)


# ------------------------------------------------------------------ 8.2 what everybody failed, source by source

gauntlet_tasks, per_source, kind_of = [], {}, {}
every = [bw.runs.get(run) for run in manifest["runs"]]
for source in SOURCES:
    runs = [run for run in every if run.status == "ok" and run.benchmark_name == source["name"]]
    if not runs:
        print(f"  {source['name']:<34} skipped (no panel runs)")
        continue
    failures, payloads = Counter(), {}
    subset_id = runs[0].get("subset_id")
    for run in runs:
        tasks = bw.runs.tasks(run.id, passed=False)
        for task in tasks.data:
            failures[task.task_id] += 1
            if task.task_id not in payloads:
                whole = tasks.payload(task.id)
                payloads[task.task_id] = {"input": whole.input, "expected": whole.expected}
    hard = [task_id for task_id, count in failures.items() if count == len(runs)]
    per_source[source["name"]], kind_of[source["name"]] = len(hard), source["kind"]
    for task_id in hard:
        gauntlet_tasks.append(
            {
                "task_id": f"{source['name']}::{task_id}",  # two sources may well use the same id
                "input": shape_input(source["kind"], payloads[task_id]["input"]),
                "expected": payloads[task_id]["expected"],
                "source": {"benchmark": runs[0].benchmark_id, "subset": subset_id, "task_id": task_id},
            }
        )
    print(f"  {source['name']:<34} {len(hard)} universally hard")
print(f"\ntotal: {len(gauntlet_tasks)} tasks, {len(per_source)} source benchmarks")
if not gauntlet_tasks:
    sys.exit("The panel failed no task together, so there is nothing to put together.")


# ------------------------------------------------------------------ 8.3 the composite, 8.4 its scorer

composite = bw.benchmarks.create(
    name=f"Reasoning gauntlet {mark}",
    description="Tasks of four kinds that a panel failed. One scorer goes by each task's kind.",
    category="composite",
    tags=["curated", "hard", "multi-domain", "gauntlet"],
    parents=sorted({task["source"]["benchmark"] for task in gauntlet_tasks}),
)
subset = bw.benchmarks.subsets.create(
    benchmark=composite.id,
    slug="v1",
    name="Gauntlet v1",
    description=", ".join(f"{name} ({count})" for name, count in per_source.items()),
    tasks=gauntlet_tasks,
)
impl = bw.impls.create(
    benchmark=composite.id,
    subset=subset.id,
    label="dispatching scorer v1",
    language="python",
    code=material.code("dispatching"),
    description="Asks and scores by kind: choice, calls, number, program.",
)


# ------------------------------------------------------------------ 8.5 run it, kind by kind

run = bw.runs.launch(benchmark=composite.id, subset=subset.id, impl=impl.id, sut={"model": final}, limits={"run": {"cost": 30.0}})
bw.runs.wait(run.id)
tasks = bw.runs.tasks(run.id)
print(f"aggregate: {tasks.summary.pass_rate:.1%}  ({tasks.summary.passed}/{tasks.summary.total})\n")

by_kind = defaultdict(lambda: [0, 0])  # passed, total
for row in tasks.data:
    kind = kind_of[row.task_id.split("::", 1)[0]]
    by_kind[kind][1] += 1
    if row.score is not None and row.score >= 1.0:  # None is a task that could not be scored, which is no failure of the model's
        by_kind[kind][0] += 1
for kind, (passed, total) in sorted(by_kind.items()):
    print(f"  {kind:<17} {passed / total:>6.1%}  {passed}/{total}")

# 8.6 Shown, it is there for others, with a rate for each kind.
bw.runs.update(run.id, visibility="public")
print("\nlive at", bw.registry.benchmarks.get(composite.id).links.dashboard)
