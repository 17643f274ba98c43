"""Finding the answer in what a model wrote: the last marked one, never the first thing that looks like it, since a model thinks aloud before it answers."""

from __future__ import annotations

import re
import unicodedata

# Zero-width and direction signs that are not to be seen, and so never meant.
UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]")
THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
OPENED = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
CLOSED = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
MARKED = re.compile(r"(?:^|(?<=[\s*_>(.,;:!?]))(?:final\s+)?answer(?:\s*(?:is|are|=|would\s+be)\s*:?|\s*[*_]*\s*:)[*_\s]*", re.IGNORECASE)
HASHES = re.compile(r"^####\s*", re.MULTILINE)


def visible(text: str) -> tuple[str, bool]:
    """Takes out what a model wrote as its thinking. Shape: the rest, and whether the text broke off before the thinking had ended."""
    rest = THOUGHT.sub("", text)
    if closed := list(CLOSED.finditer(rest)):  # some servers leave the opening mark in the prompt
        rest = rest[closed[-1].end() :]
    if opened := OPENED.search(rest):
        return rest[: opened.start()].strip(), True
    return rest.strip(), False


def cleaned(text: str) -> str:
    """Writes a text in one form: composed, full-width forms as plain ones, nothing unseen."""
    return UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def boxed(text: str) -> str | None:
    r"""Gives what stands in the last \boxed{...}, braces counted. None without one."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return None
    depth, begin = 0, at + len("\\boxed{")
    for i in range(begin - 1, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return text[begin:i]
    return text[begin:]


def marked(text: str) -> str | None:
    """Gives what follows the last mark of an answer, to the end of its line: `ANSWER: x`, `the answer is x`, `#### x`, a box. None without a mark."""
    found: list[tuple[int, str]] = []
    if (box := boxed(text)) is not None:
        found.append((text.rfind("\\boxed{"), box))
    for pattern in (MARKED, HASHES):
        for mark in pattern.finditer(text):
            rest = text[mark.end() :].lstrip()
            line = rest.split("\n", 1)[0].strip()
            if line:
                found.append((mark.start(), line if boxed(line) is None else str(boxed(line))))
    return max(found)[1].strip() if found else None


def trimmed(text: str) -> str:
    """Takes off what people put around an answer: quotes, brackets around all of it, emphasis, a full stop."""
    while True:
        before = text
        text = text.strip().strip("*_`").strip()
        if text.endswith((".", "\u3002")) and not text.endswith(".."):
            text = text[:-1]
        for left, right in ("()", "[]", "{}", '""', "''", "\u201c\u201d", "\u2018\u2019", "$$"):
            if len(text) >= 2 and text[0] == left and text[-1] == right and not (left != right and left in text[1:-1] and _closes_early(text, left, right)):
                text = text[1:-1]
        if text == before:
            return text


def _closes_early(text: str, left: str, right: str) -> bool:
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign == left) - (sign == right)
        if depth == 0 and i < len(text) - 1:
            return True
    return False
