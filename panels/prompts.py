"""A collection's own prompt for its mergers: a text with places for the question and the answers, checked where it is written.

PromptError   it cannot be filled in
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template import Context, Engine

# Without folders and libraries: a prompt reads no file, and what it is filled with is text and no markup.
ENGINE = Engine(autoescape=False)
SAMPLE = {"question": "?", "count": 2, "answers": [{"label": f"Answer {letter}", "text": "", "cut_off": False} for letter in "AB"]}


class PromptError(ValueError):
    code = "invalid_field"


def filled(prompt: str, context: Mapping[str, Any]) -> str:
    """Fills a prompt in. Errors: PromptError."""
    try:
        return str(ENGINE.from_string(prompt).render(Context(dict(context), autoescape=False)))
    except Exception as error:  # tags and filters raise what they like
        reason = (str(error).splitlines() or [""])[0][:200]
        raise PromptError(f"is no template that can be filled in ({reason or type(error).__name__}).") from None


def check(prompt: str) -> None:
    """Errors: PromptError."""
    filled(prompt, SAMPLE)
