"""Whether what is said beside the code gives a fault away: a comment at the line, or words that state what the fault breaks."""

from __future__ import annotations

import re

from suite.review.edits import Edit
from suite.review.functions import Words, words

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|\d+")
# What a sign or a little word is called when somebody speaks of it.
SAID_AS = {
    "<": ("less", "below", "under", "before", "smaller", "fewer"), "<=": ("most", "until"), ">": ("more", "above", "over", "after", "larger"),
    ">=": ("least", "from"), "and": ("both", "and"), "or": ("either", "or"), "not": ("not", "no", "never", "without", "none", "unless"),
    "True": ("true", "whether"), "False": ("false", "whether"), "None": ("none", "empty", "missing"), "+": ("plus", "sum", "added"), "-": ("minus", "less"),
    "0": ("zero", "no", "0"), "1": ("one", "first", "1"), "2": ("two", "second", "twice", "2"), "3": ("three", "third", "3"), "min": ("smallest", "least"),
    "max": ("largest", "most"), "any": ("any",), "all": ("all", "every", "each"), "sorted": ("order", "sorted"), "in": (), "is": (), "if": (), "self": (),
}  # fmt: skip


def parts(name: str) -> set[str]:
    """Gives the words that a name is made of."""
    return {part.lower() for part in re.split(r"_|(?<=[a-z])(?=[A-Z])", name) if len(part) > 2}


def meant(fragment: str) -> set[str]:
    """Lists the words by which somebody would speak of a piece of code."""
    found: set[str] = set()
    for sign in re.findall(r"<=|>=|<|>|\+|-", fragment):
        found |= set(SAID_AS[sign])
    for word in WORD.findall(fragment):
        found |= set(SAID_AS[word]) if word in SAID_AS else {word.lower()} if word.isdigit() else parts(word)
    return found


def gives_away(window: str, first: int, edit: Edit) -> bool:
    """Tells whether comments at the edited line, or any words of the window, speak of what the edit takes away.

    Shape: `first` is the window's first line in the file.
    """
    said = words(window)
    line = edit.line - first + 1
    if any(number in said.comments for number in (line - 1, line, line + 1)):
        return True
    return speaks_of(said, edit.was) or speaks_of(said, edit.text)


def speaks_of(said: Words, fragment: str) -> bool:
    there = {word.lower() for word in WORD.findall(said.all)}
    there |= {part for word in there for part in parts(word)}
    stems = {stem(word) for word in there}
    return any(word in there or stem(word) in stems for word in meant(fragment))


def stem(word: str) -> str:
    """Takes the common endings off, so that `limits` and `limited` are one."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
