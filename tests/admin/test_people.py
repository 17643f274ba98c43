"""Users, keys and the trail."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from access import keys
from access.keys import digest
from access.models import AuditEntry, Key, KeyUse, User
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db

KEY = {"name": "review-bot", "owner": "", "scopes": ["ask", "judge"], "collections": "", "models": "", "keep_text": ""}
USER = {"username": "ada", "role": "judge", "is_active": "on", "first_name": "", "last_name": "", "email": ""}


def test_a_key_is_shown_once(admin):
    page = admin.post(reverse("admin:access_key_add"), {**KEY, "collections": "core\ndesign\n", "rpm": "60", "budget_usd": "25"})
    secret = re.search(r"bw_live_[A-Za-z0-9_-]{30,}", page.content.decode())[0]
    row = Key.objects.get()
    assert row.digest == digest(secret)
    assert (row.collections, row.models, row.rpm, str(row.budget_usd)) == (["core", "design"], None, 60, "25.000000")
    assert "no-store" in page["Cache-Control"]
    for address in (reverse("admin:access_key_changelist"), reverse("admin:access_key_change", args=[row.pk]), reverse("admin:access_auditentry_changelist")):
        assert secret not in admin.get(address).content.decode()
    assert secret not in str(list(AuditEntry.objects.values()))
    assert trail() == [("admin", "key.create", "review-bot")]


def test_sending_the_form_again_makes_no_second_key(admin):
    for _ in range(2):
        page = admin.post(reverse("admin:access_key_add"), KEY)
    assert Key.objects.count() == 1
    assert "is the name of another key" in page.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("scopes", [], "required"),
        ("scopes", ["everything"], "not one of the available"),
        ("collections", "bench/core", "without bench/"),
        ("rpm", "0", "greater than or equal to 1"),
        ("budget_usd", "-1", "greater than or equal to 0"),
        ("expires_at_0", "2020-01-01", "in the future"),
        ("name", "a\u200bb", "printable"),
    ],
)
def test_what_a_key_cannot_have_is_said_at_its_field(admin, field, value, says):
    form = {**KEY, field: value, **({"expires_at_1": "00:00"} if field == "expires_at_0" else {})}
    page = admin.post(reverse("admin:access_key_add"), form)
    assert not Key.objects.exists()
    assert says in str(page.context["adminform"].form.errors.get(field.removesuffix("_0")))


def test_a_key_changes_and_is_revoked_for_good(admin):
    row, _ = keys.mint("review-bot", actor="admin")
    address = reverse("admin:access_key_change", args=[row.pk])
    admin.post(address, {**KEY, "models": "fast\nmeta/*", "scopes": ["ask"]})
    row.refresh_from_db()
    assert (row.models, row.scopes) == (["fast", "meta/*"], ["ask"])
    admin.post(reverse("admin:access_key_revoke", args=[row.pk]), {"reason": "It leaked."})
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert admin.post(address, {**KEY, "scopes": ["admin"]}).status_code == 403
    assert [(action, AuditEntry.objects.filter(action=action).last().reason) for _, action, _ in trail()][-1] == ("key.revoke", "It leaked.")


def test_keys_are_not_deleted(admin):
    row, _ = keys.mint("review-bot", actor="admin")
    assert admin.post(reverse("admin:access_key_delete", args=[row.pk]), {"post": "yes"}).status_code == 403


def test_the_list_of_keys_tells_hint_owner_status_and_last_use(admin):
    row, secret = keys.mint("review-bot", owner="ada", actor="admin")
    KeyUse.objects.create(key=row, last_used_at=seed.NOW)
    text = admin.get(reverse("admin:access_key_changelist")).content.decode()
    for said in (secret[:12], "ada", "29 Nov 2026 16:00", "Active"):
        assert said in text
    assert secret not in text
    assert admin.get(reverse("admin:access_key_changelist"), {"standing": "revoked"}).context["cl"].result_count == 0


def test_a_user_is_made_with_a_role_and_signs_in_by_a_link_that_works_once(admin):
    admin.post(reverse("admin:access_user_add"), USER)
    ada = User.objects.get(username="ada")
    assert (ada.role, ada.has_usable_password()) == ("judge", False)
    address = reverse("admin:access_user_sign_in_link", args=[ada.pk])
    assert "testserver/signin/" not in admin.get(address).content.decode()
    link = admin.post(address).context["link"]
    assert link.startswith("http://testserver/signin/")
    assert link not in str(list(AuditEntry.objects.values()))
    assert [action for _, action, _ in trail()] == ["user.add", "user.signin_link_made"]
    assert urlsplit(link).path.startswith("/signin/")


def test_a_switched_off_user_gets_no_link(admin):
    ada = User.objects.create_user(username="ada", role="judge", is_active=False)
    page = admin.post(reverse("admin:access_user_sign_in_link", args=[ada.pk]))
    assert page.context["link"] == ""


def test_a_role_changes_and_the_trail_tells(admin):
    ada = User.objects.create_user(username="ada", role="judge")
    admin.post(reverse("admin:access_user_change", args=[ada.pk]), {**USER, "username": "other", "role": "operator"})
    ada.refresh_from_db()
    assert (ada.username, ada.role) == ("ada", "operator")
    assert AuditEntry.objects.get().changes == {"role": ["judge", "operator"]}


@pytest.mark.parametrize("form", [{"role": "viewer"}, {"is_active": ""}])
def test_the_last_admin_stays(admin, form):
    me = User.objects.get(username="admin")
    sent = {**USER, "username": "admin", "role": "admin", **form}
    page = admin.post(reverse("admin:access_user_change", args=[me.pk]), {k: v for k, v in sent.items() if v})
    assert "last active admin" in page.content.decode()
    assert admin.post(reverse("admin:access_user_delete", args=[me.pk]), {"post": "yes"}).status_code == 403
    me.refresh_from_db()
    assert (me.role, me.is_active) == ("admin", True)


def test_a_set_password_is_in_the_trail_without_itself(admin):
    ada = User.objects.create_user(username="ada", role="judge")
    admin.post(reverse("admin:auth_user_password_change", args=[ada.pk]), {"password1": "long enough 12345", "password2": "long enough 12345"})
    ada.refresh_from_db()
    assert ada.check_password("long enough 12345")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.changes) == ("user.password", "ada", {"password": ["", "set"]})


@pytest.mark.parametrize("role", ["viewer", "judge", "operator"])
def test_below_an_admin_nobody_makes_users_or_keys(role, as_role):
    client = as_role(role)
    assert client.post(reverse("admin:access_user_add"), USER).status_code == 403
    assert client.post(reverse("admin:access_key_add"), KEY).status_code == 403
    assert not Key.objects.exists()


def test_the_trail_is_read_only_and_shows_before_and_after(admin):
    seed.endpoint("groq")
    entry = AuditEntry.objects.create(at=seed.NOW, actor="ada", action="endpoint.change", target="<b>groq</b>", changes={"base_url": ["http://a", "<i>b</i>"]})
    text = admin.get(reverse("admin:access_auditentry_change", args=[entry.pk])).content.decode()
    assert "http://a" in text
    assert "&lt;i&gt;b&lt;/i&gt;" in text
    for page in ("change", "delete"):
        assert admin.post(reverse(f"admin:access_auditentry_{page}", args=[entry.pk]), {"post": "yes"}).status_code == 403


def test_the_history_of_a_row_is_the_trail_narrowed_to_it(admin):
    row = seed.endpoint("groq")
    for target in ("groq", "other"):
        AuditEntry.objects.create(at=seed.NOW, actor="ada", action="endpoint.change", target=target, changes={})
    page = admin.get(reverse("admin:catalog_endpoint_history", args=[row.pk]), follow=True)
    assert [e.target for e in page.context["cl"].result_list] == ["groq"]


def test_signed_out_nobody_makes_anything():
    assert Client().post(reverse("admin:access_key_add"), KEY).status_code == 302
    assert not Key.objects.exists()


def test_a_revoked_key_is_told_in_words(admin):
    row, _ = keys.mint("review-bot", collections=["core"], models=["meta/*"], rpm=60, actor="admin")
    keys.revoke(row, "admin")
    text = admin.get(reverse("admin:access_key_change", args=[row.pk])).content.decode()
    for said in ("ask, judge", "bench/core", "meta/*", "60 requests/min", "Revoked"):
        assert said in text, said
