"""A statement about code that is attached, true or false."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from suite.grading import answers
from suite.grading.contract import Kind, Options, Output, Question, RowError, canary_of, text_at
from suite.grading.outcomes import Grade, right, unparsed

SAID = re.compile(
    r"\b(?P<no>not\s+(?:quite\s+|entirely\s+|really\s+|strictly\s+)?|isn['\u2019]t\s+|in)?(?P<word>true|false|correct|wrong|untrue|incorrect|yes|no)\b(?!\s+(?:doubt|idea|way|matter)\b)",
    re.IGNORECASE,
)
# A ruling that a part begins with holds whatever is explained after it; what hedges or denies it from afar is no ruling.
FIRST = re.compile(
    rf"""[\s*_"'`(<${{}}:\\]*(?:(?:it|that|this)(?:\s+is|['\u2019]s)\s+|(?:this|the)\s+(?:claim|statement)\s+is\s+)?{SAID.pattern}(?!\s*\?)""", re.IGNORECASE
)
EITHER = re.compile(r"\W*\s*(?:or|/|and|if|unless|only|but)\b.*\b(?:true|false|correct|wrong)\b|\s*/", re.IGNORECASE)
AFAR = re.compile(r"\b(?:not|never|hardly|barely|cannot|unlikely|neither|nor|far\s+from)\b|n['\u2019]t\b", re.IGNORECASE)
HEDGED = re.compile(
    r"\b(?:partial(?:ly)?|partly|half|mostly|largely|sometimes|unsure|uncertain|whether|maybe|perhaps|might|depends)\b|\bnot\s+sure\b", re.IGNORECASE
)
RETURNED = re.compile(r"\b(?:returns?|returned|yields?|gives?|evaluates?\s+to|set\s+to|prints?|raises?)\s+[`'\"]?$|=\s*[`'\"]?$", re.IGNORECASE)
BEGINS = re.compile(r"[\s*_\"'`(]*")
MOST_WORDS = 50  # of one sentence
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
    text = answers.cleaned(answers.ending(text))
    mark = answers.mark(text)
    if mark is not None and ((found := said_by(answers.unwrapped(mark.text))) is not None or mark.is_stated):
        return found
    lines = [line for line in text.splitlines() if line.strip()]
    for part in (lines[-1], text) if lines else ():
        if (found := said_by(part)) is not None:
            return found
    return None


def said_by(part: str) -> bool | None:
    """Reads one part: by the word that it begins with, else by what all its sentences say. None where they say both, or hedge."""
    first = FIRST.match(part)
    if first is not None:
        if EITHER.match(part[first.end() :]):
            return None
        opposite = ruling(first)
        rest = [r for r in rulings(part[first.end() :]) if first["word"].lower() in ("yes", "no")]
        return None if rest and set(rest) != {opposite} else opposite
    found = set(rulings(part))
    return found.pop() if len(found) == 1 and not HEDGED.search(part) else None


def ruling(match: re.Match[str]) -> bool:
    return HOLDS[match["word"].lower()] != bool((match["no"] or "").strip())


def rulings(part: str) -> list[bool]:
    """Gives what each sentence says that rules on something. One that asks says nothing, one that denies at a distance both."""
    found: list[bool] = []
    for sentence in re.split(r"(?<=[.!?;])\s+|\n", part):
        for match in islice(SAID.finditer(sentence), MOST_WORDS):
            before = sentence[max(0, match.start() - 200) : match.start()]
            is_bare = match["word"].lower() in ("yes", "no") and BEGINS.fullmatch(before) is None
            if sentence.rstrip().endswith("?") or RETURNED.search(before) or is_bare:
                continue
            found += [True, False] if AFAR.search(before) else [ruling(match)]
    return found


KIND = Claim()
