"""Times the suite's pages over a million tasks, and how long a run of a hundred thousand finished samples takes to go on: `scripts/bench.sh suite`.

One run of 100,000 samples, one that is under way with as many, and a board of 100 runs with 9,000 tasks each; `--tenth` a tenth of all. On SQLite or on what
DATABASE_URL names, which must be empty. What is slower than 100 ms (p95), or a resumption slower than 5 s, is marked, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import base64
import gc
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import django

from bench.million import LIMIT_MS, measure

RESUME_S = 5.0
CLUSTERS = 400
KEY_SCOPES = ["read", "ask", "judge", "operate", "admin", "runs:read", "runs:write", "registry:read"]


def put(table: str, columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:  # type: ignore[attr-defined]
                for row in rows:
                    copy.write_row(row)
            return
        adapt = connection.ops.adapt_datetimefield_value
        adapted = ([adapt(v) if isinstance(v, datetime) else v for v in row] for row in rows)
        cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})", adapted)


class Made:
    """A subset with its runs, as a server's work leaves them."""

    def __init__(self, owner: str, slug: str, rows: int, clustered: bool) -> None:
        from django.utils import timezone

        from suite import ids
        from suite.models import Benchmark, Impl, Subset, Version

        self.now, self.count, self.clustered = timezone.now(), rows, clustered
        at = {"created_at": self.now, "updated_at": self.now}
        self.benchmark = Benchmark.objects.create(id=ids.new_id("bm"), name=slug, owner=owner, **at)
        self.subset = Subset.objects.create(id=ids.new_id("sub"), benchmark=self.benchmark, slug=slug, name=slug, version=1, grader={"kind": "math"}, **at)
        Version.objects.create(subset=self.subset, number=1, digest="0" * 64, rows=rows, created_by=owner, created_at=self.now)
        self.impl = Impl.objects.create(id=ids.new_id("imp"), digest=ids.new_id("x")[:64], language="builtin", grader={"kind": "math"}, owner=owner, **at)
        self.owner = owner
        body = json.dumps({"input": {"question": "What is 2 + 2?"}, "expected": {"value": 4}, "source": None})
        put(
            "suite_row",
            ("subset_id", "position", "task_id", "since", "kind", "cluster", "digest", "body"),
            ((self.subset.pk, n, f"t{n}", 1, "math", self.cluster(n), f"{n:064x}", body) for n in range(rows)),
        )

    def cluster(self, position: int) -> str:
        return f"repo-{position % CLUSTERS}" if self.clustered else ""

    def run(self, number: int, done: int, with_samples: bool, is_over: bool) -> Any:
        """Makes a run of which so many tasks have ended."""
        from suite import ids
        from suite.models import Run
        from suite.running import launching, recording, selection

        chosen = selection.choose(self.subset.pk, 1, None)
        begun = self.now - timedelta(minutes=number + 1)
        run = Run(
            id=ids.new_id("run"),
            status="ok" if is_over else "running",
            mode="pinned",
            launch={},
            benchmark=self.benchmark,
            subset=self.subset,
            version=1,
            impl=self.impl,
            subject=f"model-{number}",
            sut={"kind": "model", "model": f"model-{number}", "asked_as": f"model-{number}", "provider": "endpoint-0", "mode": "", "params": {}},
            backend="local-bwrap",
            selection=chosen.said(1),
            owner=self.owner,
            total=self.count,
            done=done,
            cost_pusd=done * 36_000_000,
            created_at=begun,
            started_at=begun,
            finished_at=begun if is_over else None,
        )
        run.fingerprint = launching.fingerprint(run)
        draw = random.Random(number)
        passed = [draw.random() < 0.7 for _ in range(done)]
        took = [draw.randrange(200, 9000) for _ in range(done)]
        run.last_seq = done
        run.save(force_insert=True)
        task = (
            (
                *(f"tsk_{run.pk[4:]}{n}"[:40], run.pk, 1, n, f"t{n}", "math", self.cluster(n), "passed" if ok else "failed", float(ok), ok, 1, int(ok)),
                *(1, "", "ANSWER: 4", False, ms, 36_000_000, 20, 8),
            )
            for n, (ok, ms) in enumerate(zip(passed, took, strict=True))
        )
        put("suite_task", recording.TASK, task)
        if with_samples:
            payload = base64.b64decode(recording.packed({"output": "ANSWER: 4", "calls": [], "answer": "4", "explanation": "", "metadata": {}, "error": None}))
            sample = (
                (
                    *(run.pk, n, 1, 0, 1, json.dumps([f"call_{n}"]), "", "passed" if ok else "failed", float(ok), "", "stop"),
                    *(begun + timedelta(milliseconds=n), begun + timedelta(milliseconds=n + ms), ms, 36_000_000, 20, 8, 0, payload),
                )
                for n, (ok, ms) in enumerate(zip(passed, took, strict=True))
            )
            put("suite_sample", recording.SAMPLE, sample)
            event = (
                (run.pk, n + 1, "MaterializeTaskResult", json.dumps({"task_id": f"t{n}", "score": float(ok), "outcome": "passed" if ok else "failed"}), begun)
                for n, ok in enumerate(passed)
            )
            put("suite_event", ("run_id", "seq", "type", "data", "at"), event)
        return run


