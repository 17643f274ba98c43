"""Budgets and alerts in the admin, teams of keys and people, and calls as a sheet."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from access import keys
from access.models import AuditEntry, Budget, Key, User
from health import alerts
from health.models import Alert, Attempt, Meter

pytestmark = pytest.mark.django_db


def test_a_budget_is_made_changed_and_deleted_with_its_trail(admin: Client) -> None:
    page = admin.post(reverse("admin:access_budget_add"), {"kind": "team", "name": " platform ", "budget_usd": "250", "alert_at": "100, 50 %"})
    assert page.status_code == 302
    row = Budget.objects.get()
    assert (row.kind, row.name, str(row.budget_usd), row.alert_at) == ("team", "platform", "250.000000", [50, 100])
    assert Meter.objects.filter(scope="team:platform|pusd").exists()
    shown = admin.get(reverse("admin:access_budget_changelist")).content.decode()
    assert "$250 a month" in shown
    page = admin.post(reverse("admin:access_budget_change", args=[row.pk]), {"budget_usd": "300", "alert_at": ""})
    assert page.status_code == 302
    row.refresh_from_db()
    assert (row.name, str(row.budget_usd), row.alert_at) == ("platform", "300.000000", [80, 100])
    assert admin.post(reverse("admin:access_budget_delete", args=[row.pk]), {"post": "yes"}).status_code == 302
    assert not Budget.objects.exists()
    trail = AuditEntry.objects.filter(action__startswith="budget.").order_by("id").values_list("action", "target")
    assert list(trail) == [(f"budget.{verb}", "team platform") for verb in ("add", "change", "delete")]


@pytest.mark.parametrize(("field", "value", "said"), [("alert_at", "80, x", "percent"), ("alert_at", "0", "percent"), ("budget_usd", "-1", "greater")])
def test_a_wrong_budget_is_told_at_its_field(admin: Client, field: str, value: str, said: str) -> None:
    page = admin.post(reverse("admin:access_budget_add"), {"kind": "team", "name": "x", "budget_usd": "1", field: value})
    assert page.status_code == 200
    assert said in str(page.context["adminform"].form.errors[field])


def test_a_second_budget_of_a_name_is_told_at_the_name(admin: Client) -> None:
    for _ in range(2):
        page = admin.post(reverse("admin:access_budget_add"), {"kind": "team", "name": "x", "budget_usd": "1"})
    assert "name" in page.context["adminform"].form.errors


def test_alerts_stand_on_the_overview_until_somebody_has_seen_them(admin: Client) -> None:
    alerts.raise_alert("budget", "team <b>x</b>", "one", "The budget of the team <b>x</b> runs out.")
    shown = admin.get(reverse("admin:index")).content.decode()
    assert "The budget of the team &lt;b&gt;x&lt;/b&gt; runs out." in shown
    page = admin.post(reverse("admin:health_alert_changelist"), {"action": "see_selected", "_selected_action": [Alert.objects.get().pk]})
    assert page.status_code == 302
    assert Alert.objects.get().seen_by
    assert "runs out" not in admin.get(reverse("admin:index")).content.decode()
    assert AuditEntry.objects.filter(action="alert.seen").count() == 1


def test_a_team_is_set_on_keys_and_people(admin: Client) -> None:
    key, _ = keys.mint("bot", actor="admin")
    page = admin.get(reverse("admin:access_key_change", args=[key.pk]))
    assert "team" in page.context["adminform"].form.fields
    keys.change(Key.objects.get(pk=key.pk), {"team": "platform"}, "admin")
    assert Key.objects.get(pk=key.pk).team == "platform"
    user = User.objects.create_user(username="ada", role="judge")
    form: dict[str, Any] = {"role": "judge", "team": "platform", "is_active": "on"}
    assert admin.post(reverse("admin:access_user_change", args=[user.pk]), form).status_code == 302
    assert User.objects.get(pk=user.pk).team == "platform"


def test_selected_calls_go_out_as_a_sheet(admin: Client, small_bench: None) -> None:
    chosen = list(Attempt.objects.values_list("pk", flat=True)[:2])
    response = admin.post(reverse("admin:health_attempt_changelist"), {"action": "export_selected", "_selected_action": chosen})
    assert response["Content-Type"].startswith("text/csv")
    data = b"".join(response.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    assert data.startswith("id,call,panel")
    assert data.count("\r\n") == 3
