"""Chapter 3. The three ways to launch: pinned, replay, and a request in words.

python ch03_three_ways.py mercury
"""

import material
from benchwright import Benchwright, NotImplementedByServer, Unprocessable

bw = Benchwright()
(model,) = material.models()[:1]
benchmark, subset, impl = material.algebra(bw)

# Pinned: a benchmark of the catalog, perhaps with one of its subsets and a scorer. What they stand for is frozen on the run.
pinned = bw.runs.wait(bw.runs.launch(benchmark=benchmark.id, subset=subset.id, impl=impl, sut={"model": model}).id)
print(f"pinned  {pinned.id}  {pinned.status}  by {pinned.impl.id}, asked for as {pinned.impl.requested}")

# Replay: the same tasks by the same scorer as a run before. Whom it tests may be another.
replay = bw.runs.wait(bw.runs.launch(replay={"from_run": pinned.id}).id)
print(f"replay  {replay.id}  {replay.status}  by {replay.impl.id}")
same = bw.runs.fingerprint(pinned.id).fingerprint == bw.runs.fingerprint(replay.id).fingerprint
print(f"comparable to the last byte: {same}")

# In words: this server does not author benchmarks yet, and says so instead of guessing.
try:
    bw.runs.launch(request="Run MMLU Abstract Algebra on openai/gpt-4o-mini via OpenRouter")
except NotImplementedByServer as later:
    print(f"request {later.status} {later.feature}")

# One way at a time.
try:
    bw.runs.launch(benchmark=benchmark.id, request="Run MMLU Abstract Algebra", sut={"model": model})
except Unprocessable as refused:
    print(f"both    {refused.status} {refused.code}")

# How and where a run is computed can be said as well; both have a default.
print("harnesses:", ", ".join(harness.name for harness in bw.harnesses().data))
print("backends: ", ", ".join(backend.name for backend in bw.backends().data))
