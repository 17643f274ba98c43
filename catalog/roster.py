"""The roster as frozen values: what a request's plan needs to know of endpoints and models, read from the database in one go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Shape: `key` is in the clear, for the Authorization header only; `limits` and `quirks` as the roster file has them; `learned` limits likewise."""

    id: int
    name: str
    kind: str
    base_url: str
    key: str = field(repr=False)
    limits: Mapping[str, Any]
    quirks: Mapping[str, Any]
    learned: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tier:
    """The prices of a call whose input is longer than `above_tokens`: all of them, those that the tier leaves as they are too. Units: as Price."""

    above_tokens: int
    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Units: US dollars per million tokens. None: unknown. Cached tokens of unknown price cost what other input does, thinking what other output does.

    Shape: `tiers` the shortest first; the last one that a call's input passes holds for the whole call.
    """

    since: date
    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None
    tiers: tuple[Tier, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """Shape: `facts` are merged, by hand over listed over catalogs; `prices` newest first.

    Units: `context_window`, `output_limit` tokens; None: unknown, and then nothing is refused for it.
    """

    id: int
    alias: str
    endpoint: Endpoint
    served_name: str
    limits: Mapping[str, Any]
    facts: Mapping[str, Any]
    quirks: Mapping[str, Any]
    ad_hoc: bool
    retired: bool
    status_reason: str
    prices: tuple[Price, ...]
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def context_window(self) -> int | None:
        return self.facts.get("context_window")

    @property
    def output_limit(self) -> int | None:
        return self.facts.get("output_limit")

    def price_on(self, day: date) -> Price | None:
        """The price that holds on a day (UTC)."""
        return next((p for p in self.prices if p.since <= day), None)
