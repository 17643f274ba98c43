"""What may become of one attempt at a task, and the place that each outcome has in a pass rate, everywhere and always.

    scored      passed, failed, refused, unparsed, limit   in the denominator: the model had its chance
    not scored  truncated, judge_failed, infrastructure    out of it, and lower the coverage: nothing was learned of the model

An answer that was cut off by the output limit is listed apart from wrong ones: a larger limit may double a rate. One without any form that the task asked
for counts as wrong, or who answers only when sure would lead; so does one that broke a ceiling of its own task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"
    UNPARSED = "unparsed"
    LIMIT = "limit"
    TRUNCATED = "truncated"
    JUDGE_FAILED = "judge_failed"
    INFRASTRUCTURE = "infrastructure"


SCORED = frozenset({Outcome.PASSED, Outcome.FAILED, Outcome.REFUSED, Outcome.UNPARSED, Outcome.LIMIT})
PASS_THRESHOLD = 1.0


@dataclass(frozen=True, slots=True)
class Grade:
    """What one attempt counts as.

    Shape: `score` from 0 to 1, None where nothing was scored. `answer` is what was read as the answer, `reason` a stable word for why it is not simply
    right or wrong, `explanation` a sentence for people.
    """

    outcome: Outcome
    score: float | None
    answer: str = ""
    reason: str = ""
    explanation: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def scored(score: Any, answer: str = "", explanation: str = "", threshold: float = PASS_THRESHOLD, **metadata: Any) -> Grade:
    """Grades by a number from 0 to 1. Anything else is the grader's failure and is never bent into one: no True, no NaN, no 1.5."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score) or not 0 <= score <= 1:
        return Grade(Outcome.JUDGE_FAILED, None, answer, "bad_score", f"The scorer gave {str(score)[:80]}, which is no number from 0 to 1.", metadata)
    return Grade(Outcome.PASSED if score >= threshold else Outcome.FAILED, float(score), answer, "", explanation, metadata)


def right(is_right: bool, answer: str = "", explanation: str = "", *, reason: str = "", **metadata: Any) -> Grade:
    """Grades by right or wrong. Shape: `reason` is a stable word for in which way it is wrong, where a kind tells that."""
    return Grade(Outcome.PASSED if is_right else Outcome.FAILED, float(is_right), answer, "" if is_right else reason, explanation, metadata)


def unparsed(explanation: str, answer: str = "") -> Grade:
    """The answer has none of the forms that the task asked for."""
    return Grade(Outcome.UNPARSED, 0.0, answer, "no_answer", explanation)


def undecided(reason: str, explanation: str, answer: str = "") -> Grade:
    """The grader cannot tell, which is no fault of the model."""
    return Grade(Outcome.JUDGE_FAILED, None, answer, reason, explanation)
