"""The pages of usage: sums, charts, the list of calls."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import quote

import pytest
from django.urls import reverse
from django.utils import timezone

from access.ids import new_id
from catalog.models import Model
from health import rollups
from health.models import Attempt
from tests.admin import seed
from tests.pages.test_quotas import told

USAGE, CALLS = reverse("pages:usage"), reverse("pages:calls")


def attempts(count: int = 1, alias: str = "mercury", status: str = "ok", days: int = 0, **more: object) -> None:
    """Calls of today, or of so many days before, each for a dollar."""
    model = Model.objects.get(alias=alias)
    at = timezone.now() - timedelta(days=days)
    rows = [seed.attempt(new_id("call"), new_id("pan"), model, at, status) for _ in range(count)]
    for row in rows:
        row.cost_pusd = 10**12
        for name, value in more.items():
            setattr(row, name, value)
    Attempt.objects.bulk_create(rows)
    rollups.rebuild()


@pytest.fixture
def three_models(db):
    seed.people()
    at = seed.endpoint("local")
    for alias in ("mercury", "venus", "<svg onload=alert(1)>"):
        seed.model(alias, at)


@pytest.mark.parametrize("role", ["viewer", "judge", "operator", "admin"])
def test_a_month_says_what_it_cost_and_on_what(as_role, three_models, role):
    attempts(3)
    attempts(1, "venus", "timeout", cost_pusd=None)
    page = as_role(role).get(USAGE).content.decode()
    words = told(page)
    assert "Spent $3.00" in words
    assert "1 call without a known price is not in it" in words
    assert "Calls of models 4 1 failed (25%)" in words
    assert "mercury $3.00 3 0 2,436 720" in words
    assert f"/bench/usage?by=model&amp;month={timezone.now():%Y-%m}&amp;format=csv" in page


def test_every_grouping_has_its_table_and_its_chart(admin, three_models):
    attempts(2, collection="core", key_name="bot", key_id=7, team="platform", purpose="route")
    attempts(1, "venus")
    for by, names in (
        ("model", ["mercury", "venus"]),
        ("endpoint", ["local"]),
        ("collection", ["core"]),
        ("key", ["bot"]),
        ("owner", ["operator"]),
        ("team", ["platform"]),
        ("purpose", ["route", "panel"]),
    ):
        page = admin.get(f"{USAGE}?by={by}", headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in page
        for name in names:
            assert re.search(rf'<th scope="col">{name}</th>', page), (by, name, "the chart's column")
            assert re.search(rf'<bdi class="name">{name}</bdi>', page), (by, name)


def test_the_charts_have_every_day_and_all_others_beyond_five(admin, three_models):
    at = Model.objects.first().endpoint
    for n in range(6):
        seed.model(f"m{n}", at)
        attempts(6 - n, f"m{n}")
    page = admin.get(USAGE).content.decode()
    chart = page.split('data-chart="bar"')[1]
    assert [unescape(one) for one in re.findall(r'<th scope="col">([^<]+)</th>', chart.split("</thead>")[0])] == [
        "Day",
        "m0",
        "m1",
        "m2",
        "m3",
        "m4",
        "all others",
    ]
    days = re.findall(r'<th scope="row">(\d{4}-\d\d-\d\d)</th>', chart.split("</tbody>")[0])
    assert days == [f"{timezone.now():%Y-%m}-{n:02}" for n in range(1, timezone.now().day + 1)]
    last = re.findall(r'data-value="([^"]*)"', chart.split("</tbody>")[0])[-6:]
    assert [float(one) for one in last] == [6, 5, 4, 3, 2, 1]


def test_earlier_months_and_all_of_them_can_be_looked_at(admin, three_models):
    attempts(2)
    attempts(5, "venus", days=70)
    then = f"{timezone.now() - timedelta(days=70):%Y-%m}"
    page = told(admin.get(f"{USAGE}?month={then}").content.decode())
    assert "Spent $5.00" in page
    whole = told(admin.get(f"{USAGE}?month=all").content.decode())
    assert "Spent $7.00" in whole
    assert "Spend by month" in whole
    assert "Spent $2.00" in told(admin.get(f"{USAGE}?month=1999-01&by=moon").content.decode()), "what is not there is this month by model"


def test_what_has_no_price_is_said(admin, three_models):
    attempts(2, cost_pusd=None)
    words = told(admin.get(USAGE).content.decode())
    assert "Spent – 2 calls without a known price are not in it" in words


def test_an_empty_month_says_so(admin, three_models):
    assert "No calls in" in told(admin.get(USAGE).content.decode())
    assert "No calls yet" in told(admin.get(CALLS).content.decode())


# ------------------------------------------------------------------ calls


def test_calls_are_listed_with_what_they_were_for_and_how_they_went(as_role, three_models):
    attempts(1, collection="core", key_name="bot", error="It said <b>no</b>.", status="timeout", http_status=504)
    attempts(1, "<svg onload=alert(1)>", cost_pusd=None)
    page = as_role("viewer").get(CALLS).content.decode()
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "<svg onload" not in page
    words = told(page)
    assert "timeout 504" in words
    assert "key bot" in words
    assert "812 in 240 out" in words
    assert "unknown" in words


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("model=venus", 1),
        ("status=failed", 1),
        ("status=ok", 2),
        ("endpoint=local", 3),
        ("endpoint=far", 0),
        ("collection=core", 1),
        ("key_name=bot", 1),
        ("purpose=panel&judge=operator", 3),
        ("from=2099-01-01", 0),
    ],
)
def test_calls_are_filtered_and_the_sheet_with_them(admin, three_models, query, count):
    attempts(1, collection="core", key_name="bot")
    attempts(1, status="timeout")
    attempts(1, "venus")
    page = admin.get(f"{CALLS}?{query}", headers={"HX-Request": "true"}).content.decode()
    assert page.count('<th scope="row">') == count
    if count:
        (sheet,) = re.findall(r'href="(/bench/calls\?[^"]+)"', page)
        lines = b"".join(admin.get(unescape(sheet)).streaming_content).decode("utf-8-sig").splitlines()
        assert len(lines) == count + 1
    else:
        assert "No call is so" in page


def test_a_search_that_did_not_see_all_says_so(admin, three_models, monkeypatch):
    from health import history

    monkeypatch.setattr(history, "MOST_LOOKED_AT", 2)
    attempts(4)
    assert "newest 2 calls" in told(admin.get(f"{CALLS}?status=ok").content.decode())


def test_a_wrong_day_is_refused_in_words(admin, three_models):
    answer = admin.get(f"{CALLS}?from=yesterday")
    assert answer.status_code == 400
    assert "must be a day like" in answer.content.decode()


def test_names_lead_from_the_sums_to_their_calls(admin, three_models):
    attempts(1, "<svg onload=alert(1)>")
    page = admin.get(USAGE).content.decode()
    assert f"{CALLS}?model={quote('<svg onload=alert(1)>', safe='')}" in page


def test_a_year_of_days_is_read_in_few_queries(admin, three_models, django_assert_max_num_queries):
    for days in range(0, 60, 3):
        attempts(1, days=days)
    with django_assert_max_num_queries(14):
        admin.get(USAGE)
    with django_assert_max_num_queries(8):
        admin.get(f"{CALLS}?status=ok")


def test_a_day_begins_by_the_servers_clock(admin, three_models, settings):
    settings.BENCH_TIME_ZONE = "Pacific/Kiritimati"  # 14 hours ahead
    attempts(1)
    page = admin.get(USAGE).content.decode()
    there = datetime.now(UTC) + timedelta(hours=14)
    assert f'<th scope="row">{there:%Y-%m-%d}</th>' in page
