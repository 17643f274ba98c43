"""Reads the roster from the database: three queries, whatever its size."""

from __future__ import annotations

import logging

from catalog import endpoint_keys, facts, prices, roster
from catalog.models import Endpoint, Model, Price

log = logging.getLogger(__name__)


def load_models() -> dict[str, roster.Model]:
    """Gives every model by its alias, retired ones too, each endpoint's key read once.

    An endpoint whose key cannot be read has an empty one: its calls fail with a clear 401, the others' do not.
    """
    endpoints = {row.pk: endpoint_of(row) for row in Endpoint.objects.all()}
    dated: dict[int, list[Price]] = {}
    for price in Price.objects.all():
        dated.setdefault(price.model_id, []).append(price)
    # Rows may be added between these queries; the roster's version moves then, and the snapshot is read again.
    return {row.alias: model_of(row, endpoints[row.endpoint_id], dated.get(row.pk, [])) for row in Model.objects.all() if row.endpoint_id in endpoints}


def load_model(alias: str) -> roster.Model | None:
    """Gives one model by its alias, None where there is none. Two queries."""
    row = Model.objects.select_related("endpoint").filter(alias=alias).first()
    return None if row is None else model_of(row, endpoint_of(row.endpoint), list(Price.objects.filter(model=row)))


def endpoint_of(row: Endpoint) -> roster.Endpoint:
    try:
        key = endpoint_keys.key_of(row)
    except endpoint_keys.KeyUnreadable as error:
        log.warning("%s Its models are called without a key.", error)
        key = ""
    return roster.Endpoint(id=row.pk, name=row.name, kind=row.kind, base_url=row.base_url, key=key, limits=row.limits, quirks=row.quirks)


def model_of(row: Model, endpoint: roster.Endpoint, dated: list[Price]) -> roster.Model:
    return roster.Model(
        id=row.pk,
        alias=row.alias,
        endpoint=endpoint,
        served_name=row.served_name,
        limits=row.limits,
        facts=facts.values(facts.merged(row.facts, row.listed_facts, catalogs=row.catalog_facts)),
        quirks={**endpoint.quirks, **row.quirks},
        ad_hoc=row.ad_hoc,
        retired=row.status == Model.Status.RETIRED,
        status_reason=row.status_reason,
        prices=prices.timeline(dated),
    )
