"""Endpoints: a key goes in and never comes out; the test and the model list ask the endpoint itself."""

from __future__ import annotations

import pytest
from django.urls import reverse

from access.models import AuditEntry
from catalog.endpoint_keys import key_of
from catalog.models import Endpoint, Model
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db

FORM = {"name": "groq", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "key": "", "key_env": "", "quirk_other": ""}


def add(client, **more):
    return client.post(reverse("admin:catalog_endpoint_add"), {**FORM, **more})


def change(client, row, **more):
    form = {**FORM, "kind": row.kind, "base_url": row.base_url, "key_env": row.key_env, **more}
    return client.post(reverse("admin:catalog_endpoint_change", args=[row.pk]), form)


def test_a_new_endpoint_keeps_its_key_sealed_and_goes_on_to_what_it_serves(operator):
    response = add(operator, key=f"  {seed.CANARY}\n", limit_requests_minute="30", limit_tokens_day="1000000", quirk_stream_options="false")
    row = Endpoint.objects.get()
    assert response["Location"] == reverse("admin:catalog_endpoint_serves", args=[row.pk])
    assert key_of(row) == seed.CANARY
    assert seed.CANARY not in row.key_sealed
    assert row.limits == {"requests": {"minute": 30}, "tokens": {"day": 1000000}}
    assert row.quirks == {"stream_options": False}


def test_the_trail_tells_that_a_key_was_set_and_not_which(operator):
    add(operator, key=seed.CANARY)
    entry = AuditEntry.objects.get(action="endpoint.add")
    assert entry.changes["key"] == [None, "set"]
    assert seed.CANARY not in str(entry.changes)
    assert entry.actor == "operator"
    assert entry.target == "groq"


