"""How many calls a connection takes at once, found out by trying: up while all goes well, down at the first sign that it is too many. Told the time.

Source: the rules of Inspect AI's design/adaptive-concurrency.md. Slow start doubles each round until the first cut; then 5% a round, and only where at least
80% of what is allowed was in use. A 429 cuts to 80%, once an episode of 15 s or as long as the provider asks for. Other failures pause the growth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

START, LEAST, MOST = 8, 1, 100
COOLDOWN_S = 15.0
CUT, GROWTH, IN_USE = 0.8, 0.05, 0.8


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a connection, as processes tell each other. Units: `cool_until` seconds since 1970: no growth, and no further cut, before."""

    limit: int = START
    is_slow_start: bool = True
    cool_until: float = 0.0


@dataclass(slots=True)
class Controller:
    """One connection's, as one process sees it.

    Shape: `found.limit` is how many calls all processes together may have under way, `share` this one's part of it, among `processes`; `changes` is told of
    each change, with its reason. Units: `now` seconds since 1970, which all hosts count alike.
    """

    found: Found = field(default_factory=Found)
    most: int = MOST
    processes: int = 1
    changes: Callable[[int, int, str], None] | None = None
    clean: int = 0
    peak: int = 0

    @property
    def share(self) -> int:
        return max(LEAST, self.found.limit // self.processes)

    def started(self, under_way: int) -> None:
        self.peak = max(self.peak, under_way)

    def succeeded(self, now: float) -> None:
        """One call went well. A round is as many as may be under way."""
        self.clean += 1
        if self.clean < self.share:
            return
        was_used = self.peak >= IN_USE * self.share
        self.clean = self.peak = 0
        if now < self.found.cool_until or not was_used:
            return
        limit, is_slow_start = self.found.limit, self.found.is_slow_start
        wanted = limit * 2 if is_slow_start else max(limit + 1, round(limit * (1 + GROWTH)))
        self._set(replace(self.found, limit=min(self.most, wanted)), "slow start" if is_slow_start else "a clean round")

    def limited(self, now: float, retry_after_s: float | None = None) -> None:
        """The provider said that it was too many. Several at once are one episode."""
        self.clean = self.peak = 0
        cool_until = max(self.found.cool_until, now + max(COOLDOWN_S, retry_after_s or 0.0))
        if now >= self.found.cool_until:
            self._set(Found(max(LEAST, int(self.found.limit * CUT)), False, cool_until), "rate limited")
        else:
            self.found = replace(self.found, cool_until=cool_until)

    def failed(self, now: float) -> None:
        """The server failed at something else: no more until it is itself again."""
        self.clean = self.peak = 0
        self.found = replace(self.found, cool_until=max(self.found.cool_until, now + COOLDOWN_S))

    def adopt(self, found: Found, why: str) -> None:
        """Takes over what is known by now."""
        self._set(replace(found, limit=max(LEAST, min(self.most, found.limit))), why)

    def _set(self, found: Found, why: str) -> None:
        before, self.found = self.found, found
        if found.limit != before.limit and self.changes:
            self.changes(before.limit, found.limit, why)


def together(seen: Found, mine: Found, theirs: Found) -> Found:
    """Puts together what this process found since both had `seen`, and what another has written meanwhile: a cut is everybody's, growth is counted once."""
    if theirs == seen:
        return mine
    cuts = [found.limit for found in (mine, theirs) if found.limit < seen.limit]
    limit = min(cuts) if cuts else max(mine.limit, theirs.limit)
    return Found(limit, mine.is_slow_start and theirs.is_slow_start, max(mine.cool_until, theirs.cool_until))
