"""One way to write a JSON value, so that equal values have equal digests: RFC 8785, in ASCII where it is kept.

Numbers are written as ECMAScript does; Python's shortest text of a float differs from it only in where an exponent begins.
"""

from __future__ import annotations

import hashlib
import json
from math import isfinite
from typing import Any


def canonical(value: Any) -> str:
    """Writes a value. Errors: ValueError for NaN and infinities, TypeError for what is no JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        # Beyond 2^53 a reader of RFC 8785 would round; rows with such ids must not become equal, so all their digits stay.
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return f"[{','.join([canonical(item) for item in value])}]"
    if isinstance(value, dict):
        # Keys by their UTF-16 units, as ECMAScript compares texts.
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join([f'{text(key)}:{canonical(value[key])}' for key in keys])}}}"
    raise TypeError(f"{type(value).__name__} is no JSON value.")


ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def text(value: str) -> str:
    """Writes a string; half a surrogate pair, which RFC 8785 refuses, as its escape, so that nothing that came is lost."""
    inner = "".join([ESCAPES.get(c) or (escaped(c) if c < " " or "\ud800" <= c <= "\udfff" else c) for c in value])
    return f'"{inner}"'


def escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"


def number(value: float) -> str:
    if not isfinite(value):
        raise ValueError("NaN and infinities are no JSON.")
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    said = repr(value)
    mantissa, mark, exponent = said.partition("e")
    if not mark:
        return said
    power = int(exponent)
    if -7 < power < 0:
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{'-' if value < 0 else ''}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


def digest(value: Any) -> str:
    """Gives the SHA-256 of a value's canonical form, in hex."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


def kept(value: Any) -> str:
    """Writes a value for keeping: JSON in ASCII, with every NUL and half a pair escaped."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
