"""What an answer's headers tell of limits: how much there is, what is left, when it begins anew. Pure tables; a new provider is a line in one of them.

Header names are alike while their meaning differs: Groq's limit of requests is a day's where OpenAI's is a minute's. `HOSTS` says so by address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import urlsplit

from wire.waits import NUMBER, bounded, wait_of

REQUESTS, TOKENS, CONCURRENT, PERCENT = "requests", "tokens", "concurrent", "percent"
# A number past any limit is a provider's way to say that there is none.
NO_LIMIT = 10**15


@dataclass(frozen=True, slots=True)
class Told:
    """One limit as an answer tells it; None for what it does not say.

    Shape: `unit` requests, tokens or concurrent; percent, credits or neurons where a provider counts those. `window` second, minute, hour, day, week, month,
    or a number before one of these words, as in 5minute. `direction` input or output where they are counted apart. Units: `reset_s` seconds from now.
    """

    unit: str
    window: str | None
    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None
    direction: str = ""
    by: str = "header"


@dataclass(frozen=True, slots=True)
class Habits:
    """What one provider means by what its headers leave open.

    Shape: `windows` by unit, for names that say no window; `bare` is what a name without unit and window counts. `per_model`: each model has limits of its
    own there, else all models behind a key share them. `zone`: whose midnight ends a day.
    """

    windows: Mapping[str, str] = field(default_factory=dict)
    bare: tuple[str, str | None] = (REQUESTS, None)
    per_model: bool = False
    zone: str = "UTC"


USUAL = Habits()
EACH_MODEL = Habits(per_model=True)
HOSTS: Mapping[str, Habits] = {
    "api.openai.com": EACH_MODEL,  # platform.openai.com/docs/guides/rate-limits
    "openai.azure.com": EACH_MODEL,
    "cognitiveservices.azure.com": EACH_MODEL,
    "api.anthropic.com": EACH_MODEL,  # docs.anthropic.com/en/api/rate-limits
    "api.groq.com": Habits(windows={REQUESTS: "day"}, per_model=True),  # console.groq.com/docs/rate-limits
    "api.cerebras.ai": EACH_MODEL,
    "api.sambanova.ai": EACH_MODEL,
    "api.x.ai": EACH_MODEL,
    "googleapis.com": Habits(per_model=True, zone="America/Los_Angeles"),  # ai.google.dev/gemini-api/docs/rate-limits
    "models.github.ai": Habits(bare=(REQUESTS, "hour"), per_model=True),
    "models.inference.ai.azure.com": EACH_MODEL,
    "api.together.xyz": Habits(windows={TOKENS: "second"}, bare=(REQUESTS, "second")),  # docs.together.ai/docs/rate-limits
    "api.together.ai": Habits(windows={TOKENS: "second"}, bare=(REQUESTS, "second")),
}

# How names that tell of limits begin, and what stands for the unit where the rest of the name has none.
FAMILIES: tuple[tuple[str, str], ...] = (
    ("x-ratelimit-", ""),
    ("anthropic-ratelimit-", ""),
    ("ratelimit-", ""),  # the IETF's draft, up to its seventh version
    ("x-rate-limit-", ""),
    ("x-tokenlimit-", TOKENS),  # Together
)
WHATS = frozenset({"limit", "remaining", "reset", "status", "renewalperiod"})
UNITS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("requests", "request", "req", "queries", "calls", "unified"), (REQUESTS, "")),
    **dict.fromkeys(("tokens", "token"), (TOKENS, "")),
    **dict.fromkeys(("input", "prompt"), (TOKENS, "input")),
    **dict.fromkeys(("output", "generated", "completion"), (TOKENS, "output")),
    **dict.fromkeys(("concurrent", "concurrency", "parallel"), (CONCURRENT, "")),
}
WINDOWS: Mapping[str, str] = {
    **{word: word for word in ("second", "minute", "hour", "day", "week", "month", "5h")},
    **{"sec": "second", "min": "minute", "7d": "week", "1m": "minute", "1h": "hour", "1d": "day", "daily": "day", "monthly": "month"},
}
OF_SECONDS: Mapping[int, str] = {1: "second", 60: "minute", 300: "5minute", 3600: "hour", 18_000: "5h", 86_400: "day", 604_800: "week", 2_592_000: "month"}
# Names that follow no family: what they tell, of which unit and window.
NAMES: Mapping[str, tuple[str, str, str | None, str]] = {
    "x-endpoint-monthly-call-limit": ("limit", REQUESTS, "month", ""),  # Cohere
    "x-trial-endpoint-call-limit": ("limit", REQUESTS, "minute", ""),
    "x-trial-endpoint-call-remaining": ("remaining", REQUESTS, "minute", ""),
}
CODEX = re.compile(r"x-codex-(primary|secondary)-(used-percent|window-minutes|reset-after-seconds|reset-at)")  # ChatGPT
FEW = re.compile(r"[1-9][0-9]?")  # of a window: more would be no end of them
NOTHING: Mapping[str, str] = {}
STARTS = (*(start for start, _ in FAMILIES), "ratelimit", "x-codex-", "x-endpoint-", "x-trial-")
LIST_WINDOW = re.compile(r";\s*w=(\d{1,9})\b")
POLICY = re.compile(r";\s*(?P<name>[qrtw])=(?P<value>\d{1,15})\b")


@lru_cache(maxsize=1024)
def habits_of(base_url: str) -> Habits:
    """What is known of the provider at an address."""
    try:
        host = (urlsplit(base_url).hostname or "").lower()
    except ValueError:
        return USUAL
    return next((habits for name, habits in HOSTS.items() if host == name or host.endswith(f".{name}")), USUAL)


@lru_cache(maxsize=1024)
def read_name(name: str) -> tuple[str, str, str | None, str] | None:
    """What a header's name says: what it tells, unit (empty: none named), window, direction. None where it tells of no limit that is known."""
    if found := NAMES.get(name):
        return found
    start, unit = next(((start, unit) for start, unit in FAMILIES if name.startswith(start)), ("", ""))
    if not start:
        return None
    what, window, direction = "", None, ""
    words = name[len(start) :].split("-")
    for i, word in enumerate(words):
        if word in WHATS and not what:
            what = word
        elif word in UNITS:
            said, way = UNITS[word]
            unit, direction = unit or said, way or direction
        elif word in WINDOWS:
            window = f"{words[i - 1]}{WINDOWS[word]}" if i and FEW.fullmatch(words[i - 1]) else WINDOWS[word]
        elif not (FEW.fullmatch(word) and i + 1 < len(words) and words[i + 1] in WINDOWS):
            return None
    if not what or ("unified" in words and window is None):
        return None
    return what, unit, window, direction


