"""Reservations: what a call may use up is entered in its meters before it goes out, and settled to the truth when it is over.

All of it happens inside a transaction of the caller's; every statement takes its rows in key order, so that two of them never wait for
each other in a circle.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from health.database import Database, Insert
from health.limits import Admitted, Caps, Meter, Refused, admit, admit_background, decode, encode, settle, wanted
from health.lines import Settle, Whole, dumps

# Measures. A meter's row is named "scope|measure".
REQUESTS, TOKENS, PUSD = "requests", "tokens", "pusd"
# How the meters of limits that only report are named: the scope with this before it.
SHADOW = "shadow:"
REPEATS = 10

Rule = Callable[[Meter, Caps, int, int], Admitted | Refused]
Entry = tuple[str, int, tuple[str, ...]]  # a meter's name, the amount, the windows it was entered in


@dataclass(frozen=True, slots=True)
class Hold:
    """One amount on one meter. Shape: `scope` as in key:7, endpoint:3, model:12. Units: pusd are trillionths of a US dollar."""

    scope: str
    measure: str
    amount: int
    caps: Caps

    @property
    def meter(self) -> str:
        return f"{self.scope}|{self.measure}"


@dataclass(frozen=True, slots=True)
class Ask:
    """One reservation, all or nothing.

    Shape: `id` is that of the attempt or the request it is for; `stub` as in a line's `begin`. `shadow` are limits that refuse nothing: what they would have
    refused is counted. `background`: nobody waits for the call, so it gives way. Units: `patience_s` seconds that it would wait from now.
    """

    id: str
    holds: tuple[Hold, ...]
    expires_at: datetime
    stub: Mapping[str, Any] | Whole
    shadow: tuple[Hold, ...] = ()
    background: bool = False
    patience_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Permit:
    """A reservation that stands until a line settles it, or a sweep does after `expires_at`."""

    id: str


@dataclass(frozen=True, slots=True)
class Denied:
    """What was in the way. Shape: `window` is minute, day, month or parallel; `never`: the amount alone exceeds a cap. Units: `wait_s` seconds."""

    scope: str
    measure: str
    window: str
    wait_s: float
    never: bool


@dataclass(frozen=True, slots=True)
class Reserved:
    """The answer to a request's reservations. Shape: `rest` in the order asked; all denied where `first` was."""

    first: Permit | Denied | None
    rest: tuple[Permit | Denied, ...]
    roster_version: int


@dataclass(frozen=True, slots=True)
class Request:
    """What one request asks for: its key's own limits first, without which the rest is not even looked at."""

    first: Ask | None
    rest: Sequence[Ask]


@dataclass(frozen=True, slots=True)
class Held:
    """A permit's row as far as settling it needs."""

    meter: str
    amount: int
    windows: Sequence[str]
    made_ms: int


def work_off(db: Database, settles: Sequence[Settle], requests: Sequence[Request]) -> list[Reserved]:
    """Settles, then reserves, in as few statements as that takes."""
    ended = taken(db, settles) if settles else []
    names = {held.meter for held, _ in ended}
    for request in requests:
        for ask in (request.first, *request.rest):
            if ask:
                names.update([hold.meter for hold in (*ask.holds, *ask.shadow)])
    meters, version = locked(db, sorted(names), with_version=bool(requests))
    now_ms = time.time_ns() // 1_000_000  # once the locks are held, so that entries come in order
    desk = Desk(meters, now_ms)
    for held, truth in ended:
        if meter := meters.get(held.meter):
            desk.change(held.meter, settle(meter, held.windows, held.amount, truth, held.made_ms, now_ms))
    answers = [desk.answer(request, version) for request in requests]
    if desk.changed:
        db.put(PUT_METER, [(name, encode(meters[name])) for name in sorted(desk.changed)])
    if desk.permits:
        db.put(PUT_PERMIT, [(name, as_column(db, expires_at), holds, stub) for name, expires_at, holds, stub in desk.permits])
    if desk.hits:
        day = datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat()
        db.put(PUT_HIT, [(scope, measure, window, day, calls) for (scope, measure, window), calls in sorted(desk.hits.items())])
    return answers


