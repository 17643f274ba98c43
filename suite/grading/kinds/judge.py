"""A question whose answer a model grades, or several of them, by criteria in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.grading import verdicts
from suite.grading.contract import JudgedKind, Options, Output, Question, RowError
from suite.grading.outcomes import Grade, undecided

MOST_JUDGES, LONGEST = 9, 20_000


class Judge(JudgedKind):
    name = "judge"
    needs_judge = True

    def look_at(self, grader: Mapping[str, Any]) -> None:
        judges = judges_of(grader)
        if not 1 <= len(judges) <= MOST_JUDGES or not all((isinstance(j, str) and j.strip()) or (isinstance(j, Mapping) and j) for j in judges):
            raise RowError("/judge", f"must name a model or a collection, or be a list of 1 to {MOST_JUDGES} of them.")
        if not isinstance(grader.get("rubric", ""), str) or len(grader.get("rubric", "")) > LONGEST:
            raise RowError("/rubric", f"must be a text of at most {LONGEST} characters.")
        try:
            verdicts.choices_of(grader.get("choices"))
        except ValueError as error:
            raise RowError("/choices", str(error)) from None
        if grader.get("reduce", "majority") not in verdicts.REDUCERS:
            raise RowError("/reduce", f"must be one of {', '.join(verdicts.REDUCERS)}.")

    def check(self, row_input: Any, expected: Any) -> None:
        if not question_of(row_input).strip():
            raise RowError("/input/question", "must be a text that is not empty.")
        if expected is not None and not isinstance(expected, Mapping):
            raise RowError("/expected", "must be an object, with value, a reference answer, and rubric, or null.")
        for name in ("value", "rubric"):
            if not isinstance((expected or {}).get(name, ""), str):
                raise RowError(f"/expected/{name}", "must be a text.")

    def ask(self, row_input: Any) -> Question:
        return Question([{"role": "user", "content": question_of(row_input)}])

    def brief(self, answer: str, row_input: Any, expected: Any, grader: Mapping[str, Any], sign: str) -> Question:
        rubric = "\n\n".join(text for text in (grader.get("rubric", ""), (expected or {}).get("rubric", "")) if text)
        return verdicts.brief(sign, verdicts.choices_of(grader.get("choices")), rubric, question_of(row_input), answer, (expected or {}).get("value", ""))

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        return undecided("needs_judge", "Only judges grade this.")

    def oracle(self, row_input: Any, expected: Any) -> Output:
        """Gives the reference; without one there is no answer that must be right."""
        return Output(str((expected or {}).get("value", "")))


def judges_of(grader: Mapping[str, Any]) -> list[Any]:
    value = grader.get("judge")
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def question_of(row_input: Any) -> str:
    if not isinstance(row_input, Mapping):
        return ""
    value = row_input.get("question") or row_input.get("prompt")
    return value if isinstance(value, str) else ""


KIND = Judge()
