"""Puts models that an endpoint serves on the roster one by one, by names alone; and says what is known of those that are not there yet.

UnknownEndpoint   no endpoint of this name (`catalog.editing`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit
from catalog import candidates, layering, roster, served
from catalog.editing import UnknownEndpoint
from catalog.layering import indexes_of, layers
from catalog.load import endpoint_of, load_models
from catalog.models import Endpoint, Model
from catalog.offers import known_providers, provider_of

# A list that was asked for a moment ago need not be asked for again for each of many models.
FRESH = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Placed:
    """A model that is on the roster now. Shape: `is_new` tells that it was not there before; `reason` why it is retired, where it is."""

    alias: str
    is_new: bool
    ad_hoc: bool
    retired: bool
    reason: str
    is_listed: bool


def place(endpoint_name: str, served_name: str, ad_hoc: bool, actor: str) -> Placed:
    """Puts one model on the roster, with what its endpoint's list and the catalogs say; one that is there keeps its alias.

    Shape: `ad_hoc` makes a new model ad hoc, and without it one that was ad hoc becomes a full member. Errors: UnknownEndpoint, ShapeError.
    """
    row = Endpoint.objects.filter(name=endpoint_name).first()
    if row is None:
        raise UnknownEndpoint(endpoint_name)
    listed = list_of(endpoint_name)
    with transaction.atomic():
        # The row's lock makes one wait for the other where both add the same model.
        added = served.add_models(row, [served_name], actor, listed.models)
        model = added[0] if added else Model.objects.filter(endpoint=row, served_name=served_name).order_by("status", "ad_hoc", "pk")[0]
        if model.ad_hoc != ad_hoc and (added or not ad_hoc):
            Model.objects.filter(pk=model.pk).update(ad_hoc=ad_hoc)
            audit.record(actor, "model.change", model.alias, audit.diff({"ad_hoc": model.ad_hoc}, {"ad_hoc": ad_hoc}))
            model.ad_hoc = ad_hoc
    if added:
        layering.apply_offers(timezone.now(), [model.pk])
    return Placed(
        model.alias,
        bool(added),
        model.ad_hoc,
        model.status == Model.Status.RETIRED,
        model.status_reason,
        any(one.served_name == served_name for one in listed.models),
    )


def list_of(endpoint_name: str) -> candidates.Kept:
    """What the endpoint lists, asked now unless that was done a moment ago. Errors: UnknownEndpoint."""
    kept = candidates.kept(endpoint_name)
    return kept if kept is not None and kept.tried_at > timezone.now() - FRESH else candidates.refresh(endpoint_name)


def in_play(endpoint_name: str, served_names: Iterable[str]) -> dict[str, str]:
    """Tells which of them are in play: alias by served name. One query."""
    rows = Model.objects.filter(status=Model.Status.ACTIVE, endpoint__name=endpoint_name, served_name__in=list(served_names)).order_by("-ad_hoc", "-pk")
    return dict(rows.values_list("served_name", "alias"))


def as_models(endpoint_name: str, served_names: Iterable[str]) -> list[roster.Model]:
    """Gives models as they are on the roster, or as they would be, with the prices that are known of them. Nothing is asked or written.

    Errors: UnknownEndpoint.
    """
    row = Endpoint.objects.filter(name=endpoint_name).first()
    if row is None:
        raise UnknownEndpoint(endpoint_name)
    there = {m.served_name: m for m in load_models().values() if m.endpoint.name == endpoint_name}
    kept = candidates.kept(endpoint_name)
    told = {one.served_name: one.facts for one in kept.models} if kept else {}
    providers = known_providers()
    provider = provider_of(row.provider, row.base_url, providers)
    indexes = indexes_of({provider, layering.ROUTER} - {""})
    endpoint = endpoint_of(row)
    found = []
    for name in dict.fromkeys(served_names):
        if name in there:
            found.append(there[name])
            continue
        said: dict[str, Any] = {}
        for layer in reversed(layers(name, row.base_url, provider, indexes).values()):
            said |= {**layer.facts, **layer.prices}
        said |= {k: v for k, v in told.get(name, {}).items() if v is not None}
        found.append(
            roster.Model(0, name, endpoint, name, limits={}, facts=said, quirks={}, ad_hoc=False, retired=False, status_reason="", prices=priced(said))
        )
    return found


def priced(said: Mapping[str, Any]) -> tuple[roster.Price, ...]:
    went, came = (None if said.get(name) is None else Decimal(str(said[name])) for name in ("input_usd_per_mtok", "output_usd_per_mtok"))
    return () if went is None and came is None else (roster.Price(date.min, went, came),)
