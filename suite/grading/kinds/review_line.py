"""Code with one faulty line, or with none that is known: which is it? Guessing a range earns little, marking everything earns nothing.

A wrong answer says in which way it is wrong: a fault was `missed`, `wrong_line`, `false_alarm` where none is known, `too_many_lines`.
"""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers, strictjson
from suite.grading.contract import Kind, Options, Output, Question, RowError, canary_of, text_at
from suite.grading.outcomes import Grade, right, scored, unparsed

NONE = re.compile(r"\b(?:none|no[\s-]*(?:bugs?|faults?|faulty\s+lines?|errors?|problems?|issues?)|nothing\s+(?:is\s+)?wrong)\b", re.IGNORECASE)
LINES = re.compile(r"(?:\blines?\s*|\bL\s*|^|(?<=[\s(\[:,#]))(\d{1,6})(?:\s*(?:-|\u2013|\u2014|to|through|\.\.)\s*L?(\d{1,6}))?(?![\w.]\d|\w)", re.IGNORECASE)
QUOTED = re.compile(r"`([^`\n]+)`")
LONGEST = 3


class ReviewLine(Kind):
    name = "review_line"

    def check(self, row_input: Any, expected: Any) -> None:
        code = text_at(row_input, "code", "/input")
        lines = expected.get("lines") if isinstance(expected, dict) else None
        if not isinstance(lines, list):
            raise RowError("/expected/lines", "must be a list of line numbers from 1; an empty one says that no fault is known.")
        last = len(code.splitlines())
        for i, line in enumerate(lines):
            if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= last:
                raise RowError(f"/expected/lines/{i}", f"must be a line of the code, from 1 to {last}.")

    def ask(self, row_input: Any) -> Question:
        numbered = "\n".join(f"{i:>4}  {line}" for i, line in enumerate(row_input["code"].splitlines(), 1))
        issue = f"\n\nA user reports:\n\n{row_input['issue']}" if row_input.get("issue") else ""
        text = (
            f"{canary_of(row_input)}Review this code. It may hold one faulty line, or none.{issue}\n\n{numbered}\n\n"
            "Which line is at fault? Think as long as you need, then end with a line of the form\nANSWER: <line number>\n"
            "or, if you find no fault,\nANSWER: NONE"
        )
        return Question([{"role": "user", "content": text}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        found = named(output.text, row_input["code"])
        if found is None:
            return unparsed("The answer names no line, and does not say that there is none.")
        gold = set(expected["lines"])
        if not gold or not found:
            return right(not gold and not found, shown(found), reason="missed" if gold else "false_alarm", named=len(found))
        if len(found) > LONGEST:
            return right(False, shown(found), f"More than {LONGEST} lines were named.", reason="too_many_lines", named=len(found))
        if len(found) == 1:
            return right(found <= gold, shown(found), reason="wrong_line", named=1)
        if gold <= found:
            return scored(1 / len(found), shown(found), named=len(found))
        return right(False, shown(found), reason="wrong_line", named=len(found))

    def oracle(self, row_input: Any, expected: Any) -> Output:
        return Output(f"ANSWER: {expected['lines'][0] if expected['lines'] else 'NONE'}")


def shown(lines: set[int]) -> str:
    return ", ".join(str(line) for line in sorted(lines)) or "NONE"


def named(text: str, code: str) -> set[int] | None:
    """Reads which lines an answer names: {} for "no fault", None for neither. A quoted piece of code stands for its line where there is only one such."""
    text = answers.cleaned(text)
    said = answers.marked(text)
    lines = [line for line in text.splitlines() if line.strip()]
    for part in (said, text if len(lines) <= 1 else None, lines[-1] if lines else None):
        if part is not None and (found := in_part(part, code)) is not None:
            return found
    return None


def in_part(part: str, code: str) -> set[int] | None:
    last = len(code.splitlines())
    try:
        value = strictjson.read(part)
    except strictjson.NoJson:
        value = None
    if isinstance(value, dict) and "line" in value:
        value = value["line"]
        if value is None or (isinstance(value, str) and NONE.search(value)):
            return set()
        if isinstance(value, int) and not isinstance(value, bool):
            return {value}
        if isinstance(value, str):
            part = value
    if NONE.search(part) and not LINES.search(part):
        return set()
    found: set[int] = set()
    for match in LINES.finditer(part):
        first = int(match[1])
        until = int(match[2]) if match[2] else first
        if 1 <= first <= until <= last:
            found |= set(range(first, until + 1))
    if found:
        return found
    pieces = [piece.strip() for piece in [*QUOTED.findall(part), part] if piece.strip()]
    for piece in pieces:
        here = [i for i, line in enumerate(code.splitlines(), 1) if line.strip() == piece]
        if len(here) == 1:
            return {here[0]}
    return None


KIND = ReviewLine()
