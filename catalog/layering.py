"""Lays what public catalogs say over the roster: whose word holds for which fact and price, and why something was left out.

Per provider that serves a model, from the most believed: set by hand, the endpoint's own list, models.dev of that provider, OpenRouter, FreeLLMAPI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from django.db import transaction

from access import preferences
from catalog import facts, known, models, prices, sources
from catalog.offers import Offer, known_providers, offers, provider_of

ROUTER = "openrouter"
# What a model is, whoever serves it. How long an answer may be, what it costs and whether a schema holds is each provider's own affair.
OF_THE_MODEL = ("context_window", "tools", "vision", "audio", "files", "reasoning")
# What a server of one's own may have cut: the window, so as to fit into its memory.
OF_THE_SERVER = ("context_window",)
# Endings that tell OpenRouter how to route, of no model of their own. https://openrouter.ai/docs/features/provider-routing
ROUTING = (":nitro", ":floor", ":online", ":exacto")


@dataclass(frozen=True, slots=True)
class Left:
    """Something that a catalog says and that was not taken over, and why."""

    model: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What laying over changed. Shape: `models` aliases with new facts; `prices` alias by alias, source by source, each price as [before, after]."""

    models: tuple[str, ...] = ()
    prices: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]] = field(default_factory=dict)
    left: tuple[Left, ...] = ()


# ------------------------------------------------------------------ which offer is which model


def folded(name: str) -> str:
    """Gives a served name without what says nothing of the model: case, Gemini's "models/" and Ollama's ":latest"."""
    return name.casefold().removeprefix("models/").removesuffix(":latest")


class Index:
    """The offers of one catalog by provider and name. An offer that is still listed is found before one that is gone."""

    def __init__(self, found: Iterable[Offer]) -> None:
        self.exact: dict[tuple[str, str], Offer] = {}
        self.alike: dict[tuple[str, str], list[Offer]] = {}
        self.bare: dict[str, list[Offer]] = {}
        for offer in sorted(found, key=lambda one: one.gone_at is not None):
            self.exact.setdefault((offer.provider, offer.served_name), offer)
            self.alike.setdefault((offer.provider, folded(offer.served_name)), []).append(offer)
            for name in {folded(offer.served_name), folded(offer.served_name).rpartition("/")[2]}:
                self.bare.setdefault(name, []).append(offer)

    def find(self, provider: str, served_name: str) -> Offer | None:
        """Finds what a provider serves by this name: to the letter, else alike, where one alone is."""
        if offer := self.exact.get((provider, served_name)):
            return offer
        return only(self.alike.get((provider, folded(served_name)), []))

    def find_anywhere(self, served_name: str) -> Offer | None:
        """Finds the same model by its name alone, with or without its maker's before it."""
        name = folded(served_name)
        return only(self.bare.get(name, [])) or only(self.bare.get(name.rpartition("/")[2], []))


def only(found: Sequence[Offer]) -> Offer | None:
    """Gives the one that there is, of several still listed none: which is meant nobody knows."""
    listed = [offer for offer in found if offer.gone_at is None] or found
    return listed[0] if len(listed) == 1 else None


# ------------------------------------------------------------------ what they say of one model


@dataclass(frozen=True, slots=True)
class Layer:
    """What one catalog says of one model: `facts` and `prices` that hold, `unpriced` why it has no price."""

    offer: Offer
    facts: Mapping[str, Any]
    prices: Mapping[str, Any]
    unpriced: str = ""


def layers(served_name: str, base_url: str, provider: str, indexes: Mapping[str, Index]) -> dict[str, Layer]:
    """Gathers what each catalog says of a model, by source, the most believed first. Shape: `provider` empty where it is not known."""
    found: dict[str, Layer] = {}
    for source, index in indexes.items():
        if provider and (offer := index.find(provider, served_name)):
            found[source] = Layer(offer, offer.facts, offer.prices, offer.about.get("unpriced", ""))
        elif source == ROUTER and (layer := of_the_router(served_name, base_url, provider, index)):
            found[source] = layer
    if ROUTER in found and found[ROUTER].offer.provider != provider:
        # What a catalog says of the very provider is nearer than what OpenRouter says of the model elsewhere.
        nearer = {name for source, layer in found.items() if source != ROUTER for name in layer.facts}
        layer = found[ROUTER]
        found[ROUTER] = Layer(layer.offer, {name: said for name, said in layer.facts.items() if name not in nearer}, {})
    return {source: layer for source, layer in found.items() if layer.facts or layer.prices or layer.unpriced}


def of_the_router(served_name: str, base_url: str, provider: str, index: Index) -> Layer | None:
    """Reads OpenRouter on a model that another provider serves, or by a routing name of its own: facts of the model, never prices."""
    if provider == ROUTER:
        stem = next((served_name.removesuffix(ending) for ending in ROUTING if served_name.endswith(ending)), "")
        offer = index.find(ROUTER, stem) if stem else None
        return Layer(offer, offer.facts, {}, "It is a way to route, and costs what the provider that is chosen costs.") if offer else None
    offer = index.find_anywhere(served_name)
    if offer is None:
        return None
    unsaid = OF_THE_SERVER if not known.place(base_url)[0] and not provider else ()
    return Layer(offer, {name: offer.facts[name] for name in OF_THE_MODEL if name in offer.facts and name not in unsaid}, {})


