"""Probes in the admin: a model's health, speed and drift on its page, asking with the cost shown before, accepting a baseline, the evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from catalog.models import Model
from health.models import Errand, ModelHealth, Probe
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db

AT = datetime(2026, 11, 28, 4, 30, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>"
NIGHT = {"at": "2026-11-28T02:00:00+00:00", "heard": {"sum": {"text": HOSTILE, "finish": "stop", "input_tokens": 20, "served_as": ""}}}


@pytest.fixture
def row(db: None) -> Model:
    return seed.model("mercury", seed.endpoint("groq"))


@pytest.fixture
def known(row: Model) -> ModelHealth:
    drift = {"state": "changed", "since": NIGHT["at"], "baseline": [NIGHT] * 3, "odd": NIGHT, "newest": None, "changed_at": NIGHT["at"]}
    speed = {"short": {"ttft_ms": 420, "tokens_per_s": 88.5, "of": 5, "at": NIGHT["at"]}}
    return ModelHealth.objects.create(model=row.alias, last_ok_at=AT, suspect_since=AT, suspect_reason=HOSTILE, speed=speed, drift=drift)


def page(client: Client, name: str, *args: Any) -> str:
    return client.get(reverse(f"admin:{name}", args=args)).content.decode()


def test_a_models_page_shows_how_it_is(operator: Client, row: Model, known: ModelHealth) -> None:
    text = page(operator, "catalog_model_change", row.pk)
    for words in ("suspect since 28 Nov 2026 04:30", "0.42 s to the first token", "88.5 tokens a second", "changed", "3 nights in the baseline", "Its probes"):
        assert words in text
    assert HOSTILE not in text
    assert "suspect" in page(operator, "catalog_model_changelist")


def test_a_model_of_which_nothing_is_known_says_so(operator: Client, row: Model) -> None:
    text = page(operator, "catalog_model_change", row.pk)
    assert "Not measured yet." in text
    assert "No night was asked for yet." in text
    assert "Accept as new baseline" not in text


def test_the_cost_stands_on_the_page_that_asks_and_the_probe_is_queued_once(operator: Client, row: Model) -> None:
    address = reverse("admin:catalog_model_probe", args=[row.pk])
    asked = operator.get(address).content.decode()
    assert "One word, about $0.00" in asked
    assert not Errand.objects.exists()
    for _ in range(2):
        assert operator.post(address, {"kind": "word"}).status_code == 302
    assert sorted(Errand.objects.values_list("kind", flat=True)) == ["judge", "probe"]
    assert trail() == [("operator", "model.probe", "mercury")]


def test_several_are_asked_for_from_the_list(operator: Client, row: Model) -> None:
    other = seed.model("venus", row.endpoint)
    selection = {"action": "probe_selected", "_selected_action": [str(row.pk), str(other.pk)]}
    listing = reverse("admin:catalog_model_changelist")
    assert "about $" in operator.post(listing, selection).content.decode()
    operator.post(listing, {**selection, "kind": "perf"})
    assert sorted(Errand.objects.values_list("kind", "subject")) == [("perf", "mercury"), ("perf", "venus")]


def test_an_ad_hoc_model_is_not_offered_a_probe(operator: Client, row: Model) -> None:
    Model.objects.filter(pk=row.pk).update(ad_hoc=True)
    assert "Probe now" not in page(operator, "catalog_model_change", row.pk).replace("Probe now, with", "")
    answer = operator.post(reverse("admin:catalog_model_probe", args=[row.pk]), {"kind": "word"}, follow=True)
    assert "is ad hoc" in answer.content.decode()
    assert not Errand.objects.exists()


def test_a_baseline_is_accepted_after_a_page_that_says_what_follows(operator: Client, row: Model, known: ModelHealth) -> None:
    address = reverse("admin:catalog_model_accept_baseline", args=[row.pk])
    assert "first of a new baseline" in operator.get(address).content.decode()
    known.refresh_from_db()
    assert known.drift["state"] == "changed"
    operator.post(address)
    known.refresh_from_db()
    assert known.drift["state"] == "learning"
    assert trail() == [("operator", "model.baseline", "mercury")]


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_who_may_only_look_asks_for_nothing(as_role: Any, row: Model, known: ModelHealth, role: str) -> None:
    client = as_role(role)
    for name in ("probe", "accept_baseline"):
        client.post(reverse(f"admin:catalog_model_{name}", args=[row.pk]), {"kind": "word"})
    assert not Errand.objects.exists()
    assert not trail()
    assert "suspect since" in page(client, "catalog_model_change", row.pk)


def test_probes_are_listed_with_their_evidence_and_nobody_changes_them(operator: Client, row: Model) -> None:
    probe = Probe.objects.create(
        attempt="att_1", model="mercury", endpoint="groq", kind="drift", prompt="sum", at=AT, outcome="failed", fault="model", status="error",
        http_status=404, message=HOSTILE, answer=HOSTILE, seen={"served_as": HOSTILE}, cost_pusd=8_500_000,
    )  # fmt: skip
    listing = page(operator, "health_probe_changelist")
    assert "$0.0000085" in listing
    detail = page(operator, "health_probe_change", probe.pk)
    assert "404" in detail
    assert HOSTILE not in listing + detail
    assert 'name="_save"' not in detail
    filtered = operator.get(reverse("admin:health_probe_changelist"), {"model": "mercury", "kind": "drift"})
    assert "28 Nov 2026" in filtered.content.decode()
