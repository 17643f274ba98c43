"""Finding the answer in what a model wrote: the last marked one, never the first thing that looks like it, since a model thinks aloud before it answers."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Zero-width and direction signs that are not to be seen, and so never meant.
UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]")
THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
OPENED = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
CLOSED = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
# A mark of the form that was asked for, at the beginning of a line, whatever emphasis it has; and the same in the midst of a sentence.
STATED = re.compile(
    r"""^[ \t*_>#{"'`-]{0,20}(?:(?:my|the|final|correct)[ \t]{1,3}){0,4}answers?["'`]?[ \t]{0,3}[*_]{0,3}[ \t]{0,3}(?:[:=][*_]*|$)""",
    re.IGNORECASE | re.MULTILINE,
)
SAID = re.compile(
    r"""(?:^|(?<=[\s*_>("'.,;:!?]))answers?["'`]?(?:\s{1,3}to\s[^.\n]{1,60}?)?(?:\s{1,3}(?:is|are|would\s+be)\b(?!n?['\u2019]t)\s{0,3}:?|\s{0,3}=|\s{0,3}[*_]{0,3}\s{0,3}:|\s{1,3}[-\u2013\u2014](?=\s+[A-Z]\b))[*_]*""",
    re.IGNORECASE,
)
# Nobody answers in more; what a hostile text costs grows faster than its length.
MOST_CHARS = 20_000
HASHES = re.compile(r"^####\s*", re.MULTILINE)
SUPERSCRIPT = re.compile("[\u207a\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
VULGAR = re.compile("(?<=\\d)[\u00bc-\u00be\u2150-\u215e]")
DUNDER = re.compile(r"__\w+__")
WRAPPED = re.compile(r"\\(?:text|textbf|textit|texttt|mathrm|mathbf|mathit|boldsymbol|boxed)\s*\{([^{}]*)\}")


def ending(text: str) -> str:
    """Gives the part of a long text that is looked at for an answer: its end."""
    return text[-MOST_CHARS:]


def visible(text: str) -> tuple[str, bool]:
    """Takes out what a model wrote as its thinking. Shape: the rest, and whether the text broke off before the thinking had ended."""
    rest = THOUGHT.sub("", text)
    if closed := list(CLOSED.finditer(rest)):  # some servers leave the opening mark in the prompt
        rest = rest[closed[-1].end() :]
    if opened := OPENED.search(rest):
        return rest[: opened.start()].strip(), True
    return rest.strip(), False


def cleaned(text: str) -> str:
    """Writes a text in one form: composed, full-width forms as plain ones, nothing unseen. A raised 2 becomes ^2, a half after a digit stands apart."""
    text = VULGAR.sub(lambda m: f" {m[0]}", SUPERSCRIPT.sub(lambda m: f"^{m[0]}", text))
    return UNSEEN.sub("", unicodedata.normalize("NFKC", text)).replace("\u2044", "/")


def unwrapped(text: str) -> str:
    r"""Takes LaTeX's words about how a text looks off it: \text{B} is B."""
    while (found := WRAPPED.sub(lambda m: m[1], text)) != text:
        text = found
    return text


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


@dataclass(frozen=True, slots=True)
class Mark:
    """What follows a mark of an answer. Shape: `is_stated` where the mark has the form that was asked for, so that nothing else is the answer."""

    text: str
    is_stated: bool


def mark(text: str) -> Mark | None:
    """Gives what follows the last mark of an answer, to the end of its line: `ANSWER: x`, `#### x`, a box, else `the answer is x`. None without a mark."""
    text = ending(text)
    stated = [(m.start(), rest, True) for pattern in (STATED, HASHES) for m in pattern.finditer(text) if (rest := line_after(text, m.end()))]
    if (box := boxed(text)) is not None:
        stated.append((text.rfind("\\boxed{"), box, True))
    if found := stated or [(m.start(), rest, m[0].rstrip("*_ ")[-1] in ":=") for m in SAID.finditer(text) if (rest := line_after(text, m.end()))]:
        _, said, is_stated = max(found)
        inner = boxed(said)
        return Mark((said if inner is None else inner).strip(), is_stated)
    return None


def line_after(text: str, at: int) -> str:
    """Gives the rest of a line, or where that says nothing the next line that does, without what makes it an entry of a list."""
    here, _, later = text[at : at + 2_000].partition("\n")
    if here.strip().strip("*_`$\\[({"):
        return here.strip()
    lines = [line for line in later.split("\n")[:6] if any(sign.isalnum() for sign in line)]
    return re.sub(r"^\s*[-*\u2022]\s+", "", lines[0]).strip() if lines else here.strip()


def marked(text: str) -> str | None:
    """Gives the text of the last mark, None without one."""
    found = mark(text)
    return found.text if found is not None else None


def trimmed(text: str) -> str:
    """Takes off what people put around an answer: quotes, brackets around all of it, emphasis, a full stop."""
    while True:
        before = text
        text = text.strip()
        for sign in ("*", "`", "_"):
            if sign == "_" and DUNDER.fullmatch(text):
                continue
            if (text[:1] == sign == text[-1:] and len(text) > 1) or (text.count(sign) in (1, 2) and text.strip(sign).count(sign) == 0):
                text = text.strip(sign).strip()
        if text.endswith((".", "\u3002")) and not text.endswith(".."):
            text = text[:-1]
        for left, right in ("()", "[]", "{}", "<>", '""', "''", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", "$$"):
            if len(text) >= 2 and text[0] == left and text[-1] == right and not (_closes_early(text, left, right) if left != right else left in text[1:-1]):
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
