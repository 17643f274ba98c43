"""Merges what catalogs offer and endpoints list into one row a model, each with its routes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from catalog import identity, model_lists
from catalog.candidates import Kept, Names
from catalog.facts import FACT_FIELDS, LISTED, PRICE_FIELDS, TIERS, Fact
from catalog.known import KnownProvider, provider_of
from catalog.offers import Offer
from catalog.providers import Listed
from catalog.routes import HIDE, SHOW, Needs, Route, Row

# Providers that pass on what others serve, by models.dev's ids.
# fmt: off
HUBS = frozenset({
    "302ai", "aihubmix", "anyapi", "cloudflare-ai-gateway", "fastrouter", "github-copilot", "helicone", "huggingface", "kilo", "llmgateway", "llmtr",
    "merge-gateway", "nano-gpt", "opencode", "openrouter", "orcarouter", "poe", "requesty", "routing-run", "vercel", "zenmux",
})
# fmt: on
# A maker's own provider, where it has another id than the maker.
OF_MAKER: Mapping[str, str] = {"amazon": "amazon-bedrock", "meta": "llama", "microsoft": "azure"}
FIRST_READING = timedelta(minutes=1)
MOST_NOTES = 3


@dataclass(frozen=True, slots=True)
class Install:
    """What this install has. Shape: `endpoints` as (name, stated provider, base URL, kind), `models` as (alias, endpoint, served name, status)."""

    endpoints: tuple[tuple[str, str, str, str], ...]
    models: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Here:
    """One endpoint here. Shape: `provider` empty where it is none that catalogs know; `names` None where its list tells nothing of what is missing."""

    name: str
    provider: str
    is_hub: bool
    listed: tuple[Listed, ...]
    names: Names | None


def merged(
    found: Iterable[Offer], providers: Mapping[str, KnownProvider], install: Install, lists: Mapping[str, Kept], own_app: Mapping[str, str]
) -> list[Row]:
    """Gives a row for each model that answers prompts. Shape: `own_app` says per provider whether its app-only models are shown; hidden without it."""
    chatting = [offer for offer in found if writes_text(offer)]
    here = [here_of(row, providers, lists.get(row[0])) for row in install.endpoints]
    listed = [(endpoint, one) for endpoint in here for one in endpoint.listed if one.chat]
    seated = [(alias, endpoint, served_name) for alias, endpoint, served_name, _ in install.models]
    ids = identity.ids_of([*(offer.served_name for offer in chatting), *(one.served_name for _, one in listed), *(name for _, _, name in seated)])
    by_id: dict[str, list[Offer]] = defaultdict(list)
    for offer in chatting:
        by_id[ids[offer.served_name]].append(offer)
    lists_of: dict[str, list[tuple[Here, Listed]]] = defaultdict(list)
    for endpoint, one in listed:
        lists_of[ids[one.served_name]].append((endpoint, one))
    aliases: dict[str, list[str]] = defaultdict(list)
    for alias, _, served_name in seated:
        aliases[ids[served_name]].append(alias)
    firsts = first_readings(chatting)
    rows = []
    for model in {**by_id, **lists_of}:
        routes = [r for r in routes_of(by_id[model], lists_of[model], here, providers) if not r.own_app or own_app.get(r.provider, HIDE) == SHOW]
        if routes:
            rows.append(row_of(model, by_id[model], lists_of[model], routes, tuple(sorted(aliases[model])), firsts))
    return rows


def writes_text(offer: Offer) -> bool:
    """Whether a model answers prompts. Catalogs give text as the output of embeddings and rerankers too, so its name is looked at as well."""
    writes = offer.about.get("output")
    return (not writes or "text" in writes) and model_lists.chats(None, offer.served_name)


def here_of(row: tuple[str, str, str, str], providers: Mapping[str, KnownProvider], kept: Kept | None) -> Here:
    name, stated, base_url, _ = row
    provider = provider_of(stated, base_url, providers.values())
    is_known = kept is not None and not kept.error and bool(kept.models) and kept.is_whole
    return Here(
        name=name,
        provider=provider,
        # What stands in an own network passes on, or runs, what others made: no provider's own door.
        is_hub=provider in HUBS or (not provider and bool(kept and kept.hub)),
        listed=kept.models if kept else (),
        names=Names(one.served_name for one in kept.models) if kept and is_known else None,
    )


def first_readings(found: Iterable[Offer]) -> dict[str, datetime]:
    """When each catalog was read for the first time, plus what that may have taken."""
    firsts: dict[str, datetime] = {}
    for offer in found:
        firsts[offer.source] = min(firsts.get(offer.source, offer.first_seen_at), offer.first_seen_at)
    return {source: at + FIRST_READING for source, at in firsts.items()}


# ------------------------------------------------------------------ routes


def routes_of(found: Sequence[Offer], listed: Sequence[tuple[Here, Listed]], here: Sequence[Here], providers: Mapping[str, KnownProvider]) -> list[Route]:
    """Gives every way to one model, those that are open first, then the cheaper ones."""
    together: dict[tuple[str, str], list[Offer]] = {}
    for offer in found:
        together.setdefault((offer.provider, offer.served_name.casefold()), []).append(offer)
    at: dict[str, list[Here]] = defaultdict(list)
    for endpoint in here:
        if endpoint.provider:
            at[endpoint.provider].append(endpoint)
    routes: list[Route] = []
    taken: set[tuple[str, str]] = set()
    for (provider, _), several in together.items():
        route = route_of(several, providers.get(provider))
        for endpoint in at.get(provider, ()):
            is_listed = None if endpoint.names is None else route.served_name in endpoint.names
            name = next((one.served_name for one in endpoint.listed if one.served_name.casefold() == route.served_name.casefold()), route.served_name)
            routes.append(replace(route, endpoint=endpoint.name, is_listed=is_listed, needs=None, served_name=name))
            taken.add((endpoint.name, name))
        if provider not in at:
            routes.append(route)
    for endpoint, one in listed:
        if (endpoint.name, one.served_name) not in taken:
            routes.append(listed_route(endpoint, one, providers.get(endpoint.provider)))
    return sorted(routes, key=lambda r: (not r.is_reachable, r.is_deprecated, not r.free, r.price is None, r.price or 0, r.provider, r.endpoint, r.served_name))


def route_of(several: Sequence[Offer], known: KnownProvider | None) -> Route:
    """One provider's offer of a model, as several catalogs tell it; the most believed come first."""
    first = several[0]
    prices: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for offer in several:
        prices = {**{name: said for name, said in offer.prices.items() if name in PRICE_FIELDS or name == TIERS}, **prices}
        limits = {**offer.limits, **limits}
    base_url = known.base_url if known else ""
    kind = next((said for offer in several if (said := offer.about.get("kind"))), known.kind if known else "")
    return Route(
        kind="hub" if first.provider in HUBS else "direct",
        provider=first.provider,
        title=known.title if known and known.title else first.provider,
        served_name=first.served_name,
        endpoint="",
        is_listed=None,
        needs=Needs(kind, base_url, known.key_env if known else "", known.doc if known else ""),
        context_window=next((said for offer in several if (said := offer.facts.get("context_window"))), None),
        prices=prices,
        free=any(offer.free for offer in several),
        own_app=any(offer.own_app for offer in several),
        is_plan=any(offer.about.get("plan") or offer.about.get("own_machine") for offer in several),
        is_deprecated=any(offer.about.get("status") == "deprecated" for offer in several),
        limits=limits,
        budget=next((said for offer in several if (said := offer.about.get("budget"))), ""),
        sources=tuple(dict.fromkeys(offer.source for offer in several)),
    )


