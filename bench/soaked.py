"""The suite's part of a fault run: runs of some hundred samples that go on while processes are killed; each must end, whole, and pay for no answer twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import books, servers
from bench.faults import Served

ENDPOINT, MODEL = "suite", "suite-1"
# So few at once that a run is under way for as long as the faults fall.
AT_ONCE = 3
RUNS = "SELECT id, status, error, halt_reason, total, done, last_seq FROM suite_run"
SAMPLES = "SELECT run_id, position, calls FROM suite_sample WHERE superseded = 0"
LATE = "SELECT count(*) FROM suite_sample WHERE superseded > 0"
EVENTS = "SELECT run_id, count(*), max(seq) FROM suite_event GROUP BY run_id"
OVER = ("ok", "failed", "halted")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the database says of the runs."""

    runs: Sequence[tuple[str, str, str, str, int, int, int]]
    samples: Sequence[tuple[str, int, list[str]]]
    late: int
    events: dict[str, tuple[int, int]]

    @property
    def is_over(self) -> bool:
        return all(status in OVER for _, status, *_ in self.runs)


def endpoint(port: int) -> dict[str, Any]:
    return {"name": ENDPOINT, "kind": "openai", "base_url": f"http://127.0.0.1:{port}/{ENDPOINT}/v1", "limits": {"parallel": AT_ONCE}}


def begin(port: int, operator: str, runs: int, tasks: int) -> None:
    """Launches runs of so many tasks each. Errors: CannotStart."""

    def send(path: str, body: Any) -> Any:
        status, said = servers.ask(port, f"/v1/{path}", body, operator, timeout_s=60)
        if status >= 300:
            raise servers.CannotStart(f"POST /v1/{path} answered {status}: {said}")
        return said

    benchmark = send("benchmarks", {"name": "soak"})["id"]
    rows = [{"task_id": f"t{n}", "input": {"question": f"q=suite.{n}; what is it?"}, "expected": {"value": "forty-two"}} for n in range(tasks)]
    subset = send(f"benchmarks/{benchmark}/subsets", {"slug": "soak", "grader": {"kind": "exact"}, "tasks": rows[:1000]})["id"]
    for _ in range(runs):
        send("runs", {"benchmark": benchmark, "subset": subset, "sut": MODEL, "limits": {"task": {"attempts": 20}}})


def read(ask: Callable[[str], Iterable[Sequence[Any]]]) -> Seen:
    samples = [(run, position, json.loads(calls) if isinstance(calls, str) else calls) for run, position, calls in ask(SAMPLES)]
    events = {run: (count, last) for run, count, last in ask(EVENTS)}
    return Seen([tuple(row) for row in ask(RUNS)], samples, next(iter(ask(LATE)))[0], events)  # type: ignore[misc]


def read_from(sqlite_path: Path, postgres: str) -> Seen:
    if postgres:
        import psycopg

        with psycopg.connect(postgres) as connection:
            return read(lambda query: connection.execute(query).fetchall())
    with contextlib.closing(sqlite3.connect(f"file:{sqlite_path}?mode=ro", uri=True, timeout=30)) as connection:
        return read(connection.execute)


def compare(seen: Seen, kept: books.Books, served: Sequence[Served], found: books.Findings) -> None:
    """Adds what is wrong with the runs, and what they came to, to what was found."""
    wrong = found.wrong
    by_run: dict[str, Counter[int]] = {run: Counter() for run, *_ in seen.runs}
    theirs: Counter[str] = Counter()
    for run, position, calls in seen.samples:
        by_run[run][position] += 1
        theirs.update(calls)
    for run, status, error, halted, total, done, last_seq in seen.runs:
        if status != "ok":
            wrong.append(f"{run} ended as {status}: {error or halted}")
        if len(by_run[run]) != total or done != total or any(count != 1 for count in by_run[run].values()):
            wrong.append(f"{run} counts {done} of {total} tasks and holds {sum(by_run[run].values())} samples of {len(by_run[run])}")
        if seen.events.get(run) != (last_seq, last_seq):
            wrong.append(f"{run} has events {seen.events.get(run)}, its last number is {last_seq}")
    good = {row.call for row in kept.rows if row.model == MODEL and row.status == "ok"}
    if unpaid := {call for call, count in theirs.items() if count > 1}:
        wrong.append(f"{len(unpaid)} calls belong to several samples")
    if orphans := good - set(theirs):
        wrong.append(f"{len(orphans)} answers were paid for and are no sample's")
    if len(good) != len(seen.samples):
        wrong.append(f"{len(good)} answers were paid for {len(seen.samples)} samples")
    lost = sum(row.model == MODEL and row.status == "lost" for row in kept.rows)
    begun = sum(s.model == MODEL for s in served)
    found.counts |= {"runs": dict(Counter(status for _, status, *_ in seen.runs)), "samples": len(seen.samples), "their calls": begun}
    found.counts |= {"their calls lost in flight": lost, "samples that came too late": seen.late}
