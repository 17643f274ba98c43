"""The catalog as others may see it: endpoints without their keys, models with their facts and where each comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Count

from access.pages import Page, keyset
from catalog import endpoint_keys, facts, prices
from catalog.models import Endpoint, Model, Price


@dataclass(frozen=True, slots=True)
class EndpointView:
    """One endpoint. Shape: `key` says where its key comes from ("stored", "variable …", "none"), never the key; `models` how many it serves here."""

    name: str
    kind: str
    base_url: str
    provider: str
    key_env: str
    key: str
    limits: Mapping[str, Any]
    quirks: Mapping[str, Any]
    models: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model.

    Shape: `status` is active or retired, `reason` why; `facts` by name, prices among them as decimal text; `endpoint_limits` hold besides its own.
    """

    id: int
    alias: str
    endpoint_id: int
    endpoint_limits: Mapping[str, Any]
    endpoint: str
    served_name: str
    status: str
    reason: str
    status_at: datetime | None
    evidence: Mapping[str, Any]
    ad_hoc: bool
    facts: Mapping[str, facts.Fact]
    limits: Mapping[str, Any]
    quirks: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Named:
    """One model by its names. Shape: `status` is active or retired."""

    id: int
    alias: str
    served_name: str
    endpoint: str
    status: str


def endpoint_view(row: Endpoint, models: int) -> EndpointView:
    return EndpointView(
        name=row.name,
        kind=row.kind,
        base_url=row.base_url,
        provider=row.provider,
        key_env=row.key_env,
        key=endpoint_keys.where_key_comes_from(row),
        limits=row.limits,
        quirks=row.quirks,
        models=models,
        created_at=row.created_at,
    )


def model_view(row: Model, price_rows: Iterable[Price], day: date) -> ModelView:
    return ModelView(
        id=row.pk,
        alias=row.alias,
        endpoint_id=row.endpoint_id,
        endpoint_limits=row.endpoint.limits,
        endpoint=row.endpoint.name,
        served_name=row.served_name,
        status=row.status,
        reason=row.status_reason,
        status_at=row.status_at,
        evidence=row.status_evidence,
        ad_hoc=row.ad_hoc,
        facts={**row.merged_facts(), **prices.facts_on(price_rows, day)},
        limits=row.limits,
        quirks=row.quirks,
        created_at=row.created_at,
    )


def endpoints(limit: int, page_token: str) -> Page[EndpointView]:
    """Lists endpoints by name. One query."""
    page = keyset(Endpoint.objects.annotate(model_count=Count("models")), ("name",), limit, page_token)
    return page.mapped(lambda row: endpoint_view(row, getattr(row, "model_count")))  # noqa: B009  # the annotation is none of the row's own types


def endpoint(name: str) -> EndpointView | None:
    row = Endpoint.objects.annotate(model_count=Count("models")).filter(name=name).first()
    return None if row is None else endpoint_view(row, row.model_count)


def names() -> list[Named]:
    """Names all models, retired ones too. One query."""
    return [Named(*row) for row in Model.objects.values_list("pk", "alias", "served_name", "endpoint__name", "status")]


def models_of(ids: Sequence[int]) -> list[ModelView]:
    """Reads some models, in this order; one that is gone by now is left out. Two queries."""
    day = prices.today()
    rows = {row.pk: row for row in Model.objects.filter(pk__in=ids).select_related("endpoint")}
    # By hand: Django's way to fetch what belongs to many rows makes a query object for each of them.
    of: dict[int, list[Price]] = defaultdict(list)
    for price in Price.objects.filter(model__in=ids):
        of[price.model_id].append(price)
    return [model_view(rows[pk], of.get(pk, ()), day) for pk in ids if pk in rows]


def model(alias: str) -> ModelView | None:
    row = Model.objects.select_related("endpoint").prefetch_related("prices").filter(alias=alias).first()
    return None if row is None else model_view(row, row.prices.all(), prices.today())


def prices_of(alias: str) -> list[dict[str, Any]]:
    """Tells what a model cost from each day on, newest first, over all sources. One query.

    Shape: `since` and the prices by fact name as decimal text, None where unknown.
    """
    days = prices.timeline(Price.objects.filter(model__alias=alias))
    return [{"since": day.since, **{name: prices.text(getattr(day, field)) for name, field in prices.COLUMNS.items()}} for day in days]