class Desk:
    """Where one transaction's reservations are answered, from the meters as they are now; and what of it all is to be written."""

    def __init__(self, meters: dict[str, Meter], now_ms: int) -> None:
        self.meters, self.now_ms = meters, now_ms
        self.changed: set[str] = set()
        self.permits: list[tuple[str, datetime, str, str]] = []
        self.hits: Counter[tuple[str, str, str]] = Counter()

    def change(self, name: str, meter: Meter) -> None:
        self.meters[name] = meter
        self.changed.add(name)

    def answer(self, request: Request, version: int) -> Reserved:
        first = self.one(request.first) if request.first else None
        if isinstance(first, Denied):
            return Reserved(first, tuple(first for _ in request.rest), version)
        return Reserved(first, tuple(self.one(ask) for ask in request.rest), version)

    def one(self, ask: Ask) -> Permit | Denied:
        entered = self.enter(ask.holds, admit_background if ask.background else admit)
        if isinstance(entered, Denied):
            if ask.patience_s >= entered.wait_s and not (ask.background or entered.never):
                name = f"{entered.scope}|{entered.measure}"
                if (marked := wanted(self.meters[name], entered.wait_s, self.now_ms)) is not None:
                    self.change(name, marked)
            return entered
        if ask.shadow:
            besides = self.enter(ask.shadow, admit)
            if isinstance(besides, Denied):
                self.hits[besides.scope.removeprefix(SHADOW), besides.measure, besides.window] += 1
            else:
                entered += besides
        self.permits.append((ask.id, ask.expires_at, orjson.dumps([self.now_ms, entered]).decode(), dumps(ask.stub).decode()))
        return Permit(ask.id)

    def enter(self, holds: Sequence[Hold], rule: Rule) -> list[Entry] | Denied:
        """Enters amounts in all meters, or in none."""
        after: dict[str, Meter] = {}
        found: list[Entry] = []
        for hold in holds:
            name = hold.meter
            answer = rule(after.get(name) or self.meters[name], hold.caps, hold.amount, self.now_ms)
            if isinstance(answer, Refused):
                return Denied(hold.scope, hold.measure, answer.window, answer.wait_s, answer.never)
            after[name] = answer.meter
            found.append((name, hold.amount, answer.windows))
        self.meters.update(after)
        self.changed.update(after)
        return found


# ------------------------------------------------------------------ the statements


def taken(db: Database, settles: Sequence[Settle]) -> list[tuple[Held, int]]:
    """Takes permits away, which happens to each of them once, and says what was really used of what each of them held."""
    by_id = {one["permit"]: one for one in settles}
    rows = db.all(f"DELETE FROM health_permit WHERE {db.among('id')} RETURNING id, holds", [db.listed(sorted(by_id))])  # noqa: S608
    found: list[tuple[Held, int]] = []
    for permit, text in rows:
        one = by_id[permit]
        made_ms, holds = orjson.loads(text)
        sums = panel_sums(db, one["panel"]) if one.get("panel") else None  # rows of no panel are nobody's in particular
        for name, amount, windows in holds:
            found.append((Held(name, amount, windows, made_ms), truth_of(one, name, amount, sums)))
    return found


def truth_of(one: Settle, name: str, amount: int, sums: Mapping[str, int] | None) -> int:
    """What was used of one hold."""
    if "panel" in one:
        if sums is None:
            return 0 if one.get("unused") else amount
        return sums.get(name.rpartition("|")[2], amount)
    if one.get("unused"):
        return 0
    return one.get("truth", {}).get(name, amount)


def panel_sums(db: Database, panel: str) -> Mapping[str, int] | None:
    """What a panel's rows sum up to; None where there are none."""
    query = "SELECT COUNT(*), SUM(input_tokens + output_tokens), SUM(cost_pusd) FROM health_attempt WHERE panel = %s"
    count, tokens, pusd = db.all(query, [panel])[0]
    return {TOKENS: int(tokens), PUSD: int(pusd or 0)} if count else None


def locked(db: Database, names: Sequence[str], *, with_version: bool) -> tuple[dict[str, Meter], int]:
    """Reads meters, locked against others until the transaction ends, and the roster's version with them."""
    version = 0
    if not db.is_postgresql:
        # The whole database is this transaction's own.
        if with_version and (rows := db.all("SELECT version FROM access_rosterversion")):
            version = rows[0][0]
        if not names:
            return {}, version
        rows = db.all(f"SELECT scope, state FROM health_meter WHERE {db.among('scope')}", [db.listed(names)])  # noqa: S608
        found = {name: decode(state) for name, state in rows}
        return {name: found.get(name) or Meter() for name in names}, version
    if not names:
        if with_version and (rows := db.all("SELECT version FROM access_rosterversion")):
            version = rows[0][0]
        return {}, version
    version_too = "(SELECT version FROM access_rosterversion LIMIT 1)"
    query = f"SELECT scope, state, {version_too} FROM health_meter WHERE {db.among('scope')} ORDER BY scope FOR UPDATE OF health_meter"  # noqa: S608
    for _ in range(REPEATS):
        rows = db.all(query, [db.listed(names)])
        if len(rows) == len(names):
            return {name: decode(state) for name, state, _ in rows}, rows[0][2] or 0
        # A missing row cannot be locked. It may be missing once more where a sweep deletes it just now.
        db.run("INSERT INTO health_meter (scope, state) SELECT json_array_elements_text(%s::json), '' ON CONFLICT (scope) DO NOTHING", [db.listed(names)])
    raise RuntimeError("Meters vanish as fast as they are made.")


PUT_METER = Insert("health_meter", {"scope": "text", "state": "text"}, "ON CONFLICT (scope) DO UPDATE SET state = excluded.state")
PUT_HIT = Insert(
    "health_shadowhit",
    {"scope": "text", "measure": "text", "window": "text", "day": "date", "calls": "bigint"},
    'ON CONFLICT (scope, measure, "window", day) DO UPDATE SET calls = health_shadowhit.calls + excluded.calls',
)
PUT_PERMIT = Insert("health_permit", {"id": "text", "expires_at": "timestamptz", "holds": "text", "attempt": "text"})


def as_column(db: Database, when: datetime) -> Any:
    """A time as Django keeps it: SQLite's is a text without a zone."""
    return when if db.is_postgresql else str(when.astimezone(UTC).replace(tzinfo=None))
