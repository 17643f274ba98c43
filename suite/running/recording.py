"""What a run's work leaves behind: lines for the outbox on one side, raw SQL that commits them on the other, in the ledger's own transaction.

A line may be committed more than once, by its own process or by whoever drains the outbox of one that died. Unique rows make that harmless, and all that
counts follows from the rows that were new: tasks, events with their numbers, the run's counters.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
from django.db import connection
from django.db.models import CharField, Model

from access.ids import new_id
from panels.api.wording import decimal_text
from suite import canonical
from suite.grading.outcomes import SCORED, Outcome
from suite.models import Run, Sample, Task

PREVIEW = 120
# Bytes below which a text is kept as it is.
WORTH_COMPRESSING = 600
SAMPLES, HALTS, ENDS, NOTES, ANSWERS = "suite_samples", "suite_halts", "suite_ends", "suite_notes", "suite_answers"
# How often a run tells what it has cost so far: each time a twentieth of its tasks has ended, and never more often than each fifth task.
COST_STEPS, LEAST_STEP = 20, 5
UNANSWERED = (Outcome.INFRASTRUCTURE, Outcome.JUDGE_FAILED)
TERMINAL = ("ok", "failed", "halted", "deleted")

SAMPLE = (
    "run_id", "position", "trial", "superseded", "attempts", "calls", "panel", "outcome", "score", "reason", "finish_reason", "started_at", "finished_at",
    "duration_ms", "cost_pusd", "input_tokens", "output_tokens", "reasoning_tokens", "payload",
)  # fmt: skip
TASK = (
    "id", "run_id", "scoring", "position", "task_id", "kind", "cluster", "outcome", "score", "passed", "trials", "trials_passed", "trials_scored", "reason",
    "preview", "preview_cut", "duration_ms", "cost_pusd", "input_tokens", "output_tokens",
)  # fmt: skip


def texts_of(table: type[Model]) -> dict[str, int]:
    return {f.name: f.max_length for f in table._meta.concrete_fields if isinstance(f, CharField) and f.max_length}


SAMPLE_TEXTS, TASK_TEXTS, RUN_TEXTS = texts_of(Sample), texts_of(Task), texts_of(Run)


def insert(table: str, columns: Sequence[str], conflict: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) {conflict}"  # noqa: S608


INSERT_SAMPLE = insert("suite_sample", SAMPLE, "ON CONFLICT (run_id, position, trial, superseded) DO NOTHING RETURNING id")
INSERT_TASK = insert("suite_task", TASK, "ON CONFLICT (run_id, scoring, position) DO NOTHING RETURNING id")
INSERT_PLAIN_TASK = insert("suite_task", TASK, "")
INSERT_EVENT = insert("suite_event", ("run_id", "seq", "type", "data", "at"), "ON CONFLICT (run_id, seq) DO NOTHING")
TAKE_NUMBERS = "UPDATE suite_run SET last_seq = last_seq + %s, etag = etag + 1 WHERE id = %s RETURNING last_seq"
COUNT = (
    "UPDATE suite_run SET done = done + %s, cost_pusd = cost_pusd + %s, has_unpriced = (has_unpriced OR %s), interruptions = 0 WHERE id = %s"
    " RETURNING done, total, cost_pusd, has_unpriced, status"
)
HALT = "UPDATE suite_run SET status = 'halting', halt_reason = %s, halt_note = %s WHERE id = %s AND status = 'running'"
END = (
    "UPDATE suite_run SET status = %s, error = %s, halt_reason = %s, halt_note = %s, finished_at = %s, phases = %s, worker = '', leased_until = NULL"
    " WHERE id = %s AND status NOT IN ('ok', 'failed', 'halted', 'deleted')"
)


def packed(payload: Mapping[str, Any]) -> str:
    """Writes a sample's payload for a line: JSON, compressed, in characters that JSON holds."""
    data = canonical.kept(payload).encode()
    return base64.b64encode(stored(data) if len(data) < WORTH_COMPRESSING else zlib.compress(data, 1)).decode()


def stored(data: bytes) -> bytes:
    """Writes a zlib stream of one block as it is: to set a compressor up costs more than a short text is worth. Source: RFC 1950, RFC 1951 section 3.2.4."""
    size = len(data)
    return b"\x78\x01\x01" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + data + zlib.adler32(data).to_bytes(4, "big")


