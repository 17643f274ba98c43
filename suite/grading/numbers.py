r"""Numbers as people and models write them: `8,000`, `\$9{,}500`, `1\,000`, `−5`, `½`, `3/4`, `1/2^99`, `1.2e-5`, `１２`. Exact, as fractions.

Ambiguous   both readings are possible: 1.234,5 or 1,234 without saying which sign comes before decimals
"""

from __future__ import annotations

import re
from fractions import Fraction

from suite.grading.answers import cleaned

MINUS = re.compile("[\u2212\u2012\u2013\u2014\ufe63\uff0d]")
LATEX_NOISE = re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}|\\[,;:! ]|\\left|\\right|\\\$|[$£€¥]|\{,\}|~")
FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
SPACED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f' ](?=\d{3}(?!\d))")
PLAIN = r"\d[\d.,]*(?:[eE][+-]?\d{1,4})?|\.\d+"
POWER = rf"(?:{PLAIN})(?:\s*(?:\^|\*\*)\s*\{{?\s*[+-]?\d{{1,5}}\s*\}}?)?"
NUMBER = re.compile(rf"(?<![\w.])[+-]?(?:\d+\s+\d+/\d+|(?:{POWER})(?:\s*/\s*(?:{POWER}))?)%?")
VULGAR = re.compile("(\\d*)\\s*([\u00bc-\u00be\u2150-\u215e])")
MOST_DIGITS = 2_000
MOST_EXPONENT = 5_000


class Ambiguous(ValueError):
    """A number that two people would read as two."""


def plain(text: str) -> str:
    """Writes a text's numbers with plain signs: one minus, no currency, no LaTeX, no thin spaces between thousands."""
    text = VULGAR.sub(lambda m: f"{m[1]} {cleaned(m[2])}" if m[1] else cleaned(m[2]), text)
    text = MINUS.sub("-", cleaned(text).replace("\u2044", "/"))
    text = FRACTION.sub(r"(\1)/(\2)", text)
    text = LATEX_NOISE.sub(lambda m: m[1] or ("," if m[0] == "{,}" else ""), text)
    text = re.sub(r"\(\s*([+-]?[\d.,]+)\s*\)/\(\s*([\d.,]+)\s*\)", r"\1/\2", text)
    return SPACED.sub("", text)


def in_text(text: str) -> list[str]:
    """Gives every number of a text as it stands there, in order; of a range 3-5 the 5 is no -5."""
    found = []
    for match in NUMBER.finditer(ready := plain(text)):
        said = match[0].rstrip(".,")
        if said[:1] in "+-" and match.start() > 0 and (ready[match.start() - 1].isalnum() or ready[match.start() - 1] == ")"):
            said = said[1:]
        if any(sign.isdigit() for sign in said):
            found.append(said)
    return found


def read(said: str, decimal: str = "") -> Fraction:
    """Reads one number. Errors: Ambiguous, or ValueError where it is none or beyond measure."""
    text = plain(said).strip().removesuffix("%").strip()
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("+-").strip()
    if mixed := re.fullmatch(r"(\d+)\s+(\d+)/(\d+)", text):
        return sign * (int(mixed[1]) + _over(Fraction(int(mixed[2])), Fraction(int(mixed[3]))))
    parts = [part.strip() for part in text.split("/")]
    if len(parts) == 2:
        return sign * _over(_powered(parts[0], decimal), _powered(parts[1], decimal))
    if len(parts) > 2:
        raise ValueError("That is a date or a path, not a number.")
    return sign * _powered(text, decimal)


def _over(above: Fraction, below: Fraction) -> Fraction:
    if below == 0:
        raise ValueError("Nothing is divided by 0.")
    return above / below


def _powered(text: str, decimal: str) -> Fraction:
    base, _, exponent = re.sub(r"\s*(?:\^|\*\*)\s*", "^", text).partition("^")
    number = _simple(base.strip(), decimal)
    if not exponent:
        return number
    power = int(exponent.strip("{} "))
    if abs(power) > MOST_EXPONENT or (number == 0 and power < 0):
        raise ValueError("That power is beyond measure.")
    return number**power


def _simple(text: str, decimal: str) -> Fraction:
    body, mark, exponent = text.partition("e") if "e" in text else text.partition("E")
    if len(body) > MOST_DIGITS or (mark and abs(int(exponent)) > MOST_EXPONENT):
        raise ValueError("That number is beyond measure.")
    number = Fraction(_ungrouped(body, decimal))
    return number * Fraction(10) ** int(exponent) if mark else number


def _ungrouped(text: str, decimal: str) -> str:
    """Takes the signs between thousands out. A comma before three digits is one, as in most texts that models write; before others it is before decimals."""
    if "," not in text:
        if text.count(".") > 1:
            return _thousands(text, ".")
        return text.replace(".", "") if decimal == "," and re.fullmatch(r"\d{1,3}\.\d{3}", text) else text
    if "." not in text:
        if decimal == ",":
            return text.replace(",", ".") if text.count(",") == 1 else _thousands(text, ",")
        if re.fullmatch(r"\d{1,3}(,\d{2,3})*,\d{3}", text):
            return text.replace(",", "")
        if text.count(",") == 1 and decimal != ".":
            raise Ambiguous(f"{text} may be read in two ways.")
        raise ValueError(f"{text} is no number.")
    comma_last = text.rfind(",") > text.rfind(".")
    if comma_last and decimal != ",":
        if decimal == ".":
            raise ValueError(f"{text} is no number.")
        raise Ambiguous(f"{text} may be read in two ways.")
    if not comma_last and decimal == ",":
        raise ValueError(f"{text} is no number.")
    if comma_last:
        whole, _, rest = text.rpartition(",")
        return f"{_thousands(whole, '.')}.{rest}"
    whole, _, rest = text.rpartition(".")
    return f"{_thousands(whole, ',')}.{rest}"


def _thousands(text: str, sign: str) -> str:
    if not re.fullmatch(rf"\d{{1,3}}(?:{re.escape(sign)}\d{{2,3}})*{re.escape(sign)}\d{{3}}", text):
        raise ValueError(f"{text} is no number.")
    return text.replace(sign, "")


def equal(one: Fraction, other: Fraction, tolerance: float) -> bool:
    """Compares by the relative distance, so that tiny numbers are not all alike; a 0 is met exactly or within the tolerance."""
    if one == other:
        return True
    distance, size = abs(one - other), max(abs(one), abs(other))
    if one == 0 or other == 0:
        return distance <= Fraction(tolerance) and size <= Fraction(tolerance)
    return distance <= Fraction(tolerance) * size
