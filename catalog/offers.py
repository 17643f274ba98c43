"""What the public catalogs offer, as frozen values: for Discover, and for laying facts and prices over the roster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog import known, models, sources
from catalog.known import KnownProvider

TABLE = "table"


@dataclass(frozen=True, slots=True)
class Offer:
    """One model as one catalog says that one provider serves it; all but the dates as `catalog.sources.Offered` has it.

    Shape: `gone_at` is set where the catalog lists it no longer.
    """

    source: str
    provider: str
    served_name: str
    title: str
    facts: Mapping[str, Any]
    prices: Mapping[str, Any]
    free: bool
    own_app: bool
    limits: Mapping[str, Any]
    about: Mapping[str, Any]
    first_seen_at: datetime
    seen_at: datetime
    gone_at: datetime | None


FIELDS = tuple(Offer.__dataclass_fields__)


def offers(providers: Iterable[str] | None = None, with_gone: bool = False, names: Iterable[str] | None = None) -> list[Offer]:
    """Lists what the catalogs offer, the most believed catalog first, then by provider and name. One query.

    Shape: `providers` limits it to those, `names` to those catalogs (all that were ever read without it).
    """
    rows = models.Offer.objects.all()
    if providers is not None:
        rows = rows.filter(provider__in=list(providers))
    if names is not None:
        rows = rows.filter(source__in=list(names))
    if not with_gone:
        rows = rows.filter(gone_at=None)
    ranks = sources.ranks()
    found = [Offer(*values) for values in rows.order_by("source", "provider", "served_name").values_list(*FIELDS)]
    return sorted(found, key=lambda offer: ranks.get(offer.source, len(ranks)))


def known_providers() -> dict[str, KnownProvider]:
    """Gives every provider that catalogs or our own table know, by its id; what the most believed catalog leaves empty the next fills in. One query."""
    ranks = sources.ranks()
    found: dict[str, KnownProvider] = {}
    rows = sorted(models.KnownProvider.objects.all(), key=lambda row: (ranks.get(row.source, len(ranks)), row.provider))
    for row in rows:
        said = KnownProvider(row.source, row.provider, row.title, row.base_url, row.kind, row.key_env, row.doc)
        found[row.provider] = filled(found[row.provider], said) if row.provider in found else said
    for name, (base_url, kind) in known.WELL_KNOWN.items():
        said = KnownProvider(TABLE, name, known.TITLES.get(name, name), base_url, kind, "", "")
        found[name] = filled(found[name], said) if name in found else said
    return found


def filled(one: KnownProvider, other: KnownProvider) -> KnownProvider:
    """Fills what is empty in one from the other. An address and its kind go together."""
    address, kind = (one.base_url, one.kind) if one.base_url and one.kind else (other.base_url, other.kind) if other.base_url else (one.base_url, one.kind)
    return KnownProvider(one.source, one.provider, one.title or other.title, address, kind, one.key_env or other.key_env, one.doc or other.doc)


def provider_of(endpoint_provider: str, base_url: str, providers: Mapping[str, KnownProvider]) -> str:
    """Tells which provider an endpoint is, empty where nobody knows. Shape: `providers` as `known_providers` gives them."""
    return known.provider_of(endpoint_provider, base_url, providers.values())
