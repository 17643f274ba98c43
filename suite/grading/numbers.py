r"""Numbers as people and models write them: `8,000`, `\$9{,}500`, `1\,000`, `−5`, `½`, `3/4`, `1/2^99`, `1.2e-5`, `１２`. Exact, as fractions.

Ambiguous   both readings are possible: 1.234,5 or 1,234 without saying which sign comes before decimals
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from suite.grading.answers import cleaned, trimmed, unwrapped

MINUS = re.compile("[\u2212\u2012\u2013\u2014\ufe63\uff0d]")
LATEX_NOISE = re.compile(r"\\[,;:! ]|\\left|\\right|\\[()\[\]]|\\\$|\\(?=%)|\^?\{?\\circ\}?|[$£€¥°]|\{,\}")
FRACTION = re.compile(r"(\d?)\s*\\[dt]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
SPACED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f'_ ](?=\d{3}(?!\d))")
TENS = re.compile(r"(?<=[\d.])\s*(?:\\times|\\cdot|[\u00d7\u00b7*x])\s*10\s*(?:\^|\*\*)\s*\{?\s*([+-]?\d{1,4})\s*\}?")
PLAIN = r"\d[\d.,]*(?:[eE][+-]?\d{1,4})?|\.\d+"
POWER = rf"(?:{PLAIN})(?:\s*(?:\^|\*\*)\s*\{{?\s*[+-]?\d{{1,5}}\s*\}}?)?"
NUMBER = re.compile(rf"(?<![\w.])[+-]?(?:\d+\s+\d+/\d+|(?:{POWER})(?:\s*/\s*(?:{POWER}))?)%?")
MOST_DIGITS = 2_000
MOST_EXPONENT = 5_000


class Ambiguous(ValueError):
    """A number that two people would read as two."""


def plain(text: str) -> str:
    """Writes a text's numbers with plain signs: one minus, no currency, no LaTeX, no thin spaces between thousands."""
    text = unwrapped(MINUS.sub("-", cleaned(text)))
    text = FRACTION.sub(lambda m: f"{m[1] and m[1] + ' '}({m[2] or m[3]})/({m[4] or m[5]})", text)
    text = LATEX_NOISE.sub(lambda m: "," if m[0] == "{,}" else "", text)
    text = TENS.sub(r"e\1", text.replace("\\approx", "\u2248").replace("~", "\u2248"))
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


# What a marked answer may have before its number: words, no function of it, no other sign.
BEFORE = re.compile(r"""[\s*_"'`:.,<-]*(?:[^\W\d_][\w'\u2019-]*(?:[\s*"`:.,<]+[^\W\d_][\w'\u2019-]*)*[\s*_"'`:.,<]*)?""")
FUNCTION = re.compile(r"\b(?:sqrt|root|cbrt|log|ln|lg|exp|sin|cos|tan|abs|factorial|squared?|either|between|from|both)\b\W*$", re.IGNORECASE)
DENIED = re.compile(r"\b(?:not|no|none|never|cannot|neither|nor|unknown|undefined|impossible|except)\b|n['\u2019]t\b", re.IGNORECASE)
# What goes on with it: then the number is only a part of what was said.
GOES_ON = re.compile(
    r"\s*[-+*/^\u00d7\u00b7\u00f7:|\u00b1]\s*(?:[\d(\\\u221a\u03c0]|[A-Za-z]\b(?!\s*/))|\s*[({\u221a\u03c0\u221e]|\s*\\(?:pi|sqrt|cdot|times|frac|log|pm|infty)|\s*[xyznijk](?!\w)|\w*\d"
)
AND_MORE = re.compile(r"\s*(?:,|;|/|&|\bor\b|\band\b|\bto\b|\bthrough\b)\s*(?:or\b|and\b)?\s*[+-]?\s*[$]?\.?\d", re.IGNORECASE)
OR_ELSE = re.compile(r"\b(?:or|either)\b", re.IGNORECASE)
EQUATIONS = re.compile(r"=[^=]*\d[^=]*(?:,|;|\band\b)\s*[^\W\d]\w*\s*=")
FOLLOWS = re.compile(r"\b(?:so|thus|hence|therefore)\b([^=]*=.*)$", re.IGNORECASE)
SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
SCALE = re.compile(rf"\s*({'|'.join(SCALES)})s?\b", re.IGNORECASE)
LETTER_SCALES = re.compile(r"[kMB]\b")
NO_LONGER = re.compile(r"(?:\bnot|n['\u2019]t)\s+(?:be\s+|equal\s+(?:to\s+)?)?$", re.IGNORECASE)
ORDINAL = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
ASIDE = re.compile(r"\s[(]|;\s|[.?]\s|!\s(?!\s*=)|\b(?:because|since|which|where|as|given)\b|,\s*(?=[A-Za-z])", re.IGNORECASE)


