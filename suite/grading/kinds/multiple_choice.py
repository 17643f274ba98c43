"""A question with lettered choices, one of them right, or several."""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers
from suite.grading.contract import Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, right, unparsed

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Letters in a marked answer: "A", "(a)", "A, B, and C", "A. Paris", "**C**", "option C".
LIST = re.compile(r"^(?:option|choice|letter)?\s*[\s*_(\[{\"'`$\\]*([A-Z])(?![A-Za-z0-9'\u2019])", re.IGNORECASE)
MORE = re.compile(r"^[\s*_)\]}\"'`$.]*(?:,|;|/|&|\+|\band\b)[\s]*(?:and\b)?[\s*_(\[{\"'`]*([A-Z])(?![A-Za-z0-9'\u2019])", re.IGNORECASE)
ALONE = re.compile(r"^[\s*_(\[\"'`$]*([A-Za-z])[\s*_)\]\"'`$.:,]*$")
# "A" and "I" before an ordinary word are words themselves, unless that word says something of a choice.
WORDS = re.compile(r"(?<![A-Za-z0-9'\u2019])(?:A|I)(?= (?!(?:is|was|would|seems|looks|fits|holds|and|or|because|as|since)\b)[a-z]|['\u2019])")
STANDING = re.compile(r"(?<![A-Za-z0-9'\u2019])\(?([A-Z])\)?(?![A-Za-z0-9'\u2019])")


class MultipleChoice(Kind):
    name = "multiple_choice"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "question", "/input")
        choices = row_input.get("choices")
        if not isinstance(choices, list) or not 2 <= len(choices) <= len(LETTERS):
            raise RowError("/input/choices", f"must be a list of 2 to {len(LETTERS)} texts.")
        for i, choice in enumerate(choices):
            if not isinstance(choice, str) or not choice.strip():
                raise RowError(f"/input/choices/{i}", "must be a text that is not empty.")
            if choice.strip() in [c.strip() for c in choices[:i]]:
                raise RowError(f"/input/choices/{i}", "is there twice: of two equal choices no answer can be right alone.")
        gold = wanted(expected)
        if not gold or not gold <= set(LETTERS[: len(choices)]):
            raise RowError("/expected/value", f"must be a letter from A to {LETTERS[len(choices) - 1]}, or a list of them.")

    def ask(self, row_input: Any) -> Question:
        lines = "\n".join(f"{LETTERS[i]}. {choice}" for i, choice in enumerate(row_input["choices"]))
        text = f"{row_input['question']}\n\n{lines}\n\nThink as long as you need, then end with a line of the form\nANSWER: <letter>"
        return Question([{"role": "user", "content": text}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        found = chosen(output.text, row_input["choices"])
        if not found:
            return unparsed("No choice is named, or more than one without saying which is the answer.")
        return right(found == wanted(expected), ", ".join(sorted(found)))

    def oracle(self, row_input: Any, expected: Any) -> Output:
        return Output(f"ANSWER: {', '.join(sorted(wanted(expected)))}")


def wanted(expected: Any) -> set[str]:
    value = expected.get("value") if isinstance(expected, dict) else None
    values = value if isinstance(value, list) else [value]
    return {v.strip().upper() for v in values if isinstance(v, str) and len(v.strip()) == 1}


def chosen(text: str, choices: list[str]) -> set[str]:
    """Finds the letters that an answer chose: the last marked ones, else a letter or a choice that stands alone, else the only one that is named."""
    text, allowed = answers.cleaned(text), set(LETTERS[: len(choices)])
    said = answers.marked(text)
    if said is not None and (found := letters(said, allowed) or by_words(said, choices)):
        return found
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for line in (text.strip(), lines[-1] if lines else ""):
        if (alone := ALONE.match(line)) and alone[1].upper() in allowed:
            return {alone[1].upper()}
        if found := by_words(line, choices):
            return found
    named = {letter for letter in STANDING.findall(WORDS.sub("", text)) if letter in allowed}
    return named if len(named) == 1 else set()


def letters(said: str, allowed: set[str]) -> set[str]:
    first = LIST.match(said)
    if first is None or first[1].upper() not in allowed:
        return set()
    found, rest = {first[1].upper()}, said[first.end() :]
    while more := MORE.match(rest):
        if more[1].upper() not in allowed:
            break
        found.add(more[1].upper())
        rest = rest[more.end() :]
    return found


def by_words(said: str, choices: list[str]) -> set[str]:
    plain = answers.trimmed(said).casefold()
    return {LETTERS[i] for i, choice in enumerate(choices) if answers.trimmed(answers.cleaned(choice)).casefold() == plain}


KIND = MultipleChoice()
