"""Models worth adding: what all public catalogs and this install's endpoints offer, one row a model, with the routes that this install has to it.

what    the rows, merged once and kept in the process until a catalog, an endpoint, its list or a model of the roster changes
find    those of them that somebody looks for, in pages
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from access import preferences
from access.pages import Page, sliced
from catalog import candidates, layering, models
from catalog.merging import Install, merged
from catalog.offers import known_providers, offers
from catalog.routes import HIDE, SHOW, Route, Row

CAPABILITIES = ("tools", "vision", "reasoning", "structured_output", "audio", "files")
SORTS = ("released", "name", "price", "context", "first_seen")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; empty fields ask nothing. Units: `max_price` US dollars per million tokens, of input and of output."""

    text: str = ""
    provider: str = ""
    can: tuple[str, ...] = ()
    min_context: int = 0
    max_price: Decimal | None = None
    free: bool = False
    open_weights: bool = False
    reachable: bool = False
    new: bool = False
    missing: bool = False
    with_deprecated: bool = False
    sort: str = "released"


# ------------------------------------------------------------------ finding


def find(wanted: Wanted, now: datetime, limit: int, page_token: str) -> tuple[Page[Row], int]:
    """Gives one page of the models that are looked for, and how many there are. Errors: CallerError for a token that is not of this list."""
    found = [row for row in what() if fits(row, wanted, now)]
    return sliced(found, lambda row: order(row, wanted.sort), limit, page_token), len(found)


def fits(row: Row, wanted: Wanted, now: datetime) -> bool:
    if wanted.text and not all(row.says(word) for word in wanted.text.casefold().split()):
        return False
    if any((fact := row.facts.get(name)) is None or fact.value is not True for name in wanted.can):
        return False
    if (wanted.open_weights and row.open_weights is not True) or (wanted.new and not row.is_new(now)) or (wanted.missing and row.on_roster):
        return False
    if row.is_deprecated and not wanted.with_deprecated:
        return False
    # One route must do it all: cheap at one provider and long at another is neither.
    return any(serves(route, wanted) for route in row.routes)


def serves(route: Route, wanted: Wanted) -> bool:
    if (wanted.provider and wanted.provider not in (route.provider, route.endpoint)) or (wanted.reachable and not route.is_reachable):
        return False
    if wanted.min_context and (route.context_window or 0) < wanted.min_context:
        return False
    if wanted.free and not route.free:
        return False
    return wanted.max_price is None or route.free or is_cheap(route, wanted.max_price)


def is_cheap(route: Route, most: Decimal) -> bool:
    amounts = [route.prices.get(name) for name in ("input_usd_per_mtok", "output_usd_per_mtok")]
    return not route.is_plan and all(amount is not None and Decimal(amount) <= most for amount in amounts)


FALLING = str.maketrans("0123456789", "9876543210")


def order(row: Row, sort: str) -> tuple[str, str]:
    """A key that rises in the order that is asked for; what is not known comes last."""
    if sort == "price":
        price = Decimal(0) if row.is_free else row.cheapest.price if row.cheapest else None
        return ("~" if price is None else f"{price:024.8f}"), row.model
    if sort == "context":
        fact = row.facts.get("context_window")
        return ("~" if fact is None else f"{fact.value:012d}".translate(FALLING)), row.model
    if sort == "first_seen":
        return ("~" if row.first_seen_at is None else row.first_seen_at.strftime("%Y%m%d%H%M%S").translate(FALLING)), row.model
    if sort == "released":
        return (row.released.translate(FALLING) if row.released else "~"), row.model
    return row.title.casefold(), row.model


def providers_here() -> list[tuple[str, str]]:
    """Gives the providers that the rows have routes through, id and title, by title."""
    return sorted({(route.provider, route.title) for row in what() for route in row.routes if route.provider}, key=lambda one: one[1].casefold())


def row_of(model: str) -> Row | None:
    return next((row for row in what() if row.model == model), None)


# ------------------------------------------------------------------ keeping

_lock = threading.Lock()
_kept: tuple[Any, tuple[Row, ...]] | None = None


def what() -> tuple[Row, ...]:
    """Gives all rows. Five small queries where nothing changed; else they are merged again, by one thread of the process."""
    global _kept
    install = Install(
        endpoints=tuple(models.Endpoint.objects.order_by("name").values_list("name", "provider", "base_url", "kind")),
        models=tuple(models.Model.objects.order_by("alias").values_list("alias", "endpoint__name", "served_name", "status")),
    )
    own_app = preferences.value("discover.own_app")
    key = (install, stamps(), tuple(sorted(own_app.items())))
    kept = _kept
    if kept is not None and kept[0] == key:
        return kept[1]
    with _lock:
        if _kept is None or _kept[0] != key:
            lists = {one.endpoint: one for one in candidates.every_kept()}
            rows = merged(offers(names=layering.switched_on()), known_providers(), install, lists, own_app)
            _kept = (key, tuple(rows))
        return _kept[1]


def stamps() -> tuple[Any, ...]:
    """What moves when a catalog or a list does."""
    catalogs = tuple(models.Source.objects.order_by("name").values_list("name", "digest", "changed_at", "offers"))
    return catalogs, tuple(layering.switched_on()), tuple(models.Listing.objects.order_by("endpoint_id").values_list("endpoint_id", "tried_at"))


def check_own_app(given: Any) -> dict[str, str]:
    """Gives the setting of whose app-only models are shown. Errors: ValueError."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and 0 < len(name) <= 100 and said in (SHOW, HIDE) for name, said in given.items()):
        raise ValueError('must be an object of providers, each "show" or "hide", like {"opencode": "show"}.')
    return dict(given)
