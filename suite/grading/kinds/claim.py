"""A statement about code that is attached, true or false."""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers
from suite.grading.contract import Kind, Options, Output, Question, RowError, canary_of, text_at
from suite.grading.outcomes import Grade, right, unparsed

SAID = re.compile(
    r"\b(?P<no>not\s+(?:quite\s+|entirely\s+|really\s+|strictly\s+)?|isn['\u2019]t\s+|in)?(?P<word>true|false|correct|wrong|untrue|incorrect|yes|no)\b",
    re.IGNORECASE,
)
HOLDS = {"true": True, "correct": True, "yes": True, "false": False, "wrong": False, "untrue": False, "incorrect": False, "no": False}


class Claim(Kind):
    name = "claim"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "claim", "/input")
        text_at(row_input, "code", "/input")
        if not isinstance(expected, dict) or not isinstance(expected.get("value"), bool):
            raise RowError("/expected/value", "must be true or false.")

    def ask(self, row_input: Any) -> Question:
        text = (
            f"{canary_of(row_input)}Here is some code.\n\n```\n{row_input['code']}\n```\n\nSomebody says of it:\n\n{row_input['claim']}\n\n"
            "Is that true of this code? Think as long as you need, then end with a line of the form\nANSWER: TRUE or ANSWER: FALSE"
        )
        return Question([{"role": "user", "content": text}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        found = ruled(output.text)
        if found is None:
            return unparsed("The answer says neither true nor false, or both.")
        return right(found == expected["value"], str(found).lower())

    def oracle(self, row_input: Any, expected: Any) -> Output:
        return Output(f"ANSWER: {str(expected['value']).upper()}")


def ruled(text: str) -> bool | None:
    """Reads what an answer says of a statement: in its last marked line, else in its last line, else where all of it says one thing."""
    text = answers.cleaned(text)
    said = answers.marked(text)
    lines = [line for line in text.splitlines() if line.strip()]
    for part in (said, lines[-1] if lines else None, text):
        if part is None:
            continue
        rulings = {HOLDS[m["word"].lower()] != bool((m["no"] or "").strip()) for m in SAID.finditer(part)}
        if len(rulings) == 1:
            return rulings.pop()
        if part is said and rulings:
            return None
    return None


KIND = Claim()
