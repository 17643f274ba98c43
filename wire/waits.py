"""How long an endpoint asks to be left alone: read from its headers and its words, in every unit seen so far. Pure; a new provider is a line in a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

# As long as the longest window that providers have: a month.
LONGEST_S = 31 * 86400.0

UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
UNIT_WORDS = r"ms|milliseconds?|msecs?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?"
NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{0,20})?")
# One part of a duration, read one after the other: one pattern for all of them could try 2^n ways through a hostile text.
DURATION_PART = re.compile(rf"([0-9]{{1,15}}(?:\.[0-9]{{0,15}})?)\s*({UNIT_WORDS})(?![a-z])(?:\s*,|\s+and(?![a-z]))?\s*", re.IGNORECASE)
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)

# Numbers so large are times, not waits: Unix seconds, and from 1e11 on Unix milliseconds.
EPOCH_FROM = 1e9
EPOCH_MS_FROM = 1e11

# Headers that are a wait by themselves, the first that can be read wins, and the unit of a bare number.
WAIT_HEADERS = (("retry-after", "s"), ("retry-after-ms", "ms"), ("x-ms-retry-after-ms", "ms"), ("x-retry-after", "s"))
# Headers that tell of one window each: `what` it tells, and which `window`.
WINDOW_HEADERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"x-ratelimit-(?P<what>remaining|reset)(?:-(?P<window>[a-z0-9-]+))?",  # OpenAI, Groq, Cerebras, Mistral, OpenRouter, SambaNova, Together
        r"anthropic-ratelimit-(?:(?P<window>[a-z0-9-]+)-)?(?P<what>remaining|reset|status)",
        r"x-(?P<window>tokenlimit)-(?P<what>remaining|reset)",  # Together
        r"x-codex-(?P<window>primary|secondary)-(?P<what>used-percent|reset-after-seconds|reset-at)",  # ChatGPT
        r"ratelimit-(?P<what>remaining|reset)",  # the IETF's draft
    )
)
RESETS = ("reset", "reset-after-seconds", "reset-at")
# Fields anywhere in a JSON body, and the unit of a bare number.
BODY_FIELDS = {
    "retryDelay": "s",  # Google's RetryInfo
    "retry_delay": "s",
    "retry_after": "s",
    "retryAfter": "s",
    "retry_after_s": "s",
    "retry_after_seconds": "s",
    "retry_after_ms": "ms",
    "retryAfterMs": "ms",
    "resets_in_seconds": "s",  # ChatGPT
    "resets_at": "s",
    "reset_at": "s",
}
WORDS = re.compile(r"(?:try(?:ing)?\s+again|retry(?:ing)?|\bwait|\breset|available\s+again)[^.\d]{0,40}?(?=(?P<wait>[0-9].{0,60}))", re.IGNORECASE)
UNTIL_WORDS = re.compile(
    r"(?:regain access|resets?|available again|try again|retry)\s+(?:on|at|after)\s+(?P<day>\d{4}-\d\d-\d\d)(?:T|\s+at\s+|\s)(?P<time>\d\d:\d\d)",
    re.IGNORECASE,
)
# A daily quota, or a limit of nothing at all: providers still write a short wait beside these, which helps nobody.
WAIT_MEANS_NOTHING = re.compile(r"\blimit: 0\b|PerDayPerProject|PerDay\b")
DEEPEST = 12
LONGEST_TEXT = 8192
LONGEST_VALUE = 100


def bounded(seconds: float) -> float | None:
    """Gives a wait between nothing and a month, None where it is no wait at all."""
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_S)


def leading_duration(text: str) -> tuple[float | None, int]:
    """Reads the duration that a text begins with, and where it ends; None and 0 where it begins with none."""
    total, end = 0.0, 0
    while part := DURATION_PART.match(text, end):
        unit = part[2].lower()
        total += float(part[1]) * UNITS_S["ms" if unit.startswith(("ms", "milli")) else unit[0]]
        end = part.end()
    return (total, end) if end else (None, 0)


def duration_s(text: str) -> float | None:
    """Reads "6m0s", "17ms", "23h47m36.6s", "7 seconds", "1 hour and 5 minutes" whole; None for anything else."""
    bare = text.strip()[:LONGEST_VALUE]
    seconds, end = leading_duration(bare)
    return seconds if end == len(bare) else None


def time_s(text: str) -> float | None:
    """Reads an ISO-8601 or HTTP date as Unix seconds; a time without a zone is UTC."""
    bare = text.strip()
    try:
        when = datetime.fromisoformat(bare) if ISO_TIME.fullmatch(bare) else parsedate_to_datetime(bare)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def wait_of(value: Any, now_s: float, unit: str = "s") -> float | None:
    """Reads one value: a number of `unit`, a Unix time in seconds or milliseconds, a duration, or a date.

    Units: seconds from `now_s` (Unix seconds) on. A time that has passed is 0; nonsense is None.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    if NUMBER.fullmatch(text):
        number = float(text)
        if number >= EPOCH_MS_FROM:
            return bounded(max(0.0, number / 1000 - now_s))
        if number >= EPOCH_FROM:
            return bounded(max(0.0, number - now_s))
        return bounded(number * UNITS_S[unit])
    if len(text) > LONGEST_VALUE:
        return None
    if (seconds := duration_s(text)) is not None:
        return bounded(seconds)
    if text[:1].isalnum() and (at := time_s(text)) is not None:
        return bounded(max(0.0, at - now_s))
    return None


