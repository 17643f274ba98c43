"""What Discover shows, as frozen values: a model, and the ways to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from catalog.facts import Fact

NEW_FOR = timedelta(days=7)
SHOW, HIDE = "show", "hide"


@dataclass(frozen=True, slots=True)
class Needs:
    """What an endpoint for a route would need. Shape: `key_env` is the variable that the provider's users keep its key in, empty where none is known."""

    kind: str
    base_url: str
    key_env: str
    doc: str


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a model.

    Shape: `kind` is direct (its provider serves it) or hub (something that stands between does). `endpoint` is the endpoint here, empty where there is none,
    and `needs` then says what one would need. `is_listed` tells whether that endpoint's own list has it, None where nobody asked. `is_plan` says that its price
    of nothing is paid for by a subscription, or by one's own machine. `own_app`: free only to the provider's own app.
    """

    kind: str
    provider: str
    title: str
    served_name: str
    endpoint: str
    is_listed: bool | None
    needs: Needs | None
    context_window: int | None
    prices: Mapping[str, Any]
    free: bool
    own_app: bool
    is_plan: bool
    is_deprecated: bool
    limits: Mapping[str, Any]
    budget: str
    sources: tuple[str, ...]

    @property
    def is_reachable(self) -> bool:
        return bool(self.endpoint) and self.is_listed is not False

    @property
    def price(self) -> Decimal | None:
        """What three parts of input and one of output cost, in US dollars per million tokens; None where that is not known, or not told by the price."""
        went, came = self.prices.get("input_usd_per_mtok"), self.prices.get("output_usd_per_mtok")
        if went is None or came is None or self.is_plan:
            return None
        return (3 * Decimal(went) + Decimal(came)) / 4


@dataclass(frozen=True, slots=True)
class Row:
    """One model.

    Shape: `model` is its id here, "maker/name"; `cheapest` is the cheapest route that costs something; `on_roster` aliases; `text` what is searched;
    `places` providers and endpoints, of which only the beginnings of words are: who looks for llama does not mean all that Ollama serves;
    `is_first` says that it came with a catalog's first reading.
    """

    model: str
    title: str
    maker: str
    facts: Mapping[str, Fact]
    routes: tuple[Route, ...]
    cheapest: Route | None
    released: str
    knowledge: str
    open_weights: bool | None
    family: str
    notes: tuple[str, ...]
    first_seen_at: datetime | None
    is_first: bool
    is_deprecated: bool
    on_roster: tuple[str, ...]
    text: str
    places: str

    def says(self, word: str) -> bool:
        """Whether a word, in lower case, stands in one of its names or begins one of its places."""
        return word in self.text or f" {word}" in self.places

    @property
    def is_free(self) -> bool:
        return any(route.free for route in self.routes)

    @property
    def is_reachable(self) -> bool:
        return any(route.is_reachable for route in self.routes)

    def is_new(self, now: datetime) -> bool:
        """Whether it came within the last week. What came when a catalog was read for the first time is old."""
        return self.first_seen_at is not None and not self.is_first and self.first_seen_at > now - NEW_FOR
