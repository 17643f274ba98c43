"""A question whose answer is a short text, met word by word and in order."""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers, numbers
from suite.grading.contract import Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, right, unparsed


class Exact(Kind):
    name = "exact"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "question", "/input")
        values = expected.get("value") if isinstance(expected, dict) else None
        for value in values if isinstance(values, list) and values else [values]:
            if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
                raise RowError("/expected/value", "must be a text that is not empty, or a list of texts of which any will do.")

    def ask(self, row_input: Any) -> Question:
        return Question([{"role": "user", "content": f"{row_input['question']}\n\nEnd with a line of the form\nANSWER: <the answer alone>"}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        said = answers.marked(output.text)
        text = output.text.strip() if said is None else said
        if not text:
            return unparsed("There is no answer.")
        values = expected["value"] if isinstance(expected["value"], list) else [expected["value"]]
        given = forms(text, options.ignore_case)
        return right(any(same(answer, one_form(str(value), options.ignore_case)) for value in values for answer in given), text[:500])

    def oracle(self, row_input: Any, expected: Any) -> Output:
        value = expected["value"][0] if isinstance(expected["value"], list) else expected["value"]
        return Output(f"ANSWER: {value}")


def one_form(text: str, ignore_case: bool) -> str:
    plain = re.sub(r"\s+", " ", answers.cleaned(text)).strip()
    return plain.casefold() if ignore_case else plain


def forms(text: str, ignore_case: bool) -> list[str]:
    """Gives what an answer may mean: as it stands, and without what people put around one. What is expected is taken as it stands."""
    plain = answers.cleaned(text)
    if len(plain) > answers.MOST_CHARS:
        return [one_form(plain, ignore_case)]
    bare = answers.trimmed(answers.unwrapped(answers.trimmed(plain)))
    ended = re.sub(r"(?<=[^\W\d])[!;,]$", "", bare)
    return list(dict.fromkeys(one_form(form, ignore_case) for form in (plain, bare, ended, *([f"{bare}."] if plain.endswith(".") else [])) if form.strip()))


def same(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        # 3.14 and 3.140 are one answer, if both are nothing but a number.
        return re.fullmatch(r"[+-]?[\d.,]+", one) is not None and re.fullmatch(r"[+-]?[\d.,]+", other) is not None and numbers.read(one) == numbers.read(other)
    except ValueError:
        return False


KIND = Exact()
