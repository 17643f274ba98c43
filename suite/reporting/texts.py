"""Text of models and authors as it may stand on a page: whole, but nothing in it that turns, hides or draws over what stands beside it."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

# What a question is called in the rows of each kind, the first that is there.
QUESTIONS = ("question", "claim", "prompt", "issue", "code", "text")
LONGEST = 700
# Marks that turn the direction of a line or cannot be seen.
UNSEEN = frozenset("\u00ad\u061c\u200b\u200c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff")


def visible(text: str, longest: int = LONGEST) -> str:
    """Writes what cannot be seen, or turns what follows, as its escape; cuts what is long, on whole characters."""
    shown = "".join([shown_of(c) for c in text[:longest]])
    return f"{shown} …" if len(text) > longest else shown


def shown_of(character: str) -> str:
    if character in "\n\t":
        return character
    if character in UNSEEN or unicodedata.category(character) in ("Cc", "Cs"):
        return f"\\u{ord(character):04x}"
    return character


def question_of(row_input: Any) -> str:
    """Finds what was asked in a row's input."""
    if isinstance(row_input, str):
        return row_input
    if isinstance(row_input, dict):
        for name in QUESTIONS:
            if isinstance(row_input.get(name), str) and row_input[name].strip():
                return str(row_input[name])
    return json.dumps(row_input, ensure_ascii=False)


def expected_of(expected: Any) -> str:
    if isinstance(expected, dict) and set(expected) <= {"value", "kind"} and "value" in expected:
        expected = expected["value"]
    return expected if isinstance(expected, str) else json.dumps(expected, ensure_ascii=False)