def door(owner: str) -> Callable[[str], Any]:
    from django.test import Client

    from access.ids import new_id
    from access.keys import mint

    _, secret = mint(new_id("million"), owner=owner, scopes=KEY_SCOPES, actor="bench")
    api = Client()
    return lambda path: api.get(path, headers={"host": "localhost", "authorization": f"Bearer {secret}"})


def pages(ask: Callable[[str], Any], whole: Any, going: Any, board: Made, some: Sequence[Any]) -> Iterator[str]:
    """Shape: each page once, the token pages reached the way a reader reaches them."""
    yield f"/v1/runs/{whole.pk}?expand=summary"
    for query in ("", "passed=false", "passed=true", "outcome=failed", "sort=-position", "sort=score", "sort=-duration_ms", "task_id=t5000"):
        yield f"/v1/runs/{whole.pk}/tasks?{query}"
    token = ask(f"/v1/runs/{whole.pk}/tasks?limit=500").json()["next"]
    yield f"/v1/runs/{whole.pk}/tasks?limit=500&page_token={token}"
    yield f"/v1/runs/{going.pk}/tasks?"
    yield f"/v1/runs/{going.pk}?expand=summary"
    yield f"/v1/runs/{whole.pk}/events?after_seq={whole.last_seq // 2}&limit=500"
    yield f"/v1/runs/{whole.pk}/events?types=RunFinished"
    yield "/v1/runs"
    yield f"/v1/runs?filter[subset]={board.subset.pk}"
    yield f"/v1/registry/subsets/{board.subset.pk}/leaderboard"
    yield f"/v1/registry/subsets/{board.subset.pk}/runs"
    yield f"/v1/registry/benchmarks/{board.benchmark.pk}"
    yield f"/v1/benchmarks/{board.benchmark.pk}/coverage?range=0-5"


def resumption(run: Any, done: int) -> tuple[float, float]:
    """Does what a worker does before its first question where so many samples have ended. Units: seconds of CPU, MB of memory that it took."""
    from suite.running import holding

    before, busy = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    plan = holding.load(run.pk)
    assert not plan.changed, plan.changed
    first = next(holding.chunks(holding.left(plan)))
    assert first[0] == (done, 1), first[0]
    holding.left_count(plan)
    return time.process_time() - busy, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.suite_million", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tenth", action="store_true", help="a tenth of all")
    parser.add_argument("--only", default="", help="paths that hold this")
    given = parser.parse_args()
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    share = 10 if given.tenth else 1
    call_command("migrate", verbosity=0)
    began, large, each, runs = time.perf_counter(), 100_000 // share, 9_000, 100 // share
    alone = Made("bench", "alone", large, clustered=True)
    whole, going = alone.run(0, large, True, True), alone.run(1, large - 100, True, False)
    board = Made("bench", "board", each, clustered=True)
    some = [board.run(number, each, False, True) for number in range(runs)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"{2 * large + runs * each:,} tasks in {time.perf_counter() - began:.0f} s, {datetime.now(UTC):%Y-%m-%d}", flush=True)
    slow = 0
    took_s, memory_mb = resumption(going, large - 100)
    slow += took_s > RESUME_S
    print(f"a run of {large:,} samples, 100 of them left, is gone on with after {took_s:.2f} s of CPU and {memory_mb:.0f} MB more")
    ask = door("bench")
    busy = time.process_time()
    for run in (whole, *some):
        ask(f"/v1/runs/{run.pk}?expand=summary")
    print(f"each run that has ended is summed once: {(time.process_time() - busy) / (len(some) + 1) * 1000:.0f} ms")
    gc.collect()
    gc.freeze()  # as a worker does when it has started
    print(f"{connection.vendor}; median and p95 in ms of {given.rounds}, and the median of this process's own time")
    for path in pages(ask, whole, going, board, some):
        if given.only not in path:
            continue
        median, p95, own = measure(ask, path, given.rounds)
        slow += p95 > LIMIT_MS
        named = path.replace(whole.pk, "<ended>").replace(going.pk, "<under way>").replace(board.subset.pk, "<board>").replace(board.benchmark.pk, "<board's>")
        print(f"{median:9.1f} {p95:9.1f} {own:9.1f} {'SLOW' if p95 > LIMIT_MS else '    '} {named[:110]}", flush=True)
    print(f"{slow} slower than they should be")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
