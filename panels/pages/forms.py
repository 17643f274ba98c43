"""What a form sent, as the API takes it, and what the API refused of it, as a form shows it."""

from __future__ import annotations

from typing import Any

from panels.pages.door import Refused


def number(said: str) -> int | str | None:
    """Reads a whole number; empty is None. What is none goes on as it was typed: the API says what is wrong with it."""
    text = said.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text


def texts(said: str) -> list[str]:
    """Reads one text a line, without empty ones."""
    return [line for row in said.splitlines() if (line := row.strip())]


def wrong(refused: Refused, **fields: str) -> dict[str, Any]:
    """What a form needs to show a refusal. Shape: `wrong` is by field, lists' entries under their list; `fields` names those that the form calls otherwise."""
    at = refused.field.partition("[")[0].partition(".")[0]
    return {"refused": refused, "wrong": {fields.get(at, at): refused.detail} if at else {}}
