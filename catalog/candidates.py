"""What endpoints list: the last good list of each is kept, so that what is new there and what is gone can be told without asking again.

UnknownEndpoint   no endpoint of this name (`catalog.editing`)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from catalog import endpoint_keys, facts, layering, prices, served, web
from catalog.asking import Found
from catalog.editing import UnknownEndpoint
from catalog.facts import Fact
from catalog.models import Endpoint, Listing, Model
from catalog.offers import Offer, known_providers, provider_of
from catalog.providers import Listed

SIDE_BY_SIDE = 8
ERROR_LENGTH = 500
FRESH = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of one endpoint's list.

    Shape: `models` are those of the last good list, of `listed_at` (None: there never was one); `error` says why the newest try, at `tried_at`, failed, and
    is empty where it did not; `hub` is a file's name in catalog/hubs, empty where the server is none of them; `is_whole` is false where a list was cut.
    """

    endpoint: str
    hub: str
    models: tuple[Listed, ...]
    is_whole: bool
    listed_at: datetime | None
    tried_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model that an endpoint lists.

    Shape: `facts` as its list and the catalogs tell them, prices too; `offers` what catalogs say of it at this provider; `alias` empty where it is not on the
    roster; `chat` false for what answers no prompt with text.
    """

    endpoint: str
    served_name: str
    chat: bool
    facts: Mapping[str, Fact]
    offers: tuple[Offer, ...]
    alias: str


# ------------------------------------------------------------------ asking


def refresh(endpoint_name: str) -> Kept:
    """Asks an endpoint what it serves, keeps the answer, and lets the roster's models there know what their list says now.

    Never raises for what the endpoint does: a failed try keeps the last good list and its `error` says why. Errors: UnknownEndpoint.
    """
    return refresh_many([endpoint_name])[0]


def refresh_many(endpoint_names: Iterable[str] | None = None) -> list[Kept]:
    """Asks several endpoints side by side, all of them without names. Errors: UnknownEndpoint."""
    rows = {row.name: row for row in Endpoint.objects.select_related("listing").order_by("name")}
    wanted = list(rows) if endpoint_names is None else list(dict.fromkeys(endpoint_names))
    for name in wanted:
        if name not in rows:
            raise UnknownEndpoint(name)
    # The threads ask the network only; everything is written by this one, since a test's or a request's transaction is seen by no other.
    with ThreadPoolExecutor(max_workers=min(SIDE_BY_SIDE, len(wanted)) or 1) as pool:
        return [keep(rows[name], found) for name, found in zip(wanted, pool.map(lambda name: ask(rows[name]), wanted), strict=True)]


def ask(row: Endpoint) -> Found | str:
    """Gives what the endpoint serves, or in a sentence why it did not say."""
    try:
        return served.ask(row, row.listing.hub if hasattr(row, "listing") else "")
    except KeyError:
        return f"There is no kind {row.kind}."
    except (web.WebError, endpoint_keys.KeyUnreadable) as error:
        return str(error)


def keep(row: Endpoint, found: Found | str) -> Kept:
    """Writes down how a try went. An endpoint that was deleted meanwhile is told of, not kept."""
    now = timezone.now()
    with transaction.atomic():
        # Whoever keeps the same endpoint's list at the same time waits here.
        is_there = Endpoint.objects.select_for_update().filter(pk=row.pk).first() is not None
        listing = Listing.objects.filter(endpoint_id=row.pk).first() or Listing(endpoint_id=row.pk)
        listing.tried_at = now
        if isinstance(found, str):
            listing.error = found[:ERROR_LENGTH]
        else:
            listing.error, listing.hub, listing.is_whole, listing.listed_at = "", found.hub, found.is_whole, now
            listing.served = [{"name": one.served_name, "facts": dict(one.facts), "chat": one.chat} for one in found.models]
        if is_there:
            listing.save()
            take_over(row, () if isinstance(found, str) else found.models, now)
    return kept_of(row.name, listing)


def take_over(row: Endpoint, models: Iterable[Listed], now: datetime) -> None:
    """Lets the roster's models at an endpoint know what its list says. What it does not say now stays as it was told: a richer door may be shut today.

    Only rows that change are written, since each write moves the roster's version.
    """
    told = {one.served_name: one.facts for one in models}
    for model in Model.objects.filter(endpoint_id=row.pk, served_name__in=list(told)):
        said, amounts = facts.split(told[model.served_name])
        after = {**model.listed_facts, **said}
        if after != model.listed_facts:
            Model.objects.filter(pk=model.pk).update(listed_facts=after, listed_at=now)
        if amounts:
            prices.set_prices(model, {name: amount for name, amount in amounts.items() if amount is not None}, prices.today(), facts.LISTED)


def add(endpoint_name: str, served_names: Iterable[str], actor: str) -> list[str]:
    """Adds models that an endpoint serves to the roster, with what its list tells of them, and gives the new aliases.

    Shape: a list of the last hour is not asked for again. What is on the roster already stays as it is. Errors: UnknownEndpoint, ShapeError.
    """
    row = Endpoint.objects.filter(name=endpoint_name).first() if "\0" not in endpoint_name else None
    if row is None:
        raise UnknownEndpoint(endpoint_name)
    found = kept(endpoint_name)
    if found is None or found.error or found.listed_at is None or timezone.now() - found.listed_at > FRESH:
        found = refresh(endpoint_name)
    added = served.add_models(row, served_names, actor, found.models)
    if added:
        layering.apply_offers(timezone.now(), [model.pk for model in added])
    return [model.alias for model in added]


# ------------------------------------------------------------------ reading what is kept


def kept(endpoint_name: str) -> Kept | None:
    """What is kept of one endpoint's list, None where it was never asked. One query."""
    listing = Listing.objects.filter(endpoint__name=endpoint_name).first() if "\0" not in endpoint_name else None
    return None if listing is None else kept_of(endpoint_name, listing)