def told(headers: Mapping[str, str], base_url: str, now_s: float) -> tuple[Told, ...]:
    """Reads every limit that an answer's headers tell of.

    Shape: `headers` by lower-case names. Units: `now_s` Unix seconds, which resets given as times are measured from.
    """
    return read(named, habits_of(base_url), now_s) if (named := said(headers)) else ()


def said(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Picks the headers that may tell of limits, unread; most answers have none."""
    together = "\n".join(headers)
    if "limit" not in together and "x-codex-" not in together:
        return NOTHING
    names = [name for name in headers if name.startswith(STARTS)]
    return {name: headers[name] for name in names} if names else NOTHING


def read(headers: Mapping[str, str], habits: Habits, now_s: float) -> tuple[Told, ...]:
    """Reads headers that tell of limits; passes over the others."""
    groups: dict[tuple[str, str | None, str], dict[str, str]] = {}
    codex: dict[str, dict[str, str]] = {}
    found: list[Told] = []
    for name in headers:
        if parts := read_name(name):
            what, unit, window, direction = parts
            groups.setdefault((unit, window, direction), {}).setdefault(what, headers[name])
        elif match := CODEX.fullmatch(name):
            codex.setdefault(match[1], {})[match[2]] = headers[name]
        elif name == "ratelimit":  # the IETF's draft, from its eighth version on
            found += policy(headers[name], headers.get("ratelimit-policy", ""))
    for (unit, window, direction), said in groups.items():
        if one := of_group(unit, window, direction, said, habits, now_s):
            found.append(one)
    for said in codex.values():
        if one := of_codex(said, now_s):
            found.append(one)
    return tuple(found)


def of_group(unit: str, window: str | None, direction: str, said: Mapping[str, str], habits: Habits, now_s: float) -> Told | None:
    text = said.get("limit", "")
    limit, remaining = number(text), number(said.get("remaining", ""))
    reset_s = wait_of(said["reset"], now_s) if "reset" in said else None
    if said.get("status", "").strip().lower() == "rejected":
        remaining = 0
    elif "status" in said and limit is None and remaining is None:
        return None
    if max(limit or 0, remaining or 0) >= NO_LIMIT:
        return None
    if window is None:
        if seconds := LIST_WINDOW.search(text):
            window = OF_SECONDS.get(int(seconds[1]))
        elif (seconds_text := said.get("renewalperiod", "").strip()).isdigit():
            window = OF_SECONDS.get(int(seconds_text[:9]))
        elif unit:
            # What is left of something unsaid tells nothing of its window.
            window = habits.windows.get(unit) or ("minute" if limit is not None and unit != CONCURRENT else None)
        else:
            unit, window = habits.bare
    if limit is None and remaining is None and reset_s is None:
        return None
    return Told(unit or habits.bare[0], window, limit, remaining, reset_s, direction)


def of_codex(said: Mapping[str, str], now_s: float) -> Told | None:
    used, minutes = number(said.get("used-percent", "")), number(said.get("window-minutes", ""))
    if used is None or not minutes:
        return None
    resets = [wait for what in ("reset-after-seconds", "reset-at") if what in said and (wait := wait_of(said[what], now_s)) is not None]
    return Told(PERCENT, OF_SECONDS.get(int(minutes * 60)), 100, max(100 - used, 0), resets[0] if resets else None)


def policy(state: str, policies: str) -> list[Told]:
    """Reads `"default";r=50;t=30` beside `"default";q=100;w=60`, the first of each."""
    now = {m["name"]: int(m["value"]) for m in POLICY.finditer(state.split(",")[0][:200])}
    whole = {m["name"]: int(m["value"]) for m in POLICY.finditer(policies.split(",")[0][:200])}
    if "r" not in now:
        return []
    return [Told(REQUESTS, OF_SECONDS.get(whole.get("w", 0)), whole.get("q"), now["r"], bounded(now["t"]) if "t" in now else None)]


def number(text: str) -> float | None:
    """A count at the beginning of a header's value; below nothing is nothing left."""
    bare = text.split(",")[0].split(";")[0].strip()
    if not NUMBER.fullmatch(bare.removeprefix("-")):
        return None
    if bare.startswith("-"):
        return None if bare == "-1" else 0  # -1 is a way to say that there is no limit
    value = float(bare)
    return int(value) if value.is_integer() else value


def joined(first: Sequence[Told], more: Sequence[Told]) -> tuple[Told, ...]:
    """Puts what two sources tell of the same limit into one; the first one's word goes where both say something."""
    found = list(first)
    for one in more:
        at = next((i for i, there in enumerate(found) if is_same(there, one)), None)
        if at is None:
            found.append(one)
            continue
        there = found[at]
        found[at] = replace(
            there,
            window=there.window or one.window,
            limit=one.limit if there.limit is None else there.limit,
            remaining=one.remaining if there.remaining is None else there.remaining,
            reset_s=one.reset_s if there.reset_s is None else there.reset_s,
        )
    return tuple(found)


def is_same(one: Told, other: Told) -> bool:
    """The same unit and window; a window that is not told is any, unless the limits differ."""
    if (one.unit, one.direction) != (other.unit, other.direction):
        return False
    if one.window == other.window:
        return True
    differ = one.limit is not None and other.limit is not None and one.limit != other.limit
    return (one.window is None or other.window is None) and not differ
