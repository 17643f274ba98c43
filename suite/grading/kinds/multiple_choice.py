"""A question with lettered choices, one of them right, or several."""

from __future__ import annotations

import re
from typing import Any

from suite.grading import answers
from suite.grading.contract import Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, right, unparsed

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Letters in a marked answer: "A", "(a)", "A, B, and C", "A. Paris", "**C**", "option C". A lone small a before a word is one itself.
LETTER = r"([A-Z]|[a-z](?!\s+[a-z]))(?![A-Za-z0-9'\u2019])"
LIST = re.compile(rf"^(?i:option|choice|letter)?\s*[\s*_(\[{{<\"'`$\\]*{LETTER}(?!\?)")
IS = r"(?!\)?\s+(?:is|was|seems|would|looks|can|could)\b)"
MORE = re.compile(rf"^[\s*_)\]}}>\"'`$.]*(?:,|;|/|&|\+|\band\b|\bor\b)\s*(?:and\b|or\b)?[\s*_(\[{{\"'`]*{LETTER}{IS}")
SPACED = re.compile(r"^[A-Z](?:\s+[A-Z])+$")
EITHER = re.compile(r"^(?:either|both)\s+", re.IGNORECASE)
ALONE = re.compile(r"^[\s*_(\[<\"'`$]*([A-Za-z])[\s*_)\]>\"'`$.:,]*$")
# "A" and "I" before an ordinary word are words themselves, unless that word says something of a choice.
WORDS = re.compile(r"(?<![A-Za-z0-9'\u2019])(?:A|I)(?= (?!(?:is|was|would|seems|looks|fits|holds|and|or|because|as|since)\b)[a-z]|['\u2019])")
STANDING = re.compile(r"(?<![A-Za-z0-9'\u2019])\(?([A-Z])\)?(?![A-Za-z0-9'\u2019])")
# What makes a letter in a sentence a choice, and what makes it none.
CHOSEN = re.compile(
    r"(?:^|[:(*`]|['\u2019]s|\b(?:probably|likely|definitely|is|be|are|with|say|option|choice|letter|answer|picks?|choose|chose|select|go|guess|for|so|thus|hence|therefore|as|think|to))[\s*_(\"'`$]*$",
    re.IGNORECASE,
)
UNCHOSEN = re.compile(
    r"\b(?:not|never|except|without|wrong|incorrect|false|neither|nor|eliminated?|excluded?|rule[sd]?|unlike|besides|than|bad|cannot|if|unless|whether)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
TURNED = re.compile(r"\b(?:wait|actually|correction|scratch|oops|hmm|sorry|rather|instead|no)\b\s*[,:.]?", re.IGNORECASE)


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
    text, allowed = answers.cleaned(answers.ending(text)), set(LETTERS[: len(choices)])
    mark = answers.mark(text)
    if mark is not None:
        said = answers.unwrapped(mark.text)
        if found := by_words(said, choices) or letters(said, allowed):
            return found
        if (found := named(said, allowed)) or mark.is_stated or UNCHOSEN.search(said):
            return found
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for line in (text.strip(), lines[-1] if lines else "", lines[0] if lines else ""):
        if (alone := ALONE.match(line)) and alone[1].upper() in allowed:
            return {alone[1].upper()}
        if found := by_words(line, choices):
            return found
    return named(text, allowed)


def named(text: str, allowed: set[str]) -> set[str]:
    """Gives the only letter that sentences name as a choice; nothing where several are named, or what is said of it denies it."""
    found: set[str] = set()
    is_chosen = False
    for sentence in re.split(r"(?<=[.!?;])\s+|\n", WORDS.sub(" ", text)):
        is_denied = UNCHOSEN.search(sentence) is not None
        for match in STANDING.finditer(sentence):
            if match[1] in allowed:
                found.add(match[1])
                is_chosen |= CHOSEN.search(sentence[max(0, match.start() - 40) : match.start()]) is not None
                if len(found) > 1 or is_denied:
                    return set()
    return found if len(found) == 1 and is_chosen else set()


def letters(said: str, allowed: set[str]) -> set[str]:
    plain = answers.trimmed(EITHER.sub("", said))
    if SPACED.match(plain):
        return set(plain.split()) if set(plain.split()) <= allowed else set()
    first = LIST.match(plain)
    if first is None or first[1].upper() not in allowed:
        return set()
    found, rest = {first[1].upper()}, plain[first.end() :]
    while more := MORE.match(rest):
        if more[1].upper() not in allowed:
            break
        found.add(more[1].upper())
        rest = rest[more.end() :]
    if (turned := TURNED.search(rest)) and {letter for letter in STANDING.findall(rest[turned.end() :]) if letter in allowed} - found:
        return set()
    return found if not re.match(r"\W*(?:is|are)\s+(?:wrong|incorrect|false|not)\b|\W*isn", rest, re.IGNORECASE) else set()


def by_words(said: str, choices: list[str]) -> set[str]:
    plain = answers.trimmed(said).casefold()
    return {LETTERS[i] for i, choice in enumerate(choices) if answers.trimmed(answers.cleaned(choice)).casefold() == plain}


KIND = MultipleChoice()
