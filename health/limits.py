"""The rules of limits: what one meter holds, whether an amount still fits under its caps, and how the truth replaces a reservation.

A meter counts one measure (requests, tokens, pusd, parallel) of one scope (a key, an endpoint, a model) in up to five windows: the rolling
minute, the calendar day, the calendar month, what is under way, and all that there ever was. Only windows with a cap are kept. Pure: time is
an argument, states are values that are never changed in place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import orjson

MINUTE_MS = 60_000
# A provider counts a call when it arrives, up to so much later than it was entered here: its minute ends later by that, too.
ON_THE_WAY_MS = 1_000
# As many entries of the last minute are kept to the millisecond; beyond, entries of one second become one that leaves with its last.
EXACT_ENTRIES = 240
# Nobody knows when a call under way ends.
PARALLEL_WAIT_S = 1.0
QUARTER_HOUR_MS = 900_000

# How long past its turn a waiting call is still expected.
WANTED_MS = 1_000
# The part of a window, in tenths, that background calls may fill.
BACKGROUND_TENTHS = 9

# What only grows frees by nothing but a higher cap: nobody waits for it.
NEVER_S = 31 * 86_400.0

MINUTE, DAY, MONTH, PARALLEL, TOTAL = "minute", "day", "month", "parallel", "total"


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that each window may hold; None: no cap.

    Shape: `zone` names the time zone of day and month. Units: `late_ms` milliseconds that a minute is longer.
    """

    minute: int | None = None
    day: int | None = None
    month: int | None = None
    parallel: int | None = None
    zone: str = "UTC"
    late_ms: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """What is used.

    Shape: `minute` holds (made_ms, amount), oldest first; `day` and `month` a label and its sum; `zone` is that of the labels. Until `wanted_ms` somebody
    waits for room, before whom no background call may go.
    """

    minute: Sequence[Sequence[int]] = ()
    day: tuple[str, int] | None = None
    month: tuple[str, int] | None = None
    parallel: int = 0
    zone: str = "UTC"
    wanted_ms: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Admitted:
    """It fits. Shape: `windows` are those that it was entered in; `settle` needs them."""

    meter: Meter
    windows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not fit. Shape: `window` is the one that keeps it longest; `never`: the amount alone exceeds a cap.

    Units: `wait_s` seconds until it would fit, were nothing else to come.
    """

    window: str
    wait_s: float
    never: bool = False


def admit(meter: Meter, caps: Caps, amount: int, now_ms: int) -> Admitted | Refused:
    """Enters an amount in every capped window, or in none and says how long to wait."""
    refused: Refused | None = None
    minute, day, month, parallel = meter.minute, meter.day, meter.month, meter.parallel
    windows: list[str] = []
    if caps.minute is not None:
        windows.append(MINUTE)
        minute = recent(minute, now_ms - caps.late_ms)
        over = sum([entry[1] for entry in minute]) + amount - caps.minute
        if over > 0:
            refused = Refused(MINUTE, minute_wait_s(minute, over, now_ms - caps.late_ms), amount > caps.minute)
        minute = entered(minute, amount, now_ms)
    if caps.day is not None or caps.month is not None:
        today = calendar(caps.zone, now_ms // QUARTER_HOUR_MS)
        if caps.day is not None:
            windows.append(DAY)
            day = (today.day, (day[1] if day and day[0] == today.day else 0) + amount)
            if day[1] > caps.day:
                refused = longer(refused, Refused(DAY, (today.day_ends_ms - now_ms) / 1000, amount > caps.day))
        if caps.month is not None:
            windows.append(MONTH)
            month = (today.month, (month[1] if month and month[0] == today.month else 0) + amount)
            if month[1] > caps.month:
                refused = longer(refused, Refused(MONTH, (today.month_ends_ms - now_ms) / 1000, amount > caps.month))
    if caps.parallel is not None:
        windows.append(PARALLEL)
        parallel += amount
        if parallel > caps.parallel:
            refused = longer(refused, Refused(PARALLEL, PARALLEL_WAIT_S, amount > caps.parallel))
    total = meter.total
    if caps.total is not None:
        windows.append(TOTAL)
        total += amount
        if total > caps.total:
            refused = longer(refused, Refused(TOTAL, NEVER_S, amount > caps.total))
    return refused or Admitted(Meter(minute, day, month, parallel, caps.zone, meter.wanted_ms if meter.wanted_ms > now_ms else 0, total), tuple(windows))


def admit_background(meter: Meter, caps: Caps, amount: int, now_ms: int) -> Admitted | Refused:
    """Enters the amount of a call that nobody waits for: it gives way to those who wait for room, and leaves the last of each window to others."""
    if meter.wanted_ms > now_ms:
        return Refused(MINUTE, (meter.wanted_ms - now_ms) / 1000)
    minute, day, month, parallel = (lesser(cap, amount) for cap in (caps.minute, caps.day, caps.month, caps.parallel))
    return admit(meter, Caps(minute, day, month, parallel, caps.zone, caps.late_ms, caps.total), amount, now_ms)


def lesser(cap: int | None, amount: int) -> int | None:
    """Nine tenths of a cap, at least one less than all of it. What fits only into more may still go where nothing else is."""
    if cap is None or cap <= 1:
        return cap
    part = max(min(cap - 1, cap * BACKGROUND_TENTHS // 10), 1)
    return max(part, amount) if amount <= cap else part


def wanted(meter: Meter, wait_s: float, now_ms: int) -> Meter | None:
    """Notes that a call waits for room; None where that is known already."""
    until_ms = now_ms + int(wait_s * 1000) + WANTED_MS
    if meter.wanted_ms >= until_ms - WANTED_MS // 2:
        return None
    return Meter(meter.minute, meter.day, meter.month, meter.parallel, meter.zone, until_ms, meter.total)


def settle(meter: Meter, windows: Sequence[str], reserved: int, truth: int, made_ms: int, now_ms: int) -> Meter:
    """Puts the truth in a reservation's place in every window that still holds it; what was under way no longer is.

    A permit is settled once: the caller holds its row.
    """
    minute, day, month, parallel = meter.minute, meter.day, meter.month, meter.parallel
    change = truth - reserved
    if MINUTE in windows:
        minute = recent(minute, now_ms - ON_THE_WAY_MS)
        if change and made_ms > now_ms - ON_THE_WAY_MS - MINUTE_MS:
            minute = corrected(minute, change, made_ms)
    if change and (day or month):
        then = calendar(meter.zone, made_ms // QUARTER_HOUR_MS)
        if DAY in windows and day and day[0] == then.day:
            day = (day[0], max(day[1] + change, 0))
        if MONTH in windows and month and month[0] == then.month:
            month = (month[0], max(month[1] + change, 0))
    if PARALLEL in windows:
        parallel = max(parallel - reserved, 0)
    total = max(meter.total + change, 0) if TOTAL in windows else meter.total
    return Meter(minute, day, month, parallel, meter.zone, meter.wanted_ms, total)


# ------------------------------------------------------------------ the minute


def recent(minute: Sequence[Sequence[int]], now_ms: int) -> Sequence[Sequence[int]]:
    """The entries that have not left: an entry leaves 60 s after it was made."""
    gone = now_ms - MINUTE_MS
    if not minute or minute[0][0] > gone:
        return minute
    return minute[next((i for i, entry in enumerate(minute) if entry[0] > gone), len(minute)) :]


def entered(minute: Sequence[Sequence[int]], amount: int, now_ms: int) -> Sequence[Sequence[int]]:
    """Adds an entry. One that is not newer than the newest joins it and so stays no shorter than it should, also when hosts' clocks differ."""
    if not amount:
        return minute
    if minute and minute[-1][0] >= now_ms:
        newest = minute[-1]
        return [*minute[:-1], (newest[0], newest[1] + amount)]
    longer = [*minute, (now_ms, amount)]
    return longer if len(longer) <= EXACT_ENTRIES else merged(longer)


