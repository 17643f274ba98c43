"""Models: facts by hand over the list's, dated prices, retiring and restoring with a reason."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.urls import reverse

from access.models import AuditEntry
from catalog import status
from catalog.models import Model, Price
from health.models import ModelUse, Rest
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(db: None) -> Model:
    at = seed.endpoint("groq")
    return seed.model("mercury", at, listed_facts={"context_window": 131072, "tools": True}, listed_at=seed.NOW)


def form_of(row: Model, **more: str) -> dict[str, str]:
    rows = list(row.prices.order_by("-since"))
    form = {"endpoint": str(row.endpoint_id), "served_name": row.served_name, "quirk_other": ""}
    form |= {"prices-TOTAL_FORMS": str(len(rows)), "prices-INITIAL_FORMS": str(len(rows))}
    for i, price in enumerate(rows):
        said = {"id": price.pk, "model": row.pk, "since": price.since, "input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
        form |= {f"prices-{i}-{name}": str(value) for name, value in said.items()}
    return {**form, **more}


def change(client, row, **more):
    return client.post(reverse("admin:catalog_model_change", args=[row.pk]), form_of(row, **more))


def test_a_fact_set_by_hand_stands_beside_what_the_list_says(operator, row):
    change(operator, row, fact_context_window="65536", fact_vision="false")
    row.refresh_from_db()
    assert row.facts == {"context_window": 65536, "vision": False}
    assert row.facts_at is not None
    text = operator.get(reverse("admin:catalog_model_change", args=[row.pk])).content.decode()
    assert "131,072" in text
    assert "says groq’s list, 29 Nov 2026" in text
    assert 'value="65536"' in text


def test_an_emptied_fact_is_the_lists_again(operator, row):
    Model.objects.filter(pk=row.pk).update(facts={"context_window": 65536, "tools": False})
    change(operator, row, fact_tools="false")
    row.refresh_from_db()
    assert row.facts == {"tools": False}


def test_a_price_is_a_new_row_from_a_day_on(operator, row):
    more = {"prices-TOTAL_FORMS": "2", "prices-1-id": "", "prices-1-model": str(row.pk), "prices-1-since": "2026-11-01", "prices-1-input_usd_per_mtok": "0.25"}
    change(operator, row, **more)
    assert [(p.since, p.input_usd_per_mtok, p.source) for p in row.prices.all()] == [
        (date(2026, 11, 1), Decimal("0.25"), "hand"),
        (date(2026, 1, 1), Decimal("0.5"), "hand"),
    ]
    assert AuditEntry.objects.get().changes["price since 2026-11-01 (hand)"] == [None, {"input_usd_per_mtok": "0.25"}]


def test_a_listed_price_cannot_be_edited_into_another(operator, row):
    Price.objects.filter(model=row).update(source="endpoint list")
    change(operator, row, **{"prices-0-input_usd_per_mtok": "9"})
    assert row.prices.get().input_usd_per_mtok == Decimal("0.5")


def test_a_negative_price_is_refused(operator, row):
    response = change(operator, row, **{"prices-0-input_usd_per_mtok": "-1"})
    assert response.status_code == 200
    assert row.prices.get().input_usd_per_mtok == Decimal("0.5")


@pytest.mark.parametrize(("alias", "says"), [("bench/x", "must not begin with bench/"), ("MERCURY", "is taken"), ("tab\there", "cannot be printed")])
def test_an_alias_that_cannot_be_is_said_at_its_field(operator, row, alias, says):
    response = operator.post(reverse("admin:catalog_model_add"), {**form_of(row), "alias": alias, "prices-TOTAL_FORMS": "0", "prices-INITIAL_FORMS": "0"})
    assert says in str(response.context["adminform"].form.errors["alias"])


def test_an_alias_stays_once_it_stands_in_records(operator, row):
    change(operator, row, alias="other")
    row.refresh_from_db()
    assert row.alias == "mercury"


def test_saving_without_a_change_leaves_no_entry(operator, row):
    change(operator, row)
    assert trail() == []


def test_retiring_asks_for_a_reason_and_keeps_the_evidence(operator, row):
    address = reverse("admin:catalog_model_retire", args=[row.pk])
    assert "This field is required" in operator.post(address, {"reason": " "}).content.decode()
    operator.post(address, {"reason": "Answers in the wrong language.", "evidence": "call_01ABC"})
    row.refresh_from_db()
    assert (row.status, row.status_reason) == ("retired", "Answers in the wrong language.")
    assert row.status_evidence["seen"] == "call_01ABC"
    assert row.status_evidence["by"] == "operator"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.reason) == ("model.retire", "mercury", "Answers in the wrong language.")
    text = operator.get(reverse("admin:catalog_model_change", args=[row.pk])).content.decode()
    assert "Answers in the wrong language." in text
    assert "call_01ABC" in text
    assert "Restore" in text


def test_restoring_keeps_what_spoke_against_it(operator, row):
    status.retire(row, "Too slow.", "probe", {"p99_ms": 90000})
    operator.post(reverse("admin:catalog_model_restore", args=[row.pk]), {"reason": "Its provider fixed it."})
    row.refresh_from_db()
    assert (row.status, row.status_reason) == ("active", "Its provider fixed it.")
    assert row.status_evidence["before"]["reason"] == "Too slow."
    assert row.status_evidence["before"]["p99_ms"] == 90000


def test_what_is_retired_is_not_retired_again(row):
    status.retire(row, "Too slow.", "probe")
    with pytest.raises(status.StatusError, match="retired already"):
        status.retire(row, "Too slow.", "probe")
    assert trail() == [("probe", "model.retire", "mercury")]


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_status_moves_only_with_a_reason_that_can_be_kept(row, reason):
    with pytest.raises(status.StatusError):
        status.retire(row, reason, "operator")
    row.refresh_from_db()
    assert row.status == "active"


def test_several_are_retired_with_one_reason(operator, row):
    other = seed.model("venus", row.endpoint)
    address = reverse("admin:catalog_model_changelist")
    chosen = {"action": "retire_selected", "_selected_action": [row.pk, other.pk]}
    assert "Retire 2 models" in operator.post(address, chosen).content.decode()
    operator.post(address, {**chosen, "reason": "The provider closes."})
    assert set(Model.objects.values_list("status", flat=True)) == {"retired"}
    assert [action for _, action, _ in trail()] == ["model.retire", "model.retire"]


def test_the_list_tells_who_rests_and_when_each_last_sat(operator, row):
    now = datetime.now(UTC)
    venus = seed.model("venus", seed.endpoint("local"))
    Rest.objects.create(scope="endpoint:groq", until=now + timedelta(minutes=5), reason="429", since=now)
    Rest.objects.create(scope="model:venus", until=now - timedelta(minutes=5), reason="over", since=now)
    ModelUse.objects.create(model=venus.alias, seats=1234, last_seated_at=seed.NOW)
    rows = {r.alias: r for r in operator.get(reverse("admin:catalog_model_changelist")).context["cl"].result_list}
    text = operator.get(reverse("admin:catalog_model_changelist")).content.decode()
    assert rows["mercury"].bench_rest.reason == "429"
    assert rows["venus"].bench_rest is None
    assert "resting until" in text
    assert "1,234" in text
    assert "29 Nov 2026 16:00" in text


def test_the_list_is_searched_and_narrowed(operator, row):
    seed.model("venus", seed.endpoint("local"), ad_hoc=True)
    address = reverse("admin:catalog_model_changelist")
    narrowed = (
        ({"q": "merc"}, ["mercury"]),
        ({"status__exact": "retired"}, []),
        ({"endpoint__id__exact": row.endpoint_id}, ["mercury"]),
        ({"ad_hoc__exact": "1"}, ["venus"]),
    )
    for query, found in narrowed:
        assert [r.alias for r in operator.get(address, query).context["cl"].result_list] == found, query
