"""JSON that a model wrote, read without guessing: the whole text first, then a fenced block, then the last object or list that stands in the prose."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 200
MAX_CHARS = 2_000_000
FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
TRIES = 50
# What begins like JSON, and is then none: braces in prose begin otherwise.
BEGINS = re.compile(r"""\{\s*(?:["']|\w+\s*:)|\[\s*[\[{"\d-]""")
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]')


class NoJson(ValueError):
    """Nothing in the text is one JSON value."""


def read(text: str) -> Any:
    """Finds the JSON value of an answer, the last where it has several. Errors: NoJson; for duplicate keys, NaN, infinities and endless nesting too."""
    found = read_all(text)
    # [1] after an answer is a footnote.
    return next((value for value in reversed(found) if not is_note(value)), found[-1])


def is_note(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], int) and not isinstance(value[0], bool)


def read_all(text: str) -> list[Any]:
    """Finds every JSON value of an answer: all of it, else what is fenced, else the objects and lists in its prose. Errors: NoJson, too where it has none."""
    if len(text) > MAX_CHARS:
        raise NoJson("The answer is longer than any JSON that a task asks for.")
    stripped = text.strip().lstrip("\ufeff")
    try:
        return [parse(stripped)]
    except NoJson as error:
        first = error
    found: list[Any] = []
    for _, language, body in FENCE.findall(stripped):
        if language.lower() in ("", "json", "json5", "jsonc"):
            try:
                found.append(parse(body.strip()))
            except NoJson:
                continue
    return found or in_prose(stripped, first)


def in_prose(text: str, first: NoJson) -> list[Any]:
    """Finds objects and lists between words. Of one that is broken no part is an answer."""
    found: list[Any] = []
    at = tried = 0
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    while tried < TRIES and (start := min((i for i in (text.find("{", at), text.find("[", at)) if i >= 0), default=-1)) >= 0:
        tried += 1
        try:
            if _depth(text[start:]) > MAX_DEPTH:
                raise NoJson("The answer is nested too deep.")
            value, at = decoder.raw_decode(text, start)
            found.append(value)
        except (ValueError, RecursionError):
            at = _end(text, start) if BEGINS.match(text, start) else start + 1
    if not found:
        raise first
    return found


def _end(text: str, start: int) -> int:
    """Finds where the brackets that begin somewhere are closed, the text's end where they are not. Those in strings do not count."""
    depth = 0
    for match in TOKEN.finditer(text, start):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth == 0:
            return match.end()
    return len(text)


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