def unpacked(payload: bytes | memoryview) -> dict[str, Any]:
    """Reads a sample's payload as it is kept."""
    import json

    found: dict[str, Any] = json.loads(zlib.decompress(bytes(payload)))
    return found


def preview_of(text: str) -> tuple[str, bool]:
    """Cuts a text for a list, on whole characters."""
    line = " ".join(text.split())
    return line[:PREVIEW], len(line) > PREVIEW


def safe(value: Any, most: int | None = None) -> Any:
    """Writes a text so that every database takes it: a NUL and halves of characters as their escapes, and no more than its column holds."""
    if not isinstance(value, str):
        return value
    if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value):
        value = "".join([f"\\u{ord(c):04x}" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in value])
    return value[:most]


def when(value: str | None) -> Any:
    return connection.ops.adapt_datetimefield_value(datetime.fromisoformat(value)) if value else None


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


# ------------------------------------------------------------------ committing


def commit_samples(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Keeps samples, and of those that were new all that follows."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    late: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        if inserted(cursor, item, 0):
            runs.setdefault(item["run_id"], []).append(item)
        elif is_another(cursor, item) and inserted(cursor, item, last_superseded(cursor, item) + 1):
            late.setdefault(item["run_id"], []).append(item)
    for run in sorted({*runs, *late}):  # in one order, so that two who commit never wait for each other in a circle
        new, too_late = runs.get(run, []), late.get(run, [])
        if any(item["trials"] > 1 for item in new) and connection.vendor == "postgresql":
            # Of two who bring a task's last trials at once, the later one sees them all.
            cursor.execute("SELECT 1 FROM suite_run WHERE id = %s FOR UPDATE", [run])
        tasks, events = [], []
        for item in new:
            task = task_of(cursor, item)
            if task is None:
                continue
            cursor.execute(INSERT_TASK, [safe(task[name], TASK_TEXTS.get(name)) for name in TASK])
            if cursor.fetchone() is not None:  # not made by another of its trials, of the same batch
                tasks.append(task)
                events += told_of(task)
        for item in too_late:
            message = "An answer came after another had taken its place. It is kept as superseded and counts in the cost alone."
            events.append(("Log", {"message": message, "task_id": item["task_id"], "trial": item["trial"]}))
        costs = [item["cost_pusd"] for item in (*new, *too_late)]
        if kept := [[run, item["position"], item["trial"]] for item in new if item.get("was_kept")]:
            cursor.executemany("DELETE FROM suite_answer WHERE run_id = %s AND position = %s AND trial = %s", kept)
        cursor.execute(COUNT, [len(tasks), sum(cost or 0 for cost in costs), None in costs, run])
        row = cursor.fetchone()
        if row is not None and row[-1] in TERMINAL:  # the last event stays the last; what was summed no longer holds
            cursor.execute("DELETE FROM suite_summary WHERE run_id = %s", [run])
            continue
        if row is not None:
            events += told_of_cost(len(tasks), *row[:-1])
        tell(cursor, run, events)


def inserted(cursor: Any, item: Mapping[str, Any], superseded: int) -> bool:
    row = [safe(item[name], SAMPLE_TEXTS.get(name)) for name in SAMPLE[:-1]]
    row[SAMPLE.index("superseded")] = superseded
    row[SAMPLE.index("calls")] = as_json(item["calls"])
    row[SAMPLE.index("started_at")], row[SAMPLE.index("finished_at")] = when(item["started_at"]), when(item["finished_at"])
    cursor.execute(INSERT_SAMPLE, [*row, base64.b64decode(item["payload"])])
    return cursor.fetchone() is not None


def is_another(cursor: Any, item: Mapping[str, Any]) -> bool:
    """Tells a second answer to the same question from a line that is committed once more: no two tries begin and end at the same times."""
    cursor.execute(
        "SELECT 1 FROM suite_sample WHERE run_id = %s AND position = %s AND trial = %s AND started_at = %s AND finished_at = %s",
        [item["run_id"], item["position"], item["trial"], when(item["started_at"]), when(item["finished_at"])],
    )
    return cursor.fetchone() is None


def last_superseded(cursor: Any, item: Mapping[str, Any]) -> int:
    cursor.execute(
        "SELECT COALESCE(MAX(superseded), 0) FROM suite_sample WHERE run_id = %s AND position = %s AND trial = %s",
        [item["run_id"], item["position"], item["trial"]],
    )
    return int(cursor.fetchone()[0])


def told_of(task: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Makes the events of a task that has ended."""
    said = {"task_id": task["task_id"], "task": task["id"], "score": task["score"], "outcome": task["outcome"], "passed": task["passed"]}
    found: list[tuple[str, Mapping[str, Any]]] = [("MaterializeTaskResult", said)]
    if task["outcome"] in UNANSWERED:
        found.append(("TaskErrored", {"task_id": task["task_id"], "task": task["id"], "outcome": task["outcome"], "error": task["reason"]}))
    return found


def told_of_cost(count: int, done: int, total: int, cost_pusd: int, has_unpriced: bool) -> list[tuple[str, Mapping[str, Any]]]:
    """Makes the event of what a run has cost so far, where it has gone on a step with these tasks."""
    step = max(LEAST_STEP, total // COST_STEPS)
    return [("CostUpdated", cost_of(done, cost_pusd, has_unpriced))] if (done - count) // step != done // step else []


def cost_of(done: int, cost_pusd: int, has_unpriced: bool) -> dict[str, Any]:
    return {"cost_usd": decimal_text(Decimal(cost_pusd).scaleb(-12)), "complete": not has_unpriced, "done": done}


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
        "task_id": item["task_id"],
        "kind": item["kind"],
        "cluster": item["cluster"],
        **together([(outcome, score) for outcome, score, *_ in trials], item["threshold"]),
        "reason": next((t[6] for t in trials if t[6]), ""),
        "preview": item["preview"],
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
    """Keeps events that come with no row. One with `once` is told once of its kind; any other may be told again where its line is committed again.

    Of a run that has ended nothing more is told: its end is the last event that anybody waits for.
    """
    for item in items:
        cursor.execute("SELECT status FROM suite_run WHERE id = %s", [item["run_id"]])
        if (row := cursor.fetchone()) is None or row[0] in TERMINAL:
            continue
        if item.get("once"):
            cursor.execute("SELECT data FROM suite_event WHERE run_id = %s AND type = %s", [item["run_id"], item["type"]])
            told = [orjson.loads(data) if isinstance(data, str) else data for (data,) in cursor.fetchall()]
            if any(data.get("limit") == item["once"] for data in told):
                continue
        tell(cursor, item["run_id"], [(item["type"], item["data"])], item["at"])


def commit_halts(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Says of runs that they come to their end before their time, each once."""
    for item in items:
        cursor.execute(HALT, [safe(item["reason"], RUN_TEXTS["halt_reason"]), safe(item["note"], RUN_TEXTS["halt_note"]), item["run_id"]])
        if cursor.rowcount:
            tell(cursor, item["run_id"], [("RunHalting", {"halt_reason": item["reason"], "note": item["note"] or None})], item["at"])


def commit_ends(cursor: Any, items: Sequence[Mapping[str, Any]]) -> None:
    """Ends runs, each once."""
    for item in items:
        cursor.execute("SELECT done, cost_pusd, has_unpriced FROM suite_run WHERE id = %s", [item["run_id"]])
        row = cursor.fetchone()
        if row is None:
            continue
        cost = cost_of(*row)
        phases = [{**phase, "cost": cost["cost_usd"]} if phase["name"] == "Materialize" else phase for phase in item["phases"]]
        cursor.execute(
            END,
            [
                item["status"],
                safe(item["error"]),
                safe(item["halt_reason"], RUN_TEXTS["halt_reason"]),
                safe(item["halt_note"], RUN_TEXTS["halt_note"]),
                when(item["at"]),
                as_json(phases),
                item["run_id"],
            ],
        )
        if not cursor.rowcount:
            continue
        said = {"status": item["status"], "error": item["error"] or None, "halt_reason": item["halt_reason"] or None}
        by_name = {phase["name"]: phase["status"] for phase in item["phases"]}
        events: list[tuple[str, Mapping[str, Any]]] = []
        if by_name.get("Materialize") in ("ok", "failed"):
            events.append(("PhaseCompleted", {"phase": "Materialize", "status": by_name["Materialize"]}))
        if item["status"] == "ok":
            events += [("PhaseStarted", {"phase": "Report"}), ("PhaseCompleted", {"phase": "Report", "status": "ok"})]
        tell(cursor, item["run_id"], [*events, ("CostUpdated", cost), ("RunFinished", said)], item["at"])
