"""Personal tokens on the page Keys: made and shown once, renewed, revoked, each person's own."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from access.models import Key
from tests.pages.conftest import trail

KEYS, NEW, CHANGE = (reverse(f"pages:{name}") for name in ("keys", "token_new", "token_change"))
FORM = {"name": "laptop", "scopes": ["runs:read", "read"]}


def secret_on(page: str) -> str:
    (secret,) = re.findall(r'<code id="the-key">(bw_(?:live|test)_pat_[^<]+)</code>', page)
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("role", ["viewer", "judge", "operator", "admin"])
def test_everybody_makes_tokens_of_their_own(as_role, small_bench, role):
    client = as_role(role)
    assert NEW in client.get(KEYS).content.decode()
    made = client.post(NEW, FORM)
    secret = secret_on(made.content.decode())
    assert "no-store" in made["Cache-Control"]
    row = Key.objects.get(name=f"{role}/laptop")
    assert (row.owner, row.scopes) == (role, ["read", "runs:read"])
    assert trail()[-1] == (role, "token.create", f"{role}/laptop")
    page = client.get(KEYS).content.decode()
    assert secret not in page
    assert f"…{secret[-4:]}" in page
    assert Client().get("/v1/runs", headers=bearer(secret)).status_code == 200
    assert Client().get(KEYS, headers=bearer(secret)).status_code == 302, "a token opens no page"


def test_only_what_ones_role_may_is_offered(as_role, small_bench):
    assert "registry:publish" not in as_role("viewer").get(NEW).content.decode()
    page = as_role("operator").get(NEW).content.decode()
    assert "registry:publish" in page
    assert 'value="admin"' not in page
    refused = as_role("viewer").post(NEW, {**FORM, "scopes": ["registry:publish"]})
    assert refused.status_code == 422
    assert "cannot be given" in refused.content.decode()
    assert not Key.objects.filter(name="viewer/laptop").exists()


def test_a_test_token_is_told_from_a_live_one(operator, small_bench):
    secret = secret_on(operator.post(NEW, {**FORM, "test": "1"}).content.decode())
    assert secret.startswith("bw_test_pat_")
    assert '<span class="badge">test</span>' in operator.get(KEYS).content.decode()


def test_a_token_is_renewed_and_revoked(operator, admin, small_bench):
    first = secret_on(operator.post(NEW, FORM).content.decode())
    token = f"tok_{Key.objects.get(name='operator/laptop').pk}"
    second = secret_on(operator.post(CHANGE, {"token": token, "rotate": "1"}).content.decode())
    assert Client().get("/v1/runs", headers=bearer(first)).status_code == 401
    assert Client().get("/v1/runs", headers=bearer(second)).status_code == 200
    assert operator.post(CHANGE, {"token": token, "revoke": "1"}).status_code == 302
    assert Client().get("/v1/runs", headers=bearer(second)).status_code == 401
    assert operator.post(CHANGE, {"token": token, "revoke": "1"}).status_code == 404


def test_changing_a_key_keeps_its_rights_in_the_suite(admin, small_bench):
    key = Key.objects.get(name="ci")
    Key.objects.filter(pk=key.pk).update(scopes=["ask", "runs:read"])
    edit = f"{reverse('pages:key_edit')}?name=ci"
    page = admin.get(edit).content.decode()
    assert re.search(r'value="runs:read" checked', page)
    assert admin.post(edit, {"name": "ci", "scopes": ["ask", "runs:read"], "all": "1"}).status_code == 302
    assert Key.objects.get(name="ci").scopes == ["ask", "runs:read"]
    assert "1 of the suite" in admin.get(KEYS).content.decode()
