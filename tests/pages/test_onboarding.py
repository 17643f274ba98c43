"""The pages of onboarding: choosing how far, batches, one batch, cancelling and trying again."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from health.models import Batch, Errand, Onboarding
from tests.admin import seed
from tests.pages.conftest import trail

LIST, NEW = reverse("pages:onboarding"), reverse("pages:onboard")
BATCH = reverse("pages:batch", args=["onb_seeded"])
PART = {"HTTP_HX_REQUEST": "true"}
ROLES = ["viewer", "judge", "operator", "admin"]


def pick(endpoint: str, name: str) -> str:
    return json.dumps([endpoint, name])


@pytest.mark.parametrize("role", ROLES)
def test_whoever_reads_sees_batches_and_operators_change_them(as_role, small_bench, role):
    client = as_role(role)
    page = client.get(LIST).content.decode()
    assert BATCH in page
    page = client.get(BATCH).content.decode()
    assert "vendor/one" in page
    assert "The model vendor/two does not exist." in page
    may = role in ("operator", "admin")
    assert ('value="cancel"' in page) == may
    assert client.post(BATCH, {"do": "cancel"}).status_code == (302 if may else 403)


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_others_begin_nothing(as_role, small_bench, role):
    assert as_role(role).post(NEW, {"pick": pick("local", "m"), "do": "begin", "mode": "quick"}).status_code == 403
    assert Batch.objects.count() == 1


def test_an_empty_bench_says_what_to_do(operator: Client):
    page = operator.get(LIST).content.decode()
    assert "Nothing was onboarded yet" in page
    assert reverse("pages:discover") in page


def test_a_running_batch_is_looked_at_again_and_one_that_is_over_is_not(operator: Client, small_bench):
    part = operator.get(BATCH, **PART).content.decode()
    assert "<html" not in part
    assert 'hx-trigger="every 2s"' in part
    Onboarding.objects.filter(state="running").update(state="done", alias="slow-but-sure")
    part = operator.get(BATCH, **PART).content.decode()
    assert "hx-trigger" not in part
    assert "data-over" in part
    assert "hx-trigger" not in operator.get(LIST, **PART).content.decode()


def test_what_each_stage_came_to_stands_in_words(operator: Client, small_bench):
    page = operator.get(BATCH).content.decode()
    assert "✓ register" in page
    assert "check: failed" in page
    assert "speed …" in page
    assert "register: added as vendor/one." in page


def test_a_batch_is_cancelled_and_what_failed_is_tried_again_in_a_new_one(operator: Client, small_bench):
    answer = operator.post(BATCH, {"do": "cancel"}, follow=True)
    assert "The batch is cancelled." in answer.content.decode()
    assert "Try 2 again" in answer.content.decode()
    answer = operator.post(BATCH, {"do": "retry"}, follow=True)
    assert "2 models are tried again" in answer.content.decode()
    assert Onboarding.objects.exclude(batch="onb_seeded").count() == 2
    assert [action for _, action, _ in trail()][-2:] == ["onboarding.cancel", "onboarding.start"]
    # Both are under way now: asking for it once more begins nothing.
    answer = operator.post(BATCH, {"do": "retry"}, follow=True)
    assert answer.status_code == 409
    assert "under way already" in answer.content.decode()


def test_nothing_is_tried_again_where_nothing_failed(operator: Client, small_bench):
    Onboarding.objects.update(state="done")
    assert "Nothing of this batch failed." in operator.post(BATCH, {"do": "retry"}, follow=True).content.decode()


def test_each_way_says_what_it_costs_before_it_begins(operator: Client, small_bench):
    at = seed.Endpoint.objects.get(name="local")
    seed.model("priced", at, served_name="priced")
    page = operator.post(NEW, {"pick": [pick("local", "priced"), pick("groq-eu", "unheard-of")]}).content.decode()
    assert "Onboard 2 models" in page
    assert "2 calls, about $" in page
    assert "and 1 model without a known price" in page
    assert "No calls, no cost" in page
    assert Batch.objects.count() == 1
    assert not Errand.objects.exists()


def test_one_endpoint_makes_one_batch_and_leads_to_it(operator: Client, small_bench):
    answer = operator.post(NEW, {"pick": [pick("local", "a"), pick("local", "b"), pick("local", "a")], "do": "begin", "mode": "full"})
    batch = Batch.objects.exclude(pk="onb_seeded").get()
    assert answer["Location"] == reverse("pages:batch", args=[batch.pk])
    assert (batch.mode, batch.by, batch.models.count()) == ("full", "operator", 2)


def test_several_endpoints_make_a_batch_each(operator: Client, small_bench):
    answer = operator.post(NEW, {"pick": [pick("local", "a"), pick("groq-eu", "b")], "do": "begin", "mode": "quick"})
    assert answer["Location"] == LIST
    assert set(Batch.objects.exclude(pk="onb_seeded").values_list("endpoint", flat=True)) == {"local", "groq-eu"}


def test_what_is_under_way_is_not_begun_twice(operator: Client, small_bench):
    sent = {"pick": pick("local", "a"), "do": "begin", "mode": "quick"}
    operator.post(NEW, sent)
    answer = operator.post(NEW, sent, follow=True)
    assert "under way already" in answer.content.decode()
    assert Batch.objects.count() == 2


@pytest.mark.parametrize("picks", [[], ["nonsense"], ["[1, 2]"], ["{}"], ['["one"]'], ["null"]])
def test_nothing_ticked_leads_back(operator: Client, small_bench, picks):
    answer = operator.post(NEW, {"pick": picks, "do": "begin"}, follow=True)
    assert "Tick the models that you want first." in answer.content.decode()


@pytest.mark.parametrize(("endpoint", "name", "mode", "status"), [("nobody", "m", "quick", 404), ("local", "m", "slow", 400), ("local", "", "quick", 400)])
def test_what_cannot_begin_is_told_and_what_was_ticked_stays(operator: Client, small_bench, endpoint, name, mode, status):
    answer = operator.post(NEW, {"pick": pick(endpoint, name), "do": "begin", "mode": mode})
    assert answer.status_code == status
    assert 'role="alert"' in answer.content.decode()
    assert 'name="pick"' in answer.content.decode()


def test_an_unknown_batch_is_said_to_be_unknown(operator: Client, small_bench):
    assert operator.get(reverse("pages:batch", args=["onb_none"])).status_code == 404


def test_hostile_names_are_text(operator: Client, hostile_bench):
    for path in (LIST, BATCH):
        page = operator.get(path).content.decode()
        assert "<img src=x" not in page
        assert "<script>alert" not in page
    page = operator.post(NEW, {"pick": [pick("local", name) for name in seed.HOSTILE]}).content.decode()
    assert "<img src=x" not in page
    assert "<svg onload" not in page
    assert seed.CANARY not in page
