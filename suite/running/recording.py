"""What a run's work leaves behind: lines for the outbox on one side, raw SQL that commits them on the other, in the ledger's own transaction.

A line may be committed more than once, by its own process or by whoever drains the outbox of one that died. Unique rows make that harmless, and all that
counts follows from the rows that were new: tasks, events with their numbers, the run's counters.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import connection

from access.ids import new_id
from suite import canonical
from suite.grading.outcomes import SCORED, Outcome

PREVIEW = 120
SAMPLES, ENDS, NOTES, ANSWERS = "suite_samples", "suite_ends", "suite_notes", "suite_answers"
TERMINAL = ("ok", "failed", "halted", "deleted")

SAMPLE = (
    "run_id", "position", "trial", "superseded", "attempts", "calls", "panel", "outcome", "score", "reason", "finish_reason", "started_at", "finished_at",
    "duration_ms", "cost_pusd", "input_tokens", "output_tokens", "reasoning_tokens", "payload",
)  # fmt: skip
TASK = (
    "id", "run_id", "scoring", "position", "task_id", "kind", "cluster", "outcome", "score", "passed", "trials", "trials_passed", "trials_scored", "reason",
    "preview", "preview_cut", "duration_ms", "cost_pusd", "input_tokens", "output_tokens",
)  # fmt: skip


def insert(table: str, columns: Sequence[str], conflict: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) {conflict}"  # noqa: S608


INSERT_SAMPLE = insert("suite_sample", SAMPLE, "ON CONFLICT (run_id, position, trial, superseded) DO NOTHING RETURNING id")
INSERT_TASK = insert("suite_task", TASK, "ON CONFLICT (run_id, scoring, position) DO NOTHING RETURNING id")
INSERT_EVENT = insert("suite_event", ("run_id", "seq", "type", "data", "at"), "ON CONFLICT (run_id, seq) DO NOTHING")
TAKE_NUMBERS = "UPDATE suite_run SET last_seq = last_seq + %s, etag = etag + 1 WHERE id = %s RETURNING last_seq"
COUNT = "UPDATE suite_run SET done = done + %s, cost_pusd = cost_pusd + %s, has_unpriced = (has_unpriced OR %s), interruptions = 0 WHERE id = %s"
END = (
    "UPDATE suite_run SET status = %s, error = %s, halt_reason = %s, halt_note = %s, finished_at = %s, phases = %s, worker = '', leased_until = NULL"
    " WHERE id = %s AND status NOT IN ('ok', 'failed', 'halted', 'deleted')"
)


def packed(payload: Mapping[str, Any]) -> str:
    """Writes a sample's payload for a line: JSON, compressed, in characters that JSON holds."""
    return base64.b64encode(zlib.compress(canonical.kept(payload).encode(), 1)).decode()


def unpacked(payload: bytes | memoryview) -> dict[str, Any]:
    """Reads a sample's payload as it is kept."""
    import json

    found: dict[str, Any] = json.loads(zlib.decompress(bytes(payload)))
    return found


def preview_of(text: str) -> tuple[str, bool]:
    """Cuts a text for a list, on whole characters."""
    line = " ".join(text.split())
    return line[:PREVIEW], len(line) > PREVIEW


def safe(value: Any) -> Any:
    """Writes a text so that every database takes it: a NUL and halves of characters as their escapes."""
    if isinstance(value, str) and any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value):
        return "".join([f"\\u{ord(c):04x}" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in value])
    return value


def when(value: str | None) -> Any:
    return connection.ops.adapt_datetimefield_value(datetime.fromisoformat(value)) if value else None


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


# ------------------------------------------------------------------ committing