class NotOne(ValueError):
    """A marked answer that says no number, several, or one that is still to be worked out."""


@dataclass(frozen=True, slots=True)
class Said:
    """The number of a marked answer. Shape: `scale` is what a word after it multiplies it by, as in 12 million."""

    number: str
    scale: int = 1


def marked(text: str) -> Said:
    """Finds the one number that a marked answer says: behind the last equals sign, before what explains it. Errors: NotOne."""
    ready = trimmed(plain(text)).replace("!=", "\u2260").replace("\\ne", "\u2260")
    if follows := FOLLOWS.search(ready):
        ready = follows[1]
    if EQUATIONS.search(ready):
        raise NotOne("More than one number is given as the answer.")
    for aside in ASIDE.finditer(ready):
        if any(sign.isdigit() for sign in ready[: aside.start()]):
            ready = ready[: aside.start()]
            break
    if OR_ELSE.search(ready) and len(set(in_text(ready))) > 1:
        raise NotOne("More than one number is given as the answer.")
    sides = [side for side in ready.split("=") if any(sign.isdigit() for sign in side)]
    for i, side in enumerate(near := sides[-1].split("\u2248") if sides else []):
        if any(sign.isdigit() for sign in side):
            try:
                return one_in(trimmed(side), ready)
            except NotOne:
                if i == len(near) - 1:
                    raise
    raise NotOne("No number stands in the answer.")


def one_in(side: str, whole: str) -> Said:
    match = NUMBER.search(side)
    if match is None:
        raise NotOne("No number stands in the answer.")
    before, said, after = side[: match.start()], match[0].rstrip(".,"), side[match.start() + len(match[0].rstrip(".,")) :]
    if DENIED.search(whole.split(said)[0]) or BEFORE.fullmatch(before) is None or FUNCTION.search(before):
        raise NotOne("What is said of the number is not that it is the answer.")
    if said[:1] in "+-" and before[-1:].isalnum():
        said = said[1:]
    elif re.search(r"(?:^|\s)-\s*$", before) or re.search(r"\b(?:minus|negative)\s*$", before, re.IGNORECASE):
        said = f"-{said}"
    if AND_MORE.match(after):
        raise NotOne("More than one number is given as the answer.")
    if scale := SCALE.match(after):
        return Said(said, SCALES[scale[1].lower()])
    if letter := LETTER_SCALES.match(after):
        return Said(said, {"k": 10**3, "M": 10**6, "B": 10**9}[letter[0]])
    if GOES_ON.match(after):
        raise NotOne("The answer is more than a number.")
    return Said(said)


def last(text: str) -> str | None:
    """Gives the last number of a text without a mark, None where it has none. One that only counts, as in 2nd, or that a function is of, is none."""
    for match in reversed(list(NUMBER.finditer(ready := plain(text)))):
        said = match[0].rstrip(".,")
        after = ready[match.start() + len(said) :]
        if not any(sign.isdigit() for sign in said) or ORDINAL.match(after) or NO_LONGER.search(ready[max(0, match.start() - 40) : match.start()]):
            continue
        before = ready[max(0, match.start() - 80) : match.start()]
        if FUNCTION.search(before) or (re.search(r"[\u221a{(^]\s*$", before) and not re.match(r"\s*[)}]?\W{0,80}$", after)):
            continue
        return said[1:] if said[:1] in "+-" and match.start() > 0 and (ready[match.start() - 1].isalnum() or ready[match.start() - 1] == ")") else said
    return None


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
