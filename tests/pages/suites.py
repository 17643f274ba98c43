"""A suite with a past, written straight into the database: a benchmark, two subsets, runs that ended, one that goes on, one that was halted."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from suite import ids
from suite.authoring import rows, subsets
from suite.models import Benchmark, Event, Impl, Run, Sample, SelfCheck, Subset, Task
from suite.running import launching, recording, selection
from tests.admin.seed import HOSTILE

NOW = datetime(2026, 11, 29, 16, 0, tzinfo=UTC)
MATH = {"kind": "math"}


@dataclass
class Filled:
    benchmark: Benchmark
    small: Subset
    mixed: Subset
    good: Run
    bad: Run
    going: Run
    halted: Run


def task_rows(count: int, hostile: bool = False) -> list[dict[str, Any]]:
    names = [HOSTILE[i] if hostile and i < len(HOSTILE) else f"sum-{i:02}" for i in range(count)]
    return [{"task_id": name, "input": {"question": f"What is {i} + {i}? {name}"}, "expected": {"value": 2 * i}} for i, name in enumerate(names)]


def benchmark(name: str = "Sums", owner: str = "operator", **more: Any) -> Benchmark:
    return Benchmark.objects.create(id=ids.new_id("bm"), name=name, owner=owner, created_at=NOW, updated_at=NOW, **more)


def subset(of: Benchmark, tasks: Sequence[dict[str, Any]], slug: str = "small", grader: Any = MATH, **more: Any) -> Subset:
    return subsets.create(
        of, slug, more.pop("name", slug), "", rows.read(list(tasks), grader), more.pop("rolling", False), grader, of.owner, more.pop("recipe", {})
    )


def impl(of: Subset) -> Impl:
    found, _ = Impl.objects.get_or_create(
        digest=f"{of.pk:0<64}"[:64],
        defaults={
            "id": ids.new_id("imp"), "language": "builtin", "grader": of.grader, "label": "built-in", "benchmark": of.benchmark, "subset": of,
            "owner": of.benchmark.owner, "created_at": NOW, "updated_at": NOW,
        },
    )  # fmt: skip
    return found


def run(of: Subset, subject: str, outcomes: Sequence[str], status: str = "ok", text: str = "ANSWER: 4", **more: Any) -> Run:
    """A run with so many tasks that came to these outcomes, in order."""
    total = more.pop("total", len(outcomes))
    row = Run.objects.create(
        id=ids.new_id("run"), status=status, mode=more.pop("mode", "pinned"), launch={}, benchmark=of.benchmark, subset=of, version=of.version, impl=impl(of),
        subject=subject, sut={"kind": "model", "model": subject, "asked_as": subject, "provider": "local", "mode": "", "params": {}, "served_name": subject},
        backend="local-bwrap", selection={"strategy": "all", "n": total, "seed": 1, "digest": "d" * 64}, owner=more.pop("owner", "operator"), total=total,
        done=len(outcomes), cost_pusd=10**9 * len(outcomes), fingerprint="f" * 64, last_seq=3, created_at=NOW, started_at=NOW,
        finished_at=None if status in ("queued", "running") else NOW + timedelta(minutes=2), visibility=more.pop("visibility", "public"),
        limits={"run": {"cost": 5.0}}, **more,
    )  # fmt: skip
    chosen = selection.choose(of.pk, of.version, total)
    row.selection, row.fingerprint = chosen.said(1), ""
    row.fingerprint = launching.fingerprint(row)
    row.save()
    told = of.rows.order_by("position").values_list("task_id", "kind")[: len(outcomes)]
    for position, (outcome, (task_id, kind)) in enumerate(zip(outcomes, told, strict=True)):
        score = {"passed": 1.0, "failed": 0.0, "refused": 0.0, "unparsed": 0.0, "limit": 0.0}.get(outcome)
        common = {
            "run": row,
            "position": position,
            "outcome": outcome,
            "score": score,
            "duration_ms": 400 + position,
            "cost_pusd": 10**9,
            "input_tokens": 20,
            "output_tokens": 8,
        }
        Task.objects.create(
            id=ids.new_id("tsk"),
            task_id=task_id,
            kind=kind,
            passed=None if score is None else score == 1.0,
            preview=text[:100],
            trials_passed=int(score == 1.0),
            **common,
        )
        payload = {"output": text, "calls": [], "answer": "4", "explanation": text, "metadata": {}, "error": None}
        Sample.objects.create(trial=1, finish_reason="stop", started_at=NOW, finished_at=NOW, payload=base64.b64decode(recording.packed(payload)), **common)
    kinds = [("RunQueued", {"subject": subject, "tasks": total}), ("Log", {"message": f"Calls at once: 1 to 2 ({text})."}), ("RunFinished", {"status": status})]
    Event.objects.bulk_create([Event(run=row, seq=n, type=kind, data=data, at=NOW) for n, (kind, data) in enumerate(kinds, 1)])
    return row


def fill(hostile: bool = False, going: str = "queued") -> Filled:
    """A run that goes on is only queued unless said otherwise: a page that follows one never comes to rest."""
    name, text = (HOSTILE[0], HOSTILE[1]) if hostile else ("Sums", "I add both.\n\nANSWER: 4")
    of = benchmark(name, description=text if hostile else "Can it add?", category="math", tags=[HOSTILE[3][:80] if hostile else "small"])
    small = subset(of, task_rows(20, hostile), rolling=True, recipe={"passes": True}, name=HOSTILE[4] if hostile else "Small sums")
    kinds = [{**row, "kind": "math"} if i % 2 else {**row, "kind": "exact", "expected": {"value": str(2 * i)}} for i, row in enumerate(task_rows(6))]
    mixed = subset(of, kinds, "mixed", {})
    good = run(small, "mercury", ["passed"] * 19 + ["truncated"], text=text, tags=["first"])
    bad = run(small, HOSTILE[0] if hostile else "slow-but-sure", ["passed"] * 6 + ["failed"] * 12 + ["refused", "unparsed"], text=text)
    again = run(small, "mercury", ["passed"] * 18 + ["failed", "truncated"], parent=good, mode="replay")
    run(mixed, "mercury", ["passed", "failed"] * 3)
    open_one = run(small, "scout", ["passed"] * 5 if going == "running" else [], going, total=20)
    halted = run(
        small,
        "scout",
        ["passed"] * 3 + ["infrastructure"] * 2,
        "halted",
        total=20,
        halt_reason="limit_exceeded:run.cost",
        halt_note="It costs too much.",
    )
    SelfCheck.objects.create(first=good.pk, second=again.pk, trials=100, alarms=4, alpha=0.05, is_sound=True, created_at=NOW)
    return Filled(of, small, mixed, good, bad, open_one, halted)