def listed_route(endpoint: Here, one: Listed, known: KnownProvider | None) -> Route:
    """A way that no catalog knows of: an endpoint here lists the model."""
    return Route(
        kind="hub" if endpoint.is_hub else "direct",
        provider=endpoint.provider,
        title=known.title if known and known.title else endpoint.name,
        served_name=one.served_name,
        endpoint=endpoint.name,
        is_listed=True,
        needs=None,
        context_window=one.facts.get("context_window"),
        prices={name: said for name, said in one.facts.items() if name in PRICE_FIELDS and said is not None},
        free=False,
        own_app=False,
        is_plan=False,
        is_deprecated=False,
        limits={},
        budget="",
        sources=(LISTED,),
    )


# ------------------------------------------------------------------ rows


def row_of(
    model: str,
    found: Sequence[Offer],
    listed: Sequence[tuple[Here, Listed]],
    routes: Sequence[Route],
    on_roster: tuple[str, ...],
    firsts: Mapping[str, datetime],
) -> Row:
    maker, _, stem = model.rpartition("/")
    own = OF_MAKER.get(maker, maker)
    # Of the model itself its maker knows best; of the others the most believed catalog, which comes first.
    ranked = sorted(found, key=lambda offer: offer.provider != own)
    titles = Counter(offer.title for offer in ranked if offer.title)
    title = ranked[0].title if ranked and ranked[0].provider == own and ranked[0].title else titles.most_common(1)[0][0] if titles else ""
    about = [offer.about for offer in ranked]
    weights = [said for one in about if isinstance(said := one.get("open_weights"), bool)]
    priced = [route for route in routes if route.price and not route.is_deprecated]  # what is free is said apart
    names = {route.served_name for route in routes}
    places = {route.title for route in routes} | {route.endpoint for route in routes}
    return Row(
        model=model,
        title=title or (listed[0][1].served_name if listed else stem),
        maker=maker,
        facts=facts_of(ranked, own, listed),
        routes=tuple(routes),
        cheapest=min(priced, key=lambda route: (route.price or 0, route.provider)) if priced else None,
        released=first_said(about, "released"),
        knowledge=first_said(about, "knowledge"),
        open_weights=True in weights if weights else None,
        family=first_said(about, "family"),
        notes=tuple(dict.fromkeys(note for one in about for note in one.get("notes") or ()))[:MOST_NOTES],
        first_seen_at=min((offer.first_seen_at for offer in found), default=None),
        is_first=any(offer.first_seen_at <= firsts[offer.source] for offer in found),
        is_deprecated=bool(found) and all(route.is_deprecated for route in routes),
        on_roster=on_roster,
        text=" ".join([model, title, *sorted(names), *on_roster]).casefold(),
        places=" ".join(["", *sorted(places)]).casefold(),
    )


def first_said(about: Iterable[Mapping[str, Any]], name: str) -> str:
    return next((said for one in about if isinstance(said := one.get(name), str) and said), "")


def facts_of(ranked: Sequence[Offer], own: str, listed: Sequence[tuple[Here, Listed]]) -> dict[str, Fact]:
    """What is known of the model, prices apart. Where its maker says nothing, the window is the one that most providers give."""
    found: dict[str, Fact] = {}
    for name in FACT_FIELDS:
        if name in PRICE_FIELDS:
            continue
        said = [offer for offer in ranked if offer.facts.get(name) is not None]
        if said and said[0].provider != own:
            usual = Counter(offer.facts[name] for offer in said).most_common(1)[0][0]
            said = [offer for offer in said if offer.facts[name] == usual]
        if said:
            found[name] = Fact(said[0].facts[name], said[0].source, said[0].first_seen_at)
        elif (told := next((one.facts[name] for _, one in listed if one.facts.get(name) is not None), None)) is not None:
            found[name] = Fact(told, LISTED, None)
    return found
