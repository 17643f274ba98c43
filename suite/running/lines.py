"""How a sample is written down: the line of one that has ended, and an answer that waits for its grade."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from suite.grading import noise
from suite.grading.contract import Call, Options, Output
from suite.grading.outcomes import SCORED, Grade
from suite.running import recording
from suite.running.asking import Said


@dataclass(frozen=True, slots=True)
class Item:
    """One trial of one task, as it is about to be asked."""

    position: int
    trial: int
    task_id: str
    kind: str
    cluster: str
    input: Any
    expected: Any


def line_of(
    run: str,
    item: Item,
    trials: int,
    said: Said,
    grade: Grade,
    attempts: int,
    started_at: datetime,
    finished_at: datetime,
    calls: Sequence[str],
    cost: int | None,
    options: Options,
) -> dict[str, Any]:
    text = said.output.text or (json.dumps([{"name": c.name, "arguments": c.arguments} for c in said.output.calls]) if said.output.calls else "")
    preview, is_cut = recording.preview_of(text)
    payload = {
        "output": said.output.text,
        "calls": [{"name": c.name, "arguments": c.arguments} for c in said.output.calls],
        "answer": grade.answer,
        "explanation": grade.explanation,
        "metadata": grade.metadata,
        "error": {"code": said.error.code, "message": said.error.message} if said.error else None,
    }
    if len(said.seats) > 1:
        payload["seats"] = [{"call": s.call, "model": s.model, "seat": s.seat, "status": s.status, "text": s.text} for s in said.seats]
    return {
        "run_id": run,
        "position": item.position,
        "trial": item.trial,
        "superseded": 0,
        "attempts": attempts,
        "calls": list(dict.fromkeys(calls)),
        "panel": said.panel,
        "outcome": str(grade.outcome),
        "score": grade.score if grade.outcome in SCORED else None,
        "reason": noise.marked(grade, said.output.text).reason[:60],
        "finish_reason": said.finish_reason[:40],
        "started_at": started_at.isoformat(),
        "finished_at": finished_at.isoformat(),
        "duration_ms": round(said.seconds * 1000),
        "cost_pusd": cost,
        "input_tokens": said.input_tokens,
        "output_tokens": said.output_tokens,
        "reasoning_tokens": said.reasoning_tokens,
        "payload": recording.packed(payload),
        "trials": trials,
        "task_id": item.task_id,
        "kind": item.kind,
        "cluster": item.cluster,
        "preview": preview,
        "preview_cut": is_cut,
        "threshold": options.threshold,
    }


def written(said: Said) -> str:
    """Writes an answer down for grading later."""
    return recording.packed(
        {
            "output": said.output.text,
            "tool_calls": [[c.name, c.arguments] for c in said.output.calls],
            "finish_reason": said.finish_reason,
            "is_truncated": said.is_truncated,
            "is_refused": said.is_refused,
            "seconds": said.seconds,
            "tokens": [said.input_tokens, said.output_tokens, said.reasoning_tokens],
            "cost_pusd": said.cost_pusd,
            "calls": list(said.calls),
            "panel": said.panel,
        }
    )


def read_back(payload: bytes | memoryview) -> Said:
    """Reads what `written` wrote. A panel's own seats are not among it."""
    kept = recording.unpacked(payload)
    read_in, made, reasoned = kept["tokens"]
    return Said(
        Output(kept["output"], tuple([Call(name, arguments) for name, arguments in kept["tool_calls"]])),
        finish_reason=kept["finish_reason"],
        is_truncated=kept["is_truncated"],
        is_refused=kept["is_refused"],
        seconds=kept["seconds"],
        input_tokens=read_in,
        output_tokens=made,
        reasoning_tokens=reasoned,
        cost_pusd=kept["cost_pusd"],
        calls=tuple(kept["calls"]),
        panel=kept["panel"],
    )


def answer_line(run: str, item: Item, said: Said) -> dict[str, Any]:
    return {"run_id": run, "position": item.position, "trial": item.trial, "payload": written(said)}
