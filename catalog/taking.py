"""Takes a public catalog over: what is new or other is written, what is listed no more is marked gone, and what cannot be true is left out with its reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from catalog import facts, models, prices
from catalog.shape import ShapeError
from catalog.sources import Catalog, Offered, Skipped, Source
from catalog.sources._reading import check_count

# A price that rose a hundredfold is believed once the catalog has said so for as long.
BELIEVED_AFTER = timedelta(days=7)
MOST_SKIPPED = 100
UNIQUE = ["source", "provider", "served_name"]
SAID = ["title", "facts", "prices", "free", "own_app", "limits", "about"]
WRITTEN = [*SAID, "digest", "seen_at", "gone_at"]

Key = tuple[str, str]


class Refused(Exception):
    """A catalog that came and is not taken over; the message says why."""


class Shrunk(Refused):
    """A catalog that lost most of its offers from one reading to the next."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """A catalog's offers, those taken over with their digests. Of `held` ones, which were skipped, the old word stays."""

    listed: Mapping[Key, tuple[Offered, str]]
    held: frozenset[Key]
    skipped: tuple[Skipped, ...]

    @property
    def size(self) -> int:
        return len(self.listed) + len(self.held)


@dataclass(frozen=True, slots=True)
class Written:
    """What a reading changed: offers that are new, other than before, and gone."""

    added: int
    changed: int
    gone: int


def together(source: Source, bodies: Iterable[Any]) -> Catalog:
    """Reads a catalog's pages as one. Errors: Refused where a page is not this catalog."""
    try:
        read = [source.read(body) for body in bodies]
        check_count(*(one.offers for one in read), *(one.skipped for one in read))
    except ValueError as error:
        raise Refused(f"it is not the catalog: {error}") from None
    return Catalog(
        offers=tuple(offer for one in read for offer in one.offers),
        providers=tuple({provider.provider: provider for one in read for provider in one.providers}.values()),
        skipped=tuple(entry for one in read for entry in one.skipped),
        version=read[0].version,
    )


def offers_before(source: Source) -> dict[Key, models.Offer]:
    """Reads what is kept of a catalog, gone offers too."""
    rows = models.Offer.objects.filter(source=source.name).only("provider", "served_name", "prices", "digest", "first_seen_at", "gone_at")
    return {(row.provider, row.served_name): row for row in rows}


def sifted(catalog: Catalog, before: Mapping[Key, models.Offer], noted_before: Iterable[Mapping[str, Any]], now: datetime) -> Sifted:
    """Parts a catalog's offers into those taken over and those skipped. Shape: `noted_before` as `noted` gave it at the last reading."""
    listed: dict[Key, tuple[Offered, str]] = {}
    held: set[Key] = set()
    skipped = list(catalog.skipped)
    believed = {(one["entry"], one["value"]) for one in noted_before if is_ripe(one, now)}
    for offer in catalog.offers:
        key, entry = (offer.provider, offer.served_name), f"{offer.provider}/{offer.served_name}"
        if key in listed:
            skipped.append(Skipped(entry, "It is listed twice; the first entry holds."))
            continue
        odd = prices.disbelieved(offer.prices, before[key].prices if key in before else {})
        if odd is not None and (entry, odd.amount) not in believed:
            skipped.append(Skipped(entry, odd.reason, odd.amount))
            held |= {key} & before.keys()
            continue
        try:
            priced = {name: facts.PRICE_FIELDS[name].check(said, name) for name, said in offer.prices.items()}
            taken = replace(offer, facts=facts.checked(offer.facts), prices=priced)
        except ShapeError as error:
            skipped.append(Skipped(entry, str(error)))
            held |= {key} & before.keys()
            continue
        listed[key] = taken, digest_of(taken)
    return Sifted(listed, frozenset(held), tuple(skipped))


def digest_of(offer: Offered) -> str:
    said = json.dumps([getattr(offer, name) for name in SAID], sort_keys=True, default=dict)
    return hashlib.sha256(said.encode()).hexdigest()


def check_size(listed: int, before: int, doubted_at: datetime | None, now: datetime) -> None:
    """Holds back a catalog that lost more than half of its offers: a bad hour there must not empty what is here.

    Believed where it still says so on another day, since catalogs do shrink. Errors: Shrunk.
    """
    if listed * 2 < before and (doubted_at is None or doubted_at.date() >= now.date()):
        raise Shrunk(f"it lists {listed:,} models where it listed {before:,}. It is believed if it still says so on another day.")


def write(source: Source, catalog: Catalog, found: Sifted, before: Mapping[Key, models.Offer], now: datetime) -> Written:
    """Writes what changed, in one transaction: either all of a catalog is taken over or nothing."""
    rows = []
    added = 0
    for key, (offer, digest) in found.listed.items():
        was = before.get(key)
        if was is None or was.digest != digest or was.gone_at is not None:
            rows.append(row_of(source.name, offer, digest, was.first_seen_at if was else now, now))
            added += was is None
    gone = [row.pk for key, row in before.items() if key not in found.listed and key not in found.held and row.gone_at is None]
    with transaction.atomic():
        models.Offer.objects.bulk_create(rows, batch_size=500, update_conflicts=True, unique_fields=UNIQUE, update_fields=WRITTEN)
        for start in range(0, len(gone), 500):
            models.Offer.objects.filter(pk__in=gone[start : start + 500]).update(gone_at=now)
        models.Offer.objects.filter(source=source.name, gone_at=None).update(seen_at=now)
        write_providers(source.name, catalog)
    return Written(added, len(rows) - added, len(gone))


def row_of(source: str, offer: Offered, digest: str, first_seen_at: datetime, now: datetime) -> models.Offer:
    said = {name: getattr(offer, name) for name in SAID}
    return models.Offer(
        source=source, provider=offer.provider, served_name=offer.served_name, **said, digest=digest, first_seen_at=first_seen_at, seen_at=now, gone_at=None
    )


def write_providers(source: str, catalog: Catalog) -> None:
    names = ("title", "base_url", "kind", "key_env", "doc")
    rows = [models.KnownProvider(source=source, provider=one.provider, **{name: getattr(one, name) for name in names}) for one in catalog.providers]
    models.KnownProvider.objects.bulk_create(rows, batch_size=500, update_conflicts=True, unique_fields=["source", "provider"], update_fields=names)
    kept = models.KnownProvider.objects.filter(source=source)
    gone = sorted({*kept.values_list("provider", flat=True)} - {one.provider for one in catalog.providers})
    for start in range(0, len(gone), 500):
        kept.filter(provider__in=gone[start : start + 500]).delete()


def noted(skipped: Iterable[Skipped], before: Iterable[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Writes down what was skipped, each with the day since when; what may become believed comes first, since it is compared the next time."""
    since = {(one.get("entry"), one.get("reason")): one.get("since") for one in before}
    ordered = sorted(skipped, key=lambda one: not one.value)[:MOST_SKIPPED]
    return [{**asdict(one), "since": since.get((one.entry, one.reason)) or now.isoformat()} for one in ordered]


def is_ripe(note: Mapping[str, Any], now: datetime) -> bool:
    """Tells whether a doubtful price has been said for so long that it is believed."""
    return bool(note.get("value") and note.get("since")) and note["since"] <= (now - BELIEVED_AFTER).isoformat()