def commit_samples(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Keeps samples, and of those that were new all that follows."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        row = [safe(item[name]) for name in SAMPLE[:-1]]
        row[SAMPLE.index("calls")] = as_json(item["calls"])
        row[SAMPLE.index("started_at")], row[SAMPLE.index("finished_at")] = when(item["started_at"]), when(item["finished_at"])
        cursor.execute(INSERT_SAMPLE, [*row, base64.b64decode(item["payload"])])
        if cursor.fetchone() is not None and not item["superseded"]:
            runs.setdefault(item["run_id"], []).append(item)
    for run in sorted(runs):  # in one order, so that two who commit never wait for each other in a circle
        new = runs[run]
        tasks = [task for item in new if (task := task_of(cursor, item)) is not None]
        events = []
        for task in tasks:
            cursor.execute(INSERT_TASK, [task[name] for name in TASK])
            cursor.fetchone()
            said = {"task_id": task["task_id"], "task": task["id"], "score": task["score"], "outcome": task["outcome"], "passed": task["passed"]}
            events.append(("MaterializeTaskResult", said))
        costs = [item["cost_pusd"] for item in new]
        if any(item.get("was_kept") for item in new):
            kept = [[run, item["position"], item["trial"]] for item in new]
            cursor.executemany("DELETE FROM suite_answer WHERE run_id = %s AND position = %s AND trial = %s", kept)
        cursor.execute(COUNT, [len(tasks), sum(cost or 0 for cost in costs), None in costs, run])
        tell(cursor, run, events)


def commit_answers(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Keeps answers that wait for their grade, unless the grade is there already."""
    for item in items:
        cursor.execute(
            "INSERT INTO suite_answer (run_id, position, trial, payload) SELECT %s, %s, %s, %s WHERE NOT EXISTS"
            " (SELECT 1 FROM suite_sample WHERE run_id = %s AND position = %s AND trial = %s AND superseded = 0)"
            " ON CONFLICT (run_id, position, trial) DO NOTHING",
            [item["run_id"], item["position"], item["trial"], base64.b64decode(item["payload"]), item["run_id"], item["position"], item["trial"]],
        )


def task_of(cursor: Any, item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Gives a task's row once all of its trials are there."""
    if item["trials"] == 1:
        trials = [(item["outcome"], item["score"], item["duration_ms"], item["cost_pusd"], item["input_tokens"], item["output_tokens"], item["reason"])]
    else:
        cursor.execute(
            "SELECT outcome, score, duration_ms, cost_pusd, input_tokens, output_tokens, reason FROM suite_sample"
            " WHERE run_id = %s AND position = %s AND superseded = 0 ORDER BY trial",
            [item["run_id"], item["position"]],
        )
        trials = cursor.fetchall()
        if len(trials) < item["trials"]:
            return None
    return {
        "id": new_id("tsk"),
        "run_id": item["run_id"],
        "scoring": 1,
        "position": item["position"],
        "task_id": safe(item["task_id"]),
        "kind": item["kind"],
        "cluster": safe(item["cluster"]),
        **together([(outcome, score) for outcome, score, *_ in trials], item["threshold"]),
        "reason": next((t[6] for t in trials if t[6]), ""),
        "preview": safe(item["preview"]),
        "preview_cut": item["preview_cut"],
        "duration_ms": sum(t[2] for t in trials),
        "cost_pusd": None if any(t[3] is None for t in trials) else sum(t[3] for t in trials),
        "input_tokens": sum(t[4] for t in trials),
        "output_tokens": sum(t[5] for t in trials),
    }


def together(trials: Sequence[tuple[str, float | None]], threshold: float) -> dict[str, Any]:
    """Makes one result of several trials: the mean of those that were scored. None scored: the outcome that most had."""
    scored = [(outcome, score) for outcome, score in trials if outcome in SCORED and score is not None]
    passed = sum(outcome == Outcome.PASSED for outcome, _ in scored)
    counts = {"trials": len(trials), "trials_passed": passed, "trials_scored": len(scored)}
    if not scored:
        outcomes = [outcome for outcome, _ in trials]
        return {"outcome": max(outcomes, key=outcomes.count), "score": None, "passed": None, **counts}
    if len(scored) == 1:
        outcome, score = scored[0]
        return {"outcome": str(outcome), "score": score, "passed": outcome == Outcome.PASSED, **counts}
    score = sum(s or 0.0 for _, s in scored) / len(scored)
    passes = score >= threshold
    wrong = [str(outcome) for outcome, _ in scored if outcome != Outcome.PASSED]
    return {"outcome": "passed" if passes else max(wrong, key=wrong.count) if wrong else "failed", "score": score, "passed": passes, **counts}


def tell(cursor: Any, run: str, events: Sequence[tuple[str, Mapping[str, Any]]], at: str | None = None) -> None:
    """Numbers events and keeps them, in the transaction of what they tell."""
    if not events:
        return
    cursor.execute(TAKE_NUMBERS, [len(events), run])
    row = cursor.fetchone()
    if row is None:
        return
    first, now = row[0] - len(events) + 1, when(at or datetime.now(UTC).isoformat())
    cursor.executemany(INSERT_EVENT, [[run, first + i, kind, as_json(data), now] for i, (kind, data) in enumerate(events)])


def commit_notes(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Keeps events that come with no row. A line that is committed twice tells twice; what must be told once is told where its row is written."""
    for item in items:
        tell(cursor, item["run_id"], [(item["type"], item["data"])], item["at"])


def commit_ends(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Ends runs, each once."""
    for item in items:
        cursor.execute(
            END,
            [item["status"], safe(item["error"]), item["halt_reason"], safe(item["halt_note"]), when(item["at"]), as_json(item["phases"]), item["run_id"]],
        )
        if cursor.rowcount:
            kind = {"ok": "RunFinished", "failed": "RunFailed", "halted": "RunHalted"}[item["status"]]
            said = {"status": item["status"], "error": item["error"] or None, "halt_reason": item["halt_reason"] or None}
            tell(cursor, item["run_id"], [("PhaseCompleted", {"phase": "Report"}), (kind, said)] if item["status"] == "ok" else [(kind, said)], item["at"])