def merged(minute: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Makes one entry of each second's, made at the second's end: nothing leaves early."""
    seconds: dict[int, int] = {}
    for made_ms, amount in minute:
        end = -(-made_ms // 1000) * 1000
        seconds[end] = seconds.get(end, 0) + amount
    return list(seconds.items())


def corrected(minute: Sequence[Sequence[int]], change: int, made_ms: int) -> list[Sequence[int]]:
    """Changes the entry that was made at a time, or the one it was merged into; entries of nothing go."""
    entries = list(minute)
    place = bisect_left(entries, made_ms, key=lambda entry: entry[0])
    while change and place < len(entries):
        when, amount = entries[place]
        taken = max(change, -amount)
        entries[place] = (when, amount + taken)
        change -= taken
        place += 1
    if change > 0:
        entries.append((made_ms, change))
    return [entry for entry in entries if entry[1]]


def minute_wait_s(minute: Sequence[Sequence[int]], over: int, now_ms: int) -> float:
    """How long until the oldest entries that are in the way have left."""
    leaves_ms = now_ms
    for made_ms, amount in minute:
        if over <= 0:
            break
        leaves_ms = made_ms + MINUTE_MS
        over -= amount
    return max(leaves_ms - now_ms, 0) / 1000


def longer(one: Refused | None, other: Refused) -> Refused:
    """Of two refusals the one that never ends or ends later."""
    if one is None or (other.never, other.wait_s) > (one.never, one.wait_s):
        return other
    return one


# ------------------------------------------------------------------ the calendar


@dataclass(frozen=True, slots=True)
class Calendar:
    """Which day and month a moment lies in. Units: ends are milliseconds since 1970."""

    day: str
    day_ends_ms: int
    month: str
    month_ends_ms: int


@lru_cache(maxsize=512)
def calendar(zone: str, quarter: int) -> Calendar:
    """Finds day and month of a quarter of an hour: midnight falls on one in every zone there is."""
    where = UTC if zone == "UTC" else ZoneInfo(zone)
    day = datetime.fromtimestamp(quarter * QUARTER_HOUR_MS / 1000, where).date()
    first = day.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return Calendar(
        day.isoformat(),
        midnight_ms(day + timedelta(days=1), where),
        first.isoformat()[:7],
        midnight_ms(following, where),
    )


def midnight_ms(day: date, where: tzinfo) -> int:
    return int(datetime.combine(day, time(), where).timestamp() * 1000)


# ------------------------------------------------------------------ as text


def is_spent(meter: Meter, now_ms: int) -> bool:
    """Tells whether nothing of a meter counts any more."""
    if meter.parallel or meter.total or recent(meter.minute, now_ms - ON_THE_WAY_MS):
        return False
    today = calendar(meter.zone, now_ms // QUARTER_HOUR_MS)
    return not (meter.day and meter.day[0] == today.day and meter.day[1]) and not (meter.month and meter.month[0] == today.month and meter.month[1])


def used(meter: Meter, now_ms: int) -> dict[str, int]:
    """What each window holds now."""
    today = calendar(meter.zone, now_ms // QUARTER_HOUR_MS)
    return {
        MINUTE: sum(entry[1] for entry in recent(meter.minute, now_ms)),
        DAY: meter.day[1] if meter.day and meter.day[0] == today.day else 0,
        MONTH: meter.month[1] if meter.month and meter.month[0] == today.month else 0,
        PARALLEL: meter.parallel,
    }


def encode(meter: Meter) -> str:
    """Writes a meter as the text of its row."""
    fields = [meter.minute, meter.day, meter.month, meter.parallel, meter.zone]
    if meter.total:
        return orjson.dumps([*fields, meter.wanted_ms, meter.total]).decode()
    return orjson.dumps([*fields, meter.wanted_ms] if meter.wanted_ms else fields).decode()


def decode(text: str) -> Meter:
    """Reads a meter's row; an empty text is an unused one."""
    return Meter(*orjson.loads(text)) if text else Meter()
