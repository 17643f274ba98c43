"""One sample: asked, perhaps again, graded, written down as one line. Nothing of it is kept in memory afterwards.

What failed on the way there says nothing of the subject: it is asked again after a pause, up to the attempts that the run allows, and in the end recorded
as infrastructure, never as a wrong answer. A limit that a provider set is waited out where its time is known.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from suite.grading.contract import Call, Options, Output
from suite.grading.outcomes import SCORED, Grade, Outcome
from suite.running import recording
from suite.running.asking import Said
from suite.running.limits import Limits
from wire.errors import CallerError

ATTEMPTS = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
# A rest that a provider asks for is waited out this often; then somebody should look.
MOST_WAITS, LONGEST_WAIT_S = 20, 900.0
# What asking again cannot mend.
FINAL = frozenset(
    {"invalid_request", "context_too_small", "tools_need_route", "model_not_found", "not_allowed", "body_too_large", "content_policy", "scorer_failed"}
)
SPENT = frozenset({"budget_exceeded", "price_unknown"})


class MoneySpent(Exception):
    """A budget that the run falls under does not cover its next call."""


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


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one sample: its line, and what its connection learned. Units: `cost_pusd` trillionths of a US dollar."""

    item: Item
    grade: Grade
    line: Mapping[str, Any]
    cost_pusd: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Marked:
    """A grade, and what it cost to come by where others were asked for it. Units: `cost_pusd` trillionths of a US dollar, None where unknown."""

    grade: Grade
    cost_pusd: int | None = 0
    calls: tuple[str, ...] = ()


Ask = Callable[[Item, int], Awaitable[Said]]
Mark = Callable[[Item, Said], Awaitable[Marked]]
Heard = Callable[[CallerError | None], None]
Keep = Callable[[Item, Said], None]
SCORER = "scorer_failed"


async def sample(
    run: str, item: Item, trials: int, ask: Ask, mark: Mark, limits: Limits, options: Options, heard: Heard, keep: Keep | None = None, had: Said | None = None
) -> Done:
    """Asks until there is an answer, grades it, and gives the line.

    Shape: `keep` writes an answer down before a grading that takes its time; `had` is one that was written down before, and is not asked for again.
    Errors: MoneySpent.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    attempts, waits, spent, waited_s = 0, 0, 0, 0.0
    calls: list[str] = []
    most = limits.task_attempts or ATTEMPTS
    unpriced = False
    said = had
    while said is None:
        attempts += 1
        left = None if limits.task_duration is None else limits.task_duration - (time.monotonic() - began - waited_s)
        bound = min((s for s in (left, limits.attempt_duration) if s is not None), default=None)
        answer = await bounded(ask(item, attempts), bound)
        spent, unpriced = spent + (answer.cost_pusd or 0), unpriced or answer.cost_pusd is None
        calls += answer.calls
        heard(None if answer.error is not None and answer.error.code == SCORER else answer.error)
        if answer.error is None or answer.error.code in FINAL or is_over_task(limits, spent, began, waited_s):
            said = answer
            break
        if answer.error.code in SPENT:
            raise MoneySpent(answer.error.message)
        if answer.error.retry_after_s is not None and answer.error.status == 429 and waits < MOST_WAITS:
            waits, attempts = waits + 1, attempts - 1  # it was never really asked
            pause = min(answer.error.retry_after_s, LONGEST_WAIT_S) + random.random()
        elif attempts >= most:
            said = answer
            break
        else:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempts - 1)) * (0.5 + random.random())
        waited_s += pause
        await asyncio.sleep(pause)
    if had is not None:
        spent, unpriced, calls, attempts = had.cost_pusd or 0, had.cost_pusd is None, list(had.calls), 1
    elif keep is not None and said.error is None:
        keep(item, said)
    marked = await graded(item, said, mark, limits, spent, began, waited_s)
    grade, spent, unpriced = marked.grade, spent + (marked.cost_pusd or 0), unpriced or marked.cost_pusd is None
    calls += marked.calls
    line = {**line_of(run, item, trials, said, grade, attempts, started_at, calls, None if unpriced else spent, options), "was_kept": keep is not None}
    return Done(item, grade, line, spent, said.error.message if said.error else "")


async def bounded(asking: Awaitable[Said], seconds: float | None) -> Said:
    """Waits so long for an answer. Too long is the model's own failing, where the task set the limit."""
    if seconds is None:
        return await asking
    try:
        async with asyncio.timeout(max(seconds, 0.01)):
            return await asking
    except TimeoutError:
        return Said(Output(""), error=CallerError("task_duration", f"There was no answer within {seconds:.1f} s.", status=504), cost_pusd=None)


