"""JSON in: strict for our callers, patient with providers. Nothing that comes out holds NaN, an infinity or a lone surrogate."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from wire.errors import CallerError

MAX_DEPTH = 200
SURROGATES = re.compile("[\ud800-\udfff]")


def parse_body(data: bytes) -> Any:
    """Reads a caller's body. Errors: CallerError 400 for no JSON, invalid UTF-8, NaN, numbers beyond measure, or over 200 levels."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = parse_slowly(data)
    # Counting brackets is far cheaper than walking, and settles almost every body.
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise CallerError("invalid_request", f"The body is nested more than {MAX_DEPTH} levels deep.")
    return value


def parse_slowly(data: bytes) -> Any:
    """What the fast parser refused: lone surrogates become U+FFFD, everything else is named and refused."""
    if not data.strip():
        raise CallerError("invalid_request", "The body is empty; it must be a JSON object.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallerError("invalid_request", f"The body is not valid UTF-8 (byte {error.start}).") from None
    if too_deep_at_a_glance(text):
        raise CallerError("invalid_request", f"The body is nested more than {MAX_DEPTH} levels deep.")
    try:
        return scrubbed(json.loads(text, parse_constant=refuse_constant, parse_int=whole, parse_float=finite))
    except json.JSONDecodeError as error:
        raise CallerError("invalid_request", f"The body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise CallerError("invalid_request", f"The body is nested more than {MAX_DEPTH} levels deep.") from None


def parse_upstream(data: bytes) -> Any:
    """Reads a provider's body or chunk. Errors: ValueError where it is no JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8-sig", "replace")
    if too_deep_at_a_glance(text):
        raise ValueError("nested too deep")
    try:
        return scrubbed(json.loads(text, parse_constant=lambda _: None, parse_int=lambda s: whole_or_zero(s), parse_float=lambda s: finite_or_zero(s)))
    except RecursionError:
        raise ValueError("nested too deep") from None


def is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [c for v in level for c in (v.values() if isinstance(v, dict) else v) if isinstance(c, dict | list)]
        if not level:
            return False
    return True


def too_deep_at_a_glance(text: str) -> bool:
    """Depth by brackets alone, strings taken out first; the parser's recursion must not be what finds it."""
    depth = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def refuse_constant(word: str) -> Any:
    raise CallerError("invalid_request", f"The body holds {word}, which is no JSON number.")


def whole(digits: str) -> int:
    if len(digits) > 300:
        raise CallerError("invalid_request", "The body holds a number of more than 300 digits.")
    return int(digits)


def finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise CallerError("invalid_request", "The body holds a number beyond what a double can hold.")
    return value


def whole_or_zero(digits: str) -> int:
    return int(digits) if len(digits) <= 300 else 0


def finite_or_zero(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else 0.0


def scrubbed(value: Any) -> Any:
    """Puts U+FFFD for every lone surrogate, in keys too."""
    if isinstance(value, str):
        return SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [scrubbed(v) for v in value]
    if isinstance(value, dict):
        return {scrubbed(k): scrubbed(v) for k, v in value.items()}
    return value
