"""Grants and backends in the admin."""

from __future__ import annotations

import pytest
from django.urls import reverse

from access.models import AuditEntry
from suite.models import Backend, Grant

pytestmark = pytest.mark.django_db


def test_a_grant_is_made_once_and_never_changed(admin, operator) -> None:
    page = reverse("admin:suite_grant_add")
    assert operator.get(page).status_code == 403
    assert admin.post(page, {"team": "team:platform", "kind": "grant", "amount_usd": "12.5", "note": "for tests"}).status_code == 302
    row = Grant.objects.get()
    assert (row.team, row.amount_usd, row.created_by) == ("team:platform", 12.5, "admin")
    assert AuditEntry.objects.get(action="billing.grant").target == "team:platform"
    assert admin.post(reverse("admin:suite_grant_change", args=[row.pk]), {"amount_usd": "1000"}).status_code == 403
    assert admin.post(reverse("admin:suite_grant_delete", args=[row.pk]), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("wrong", [{"team": "platform"}, {"amount_usd": "0"}, {"amount_usd": "-5"}, {"kind": "trace_debit"}])
def test_a_grant_that_cannot_be_is_refused(admin, wrong: dict[str, str]) -> None:
    answer = admin.post(reverse("admin:suite_grant_add"), {"team": "team:platform", "kind": "grant", "amount_usd": "5", "note": "", **wrong})
    assert answer.status_code == 200
    assert not Grant.objects.exists()


def test_one_backend_is_the_default_and_its_caps_are_checked(admin) -> None:
    page = reverse("admin:suite_backend_add")
    for name in ("small", "large"):
        sent = {"name": name, "kind": "local-bwrap", "settings": '{"memory_mb": 256}', "is_default": "on"}
        assert admin.post(page, sent).status_code == 302
    assert list(Backend.objects.filter(is_default=True).values_list("name", flat=True)) == ["large"]
    for settings in ('{"memory_mb": 0}', '{"speed": 3}', "[1]"):
        assert admin.post(page, {"name": "odd", "kind": "local-bwrap", "settings": settings}).status_code == 200
    assert Backend.objects.count() == 2
