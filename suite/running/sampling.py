"""One sample: asked, perhaps again, graded, written down as one line. Nothing of it is kept in memory afterwards.

What failed on the way there says nothing of the subject: it is asked again after a pause, up to the attempts that the run allows, and in the end recorded
as infrastructure, never as a wrong answer. A limit that a provider set is waited out where its time is known.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from suite.grading.contract import Options
from suite.grading.outcomes import Grade, Outcome
from suite.running import recording
from suite.running.asking import LATE, Closing, Said
from suite.running.limits import Limits
from suite.running.lines import Item, answer_line, line_of
from wire.errors import CallerError

ATTEMPTS = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
# A rest that a provider asks for is waited out this often; then somebody should look.
MOST_WAITS, LONGEST_WAIT_S = 20, 900.0
# What asking again cannot mend.
FINAL = frozenset(
    {
        "invalid_request",
        "context_too_small",
        "tools_need_route",
        "model_not_found",
        "not_allowed",
        "body_too_large",
        "content_policy",
        "scorer_failed",
        "not_askable",
    }
)
SCORER = "scorer_failed"
UNASKABLE = "not_askable"  # no request can be made of the row: its shape is not what the grader asks by
SPENT = frozenset({"budget_exceeded", "price_unknown"})


class MoneySpent(Exception):
    """A budget that the run falls under does not cover its next call."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one sample: its line, and what its connection learned.

    Shape: `is_written` where the line stands in the outbox already, beside the call that it is about. Units: `cost_pusd` trillionths of a US dollar.
    """

    item: Item
    grade: Grade
    line: Mapping[str, Any]
    cost_pusd: int
    error: str = ""
    is_written: bool = False
    by_model: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marked:
    """A grade, and what it cost to come by where others were asked for it. Units: `cost_pusd` trillionths of a US dollar, None where unknown."""

    grade: Grade
    cost_pusd: int | None = 0
    calls: tuple[str, ...] = ()


class Way(Protocol):
    """How a run asks and grades.

    Shape: `grade` is for what grading takes no time, `mark` for all. `ask` tells an answer to `closing` as its call is recorded, and keeps what that gives in
    the same line; one that cannot, since its calls are a scorer's own, never calls it. `place` is held while a call is under way.
    """

    async def ask(self, item: Item, attempt: int, within_s: float | None, closing: Closing) -> Said: ...
    def takes_time(self, item: Item) -> bool: ...
    def grade(self, item: Item, said: Said) -> Grade: ...
    async def mark(self, item: Item, said: Said) -> Marked: ...
    def place(self) -> AbstractAsyncContextManager[Any]: ...
    def heard(self, said: Said, attempt: int) -> None: ...
    def retried(self, item: Item, attempt: int, error: CallerError, pause_s: float) -> None: ...
    def keep(self, line: Mapping[str, Any]) -> None: ...


@dataclass(slots=True)
class Sum:
    """What a sample has used over all its attempts. Units: `worked_s` seconds that its calls took, without any waiting."""

    limits: Limits
    attempts: int = 0
    spent: int = 0
    unpriced: bool = False
    worked_s: float = 0.0
    tokens: int = 0
    output_bytes: int = 0
    calls: list[str] = field(default_factory=list)
    by_model: dict[str, int] = field(default_factory=dict)

    def add(self, said: Said) -> None:
        self.spent, self.unpriced = self.spent + (said.cost_pusd or 0), self.unpriced or said.cost_pusd is None
        self.worked_s += said.seconds
        self.tokens += said.input_tokens + said.output_tokens
        self.output_bytes += size_of(said)
        self.calls += said.calls
        for seat in said.seats:
            self.by_model[seat.model] = self.by_model.get(seat.model, 0) + (seat.cost_pusd or 0)

    def within_s(self) -> float | None:
        """How long the next attempt may take; None without a ceiling."""
        left = None if self.limits.task_duration is None else max(self.limits.task_duration - self.worked_s, 0.01)
        return min((s for s in (left, self.limits.attempt_duration) if s is not None), default=None)

    def broken(self, said: Said | None = None) -> str:
        """Names the ceiling of its task that the sample broke, "" for none."""
        limits, is_late = self.limits, said is not None and said.error is not None and said.error.code == LATE
        if limits.task_cost is not None and self.spent / 1e12 > limits.task_cost:
            return "task.cost"
        if limits.task_duration is not None and self.worked_s >= limits.task_duration:
            return "task.duration"
        if is_late:
            return "attempt.duration" if limits.attempt_duration is not None else "task.duration"
        for name, cap, used in (("task.tokens", limits.task_tokens, self.tokens), ("task.output_bytes", limits.task_output_bytes, self.output_bytes)):
            if cap is not None and used > cap:
                return name
        if said is not None:
            if limits.attempt_tokens is not None and said.input_tokens + said.output_tokens > limits.attempt_tokens:
                return "attempt.tokens"
            if limits.attempt_output_bytes is not None and size_of(said) > limits.attempt_output_bytes:
                return "attempt.output_bytes"
        return ""


def size_of(said: Said) -> int:
    return len(said.output.text.encode("utf-8", "surrogatepass"))


async def sample(run: str, item: Item, trials: int, way: Way, limits: Limits, options: Options, had: Said | None = None) -> Done:
    """Asks until there is an answer, grades it, and gives the line.

    Shape: `had` is an answer that was written down before a death; it is graded, not asked for again. Errors: MoneySpent.
    """
    started_at = datetime.now(UTC)
    used, waits, most = Sum(limits), 0, limits.task_attempts or ATTEMPTS
    done: Done | None = None
    is_kept = is_counted = False
    takes_time = way.takes_time(item)

    def made(said: Said, grade: Grade) -> Done:
        cost = None if used.unpriced else used.spent
        line = line_of(run, item, trials, said, grade, max(used.attempts, 1), started_at, datetime.now(UTC), used.calls, cost, options)
        return Done(item, grade, {**line, "was_kept": is_kept or had is not None}, used.spent, said.error.message if said.error else "", by_model=used.by_model)

    def closing(said: Said) -> Mapping[str, Any]:
        """What of an answer is kept in one line with its call: its grade where that takes no time, else the answer, to be graded whatever dies."""
        nonlocal done, is_kept, is_counted
        used.add(said)
        is_counted = True
        if not takes_time:
            done = replace(made(said, instantly(way, item, said, used)), is_written=True)
            return {recording.SAMPLES: [done.line]}
        is_kept = True
        return {recording.ANSWERS: [answer_line(run, item, said)]}

    said = had
    if had is not None:
        used.add(had)
        used.attempts = 1
    while said is None:
        used.attempts += 1
        async with way.place():
            is_counted = False
            try:
                answer = await way.ask(item, used.attempts, used.within_s(), closing)
            except asyncio.CancelledError:
                if done is not None:  # it came in the moment this was stopped, and is on record
                    return done
                raise
        way.heard(answer, used.attempts)
        if done is not None:
            return done
        if not is_counted:
            used.add(answer)
        error = answer.error
        if error is None or error.code in FINAL or used.broken(answer):
            said = answer
            break
        if error.code in SPENT:
            raise MoneySpent(error.message)
        if error.retry_after_s is not None and error.status == 429 and waits < MOST_WAITS:
            waits, used.attempts = waits + 1, used.attempts - 1  # it was never really asked
            pause = min(error.retry_after_s, LONGEST_WAIT_S) + random.random()
        elif used.attempts >= most:
            said = answer
            break
        else:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (used.attempts - 1)) * (0.5 + random.random())
            way.retried(item, used.attempts, error, pause)
        await asyncio.sleep(pause)
    if takes_time and not is_kept and had is None and said.error is None:
        is_kept = True
        way.keep(answer_line(run, item, said))
    marked = await graded(way, item, said, used)
    used.spent, used.unpriced = used.spent + (marked.cost_pusd or 0), used.unpriced or marked.cost_pusd is None
    used.calls += marked.calls
    return made(said, marked.grade)


def instantly(way: Way, item: Item, said: Said, used: Sum) -> Grade:
    """Grades where that takes no time."""
    if (grade := ungraded(said, used)) is not None:
        return grade
    try:
        return way.grade(item, said)
    except Exception as error:  # a grader's fault is never the model's
        return raised(error)


async def graded(way: Way, item: Item, said: Said, used: Sum) -> Marked:
    """Gives each answer, and each want of one, its outcome. Errors: MoneySpent."""
    if (grade := ungraded(said, used)) is not None:
        return Marked(grade)
    try:
        return await way.mark(item, said)
    except MoneySpent:
        raise
    except Exception as error:
        return Marked(raised(error))


def raised(error: Exception) -> Grade:
    return Grade(Outcome.JUDGE_FAILED, None, reason="grader_raised", explanation=f"{type(error).__name__}: {str(error)[:300]}")


def ungraded(said: Said, used: Sum) -> Grade | None:
    """Gives the outcome of what no grader need look at; None for an answer that one must."""
    if ceiling := used.broken(said):
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
