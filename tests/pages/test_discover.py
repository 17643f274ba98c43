"""Discover: the catalogs' models with their routes, what the endpoints serve beyond the bench, and what may be ticked."""

from __future__ import annotations

import json
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access import preferences
from access.ids import new_id
from catalog.models import Endpoint, KnownProvider, Listing, Offer, Source
from health.models import ScheduleRun
from tests.admin import seed
from tests.fake import FakeProvider

DISCOVER, SERVED = reverse("pages:discover"), reverse("pages:served")
PART = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture(autouse=True)
def no_catalog_is_read(settings) -> None:
    settings.CATALOG_URLS = {"models_dev": "", "openrouter": "", "freellmapi": ""}


def offer(provider: str, served_name: str, source: str = "models_dev", **fields: object) -> None:
    now = timezone.now()
    row = {"facts": {}, "prices": {}, "about": {}, "limits": {}, "title": "", "digest": "x", "seen_at": now, "first_seen_at": now - timedelta(days=90)}
    Offer.objects.create(source=source, provider=provider, served_name=served_name, **{**row, **fields})
    Source.objects.update_or_create(name=source, defaults={"digest": new_id("digest"), "read_at": now, "tried_at": now})


@pytest.fixture
def catalog(small_bench) -> None:
    KnownProvider.objects.create(
        source="models_dev", provider="acme", title="Acme", base_url="https://api.acme.example/v1", kind="openai", key_env="ACME_KEY", doc=""
    )
    Endpoint.objects.create(name="groq", kind="openai", base_url="https://api.groq.com/openai/v1")
    facts = {"context_window": 131072, "tools": True}
    offer("groq", "llama-9", title="Llama 9", facts=facts, prices={"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "0.7"}, about={"open_weights": True})
    offer("acme", "llama-9", title="Llama 9", prices={"input_usd_per_mtok": "0.1", "output_usd_per_mtok": "0.2"})
    offer("acme", "owl-2", title="Owl 2", facts={"vision": True}, about={"released": "2026-11-25"})
    offer("acme", "own-app", source="freellmapi", title="Own", free=True, own_app=True)


def listed(name: str, *models: str, **fields: object) -> None:
    endpoint = Endpoint.objects.get(name=name)
    now = timezone.now()
    told = [{"name": model, "facts": {}, "chat": True} for model in models]
    Listing.objects.update_or_create(endpoint=endpoint, defaults={"served": told, "listed_at": now, "tried_at": now, **fields})


@pytest.mark.parametrize("role", ["viewer", "judge", "operator", "admin"])
def test_models_stand_with_their_routes_and_operators_may_tick(as_role, catalog, role):
    page = unescape(as_role(role).get(DISCOVER).content.decode())
    assert "Llama 9" in page
    assert "$0.50 / $0.70" in page
    assert "through" in page
    may = role in ("operator", "admin")
    assert (json.dumps(["groq", "llama-9"]) in page) == may
    assert ("key: ACME_KEY" in page) == may


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        ({"text": "owl"}, "Owl 2", "Llama 9"),
        ({"can": "vision"}, "Owl 2", "Llama 9"),
        ({"can": ["tools"]}, "Llama 9", "Owl 2"),
        ({"reachable": "1"}, "Llama 9", "Owl 2"),
        ({"provider": "groq"}, "Llama 9", "Owl 2"),
        ({"min_context": "100000"}, "Llama 9", "Owl 2"),
        ({"max_price": "0.3"}, "Llama 9", "Owl 2"),
        ({"open_weights": "1"}, "Llama 9", "Owl 2"),
        ({"text": "zebra"}, "No model fits", "Owl 2"),
    ],
)
def test_filters_narrow_the_list(operator: Client, catalog, query, there, gone):
    part = operator.get(DISCOVER, query, **PART).content.decode()
    assert "<html" not in part
    assert there in part
    assert gone not in part


@pytest.mark.parametrize("query", [{"max_price": "cheap"}, {"can": "fly"}, {"min_context": "much"}, {"sort": "luck"}, {"page_token": "x"}])
def test_a_filter_that_makes_no_sense_is_named(operator: Client, catalog, query):
    answer = operator.get(DISCOVER, query)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()


def test_what_is_free_only_to_an_own_app_is_marked_where_it_is_shown(operator: Client, catalog):
    assert "own-app" not in operator.get(DISCOVER, {"text": "own"}).content.decode()
    preferences.change("discover.own_app", {"acme": "show"}, "operator")
    page = operator.get(DISCOVER, {"text": "own"}).content.decode()
    assert ">own app<" in page
    assert "free for its own app only." in page


def test_a_model_on_the_bench_is_not_offered_again(operator: Client, catalog):
    seed.model("llama", Endpoint.objects.get(name="groq"), served_name="llama-9")
    page = unescape(operator.get(DISCOVER).content.decode())
    assert "on the bench" in page
    assert json.dumps(["groq", "llama-9"]) not in page


def test_without_an_endpoint_the_way_leads_to_the_first_steps(operator: Client):
    page = operator.get(DISCOVER).content.decode()
    assert "No endpoint serves models here yet" in page
    assert reverse("pages:start") in page


def test_the_catalogs_are_read_when_an_operator_says_so(as_role, small_bench):
    read = reverse("pages:read_now")
    assert as_role("viewer").post(read).status_code == 403
    assert as_role("operator").post(read).status_code == 302
    assert ScheduleRun.objects.filter(schedule="catalog").count() == 1


def test_what_endpoints_serve_beyond_the_bench_is_listed(operator: Client, small_bench):
    listed("local", "served/mercury", "new/one", "new/two")
    page = unescape(operator.get(SERVED).content.decode())
    assert "new/one" in page
    assert json.dumps(["local", "new/two"]) in page
    assert "2 models not on the bench" in page
    part = operator.get(SERVED, {"text": "two"}, **PART).content.decode()
    assert "new/two" in part
    assert "new/one" not in part
    assert "served/mercury" not in page
    assert "served/mercury" in operator.get(SERVED, {"all": "1"}).content.decode()


def test_what_went_wrong_with_a_list_is_told(operator: Client, small_bench):
    listed("local", "new/one", error="it refused the key (401).")
    assert "it refused the key (401)." in operator.get(SERVED).content.decode()


def test_operators_have_an_endpoint_asked_again_and_others_do_not(as_role, small_bench, fake: FakeProvider):
    fake.models = ["fresh/model"]
    Endpoint.objects.filter(name="local").update(base_url=fake.url)
    assert as_role("viewer").post(SERVED, {"endpoint": "local"}).status_code == 403
    assert fake.others == []
    page = as_role("operator").post(SERVED, {"endpoint": "local"}, follow=True).content.decode()
    assert "fresh/model" in page


def test_hostile_names_are_text(operator: Client, hostile_bench):
    listed("local", *seed.HOSTILE)
    for path in (DISCOVER, SERVED):
        page = operator.get(path).content.decode()
        assert "<img src=x" not in page
        assert "<svg onload" not in page
        assert "<script>alert" not in page
        assert "49{%" not in page
