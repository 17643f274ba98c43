"""The pages of quotas, budgets and alerts."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.urls import reverse
from django.utils import timezone

from access.models import Budget
from catalog.models import Endpoint
from health import alerts
from health.models import Alert, Allowance, LearnedLimit, Rest
from tests.admin import seed
from tests.pages.conftest import trail

QUOTAS, BUDGETS, BUDGET, ALERTS = (reverse(f"pages:{name}") for name in ("quotas", "budgets", "budget", "alerts"))


def told(page: str) -> str:
    """A page's words without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


# ------------------------------------------------------------------ what is left


def test_limits_by_hand_and_learned_ones_say_what_is_left_and_when_they_begin_anew(as_role, small_bench):
    groq = Endpoint.objects.get(name="groq-eu")
    now = timezone.now()
    LearnedLimit.objects.create(scope=f"endpoint:{groq.pk}", measure="tokens", window="day", limit=600_000, told_by="header", learned_at=now)
    more = {"remaining": 50_000, "told_at": now, "resets_at": now + timedelta(hours=5, minutes=1)}
    Allowance.objects.create(scope=f"endpoint:{groq.pk}", measure="tokens", window="day", limit=600_000, **more)
    page = told(as_role("viewer").get(QUOTAS).content.decode())
    assert "Connection groq-eu 1,000 requests a day 0 0% 1,000 in" in page
    assert "4 calls at once" in page
    assert "600k tokens a day 92% 50k as the provider says; 600k by our own count in 5 h told by the provider with its answers" in page
    assert "set by hand" in page


def test_who_rests_says_until_when_and_why(as_role, small_bench):
    Rest.objects.create(
        scope="endpoint:local", kind="key", until=timezone.now() + timedelta(hours=2, minutes=1), reason="It refused <b>the key</b>", since=timezone.now()
    )
    page = as_role("viewer").get(QUOTAS).content.decode()
    assert "Connection local its key is refused It refused &lt;b&gt;the key&lt;/b&gt; in 2 h" in told(page)
    assert "Model slow-but-sure at its provider&#x27;s limit" in told(page)


def test_limits_are_narrowed_by_what_they_are_of_and_by_name(admin, small_bench):
    part = {"HX-Request": "true"}
    page = admin.get(f"{QUOTAS}?scope=key", headers=part).content.decode()
    assert "review-bot" in page
    assert "60 requests a minute" in told(page)
    assert "groq" not in page
    assert "<html" not in page
    assert "local" not in admin.get(f"{QUOTAS}?find=GROQ", headers=part).content.decode()
    empty = admin.get(f"{QUOTAS}?find=<svg onload=x>", headers=part).content.decode()
    assert "&lt;svg onload=x&gt;" in empty
    assert admin.get(f"{QUOTAS}?scope=moon").status_code == 400


def test_an_empty_bench_says_where_limits_come_from(admin):
    assert "No limits here" in admin.get(QUOTAS).content.decode()
    assert "No budgets yet" in admin.get(BUDGETS).content.decode()
    assert "Nothing to look at" in admin.get(ALERTS).content.decode()


# ------------------------------------------------------------------ budgets


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_who_is_no_operator_sees_budgets_and_alerts_and_changes_none(as_role, small_bench, role):
    alerts.raise_alert("drift", "mercury", "d:1", "It changed.")
    client = as_role(role)
    assert f'"{BUDGET}"' not in client.get(BUDGETS).content.decode()
    assert client.post(BUDGET, {"kind": "team", "name": "x", "budget_usd": "1"}).status_code == 403
    assert "Mark" not in client.get(ALERTS).content.decode()
    assert client.post(ALERTS, {"alert": str(Alert.objects.get().pk)}).status_code == 403
    assert Alert.objects.get().seen_at is None


@pytest.mark.parametrize("name", ["platform", "..", "a/b ü", *seed.HOSTILE[:5]])
def test_a_budget_is_set_shown_changed_and_deleted(operator, small_bench, name):
    done = operator.post(BUDGET, {"kind": "team", "name": name, "budget_usd": "12.5", "alert_at": "50, 90 %"}, follow=True)
    page = done.content.decode()
    assert "$12.50" in page
    assert "50%, 90%" in told(page)
    for raw in ("<img src=x", "<svg onload", "</script><script>alert"):
        assert raw not in page
    (link,) = re.findall(rf'href="({BUDGET}\?[^"]+)"', page)
    address = link.replace("&amp;", "&")
    assert 'value="12.5"' in operator.get(address).content.decode()
    assert operator.post(address, {"budget_usd": "20", "alert_at": ""}).status_code == 302
    row = Budget.objects.get(kind="team")
    assert (row.name, str(row.budget_usd), row.alert_at) == (name, "20.000000", [80, 100])
    assert operator.post(address, {"delete": "1"}).status_code == 302
    assert not Budget.objects.exists()
    assert [action for _, action, _ in trail()[-3:]] == ["budget.add", "budget.change", "budget.delete"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"budget_usd": "much"}, "budget_usd"),
        ({"budget_usd": ""}, "budget_usd"),
        ({"name": ""}, "name"),
        ({"alert_at": "half"}, "alert_at"),
        ({"alert_at": "0"}, "alert_at"),
        ({"kind": "moon"}, "kind"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_at_its_field(operator, small_bench, wrong, field):
    answer = operator.post(BUDGET, {"kind": "team", "name": "x", "budget_usd": "3", "alert_at": "80", **wrong})
    assert answer.status_code == 400
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', answer.content.decode())
    assert not Budget.objects.exists()


def test_a_second_budget_of_the_same_is_refused(operator, small_bench):
    for status in (302, 409):
        assert operator.post(BUDGET, {"kind": "collection", "name": "core", "budget_usd": "3", "alert_at": "80"}).status_code == status


def test_keys_with_a_budget_stand_below(admin, small_bench):
    page = told(admin.get(BUDGETS).content.decode())
    assert "review-bot $0 0% $25.00 $25.00" in page


def test_a_budget_that_is_gone_or_no_kind_is_not_found(operator, small_bench):
    for name in ("gone", quote("a/b")):
        assert operator.get(f"{BUDGET}?kind=team&name={name}").status_code == 404


# ------------------------------------------------------------------ alerts


def test_alerts_are_seen_one_by_one_or_all_and_stay_on_record(operator, small_bench):
    for n in range(3):
        alerts.raise_alert("drift", seed.HOSTILE[0], f"d:{n}", f"It changed {n}. {seed.HOSTILE[1]}")
    page = operator.get(ALERTS).content.decode()
    assert "3 unseen" in told(page)
    for raw in ("<img src=x", "</script><script>alert"):
        assert raw not in page
    first = Alert.objects.order_by("id").first()
    done = operator.post(ALERTS, {"alert": str(first.pk)}, follow=True).content.decode()
    assert "2 unseen" in told(done)
    rest = re.findall(r'type="hidden" name="alert" value="(\d+)"', done)
    operator.post(ALERTS, {"alert": rest})
    assert "Nothing to look at" in operator.get(ALERTS).content.decode()
    assert "It changed 0" in operator.get(f"{ALERTS}?show=all").content.decode()
    assert [entry[:2] for entry in trail()[-3:]] == [("operator", "alert.seen")] * 3
    assert operator.post(ALERTS, {"alert": "x"}).status_code == 404
