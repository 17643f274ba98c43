"""Discover in the admin: what is found, what is shown of it, and the way onto the bench."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from access.ids import new_id
from catalog.models import Endpoint, KnownProvider, Listing, Model, Offer, Source

pytestmark = pytest.mark.django_db

HOSTILE = '<img src=x onerror="alert(1)">'


def offer(provider, served_name, **fields):
    now = timezone.now()
    row = {"digest": "x", "seen_at": now, "first_seen_at": now - timedelta(days=60), **fields}
    Offer.objects.create(source="models_dev", provider=provider, served_name=served_name, **row)
    Source.objects.update_or_create(name="models_dev", defaults={"digest": new_id("digest"), "read_at": now})


@pytest.fixture
def catalog(db):
    now = timezone.now()
    groq = Endpoint.objects.create(name="groq-eu", kind="openai", base_url="https://api.groq.com/openai/v1")
    KnownProvider.objects.create(source="models_dev", provider="acme", title="Acme", base_url="https://api.acme.example/v1", kind="openai", key_env="ACME_KEY")
    offer("groq", "owl-9b", title="Owl 9B", facts={"context_window": 131072, "tools": True}, prices={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    offer("acme", "owl-9b", free=True, limits={"requests": {"day": 50}})
    offer("acme", "gull-1", title=HOSTILE, about={"notes": [HOSTILE]})
    Listing.objects.create(endpoint=groq, served=[{"name": "owl-9b", "facts": {}, "chat": True}], listed_at=now, tried_at=now)
    return groq


def text(client, query=""):
    return client.get(reverse("admin:catalog_offer_changelist") + query).content.decode()


def test_a_model_is_shown_with_its_routes_facts_and_what_they_need(operator, catalog):
    page = text(operator)
    for said in (
        "2 models",
        "Owl 9B",
        "131k context",
        "$1 in, $2 out",
        "Add to bench",
        "50 requests/day",
        "Needs an endpoint: https://api.acme.example/v1",
        "ACME_KEY",
    ):
        assert said in page, said
    assert "Add an endpoint" in page
    assert f"{reverse('admin:catalog_endpoint_add')}?kind=openai&amp;base_url=https%3A%2F%2Fapi.acme.example%2Fv1" in page


def test_what_catalogs_write_is_never_markup(operator, catalog):
    assert "<img src=x" not in text(operator)
    assert "&lt;img src=x" in text(operator)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("?q=owl", 1),
        ("?can=tools", 1),
        ("?can=nonsense", 2),
        ("?provider=groq-eu", 1),
        ("?free=1", 1),
        ("?reachable=1&sort=price", 1),
        ("?max_price=2", 1),
        ("?max_price=NaN&min_context=x", 2),
        ("?min_context=1000000", 0),
        ("?new=1", 0),
        ("?page_token=", 2),
    ],
)
def test_filters_narrow_and_what_cannot_be_read_is_passed_over(operator, catalog, query, count):
    assert f"{count} model{'' if count == 1 else 's'}" in text(operator, query)


def test_a_page_token_of_somebodys_own_leads_to_the_first_page(operator, catalog):
    assert operator.get(reverse("admin:catalog_offer_changelist") + "?page_token=x").status_code == 302


def test_adding_goes_the_way_of_the_endpoints_own_page(operator, catalog):
    where = reverse("admin:catalog_endpoint_serves", args=[catalog.pk])
    assert where in text(operator)
    operator.post(where, {"pick": "owl-9b", "mode": "full"})
    assert Model.objects.get().served_name == "owl-9b"
    page = text(operator)
    assert "on the bench" in page
    assert "On the bench as" in page
    asked = operator.post(where, {"pick": "owl-9b", "mode": "full", "onboard": "1"})
    assert "Begin" in asked.content.decode()


def test_who_may_not_change_the_bench_sees_no_way_to_add(as_role, catalog):
    page = text(as_role("viewer"))
    assert "Owl 9B" in page
    assert "Add to bench" not in page
    assert "Add an endpoint" not in page


def test_an_empty_install_says_what_is_missing(operator):
    assert "No catalog has been read yet" in text(operator)
