"""A question whose answer is a number."""

from __future__ import annotations

from typing import Any

from suite.grading import answers, numbers
from suite.grading.contract import Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, right, undecided, unparsed


class Math(Kind):
    name = "math"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "question", "/input")
        value = expected.get("value") if isinstance(expected, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise RowError("/expected/value", "must be a number, or one as text.")
        try:
            numbers.read(str(value))
        except ValueError as error:
            raise RowError("/expected/value", str(error) or "is no number.") from None

    def ask(self, row_input: Any) -> Question:
        text = f"{row_input['question']}\n\nWork it out, then end with a line of the form\nANSWER: <the number>"
        return Question([{"role": "user", "content": text}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        gold = numbers.read(str(expected["value"]), options.decimal)
        mark, scale = answers.mark(output.text), 1
        answer: str | None = None
        if mark is not None:
            try:
                said = numbers.marked(mark.text)
                answer, scale = said.number, said.scale
            except numbers.NotOne as error:
                if mark.is_stated or numbers.in_text(mark.text):
                    return unparsed(str(error), mark.text[:200])
        answer = numbers.last(answers.ending(output.text)) if answer is None else answer
        if answer is None:
            return unparsed("No number stands in the answer.")
        try:
            value = numbers.read(answer, options.decimal)
        except numbers.Ambiguous as error:
            return undecided("ambiguous_number", f"{error} Set the grader's `decimal` to say which sign comes before decimals.", answer)
        except ValueError as error:
            return unparsed(str(error), answer)
        if scale != 1 and numbers.equal(value, gold, options.tolerance):
            return undecided("ambiguous_number", f"{answer} or {scale} times as much: the answer may be read in two ways.", answer)
        return right(numbers.equal(value * scale, gold, options.tolerance), answer)

    def oracle(self, row_input: Any, expected: Any) -> Output:
        return Output(f"ANSWER: {expected['value']}")


KIND = Math()
