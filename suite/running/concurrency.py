"""How many calls a connection takes at once, found out by trying: up while all goes well, down at the first sign that it is too many. Told the time.

Source: the rules of Inspect AI's design/adaptive-concurrency.md. Slow start doubles each round until the first cut; then 5% a round, and only where at least
80% of what is allowed was in use. A 429 cuts to 80%, once an episode of 15 s or as long as the provider asks for. Other failures pause the growth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

START, LEAST, MOST = 8, 1, 64
COOLDOWN_S = 15.0
CUT, GROWTH, IN_USE = 0.8, 0.05, 0.8


@dataclass(slots=True)
class Controller:
    """One connection's. Shape: `limit` is how many calls may be under way; `changes` is told of each change, with its reason."""

    limit: int = START
    least: int = LEAST
    most: int = MOST
    changes: Callable[[int, int, str], None] | None = None
    is_slow_start: bool = True
    cool_until: float = 0.0
    clean: int = field(default=0)
    peak: int = field(default=0)

    def started(self, under_way: int) -> None:
        self.peak = max(self.peak, under_way)

    def succeeded(self, now: float) -> None:
        """One call went well. A round is as many as the limit."""
        self.clean += 1
        if self.clean < self.limit:
            return
        was_used = self.peak >= IN_USE * self.limit
        self.clean = self.peak = 0
        if now < self.cool_until or not was_used:
            return
        wanted = self.limit * 2 if self.is_slow_start else max(self.limit + 1, round(self.limit * (1 + GROWTH)))
        self._set(min(self.most, wanted), "slow start" if self.is_slow_start else "a clean round")

    def limited(self, now: float, retry_after_s: float | None = None) -> None:
        """The provider said that it was too many. Several at once are one episode."""
        self.clean = self.peak = 0
        if now >= self.cool_until:
            self.is_slow_start = False
            self._set(max(self.least, int(self.limit * CUT)), "rate limited")
        self.cool_until = max(self.cool_until, now + max(COOLDOWN_S, retry_after_s or 0.0))

    def failed(self, now: float) -> None:
        """The server failed at something else: no more until it is itself again."""
        self.clean = self.peak = 0
        self.cool_until = max(self.cool_until, now + COOLDOWN_S)

    def _set(self, limit: int, why: str) -> None:
        if limit != self.limit:
            before, self.limit = self.limit, limit
            if self.changes:
                self.changes(before, limit, why)
