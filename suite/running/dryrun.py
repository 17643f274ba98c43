"""A scorer tried on a few rows, without a run and without asking any model: by an answer that should be right, and by none.

ok is said where every row is read as it stands, the right answer passes, and the empty one does not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.grading.contract import Output, options_of
from suite.grading.outcomes import Grade, Outcome
from suite.models import Impl
from suite.running.asking import Said
from suite.running.coding import Coding
from suite.running.lines import Item
from suite.running.marking import Marking
from suite.sandbox import box

MOST_ROWS = 3
STAGE_S = 30.0
# What went wrong with the scorer itself, where a wrong answer would only fail.
FAILINGS = frozenset({Outcome.JUDGE_FAILED, Outcome.INFRASTRUCTURE})


@dataclass(frozen=True, slots=True)
class Tried:
    """One row. Shape: `error` tells why the row could not be read, "" where it could."""

    task_id: str
    error: str
    right: tuple[str, Grade]
    empty: Grade


def oracle(expected: Any) -> str:
    """Gives what is expected as an answer: a text as it is, `value` of an object, anything else as JSON."""
    value = expected["value"] if isinstance(expected, Mapping) and "value" in expected else expected
    return value if isinstance(value, str) else json.dumps(value)


def tried(impl: Impl, rows: Sequence[Item]) -> dict[str, Any]:
    """Tries an impl on rows and waits for it. Errors: SandboxUnavailable."""
    grader = dict(impl.grader or {})
    options = options_of(grader)
    timeout_s = min(STAGE_S, float(grader.get("run_timeout", STAGE_S)))
    limits = box.Limits(wall_s=timeout_s, cpu_s=int(timeout_s) + 1)

    async def all_of_them() -> list[Tried]:
        coding = Coding(impl.code, None, limits) if impl.language != "builtin" else None
        marking = Marking(str(grader.get("kind", "")), grader, options, coding)
        return list(await asyncio.gather(*[one(marking, row) for row in rows]))

    found = asyncio.run(all_of_them())
    findings = [finding for row in found for finding in findings_of(row)]
    return {"object": "dry_run", "impl": impl.pk, "ok": not findings, "findings": findings, "rows": [told(row) for row in found]}


async def one(marking: Marking, item: Item) -> Tried:
    error = ""
    if marking.coding is not None:
        right = Output(oracle(item.expected))
        row, error = await marking.coding.extract(item)
        if not error and row != {"task_id": item.task_id, "input": item.input, "expected": item.expected}:
            error = "extract does not give the row as it stands."
    else:
        right = marking.kind_of(item.kind).oracle(item.input, item.expected)
    by_right, by_empty = await asyncio.gather(marking.mark(item, Said(right)), marking.mark(item, Said(Output(""))))
    shown = right.text or json.dumps([{"name": call.name, "arguments": call.arguments} for call in right.calls])
    return Tried(item.task_id, error, (shown, by_right.grade), by_empty.grade)


def findings_of(row: Tried) -> list[str]:
    found = [f"{row.task_id}: {row.error}"] if row.error else []
    right, empty = row.right[1], row.empty
    if right.outcome in FAILINGS:
        found.append(f"{row.task_id}: the right answer came to {right.reason}: {right.explanation}"[:500])
    elif right.outcome is not Outcome.PASSED:
        found.append(f"{row.task_id}: the right answer does not pass (score {right.score}). Perhaps the scorer wants another form than `expected` has.")
    if empty.outcome in FAILINGS:
        found.append(f"{row.task_id}: an empty answer came to {empty.reason}: {empty.explanation}"[:500])
    elif empty.outcome is Outcome.PASSED:
        found.append(f"{row.task_id}: an empty answer passes.")
    return found


def told(row: Tried) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "extract": {"ok": not row.error, "error": row.error or None},
        "oracle": {"output": row.right[0][:2000], **grade_told(row.right[1])},
        "empty": grade_told(row.empty),
    }


def grade_told(grade: Grade) -> dict[str, Any]:
    return {
        "outcome": str(grade.outcome),
        "score": grade.score,
        "reason": grade.reason or None,
        "answer": grade.answer[:500],
        "explanation": grade.explanation[:1000],
        "metadata": grade.metadata,
    }
