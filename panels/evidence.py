"""What decides a pick, as a worker process knows it: beliefs from verdicts, kept until another verdict comes, and who sat in a collection's last panels."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import Max

from health import reliability
from panels import picking, records
from panels.models import Verdict
from panels.picking import NOTHING, Beliefs, Word

# However many verdicts come, beliefs are read anew at most so often; a read that takes long is rarer still.
AT_MOST_EVERY_S = 1.0
AT_LEAST_EVERY_S = 60.0
SHARE_OF_TIME = 20
HEALTH_DAYS = 14
OWN_PANELS = 200

LAST_PANELS = (
    "SELECT p.id, p.asked_at, s.model FROM (SELECT id, asked_at FROM panels_panel WHERE collection = %s AND mode IN ('panel', 'merged')"
    " ORDER BY asked_at DESC LIMIT %s) p LEFT JOIN panels_seat s ON s.panel_id = p.id AND s.seat = 'member' AND s.status <> 'skipped'"
)


@dataclass(frozen=True, slots=True)
class Known:
    """Beliefs as they were read. Shape: `verdict` the last verdict there was; `read_at` and `took_s` by the monotonic clock."""

    beliefs: Beliefs
    aliases: frozenset[str]
    verdict: int
    read_at: float
    took_s: float

    def holds(self, aliases: Sequence[str], verdict: int) -> bool:
        age = time.monotonic() - self.read_at
        if not self.aliases.issuperset(aliases) or age > AT_LEAST_EVERY_S:
            return False
        return verdict == self.verdict or age < max(AT_MOST_EVERY_S, SHARE_OF_TIME * self.took_s)


@dataclass(frozen=True, slots=True)
class Sat:
    """One panel that this process seated."""

    panel: str
    at: datetime
    aliases: frozenset[str]


class Evidence:
    """One a process. With the database away, what this process knows decides."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.executor = executor
        self.known: dict[str, Known] = {}
        self.reading: dict[str, asyncio.Future[Known]] = {}
        self.own: dict[str, deque[Sat]] = {}

    async def beliefs(self, collection: str, aliases: Sequence[str], now: datetime) -> Beliefs:
        """What is thought of these models in a collection, this moment's verdicts included but for a second."""
        known = self.known.get(collection)
        if known is not None and known.holds(aliases, known.verdict) and time.monotonic() - known.read_at < AT_MOST_EVERY_S:
            return known.beliefs
        if (reading := self.reading.get(collection)) is None:
            loop = asyncio.get_running_loop()
            reading = loop.run_in_executor(self.executor, partial(self.look, collection, tuple(aliases), now))
            self.reading[collection] = reading
            reading.add_done_callback(lambda _: self.reading.pop(collection, None))
        try:
            known = self.known[collection] = await asyncio.shield(reading)
        except DatabaseError:
            pass  # the last word known is better than none
        return known.beliefs if known else NOTHING

    def look(self, collection: str, aliases: tuple[str, ...], now: datetime) -> Known:
        """Reads beliefs anew unless those known still hold. In a thread."""
        began = time.monotonic()
        try:
            last = Verdict.objects.aggregate(last=Max("id"))["last"] or 0
            known = self.known.get(collection)
            if known is not None and known.holds(aliases, last):
                return known
            found = read_beliefs(collection, aliases, now)
        except DatabaseError:
            connection.close()
            raise
        return Known(found, frozenset(aliases), last, time.monotonic(), time.monotonic() - began)

    # ------------------------------------------------------------------ who sat

    def note(self, collection: str, panel: str, at: datetime, aliases: Sequence[str]) -> None:
        """Remembers who sits as members, until the database knows it too."""
        self.own.setdefault(collection, deque(maxlen=OWN_PANELS)).append(Sat(panel, at, frozenset(aliases)))

    async def last_panels(self, collection: str, panels: int) -> list[frozenset[str]]:
        """Who sat as a member in each of a collection's last panels, the last one first: the database's word, and what this process seated since."""
        try:
            stored = await asyncio.get_running_loop().run_in_executor(self.executor, read_last_panels, collection, panels)
        except DatabaseError:
            stored = {}
        for sat in self.own.get(collection, ()):
            stored.setdefault(sat.panel, sat)
        return [sat.aliases for sat in sorted(stored.values(), key=lambda s: s.at, reverse=True)[:panels]]


def read_beliefs(collection: str, aliases: Sequence[str], now: datetime) -> Beliefs:
    """Reads verdicts here, and where there are any what else is known of the models."""
    half_life = records.half_life_days()
    judged = records.usefulness(collection, now, half_life)
    if not judged:
        return NOTHING
    elsewhere = records.elsewhere(collection, aliases, now, half_life)
    scores = records.scores(collection, aliases)
    answered = reliability.answered_since(aliases, (now - timedelta(days=HEALTH_DAYS)).date())
    health = {alias: Word(calls / of, float(of)) for alias, (calls, of) in answered.items()}
    return picking.beliefs(judged, {a: picking.prior(scores.get(a), elsewhere.get(a), health.get(a)) for a in aliases})


def read_last_panels(collection: str, panels: int) -> dict[str, Sat]:
    """Reads who sat in a collection's last panels. One query, by an index."""
    found: dict[str, tuple[datetime, set[str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(LAST_PANELS, [collection, panels])
        for panel, at, model in cursor.fetchall():
            sat = found.setdefault(panel, (aware(at), set()))
            if model is not None:
                sat[1].add(model)
    return {panel: Sat(panel, at, frozenset(sat)) for panel, (at, sat) in found.items()}


def aware(at: datetime | str) -> datetime:
    """A time as the database gives it: SQLite keeps text, in UTC and without saying so."""
    found = datetime.fromisoformat(at) if isinstance(at, str) else at
    return found if found.tzinfo else found.replace(tzinfo=UTC)
