"""The pages of keys: who sees and does what, a key that is shown once, changing, revoking."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from access.models import Key
from tests.admin import seed
from tests.pages.conftest import trail

KEYS, NEW, EDIT = (reverse(f"pages:{name}") for name in ("keys", "key_new", "key_edit"))
FORM = {"name": "laptop", "owner": "kim", "scopes": ["ask", "judge"], "all": "1"}


def of(name: str) -> dict[str, str]:
    return {"name": name}


def edit(client: Client, name: str, **fields: object) -> object:
    return client.post(f"{EDIT}?name={name}", fields)


@pytest.mark.parametrize("role", ["viewer", "judge", "operator", "admin"])
def test_whoever_reads_sees_keys_and_only_admins_are_offered_changes(as_role, small_bench, role):
    page = as_role(role).get(KEYS).content.decode()
    assert "review-bot" in page
    assert "60 requests a minute" in page
    assert "$25.00 a month" in page
    assert (NEW in page) == (role == "admin")
    assert (EDIT in page) == (role == "admin")
    hints = Key.objects.values_list("hint", flat=True)
    assert all(hint in page for hint in hints)


@pytest.mark.parametrize("role", ["viewer", "judge", "operator"])
def test_who_is_no_admin_makes_and_changes_none(as_role, small_bench, role):
    client = as_role(role)
    assert client.get(NEW).status_code == 403
    assert client.post(NEW, FORM).status_code == 403
    assert client.post(f"{EDIT}?name=ci", {"revoke": "1"}).status_code == 403
    assert Key.objects.get(name="ci").revoked_at is None


def test_a_key_is_made_shown_once_and_works(admin, small_bench):
    made = admin.post(NEW, FORM)
    page = made.content.decode()
    (secret,) = re.findall(r'<code id="the-key">(bw_live_[^<]+)</code>', page)
    assert made["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert "bench/core" in page, "what to try first"
    row = Key.objects.get(name="laptop")
    assert (row.owner, row.scopes, row.collections, row.models, row.expires_at) == ("kim", ["ask", "judge"], None, None, None)
    assert trail()[-1] == ("admin", "key.create", "laptop")
    assert secret not in admin.get(KEYS).content.decode()
    asked = Client().get("/bench/collections", headers={"authorization": f"Bearer {secret}"})
    assert asked.status_code == 200
    assert Client().get("/bench/models", headers={"authorization": f"Bearer {secret}"}).status_code == 403


def test_every_field_of_the_form_reaches_the_key(admin, small_bench, settings):
    settings.BENCH_TIME_ZONE = "Europe/Berlin"
    fields = {"team": "platform", "all": "0", "collections": ["core"], "models": "mercury\n meta-llama/* \n\n", "rpm": "30", "tpm": "50000"}
    more = {"max_parallel": "2", "budget_usd": "12.50", "expires": "2027-01-31", "keep_text": "no"}
    assert admin.post(NEW, {**FORM, **fields, **more}).status_code == 200
    row = Key.objects.get(name="laptop")
    assert (row.team, row.collections, row.models) == ("platform", ["core"], ["mercury", "meta-llama/*"])
    assert (row.rpm, row.tpm, row.max_parallel, str(row.budget_usd), row.keep_text) == (30, 50000, 2, "12.500000", False)
    assert row.expires_at.isoformat() == "2027-01-31T23:00:00+00:00", "the end of that day in Berlin"
    form = admin.get(f"{EDIT}?name=laptop").content.decode()
    assert 'value="2027-01-31"' in form
    assert admin.post(f"{EDIT}?name=laptop", {**FORM, **fields, **more, "rpm": ""}).status_code == 302
    assert (Key.objects.get(name="laptop").rpm, Key.objects.get(name="laptop").expires_at) == (None, row.expires_at)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "ci"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"rpm": "many"}, "rpm"),
        ({"rpm": "-1"}, "rpm"),
        ({"tpm": "0"}, "tpm"),
        ({"budget_usd": "12,50"}, "budget_usd"),
        ({"expires": "tomorrow"}, "expires"),
        ({"all": "0", "models": "a\x00b"}, "models"),
        ({"all": "0", "collections": ["a/b"]}, "collections"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_what_was_typed_stays(admin, small_bench, wrong, field):
    before = Key.objects.count()
    answer = admin.post(NEW, {**FORM, "team": "<b>typed</b>", **wrong})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'role="alert"' in page
    assert "&lt;b&gt;typed&lt;/b&gt;" in page
    if field not in ("scopes", "collections"):
        assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', page), page[:3000]
    assert Key.objects.count() == before


def test_a_key_is_renamed_and_revoked_for_good(admin, small_bench):
    done = admin.post(f"{EDIT}?name=ci", {**FORM, "name": "ci-2"}, follow=True)
    assert "ci-2 is changed" in done.content.decode()
    assert admin.get(f"{EDIT}?name=ci").status_code == 404
    done = admin.post(f"{EDIT}?name=ci-2", {"revoke": "1"}, follow=True).content.decode()
    assert "ci-2 is revoked" in done
    assert "revoked" in done
    assert Key.objects.get(name="ci-2").revoked_at
    assert [entry[:2] for entry in trail()[-2:]] == [("admin", "key.change"), ("admin", "key.revoke")]
    assert admin.get(f"{EDIT}?name=ci-2").status_code == 404


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "%2e", "?x=1&name=y", *seed.HOSTILE])
def test_a_key_may_have_any_name(admin, hostile_bench, name):
    if not Key.objects.filter(name=name).exists():
        assert admin.post(NEW, {**FORM, "name": name}).status_code == 200
    page = admin.get(KEYS).content.decode()
    for raw in ("<img src=x", "<svg onload", "</script><script>alert"):
        assert raw not in page
    links = re.findall(rf'href="({re.escape(EDIT)}\?name=[^"]+)"', page)
    pages = [admin.get(link.replace("&amp;", "&")) for link in links]
    assert {one.status_code for one in pages} == {200}
    assert Key.objects.filter(name=name, revoked_at=None).count() == 1
    from urllib.parse import quote

    assert admin.post(f"{EDIT}?name={quote(name, safe='')}", {"revoke": "1"}).status_code == 302
    assert Key.objects.get(name=name).revoked_at


def test_an_empty_list_says_what_keys_are_for(admin):
    assert "Make a key" in admin.get(KEYS).content.decode()


def test_a_long_list_comes_in_pages(admin, small_bench):
    from access import keys

    for n in range(60):
        keys.mint(f"key-{n:03}", actor="admin")
    page = admin.get(KEYS).content.decode()
    assert "key-059" in page
    assert "key-001" not in page
    (more,) = re.findall(r'href="(\?page_token=[^"]+)" rel="next"', page)
    assert "key-001" in admin.get(f"{KEYS}{more}").content.decode()