def test_an_empty_key_keeps_what_is_stored_and_another_replaces_it(operator):
    row = seed.endpoint("groq", key=seed.CANARY)
    change(operator, row, limit_parallel="4")
    row.refresh_from_db()
    assert (key_of(row), row.limits) == (seed.CANARY, {"parallel": 4})
    change(operator, row, key="sk-another-0123456789")
    row.refresh_from_db()
    assert key_of(row) == "sk-another-0123456789"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("name", "bad\tname", "cannot be printed"),
        ("base_url", "ftp://example.org", "must begin with http"),
        ("base_url", "https://example.org/v1?key=abc", "must not hold a key"),
        ("base_url", "http://169.254.169.254/v1", "refused"),
        ("key_env", "PATH", "BENCHWARMERS_KEY_"),
        ("key", "sk-with space", "a space"),
        ("limit_requests_minute", "0", "greater than or equal to 1"),
        ("quirk_other", "[1]", "JSON object"),
        ("quirk_other", '{"token_parm": "max_tokens"}', "Did you mean token_param?"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(operator, field, value, says):
    response = add(operator, **{field: value})
    assert response.status_code == 200
    assert not Endpoint.objects.exists()
    errors = response.context["adminform"].form.errors
    assert says in str(errors.get(field)), errors


def test_a_refused_key_is_not_repeated_on_the_page(operator):
    assert b"sk-secret" not in add(operator, key="sk-secret with spaces").content


def test_a_name_is_taken_ignoring_case_in_every_script(operator):
    seed.endpoint("ÄRGER")
    response = add(operator, name="ärger")
    assert "is taken" in str(response.context["adminform"].form.errors["name"])


def test_a_name_stays_once_it_stands_in_the_ledger(operator):
    row = seed.endpoint("groq")
    change(operator, row, name="other")
    row.refresh_from_db()
    assert row.name == "groq"


def test_unknown_quirks_survive_a_save(operator):
    row = seed.endpoint("groq", quirks={"own_flag": True, "token_param": "max_tokens"})
    page = operator.get(reverse("admin:catalog_endpoint_change", args=[row.pk]))
    initial = page.context["adminform"].form.initial
    change(operator, row, quirk_token_param=initial["quirk_token_param"], quirk_other='{"own_flag": true}', limit_parallel="2")
    row.refresh_from_db()
    assert row.quirks == {"own_flag": True, "token_param": "max_tokens"}


def test_a_key_is_rotated_or_forgotten_and_the_trail_knows(operator):
    row = seed.endpoint("groq", key=seed.CANARY)
    address = reverse("admin:catalog_endpoint_rotate", args=[row.pk])
    assert "Type the new key" in operator.post(address, {}).content.decode()
    operator.post(address, {"key": "sk-new-0123456789"})
    row.refresh_from_db()
    assert key_of(row) == "sk-new-0123456789"
    operator.post(address, {"forget": "on"})
    row.refresh_from_db()
    assert key_of(row) == ""
    assert [action for _, action, _ in trail()] == ["endpoint.key", "endpoint.key"]


def test_the_connection_test_tells_how_it_went(operator, fake):
    fake.models = ["fake/fast", "fake/slow"]
    seed.endpoint("good", fake.url)
    seed.endpoint("gone")
    rows = [str(e.pk) for e in Endpoint.objects.all()]
    page = operator.post(reverse("admin:catalog_endpoint_changelist"), {"action": "test_selected", "_selected_action": rows}, follow=True)
    said = [str(m) for m in page.context["messages"]]
    assert any(m.startswith("Endpoint good answers and lists 2 models.") for m in said)
    assert any(m.startswith("Endpoint gone:") for m in said)


@pytest.mark.django_db(transaction=True)
def test_saving_and_testing_is_one_press(operator, fake):
    fake.models = ["fake/fast"]
    row = seed.endpoint("good", fake.url)
    page = operator.get(change(operator, row, catalog_endpoint_save_and_test="", limit_parallel="3")["Location"])
    assert any("lists 1 model." in str(m) for m in page.context["messages"])
    row.refresh_from_db()
    assert row.limits == {"parallel": 3}


def test_no_endpoint_is_asked_while_the_forms_transaction_is_open(operator, fake, django_capture_on_commit_callbacks):
    row = seed.endpoint("good", fake.url)
    with django_capture_on_commit_callbacks() as waiting:
        change(operator, row, catalog_endpoint_save_and_test="")
    assert len(waiting) == 1
    assert not fake.others


def test_what_it_serves_is_ticked_and_added_once(operator, fake):
    fake.models = ["fake/fast", "fake/slow", "<img src=x onerror=alert(1)>"]
    row = seed.endpoint("good", fake.url)
    seed.model("mine", row, served_name="fake/slow")
    address = reverse("admin:catalog_endpoint_serves", args=[row.pk])
    page = operator.get(address)
    assert [(r["served_name"], bool(r["taken"])) for r in page.context["listed"]] == [
        ("fake/fast", False),
        ("fake/slow", True),
        ("<img src=x onerror=alert(1)>", False),
    ]
    assert b"<img src=x" not in page.content
    assert b"disabled" not in page.content.split(b'value="fake/slow"')[1].split(b">")[0], "what is on the bench can be onboarded further"
    for _ in range(2):
        operator.post(address, {"pick": ["fake/fast", "fake/slow"]})
    assert sorted(Model.objects.values_list("alias", flat=True)) == ["fake/fast", "mine"]
    assert ("operator", "model.add", "fake/fast") in trail()


def test_an_endpoint_that_does_not_list_says_why_and_offers_the_way_by_hand(operator):
    row = seed.endpoint("gone")
    text = operator.get(reverse("admin:catalog_endpoint_serves", args=[row.pk])).content.decode()
    assert "gone did not list its models" in text
    assert f"{reverse('admin:catalog_model_add')}?endpoint={row.pk}" in text


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_a_reader_has_no_action_and_no_key_field(role, as_role):
    row = seed.endpoint("groq", key=seed.CANARY)
    client = as_role(role)
    page = client.get(reverse("admin:catalog_endpoint_change", args=[row.pk])).content.decode()
    assert 'type="password"' not in page
    assert "Rotate key" not in page
    assert client.post(reverse("admin:catalog_endpoint_rotate", args=[row.pk]), {"key": "sk-new-0123456789"}).status_code == 403
    client.post(reverse("admin:catalog_endpoint_changelist"), {"action": "test_selected", "_selected_action": [row.pk]})
    assert change(client, row, base_url="http://127.0.0.1:10/v1").status_code == 403
    row.refresh_from_db()
    assert row.base_url == "http://127.0.0.1:9/v1"


def test_an_endpoint_with_models_is_not_deleted(operator):
    row = seed.endpoint("groq")
    seed.model("m", row)
    operator.post(reverse("admin:catalog_endpoint_delete", args=[row.pk]), {"post": "yes"})
    assert Endpoint.objects.filter(pk=row.pk).exists()


def test_deleting_is_in_the_trail(operator):
    row = seed.endpoint("groq", key=seed.CANARY)
    operator.post(reverse("admin:catalog_endpoint_delete", args=[row.pk]), {"post": "yes"})
    assert trail() == [("operator", "endpoint.delete", "groq")]
    assert seed.CANARY not in str(AuditEntry.objects.get().changes)