def every_kept() -> Iterator[Kept]:
    """What is kept of every endpoint's list, by its name. One query."""
    for listing in Listing.objects.select_related("endpoint").order_by("endpoint__name"):
        yield kept_of(listing.endpoint.name, listing)


def kept_of(endpoint_name: str, listing: Listing) -> Kept:
    return Kept(
        endpoint=endpoint_name,
        hub=listing.hub,
        models=tuple(listed_of(one) for one in listing.served),
        is_whole=listing.is_whole,
        listed_at=listing.listed_at,
        tried_at=listing.tried_at,
        error=listing.error,
    )


def beyond(endpoint_name: str = "", everything: bool = False) -> tuple[list[Candidate], list[tuple[str, Kept | None, frozenset[str] | None]]]:
    """Gives what endpoints (one, or all without a name) list beyond the roster, and how each list stands: endpoint, what is kept, what it lacks.

    Shape: with `everything` also what is on the roster and what does not chat. Errors: UnknownEndpoint.
    """
    rows = {row.name: row for row in Endpoint.objects.order_by("name") if endpoint_name in ("", row.name)}
    if endpoint_name and not rows:
        raise UnknownEndpoint(endpoint_name)
    lists = {one.endpoint: one for one in every_kept() if one.endpoint in rows}
    providers = known_providers()
    of = {name: provider_of(row.provider, row.base_url, providers) for name, row in rows.items()}
    indexes = layering.indexes_of({*of.values(), layering.ROUTER} - {""})
    seated: dict[str, dict[str, str]] = {}
    for alias, endpoint, served_name in Model.objects.order_by("-alias").values_list("alias", "endpoint__name", "served_name"):
        seated.setdefault(endpoint, {})[served_name] = alias
    found = []
    for name, one in lists.items():
        for model in one.models:
            alias = seated.get(name, {}).get(model.served_name, "")
            if everything or (model.chat and not alias):
                layers = layering.layers(model.served_name, rows[name].base_url, of[name], indexes)
                offers = tuple(layer.offer for layer in layers.values() if layer.offer.provider == of[name])
                found.append(Candidate(name, model.served_name, model.chat, facts_told(model, layers, one.listed_at), offers, alias))
    states = [(name, lists.get(name), missing_of(lists.get(name), seated.get(name, {}))) for name in rows]
    return found, states


def facts_told(model: Listed, layers: Mapping[str, layering.Layer], listed_at: datetime | None) -> dict[str, Fact]:
    """Lays the endpoint's own list over what the catalogs say, in the order of the roster's facts."""
    told: dict[str, Fact] = {}
    for source, layer in layers.items():
        for name, said in {**layer.facts, **layer.prices}.items():
            told.setdefault(name, Fact(said, source, layer.offer.seen_at))
    told |= {name: Fact(said, facts.LISTED, listed_at) for name, said in model.facts.items() if said is not None}
    return {name: told[name] for name in facts.FACT_FIELDS if name in told}


def listed_of(one: Mapping[str, Any]) -> Listed:
    return Listed(one["name"], one["facts"], one["chat"])


def unlisted(endpoint_name: str) -> frozenset[str] | None:
    """Names, by served name, the roster's models at an endpoint that its newest list lacks.

    None where that list says nothing about what is missing: it was never asked, the newest try failed, or the list was empty or cut. A name that the list
    knows in another spelling (a tag, a date, a pattern) is not missing.
    """
    return missing_of(kept(endpoint_name), Model.objects.filter(endpoint__name=endpoint_name).values_list("served_name", flat=True))


def missing_of(found: Kept | None, served_names: Iterable[str]) -> frozenset[str] | None:
    if found is None or found.error or not found.models or not found.is_whole:
        return None
    there = Names(one.served_name for one in found.models)
    return frozenset(name for name in served_names if name not in there)


def not_chat(endpoint_name: str) -> frozenset[str]:
    """Names what an endpoint's last good list marks as answering no prompt with text: embeddings, images, speech."""
    found = kept(endpoint_name)
    return frozenset(one.served_name for one in found.models if not one.chat) if found else frozenset()


# ------------------------------------------------------------------ one name in several spellings

# What a list gives after a name that is asked for without it: a date, or @ and a version.
DATED = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4})|@[\w.-]+|-latest|:latest)$")


def plain(name: str) -> str:
    """A name without what is not always said: its resource prefix, case, date or tag that means the newest."""
    return DATED.sub("", name.removeprefix("models/").casefold())


class Names:
    """Served names as one list has them. A name is in it if the list would answer to it; in doubt it is, since what is missing may be retired."""

    def __init__(self, served_names: Iterable[str]) -> None:
        names = list(served_names)
        self.plain = {plain(name) for name in names}
        # LiteLLM lists "openai/*" for whatever is behind it.
        self.patterns = [plain(name).split("*")[0] for name in names if "*" in name]

    def __contains__(self, name: str) -> bool:
        mine = plain(name)
        # A suffix chooses among what the list gives once: "model:provider" at Hugging Face, ":online" at OpenRouter.
        return mine in self.plain or mine.rpartition(":")[0] in self.plain or any(mine.startswith(start) for start in self.patterns)
