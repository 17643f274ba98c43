"""JSON in: strict for our callers, patient with providers. Nothing that comes out holds NaN, an infinity or a lone surrogate."""

from __future__ import annotations

import gc
import json
import math
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import orjson

from wire.errors import CallerError

MAX_DEPTH = 200
LARGE_BYTES = 256 * 1024
# Up to so many brackets a walk through the values is quicker than a look at the bytes.
FEW_BRACKETS = 5_000
# Without a step back, and one that nothing ends goes to the end: or each quote in it would be looked at as the beginning of another.
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
SURROGATES = re.compile("[\ud800-\udfff]")


@contextmanager
def uncollected(size: int) -> Iterator[None]:
    """Keeps the garbage collector away from a large text: it would look through all values again and again, and JSON's make no circles."""
    if size < LARGE_BYTES or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def parse_body(data: bytes) -> Any:
    """Reads a caller's body. Errors: CallerError 400 for no JSON, invalid UTF-8, NaN, numbers beyond measure, or over 200 levels."""
    with uncollected(len(data)):
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = parse_slowly(data)
    # Counting brackets is far cheaper than walking, and settles almost every body.
    brackets = data.count(b"[") + data.count(b"{")
    if brackets > MAX_DEPTH and (is_deep(value) if brackets <= FEW_BRACKETS else too_deep_at_a_glance(data)):
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
    if too_deep_at_a_glance(data):
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
        if len(data) < LARGE_BYTES:
            return orjson.loads(data)
        with uncollected(len(data)):
            return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8-sig", "replace")
    if too_deep_at_a_glance(data):
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


def too_deep_at_a_glance(data: bytes) -> bool:
    """Depth by brackets alone, strings taken out first; the parser's recursion must not be what finds it. Takes time as the length does, whatever is in it."""
    steps = array("b", STRINGS.sub(b"", data).translate(STEPS, NO_BRACKETS))
    return max(accumulate(steps), default=0) > MAX_DEPTH


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