def kept(found: Mapping[str, Layer], before: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Writes layers as a model's row keeps them; a fact that a source said before keeps its date."""
    rows: dict[str, Any] = {}
    for source, layer in found.items():
        if not layer.facts:
            continue
        was = before.get(source, {})
        said, dates = was.get("facts", {}), was.get("since", {})
        rows[source] = {
            "offer": f"{layer.offer.provider}/{layer.offer.served_name}",
            "facts": dict(layer.facts),
            "since": {name: dates.get(name) if said.get(name) == value and name in dates else now.isoformat() for name, value in layer.facts.items()},
            **({"gone": layer.offer.gone_at.isoformat()} if layer.offer.gone_at else {}),
        }
    return rows


# ------------------------------------------------------------------ what is written


def is_on(name: str) -> bool:
    """Tells whether a catalog is switched on. One query."""
    return bool(preferences.value("catalog.sources").get(name, True))


def switched_on() -> list[str]:
    """Lists the catalogs that are switched on, the most believed first. One query."""
    chosen = preferences.value("catalog.sources")
    return [source.name for source in sources.every() if chosen.get(source.name, True)]


def apply_offers(now: datetime, model_ids: Iterable[int] | None = None) -> Applied:
    """Lays what catalogs say over models (all without ids), and writes only rows that really change: each write moves the roster's version.

    What a catalog no longer lists stays as it last said it, since a price does not become unknown by a line that went; what was switched off goes.
    """
    if not models.Offer.objects.exists():
        return Applied()
    with transaction.atomic():
        query = models.Model.objects.select_related("endpoint").order_by("alias")
        rows = list(query if model_ids is None else query.filter(pk__in=list(model_ids)))
        if not rows:
            return Applied()
        providers = known_providers()
        of_endpoint = {row.endpoint_id: provider_of(row.endpoint.provider, row.endpoint.base_url, providers) for row in rows}
        indexes = indexes_of({*of_endpoint.values(), ROUTER} - {""})
        priced = newest_prices(rows)
        changed: list[models.Model] = []
        new_prices: list[models.Price] = []
        changes: dict[str, dict[str, dict[str, list[Any]]]] = {}
        left: list[Left] = []
        for row in rows:
            found = layers(row.served_name, row.endpoint.base_url, of_endpoint[row.endpoint_id], indexes)
            catalog_facts = kept(found, row.catalog_facts, now)
            if catalog_facts != row.catalog_facts:
                row.catalog_facts = catalog_facts
                changed.append(row)
            by_source = priced.get(row.pk, {})
            for source in sources.ranks():
                layer = found.get(source)
                if difference := new_price(row, source, layer, by_source.get(source), now.date(), new_prices):
                    changes.setdefault(row.alias, {})[source] = difference
                left.extend(left_out(row.alias, source, layer, by_source.get(facts.HAND)))
        models.Model.objects.bulk_update(changed, ["catalog_facts"], batch_size=200)
        models.Price.objects.bulk_create(
            new_prices, batch_size=200, update_conflicts=True, unique_fields=["model", "since", "source"], update_fields=[*prices.COLUMNS, facts.TIERS]
        )
    return Applied(tuple(row.alias for row in changed), changes, tuple(left))


def indexes_of(providers: Iterable[str]) -> dict[str, Index]:
    """Reads the offers of providers from the catalogs that are on. Two queries."""
    on = switched_on()
    found: dict[str, list[Offer]] = {name: [] for name in on}
    for offer in offers(providers, with_gone=True, names=on):
        found[offer.source].append(offer)
    return {name: Index(of_source) for name, of_source in found.items()}


def newest_prices(rows: Iterable[models.Model]) -> dict[int, dict[str, models.Price]]:
    """Gives each model's newest price of each source."""
    found: dict[int, dict[str, models.Price]] = {}
    for price in models.Price.objects.filter(model__in=[row.pk for row in rows]).order_by("since"):
        found.setdefault(price.model_id, {})[price.source] = price
    return found


def new_price(
    row: models.Model, source: str, layer: Layer | None, before: models.Price | None, day: date, new_prices: list[models.Price]
) -> dict[str, list[Any]]:
    """Adds a price's row from today on where a catalog's prices are others than before, and tells which."""
    said = {name: prices.checked(name, value) for name, value in (layer.prices if layer else {}).items()}
    was = prices.amounts(before) if before else dict.fromkeys(prices.NAMES)
    after = {name: said.get(name) for name in prices.NAMES}
    if was == after:
        return {}
    new_prices.append(models.Price(model=row, since=day, source=source, **{**after, facts.TIERS: after[facts.TIERS] or []}))
    return {name: [prices.text(was[name]), prices.text(after[name])] for name in prices.NAMES if was[name] != after[name]}


def left_out(alias: str, source: str, layer: Layer | None, by_hand: models.Price | None) -> Iterable[Left]:
    """Tells what a catalog says of a model's price and does not hold."""
    if layer is None:
        return
    if layer.unpriced:
        yield Left(alias, source, layer.unpriced)
    held = prices.amounts(by_hand) if by_hand else {}
    for name, said in layer.prices.items():
        if held.get(name) is not None and prices.text(held[name]) != said:
            yield Left(alias, source, f"{name} was set by hand to {prices.text(held[name])}, and stays; it says {said}.")
