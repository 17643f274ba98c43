"""Every page, as every role; what people and models wrote is shown as they wrote it and never run."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from health.models import Attempt
from tests.admin import pages, seed

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("role", pages.ROLES)
def test_each_role_opens_its_pages_and_no_others(role, as_role, small_bench):
    client = as_role(role)
    for page, least in {**pages.lists(), **pages.of_rows()}.items():
        response = client.get(page)
        may = pages.ROLES.index(role) >= pages.ROLES.index(least)
        # A panel that is somebody else's is not there; the admin then goes back to the overview.
        assert (response.status_code == 200) == may, (role, page, response.status_code)
        assert may or response.status_code in (302, 403, 404), (role, page, response.status_code)


def test_without_signing_in_every_page_leads_to_the_sign_in(small_bench):
    client = Client()
    for page in {**pages.lists(), **pages.of_rows()}:
        response = client.get(page)
        assert response.status_code == 302, page
        assert response["Location"].startswith("/admin/login/"), page
        assert client.post(page, {}).status_code == 302, page


def test_signing_in_at_the_bare_address_ends_on_the_overview(small_bench):
    page = Client().get("/admin/login/")
    assert b'name="next" value="/admin/"' in page.content
    done = Client().post("/admin/login/", {"username": "viewer", "password": "a-password-for-tests", "next": "/admin/"})
    assert done["Location"] == "/admin/"


def test_an_empty_install_says_what_to_do_first(admin):
    page = admin.get("/admin/").content.decode()
    assert "Add an endpoint" in page
    assert reverse("admin:catalog_endpoint_add") in page
    assert "curl http://testserver/v1/chat/completions" in page


def test_what_names_and_answers_hold_is_never_markup(admin, hostile_bench):
    for page in {**pages.lists(), **pages.of_rows()}:
        text = admin.get(page).content.decode()
        for raw in ("<img src=x", "<svg onload", "</script><script>alert"):
            assert raw not in text, (page, raw)


def test_names_of_every_script_stand_in_the_lists(admin, hostile_bench):
    text = admin.get(reverse("admin:catalog_model_changelist")).content.decode()
    for name in ("نموذج عربي", "模型一号", "🦙🚀 llama", "{{ 7*7 }}{% debug %}"):
        assert name in text


def test_no_page_shows_a_provider_key(admin, small_bench):
    for page in {**pages.lists(), **pages.of_rows()}:
        assert seed.CANARY not in admin.get(page).content.decode(), page


def test_no_page_holds_an_inline_script_or_another_host(admin, small_bench):
    for page in {**pages.lists(), **pages.of_rows()}:
        text = admin.get(page).content.decode()
        assert "<script>" not in text, page
        for attribute in (' onclick="', ' onload="', ' onchange="', ' src="http', ' src="//', '<link href="http'):
            assert attribute not in text, (page, attribute)


@pytest.mark.parametrize(
    "name", ["catalog_endpoint", "catalog_model", "panels_collection", "panels_panel", "health_attempt", "panels_verdict", "access_key", "access_user"]
)
def test_a_list_asks_the_database_as_often_for_many_rows_as_for_few(name, admin):
    address = reverse(f"admin:{name}_changelist")
    seed.bench(2)
    few = count_queries(admin, address)
    more_rows()
    assert count_queries(admin, address) == few


def more_rows() -> None:
    from access import keys
    from access.models import User

    for i in range(5):
        at = seed.endpoint(f"more-{i}", limits={"parallel": 2})
        models = [seed.model(f"more-{i}-{j}", at) for j in range(4)]
        row = seed.panel(seed.collection(f"more-{i}", models, models[:2]), models, seed.NOW, texts=["Yes."])
        seed.record_verdict("judge", row.seats.first().call, True, "", [], [], seed.NOW)
        keys.mint(f"more-{i}", actor="admin")
        User.objects.create_user(username=f"more-{i}", role="viewer")


def count_queries(client: Client, address: str) -> int:
    client.get(address)  # content types and the like are read once a process
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def test_the_ledger_counts_nothing(admin, small_bench):
    for address in ("admin:health_attempt_changelist", "admin:panels_panel_changelist", "admin:panels_verdict_changelist"):
        with CaptureQueriesContext(connection) as queries:
            admin.get(reverse(address))
        assert not [q["sql"] for q in queries if "COUNT(" in q["sql"].upper() and "django_session" not in q["sql"]]


def test_the_ledger_is_found_by_call_and_by_panel(admin, small_bench):
    row = Attempt.objects.filter(status="ok").first()
    address, own = reverse("admin:health_attempt_changelist"), reverse("admin:health_attempt_change", args=[quote(row.pk)])
    for wanted in (row.call, row.panel):
        assert own in admin.get(address, {"q": wanted}).content.decode()
    assert own not in admin.get(address, {"q": "call_nothing"}).content.decode()


NARROWINGS = ("status__exact=ok", "endpoint=local", "model__icontains=merc", "key_name__icontains=bot", "estimated=1", "purpose=probe")


@pytest.mark.parametrize("query", NARROWINGS)
def test_the_ledger_narrows(query, admin, small_bench):
    response = admin.get(f"{reverse('admin:health_attempt_changelist')}?{query}")
    assert response.status_code == 200
    assert len(response.context["cl"].result_list) < Attempt.objects.count()


def test_money_stands_as_exact_dollars(admin, small_bench):
    assert "$0.00132" in admin.get(reverse("admin:health_attempt_changelist")).content.decode()


def test_pages_of_the_queue_and_of_groups_are_not_there(admin):
    for page in ("/admin/django_q/schedule/", "/admin/django_q/success/", "/admin/auth/group/"):
        assert admin.get(page).status_code == 404


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_a_reader_sees_what_is_stored(role, as_role):
    at = seed.endpoint("local", limits={"requests": {"minute": 30}, "parallel": 4}, quirks={"stream_options": False})
    row = seed.model("mercury", at, facts={"context_window": 65536, "tools": True}, limits={"tokens": {"day": 1000}}, quirks={"system_role": "developer"})
    client = as_role(role)
    endpoint = client.get(reverse("admin:catalog_endpoint_change", args=[at.pk])).content.decode()
    model = client.get(reverse("admin:catalog_model_change", args=[row.pk])).content.decode()
    for said, page in (("30 requests/minute, 4 at once", endpoint), ("stream_options: no", endpoint), ("context_window: 65536", model), ("tools: yes", model)):
        assert said in page, said
    for said in ("1,000 tokens/day", "system_role: developer"):
        assert said in model, said


@pytest.mark.parametrize(("role", "shown"), [("viewer", False), ("judge", True), ("operator", True)])
def test_the_sidebar_leads_to_panels_for_those_who_may_see_some(role, shown, as_role):
    assert (f'href="{reverse("admin:panels_panel_changelist")}"' in as_role(role).get("/admin/access/key/").content.decode()) == shown