def in_headers(headers: Mapping[str, str], now_s: float) -> float | None:
    """The wait that a header states outright."""
    lowered = {name.lower(): value for name, value in headers.items()}
    found = (wait_of(lowered[name], now_s, unit) for name, unit in WAIT_HEADERS if name in lowered)
    return next((wait for wait in found if wait is not None), None)


def in_windows(headers: Mapping[str, str], now_s: float) -> float | None:
    """The wait until every used-up window has begun anew; where no header says which is used up, the only window's."""
    windows: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        for form in WINDOW_HEADERS:
            if match := form.fullmatch(name.lower()):
                groups = match.groupdict()
                # The header's own family is part of the window's name: two families may tell of windows of the same name.
                windows.setdefault(f"{form.pattern}:{groups.get('window') or ''}", {})[groups["what"]] = value
                break
    spent = [said for said in windows.values() if is_spent(said)]
    if spent:
        waits = [wait for said in spent if (wait := reset_of(said, now_s)) is not None]
        return max(waits, default=None)
    silent = [said for said in windows.values() if not is_known(said)]
    return reset_of(silent[0], now_s) if len(silent) == 1 and len(windows) == 1 else None


def is_known(said: Mapping[str, str]) -> bool:
    return any(what not in RESETS for what in said)


def is_spent(said: Mapping[str, str]) -> bool:
    """Tells whether nothing is left of a window."""
    left, used = said.get("remaining", "").strip(), said.get("used-percent", "").strip()
    if NUMBER.fullmatch(left.removeprefix("-")):
        return float(left) <= 0
    if NUMBER.fullmatch(used):
        return float(used) >= 100
    return said.get("status", "").strip().lower() == "rejected"


def reset_of(said: Mapping[str, str], now_s: float) -> float | None:
    found = (wait_of(said[what], now_s) for what in RESETS if what in said)
    return next((wait for wait in found if wait is not None), None)


def in_body(body: Any, text: str, now_s: float) -> float | None:
    """The wait that a body states: in a field, in headers that it repeats, or in words."""
    if WAIT_MEANS_NOTHING.search(text):
        return None
    for name, value in walk(body):
        if name in BODY_FIELDS and (wait := wait_of(value, now_s, BODY_FIELDS[name])) is not None:
            return wait
        if name == "headers" and isinstance(value, Mapping):
            repeated = {key: said for key, said in value.items() if isinstance(key, str) and isinstance(said, str)}
            for wait in (in_headers(repeated, now_s), in_windows(repeated, now_s)):
                if wait is not None:
                    return wait
    return in_words(text, now_s)


def in_words(text: str, now_s: float) -> float | None:
    """The wait in a sentence: "Please try again in 1m26.4s", "Please wait 42 seconds", "regain access on 2026-10-01 at 00:00 UTC"."""
    if match := UNTIL_WORDS.search(text):
        return wait_of(f"{match['day']}T{match['time']}Z", now_s)
    for match in WORDS.finditer(text):
        seconds, _ = leading_duration(match["wait"])
        if seconds is not None:
            return bounded(seconds)
    return None


def walk(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every named value in a JSON body, outermost first."""
    if depth > DEEPEST:
        return
    if isinstance(value, Mapping):
        yield from ((str(name), said) for name, said in value.items())
        for said in value.values():
            yield from walk(said, depth + 1)
    elif isinstance(value, list):
        for said in value[:100]:
            yield from walk(said, depth + 1)


def asked(headers: Mapping[str, str], body: Any, text: str, now_s: float) -> float | None:
    """The wait that an answer asks for: its own header first, then its body, which knows this call, then the windows' resets.

    Shape: `body` is the JSON, or None; `text` the whole body as text.
    Units: seconds, 0 to a month; None where it asks for nothing that can be read.
    """
    for wait in (in_headers(headers, now_s), in_body(body, text[:LONGEST_TEXT], now_s)):
        if wait is not None:
            return wait
    return in_windows(headers, now_s)