def is_over_task(limits: Limits, spent: int, began: float, waited_s: float) -> bool:
    return broken(limits, spent, began, waited_s, None) != ""


def broken(limits: Limits, spent: int, began: float, waited_s: float, said: Said | None) -> str:
    """Names the ceiling of its task that a sample broke, "" for none."""
    if limits.task_cost is not None and spent / 1e12 > limits.task_cost:
        return "task.cost"
    if limits.task_duration is not None and time.monotonic() - began - waited_s >= limits.task_duration:
        return "task.duration"
    if said is not None:
        tokens = said.input_tokens + said.output_tokens
        size = len(said.output.text.encode("utf-8", "surrogatepass"))
        for name, cap, had in (
            ("task.tokens", limits.task_tokens, tokens),
            ("attempt.tokens", limits.attempt_tokens, tokens),
            ("task.output_bytes", limits.task_output_bytes, size),
            ("attempt.output_bytes", limits.attempt_output_bytes, size),
        ):
            if cap is not None and had > cap:
                return name
    return ""


async def graded(item: Item, said: Said, mark: Mark, limits: Limits, spent: int, began: float, waited_s: float) -> Marked:
    """Gives each answer, and each want of one, its outcome. Errors: MoneySpent."""
    if (settled := without_grader(said, limits, spent, began, waited_s)) is not None:
        return Marked(settled)
    try:
        return await mark(item, said)
    except MoneySpent:
        raise
    except Exception as error:  # a grader's fault is never the model's
        return Marked(Grade(Outcome.JUDGE_FAILED, None, reason="grader_raised", explanation=f"{type(error).__name__}: {str(error)[:300]}"))


def without_grader(said: Said, limits: Limits, spent: int, began: float, waited_s: float) -> Grade | None:
    """Gives the outcome of what needs no grader: no answer, or one that broke a ceiling, was cut off or declined. None for an answer to be graded."""
    ceiling = broken(limits, spent, began, waited_s, said)
    if said.error is not None and said.error.code == "task_duration":
        ceiling = ceiling or "attempt.duration"
    if ceiling:
        return Grade(Outcome.LIMIT, 0.0, reason=f"limit_exceeded:{ceiling}", explanation=f"The task's own ceiling {ceiling} was broken.")
    if said.error is not None:
        if said.error.code == SCORER:
            return Grade(Outcome.JUDGE_FAILED, None, reason=SCORER, explanation=said.error.message)
        if said.error.code == "content_policy":
            return Grade(Outcome.REFUSED, 0.0, reason="content_policy", explanation=said.error.message)
        return Grade(Outcome.INFRASTRUCTURE, None, reason=said.error.code, explanation=said.error.message)
    if said.is_truncated:
        return Grade(
            Outcome.TRUNCATED, None, said.output.text[-200:], "output_limit", "The answer was cut off by its output limit; a larger one may mend this."
        )
    if said.is_refused:
        return Grade(Outcome.REFUSED, 0.0, said.output.text[:200], "refusal", "The model declined.")
    return None


def line_of(
    run: str, item: Item, trials: int, said: Said, grade: Grade, attempts: int, started_at: datetime, calls: list[str], cost: int | None, options: Options
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
        "reason": grade.reason[:60],
        "finish_reason": said.finish_reason[:40],
        "started_at": started_at.isoformat(),
        "finished_at": datetime.now(UTC).isoformat(),
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
