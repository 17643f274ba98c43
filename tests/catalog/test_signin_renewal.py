"""Tokens are renewed before they end: once, by whichever process gets to it; and who must sign in again is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from access.models import AuditEntry
from catalog import endpoint_keys, renewing, signin_rows, signing
from catalog.models import SignIn
from health import signin_watch
from health.models import Alert
from tests.catalog.signin_server import SignInServer, serving
from tests.catalog.test_signins import begin, come_back, key_of, later, side_by_side

pytestmark = pytest.mark.django_db


@pytest.fixture
def there(settings: Any) -> Iterator[SignInServer]:
    with serving() as server:
        settings.SIGNIN_URLS = server.urls
        yield server


@pytest.fixture
def held(there: SignInServer) -> signin_rows.SignInView:
    """A sign-in whose token ends eight hours after NOW."""
    return come_back(there.agree(begin("huggingface", "code").authorize_url))


NEARLY = later(hours=8) - timedelta(minutes=20)


def refreshes(there: SignInServer) -> list[str]:
    return [one.body["refresh_token"] for one in there.posts("/oauth/token") if one.body["grant_type"] == "refresh_token"]


def test_nothing_is_renewed_long_before_it_ends(there, held):
    assert renewing.refresh_due(later(hours=7)) == []
    assert not refreshes(there)


def test_a_token_that_ends_soon_is_renewed_and_the_endpoint_has_the_new_one(there, held):
    before = key_of("huggingface")
    assert renewing.refresh_due(NEARLY) == []
    after = key_of("huggingface")
    assert after != before
    row = SignIn.objects.get()
    assert (row.state, row.expires_at, row.refreshed_at) == ("done", NEARLY + timedelta(seconds=28_800), NEARLY)
    assert [e.action for e in AuditEntry.objects.order_by("id")][-2:] == ["endpoint.change", "signin.renew"]
    assert renewing.refresh_due(NEARLY) == []
    assert len(refreshes(there)) == 1


def test_a_refresh_token_that_rotates_is_kept(there, held):
    renewing.refresh_due(NEARLY)
    renewing.refresh_due(NEARLY + timedelta(hours=8))
    first, second = refreshes(there)
    assert first != second
    assert SignIn.objects.get().state == "done"


def test_one_that_does_not_rotate_is_used_again(there, held):
    there.rotates = False
    renewing.refresh_due(NEARLY)
    renewing.refresh_due(NEARLY + timedelta(hours=8))
    first, second = refreshes(there)
    assert first == second


def test_the_rosters_version_moves_so_that_every_worker_reads_the_new_key(there, held):
    before = version()
    renewing.refresh_due(NEARLY)
    assert version() > before


def version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version FROM access_rosterversion")
        return int(cursor.fetchone()[0])


def test_a_provider_that_stumbles_is_asked_again_and_the_old_token_stays(there, held):
    before = key_of("huggingface")
    there.answer("huggingface", "/oauth/token", (503, b"<html>"), (503, b"<html>"))
    assert renewing.refresh_due(later(hours=8) - timedelta(minutes=29)) == []
    assert key_of("huggingface") == before
    [trouble] = renewing.refresh_due(later(hours=8) - timedelta(minutes=9))
    assert "could not be renewed" in trouble.message
    assert renewing.refresh_due(later(hours=8) - timedelta(minutes=1)) == []
    assert key_of("huggingface") != before


def test_a_refusal_ends_it_and_raises_one_alert(there, held):
    there.refreshes.clear()
    for at in (NEARLY, later(hours=8), later(hours=9)):
        signin_watch.watch(at)
    alert = Alert.objects.get()
    assert (alert.kind, alert.subject) == ("signin", "huggingface")
    assert "Sign in again" in alert.message
    assert len(refreshes(there)) == 1
    row = SignIn.objects.get()
    assert (row.state, row.sealed) == ("failed", "")
    assert not [s for s in there.secrets if s in alert.message + row.message]
    assert key_of("huggingface"), "the token may be good for a while yet"


def test_what_nothing_renews_is_announced_a_day_ahead_and_once_more_when_it_ended(there):
    there.expires_in = 604_800
    come_back(there.agree(begin("pollinations", "code").authorize_url))
    for hours in (0, 143, 145, 150, 160, 169, 170):
        signin_watch.watch(later(hours=hours))
    soon, over = Alert.objects.order_by("id").values_list("message", flat=True)
    assert "ends (06 Dec 2026 12:00 UTC), and nothing renews it. Sign in again." in soon
    assert "has ended" in over
    assert not [one for one in there.asked if one.body.get("grant_type") == "refresh_token"]


def test_what_lasts_for_hours_only_is_announced_in_its_last_quarter(there):
    come_back(there.agree(begin("pollinations", "code").authorize_url))
    assert renewing.refresh_due(later(hours=5.9)) == []
    assert len(renewing.refresh_due(later(hours=6.1))) == 1


def test_a_key_that_was_set_by_hand_is_not_replaced(there, held):
    endpoint_keys.set_key_of("huggingface", "hf-by-hand", "anna")
    assert renewing.refresh_due(NEARLY) == []
    assert key_of("huggingface") == "hf-by-hand"
    assert not refreshes(there)
    assert SignIn.objects.get().state == "failed"


@pytest.mark.django_db(transaction=True)
def test_a_key_that_was_set_while_the_provider_was_asked_is_not_replaced_either(there, held):
    def set_by_hand() -> None:
        endpoint_keys.set_key_of("huggingface", "hf-by-hand", "anna")
        connection.close()

    there.meanwhile = set_by_hand
    renewing.refresh_due(NEARLY)
    assert refreshes(there)
    assert key_of("huggingface") == "hf-by-hand"


@pytest.mark.django_db(transaction=True)
def test_of_several_hosts_one_renews(there, held):
    side_by_side(6, lambda: renewing.refresh_due(NEARLY))
    assert len(refreshes(there)) == 1
    assert SignIn.objects.get().state == "done"
    assert key_of("huggingface") in there.secrets


def test_a_host_that_died_while_renewing_leaves_its_turn_to_others(there, held):
    SignIn.objects.update(next_poll_at=NEARLY + renewing.LEASE)
    renewing.refresh_due(NEARLY)
    assert not refreshes(there)
    renewing.refresh_due(NEARLY + renewing.LEASE)
    assert len(refreshes(there)) == 1


def test_what_nobody_finished_is_forgotten(there):
    begin("nanogpt", "device")
    begin("huggingface", "code")
    renewing.refresh_due(later(minutes=11))
    assert set(SignIn.objects.values_list("state", "sealed", "state_digest")) == {("failed", "", "")}
    renewing.refresh_due(later(hours=25))
    assert not SignIn.objects.exists()


def test_a_token_that_says_no_end_is_left_alone(there):
    there.expires_in = None
    started = begin("github", "device").signin
    there.approve(started.user_code)
    assert signing.look(started.id, later(seconds=9)).expires_at is None
    assert renewing.refresh_due(later(days=400)) == []
