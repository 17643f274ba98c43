"""Public catalogs in the admin: their age, their errors, what was left out, reading them now; and what they say on a model's page."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.urls import reverse
from django.utils import timezone

from catalog import layering
from catalog.models import Endpoint, Model, Offer, Source
from tests.admin import seed
from tests.admin.conftest import trail
from tests.admin.test_models import form_of
from tests.catalog.pages import Pages, serving
from tests.catalog.test_sources import model, provider

LIST = "admin:catalog_source_changelist"


@pytest.fixture
def pages(settings) -> Iterator[Pages]:
    with serving() as found:
        settings.CATALOG_URLS = {"models_dev": f"{found.url}/api.json", "openrouter": "", "freellmapi": ""}
        yield found


@pytest.fixture
def row(db: None) -> Model:
    at = seed.endpoint("nest")
    Endpoint.objects.filter(pk=at.pk).update(provider="nest")
    return seed.model("owl-1", at, served_name="owl-1")


def offer(**more) -> Offer:
    now = timezone.now()
    said = {"source": "models_dev", "provider": "nest", "served_name": "owl-1", "digest": "x", "first_seen_at": now, "seen_at": now, **more}
    return Offer.objects.create(**said)


@pytest.mark.django_db
def test_the_page_shows_age_errors_and_what_was_left_out_and_none_of_it_as_markup(as_role):
    skipped = [{"entry": "nest/<b>owl</b>", "reason": "It is <script>odd</script>.", "value": "", "since": ""}]
    Source.objects.create(name="models_dev", read_at=timezone.now(), offers=5276, skipped=skipped, error="models.dev: <i>no</i>")
    viewer = as_role("viewer")
    text = viewer.get(reverse(LIST)).content.decode()
    assert all(title in text for title in ("models.dev", "OpenRouter", "FreeLLMAPI", "5276", "Never"))
    text += viewer.get(reverse("admin:catalog_source_change", args=["models_dev"])).content.decode()
    assert "nest/&lt;b&gt;owl&lt;/b&gt;" in text
    assert not any(markup in text for markup in ("<b>owl", "<script>odd", "<i>no"))


@pytest.mark.django_db(transaction=True)
def test_read_now_reads_what_was_ticked_and_is_on_the_trail(as_role, pages):
    pages.put("/api.json", {"nest": provider({"owl-1": model()})})
    operator = as_role("operator")
    operator.get(reverse(LIST))
    said = operator.post(reverse(LIST), {"action": "read_now", ACTION_CHECKBOX_NAME: ["models_dev", "openrouter"]}, follow=True).content.decode()
    assert "models.dev was read and lists 1 models." in said
    assert "OpenRouter is off" in said
    assert Offer.objects.get().served_name == "owl-1"
    assert ("operator", "source.read", "models_dev") in trail()


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_readers_do_not_set_off_readings(as_role, pages, role):
    client = as_role(role)
    client.get(reverse(LIST))
    client.post(reverse(LIST), {"action": "read_now", ACTION_CHECKBOX_NAME: ["models_dev"]})
    assert pages.asked == []


@pytest.mark.django_db
def test_a_models_page_shows_what_each_catalog_says_and_since_when(operator, row):
    offer(facts={"context_window": 131072, "vision": True})
    offer(source="freellmapi", facts={"context_window": 8192})
    layering.apply_offers(seed.NOW)
    text = operator.get(reverse("admin:catalog_model_change", args=[row.pk])).content.decode()
    assert "says models.dev of nest/owl-1, 29 Nov 2026" in text
    assert "says FreeLLMAPI of nest/owl-1, 29 Nov 2026" in text
    assert "131,072" in text
    assert "8,192" in text
    assert "131k" in operator.get(reverse("admin:catalog_model_changelist")).content.decode()


@pytest.mark.django_db
def test_prices_of_long_prompts_and_thinking_are_set_by_hand(operator, row):
    tiers = [{"above_tokens": 200000, "input_usd_per_mtok": "2.50"}]
    more = {"prices-TOTAL_FORMS": "1", "prices-INITIAL_FORMS": "0", "prices-0-id": "", "prices-0-model": str(row.pk), "prices-0-since": "2026-11-01"}
    row.prices.all().delete()
    more |= {"prices-0-input_usd_per_mtok": "1", "prices-0-reasoning_usd_per_mtok": "8", "prices-0-tiers": json.dumps(tiers)}
    operator.post(reverse("admin:catalog_model_change", args=[row.pk]), form_of(row, **more))
    price = row.prices.get()
    assert (price.reasoning_usd_per_mtok, price.tiers) == (8, [{"above_tokens": 200000, "input_usd_per_mtok": "2.5"}])
    assert "200000" in operator.get(reverse("admin:catalog_model_change", args=[row.pk])).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "tiers", ["[1]", '[{"input_usd_per_mtok": "1"}]', '[{"above_tokens": 5}]', '[{"above_tokens": 5, "input_usd_per_mtok": "-1"}]', "not json", '{"a": 1}']
)
def test_tiers_that_are_none_are_refused_at_their_field(operator, row, tiers):
    row.prices.all().delete()
    more = {"prices-TOTAL_FORMS": "1", "prices-INITIAL_FORMS": "0", "prices-0-id": "", "prices-0-model": str(row.pk), "prices-0-since": "2026-11-01"}
    response = operator.post(reverse("admin:catalog_model_change", args=[row.pk]), form_of(row, **more, **{"prices-0-tiers": tiers}))
    assert response.status_code == 200
    assert not row.prices.exists()


@pytest.mark.django_db
def test_a_model_that_moves_to_another_provider_has_that_ones_facts_at_once(operator, row):
    offer(facts={"context_window": 1000})
    offer(provider="crow", facts={"context_window": 2000})
    layering.apply_offers(seed.NOW)
    endpoint = row.endpoint
    form = {"kind": "openai", "base_url": endpoint.base_url, "provider": "crow", "key_env": "", "quirk_other": ""}
    operator.post(reverse("admin:catalog_endpoint_change", args=[endpoint.pk]), form)
    row.refresh_from_db()
    assert row.merged_facts()["context_window"].value == 2000
    assert [change for change in trail() if change[1] == "endpoint.change"]
