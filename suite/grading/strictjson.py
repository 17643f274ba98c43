"""JSON that a model wrote, read without guessing: the whole text first, then a fenced block, then the last object or list that stands in the prose."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 200
MAX_CHARS = 2_000_000
FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
TRIES = 50


class NoJson(ValueError):
    """Nothing in the text is one JSON value."""


def read(text: str) -> Any:
    """Finds the JSON value of an answer. Errors: NoJson; for duplicate keys, NaN, infinities and endless nesting too."""
    if len(text) > MAX_CHARS:
        raise NoJson("The answer is longer than any JSON that a task asks for.")
    stripped = text.strip()
    try:
        return parse(stripped)
    except NoJson as error:
        first = error
    fenced = [body for _, language, body in FENCE.findall(stripped) if language.lower() in ("", "json", "json5", "jsonc")]
    for body in reversed(fenced):
        try:
            return parse(body.strip())
        except NoJson:
            continue
    found, tried = [], 0
    at = 0
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    while tried < TRIES and (start := min((i for i in (stripped.find("{", at), stripped.find("[", at)) if i >= 0), default=-1)) >= 0:
        tried += 1
        try:
            if _depth(stripped[start:]) > MAX_DEPTH:
                raise NoJson("The answer is nested too deep.")
            value, at = decoder.raw_decode(stripped, start)
            found.append(value)
        except (ValueError, RecursionError):
            at = start + 1
    if not found:
        raise first
    return found[-1]


def parse(text: str) -> Any:
    """Reads one JSON value and nothing else. Errors: NoJson."""
    if _depth(text) > MAX_DEPTH:
        raise NoJson("The answer is nested too deep.")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise NoJson(f"The answer is no JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice.")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is beyond measure.")
    return number


def _depth(text: str) -> int:
    """Counts brackets, those in strings too: an over-estimate, which only a hostile text feels."""
    depth = deepest = 0
    for sign in text:
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def same(one: Any, other: Any) -> bool:
    """Compares two JSON values: 1 and 1.0 are one number, true is none, the order of keys is nothing, that of lists is something."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)
