"""Code with one faulty line, or with none that is known: which is it? Guessing a range earns little, marking everything earns nothing.

A wrong answer says in which way it is wrong: a fault was `missed`, `wrong_line`, `false_alarm` where none is known, `too_many_lines`.
"""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers, strictjson
from suite.grading.contract import Kind, Options, Output, Question, RowError, canary_of, text_at
from suite.grading.outcomes import Grade, right, scored, unparsed

NONE = re.compile(r"\b(?:none|no[\s-]*(?:bugs?|faults?|faulty\s+lines?|errors?|problems?|issues?)|nothing\s+(?:is\s+)?wrong|n/a)\b", re.IGNORECASE)
NUMBERS = (
    r"(?:\b(?:lines?|line\s+numbers?|L|l\.)\s*(?:is\b|are\b|no\.)?\s*[:#]?\s*)?#?(\d{1,6})(?![.:/]\d|\d)(?:st|nd|rd|th)?"
    r"(?:\s*(?:-|\u2013|\u2014|to|through|\.\.)\s*(?:line\s*|L)?(\d{1,6}))?(?![\w.]\d|\w)"
)
# The lines that an answer begins with, one after another; what comes behind them explains.
FIRST = re.compile(
    rf"(?:(?:it|that)\s+is\s+|the\s+)?(?:faulty\s+|wrong\s+)?(?:line\s+is\s+)?{NUMBERS}(?!\s+(?:lines|problems|bugs|errors|faults|issues|reasons|items|places|mistakes)\b)",
    re.IGNORECASE,
)
LEAD = re.compile(r"(?:there\s+(?:is|are)|there['\u2019]s|i\s+(?:find|found|see)|the\s+code\s+has|has)\s+", re.IGNORECASE)
MORE = re.compile(rf"\s*(?:,|;|/|&|\bor\b|\band\b)\s*(?:or\b|and\b)?\s*{NUMBERS}", re.IGNORECASE)
# Lines named in a sentence.
NAMED = re.compile(rf"\b(?=(?:lines?|L)\s*[:#]?\s*\d){NUMBERS}(?:(?:,|\s+and|\s+or)\s+{NUMBERS})?", re.IGNORECASE)
DENIED = re.compile(r"\b(?:not|no|none|never|except|but|neither|nor|fine|correct|ok(?:ay)?|right)\b|n['\u2019]t\b", re.IGNORECASE)
OR_LINE = re.compile(r"[^.]*\b(?:or|but|except)\b[^.]*\d", re.IGNORECASE)
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
    text = answers.cleaned(answers.ending(text))
    mark = answers.mark(text)
    if mark is not None:
        said = answers.unwrapped(mark.text)
        found = in_answer(said, code)
        if found is None and not NONE.search(said):
            found = in_sentence(said, code)
        if found is not None or mark.is_stated:
            return found
    if (found := in_json(text)) is not None:
        return found
    lines = [line for line in text.splitlines() if line.strip()]
    for part in (text if len(lines) <= 1 else None, lines[-1] if lines else None):
        if part is not None and ((found := in_answer(part, code)) is not None or (found := in_sentence(part, code)) is not None):
            return found
    return None


def in_json(text: str) -> set[int] | None:
    try:
        value = strictjson.read(text)
    except strictjson.NoJson:
        return None
    name = next((name for name in ("line", "lines", "answer") if isinstance(value, dict) and name in value), None)
    if name is None:
        return None
    value = value[name]
    if value is None or value == [] or (isinstance(value, str) and NONE.match(value)):
        return set()
    numbers = [int(v) if isinstance(v, str) and v.isdecimal() else v for v in (value if isinstance(value, list) else [value])]
    return set(numbers) if all(isinstance(n, int) and not isinstance(n, bool) for n in numbers) else None


def in_answer(part: str, code: str) -> set[int] | None:
    """Reads what an answer begins with: lines, none, JSON, or a line of the code."""
    if (found := in_json(part)) is not None:
        return found
    plain, last = answers.trimmed(part), len(code.splitlines())
    if NONE.match(LEAD.sub("", plain, count=1)):
        return None if OR_LINE.match(plain) else set()
    if piece := quoted(part, code):
        return piece
    if (match := FIRST.match(plain)) is None:
        return None
    named: set[int] = set()
    end = 0
    while match is not None:
        named |= lines_of(match, last)
        end += match.end()
        match = MORE.match(plain[end:])
    return None if re.match(r"\s*or\s+(?:none|no\b)", plain[end:], re.IGNORECASE) else named or None


def lines_of(match: re.Match[str], last: int) -> set[int]:
    first = int(match[1])
    until = int(match[2]) if match[2] else first
    return set(range(first, until + 1)) if 1 <= first <= until <= last else set()


def in_sentence(part: str, code: str) -> set[int] | None:
    """Reads a sentence: the lines that it names as lines, or that there is no fault; nothing where it says both, or denies."""
    found = {line for match in NAMED.finditer(part) for line in lines_of(match, len(code.splitlines())) | second(match, len(code.splitlines()))}
    if NONE.search(part):
        return None if found or re.search(r"\d", part) else set()
    if found:
        return None if DENIED.search(part) else found
    return quoted(part, code)


def second(match: re.Match[str], last: int) -> set[int]:
    return {int(match[3])} if match[3] and 1 <= int(match[3]) <= last else set()


def quoted(part: str, code: str) -> set[int] | None:
    for piece in [piece.strip() for piece in [*QUOTED.findall(part), part] if piece.strip()]:
        here = [i for i, line in enumerate(code.splitlines(), 1) if line.strip() == piece]
        if len(here) == 1:
            return {here[0]}
    return None


KIND = ReviewLine()
