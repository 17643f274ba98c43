"""The pages of settings: what can be changed, schedules, the server's own facts, and the page to sign in at."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from access import preferences
from access.models import Preference
from health import schedules
from health.models import Schedule, ScheduleRun
from panels.pages import settings as pages
from tests.pages.conftest import trail
from tests.pages.test_quotas import told

SETTINGS, SCHEDULES, RUNS, SERVER = (reverse(f"pages:{name}") for name in ("settings", "schedules", "schedule", "server"))
HALF_LIFE = "records.half_life_days"


def value(name: str) -> object:
    return preferences.value(name)


def test_every_setting_stands_there_with_words_of_its_own(as_role, small_bench):
    page = as_role("viewer").get(SETTINGS).content.decode()
    for kind in preferences.registered.values():
        assert f'id="{kind.name}"' in page
        assert kind.name in pages.TITLES or kind.name.startswith("signins."), f"{kind.name} has no title in panels/pages/settings.py"
    assert "<button" not in page.split('id="main"')[1], "a viewer is offered no change"


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_who_is_no_operator_changes_nothing(as_role, small_bench, role):
    client = as_role(role)
    assert client.post(SETTINGS, {"name": HALF_LIFE, "value": "7"}).status_code == 403
    assert client.post(SCHEDULES, {"name": "probe", "do": "run"}).status_code == 403
    assert client.post(SCHEDULES, {"name": "probe", "do": "switch", "enabled": "true"}).status_code == 403
    assert client.post(SERVER).status_code == 403
    assert not Preference.objects.exists()
    assert not ScheduleRun.objects.exists()
    assert "Run now" not in client.get(SCHEDULES).content.decode()


@pytest.mark.parametrize(
    ("name", "sent", "kept"),
    [
        (HALF_LIFE, "12.5", 12.5),
        ("retention.calls_days", "90", 90),
        ("catalog.sources", ["openrouter"], {"models_dev": False, "openrouter": True, "freellmapi": False}),
        ("discover.own_app", '{"opencode": "show"}', {"opencode": "show"}),
        ("signins.chatgpt", "true", True),
        ("signins.github_client_id", " Iv1.abc ", "Iv1.abc"),
        ("nearby.addresses", "http://192.168.1.20:11434\n\n", ["http://192.168.1.20:11434"]),
    ],
)
def test_each_kind_of_setting_is_changed_and_put_back(operator, small_bench, name, sent, kept):
    done = operator.post(SETTINGS, {"name": name, "value": sent})
    assert (done.status_code, done["Location"]) == (302, f"{SETTINGS}#{name}")
    assert value(name) == kept
    assert trail()[-1] == ("operator", "setting.change", name)
    assert "Changed by operator" in told(operator.get(SETTINGS).content.decode())
    operator.post(SETTINGS, {"name": name, "default": "1"})
    assert value(name) == preferences.registered[name].default
    assert trail()[-1] == ("operator", "setting.change", name)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (HALF_LIFE, "-1"),
        (HALF_LIFE, "long"),
        (HALF_LIFE, ""),
        (HALF_LIFE, "NaN"),
        (HALF_LIFE, "1e999"),
        (HALF_LIFE, "[]"),
        ("retention.calls_days", "1"),
        ("discover.own_app", "{"),
        ("signins.github_client_id", "<svg onload=x>"),
    ],
)
def test_a_value_that_cannot_be_is_refused_at_its_field(operator, small_bench, name, sent):
    answer = operator.post(SETTINGS, {"name": name, "value": sent})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert f'id="w-{name}"' in page
    assert 'aria-invalid="true"' in page
    assert "<svg onload" not in page
    assert not Preference.objects.exists()


@pytest.mark.parametrize("name", ["no.such", "", "server.version", "../keys"])
def test_what_is_no_setting_is_not_changed(operator, small_bench, name):
    assert operator.post(SETTINGS, {"name": name, "value": "1"}).status_code in (400, 404)
    assert not Preference.objects.exists()


# ------------------------------------------------------------------ schedules


def test_schedules_tell_when_they_run_and_what_one_costs(as_role, small_bench):
    words = told(as_role("viewer").get(SCHEDULES).content.decode())
    for name in schedules.registered:
        assert pages.SCHEDULES[name] in words
    assert "At 04:30 every day" in words
    assert re.search(r"One run costs about \$0\.0", words)


def test_a_schedule_is_switched_moved_and_run(operator, small_bench):
    assert operator.post(SCHEDULES, {"name": "probe", "do": "switch", "enabled": "true"})["Location"] == f"{SCHEDULES}#probe"
    assert Schedule.objects.get(name="probe").enabled
    done = operator.post(SCHEDULES, {"name": "probe", "do": "change", "cron": "15 6 * * *", "time_zone": "Europe/Paris"}, follow=True)
    assert "At 06:15 every day" in done.content.decode()
    assert "Europe/Paris" in done.content.decode()
    operator.post(SCHEDULES, {"name": "probe", "do": "run"})
    (run,) = ScheduleRun.objects.all()
    assert (run.schedule, run.by) == ("probe", "operator")
    assert "operator" in told(operator.get(f"{RUNS}?name=probe").content.decode())
    operator.post(SCHEDULES, {"name": "probe", "do": "switch", "enabled": "false"})
    assert not Schedule.objects.get(name="probe").enabled
    assert {action for _, action, _ in trail()} >= {"schedule.change", "schedule.run"}


@pytest.mark.parametrize(("field", "sent"), [("cron", "every day"), ("cron", "61 * * * *"), ("time_zone", "Mars/Olympus")])
def test_a_time_that_cannot_be_is_refused_at_its_field(operator, small_bench, field, sent):
    answer = operator.post(SCHEDULES, {"name": "drift", "do": "change", field: sent})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert re.search(rf'id="f-(cron|zone)-drift" name="{field}"[^>]*value="{re.escape(sent)}"[^>]*aria-invalid="true"', page)
    assert page.count('aria-invalid="true"') == 1


def test_a_schedule_that_nothing_can_come_of_says_why(operator, small_bench):
    page = operator.get(SCHEDULES).content.decode()
    if why := schedules.registered["suite"].hindered():
        assert why[1:] in page
        assert operator.post(SCHEDULES, {"name": "suite", "do": "switch", "enabled": "true"}).status_code == 400
    assert operator.post(SCHEDULES, {"name": "moon", "do": "run"}).status_code == 404
    assert operator.get(f"{RUNS}?name=moon").status_code == 404


# ------------------------------------------------------------------ the server


def test_the_server_tells_how_it_is_reached_and_no_secret(as_role, small_bench, settings):
    settings.ADMIN_TOKEN = "a-token-that-nobody-may-see"
    page = as_role("viewer").get(SERVER).content.decode()
    words = told(page)
    assert "Reached from this machine only" in words
    assert "Admin&#x27;s password is set yes" in words
    assert "models.dev" in words
    for secret in (settings.ADMIN_TOKEN, *settings.SECRET_KEYS, settings.SECRET_KEY):
        assert secret not in page


def test_catalogs_are_read_anew_on_a_click(operator, small_bench):
    assert operator.post(SERVER)["Location"] == SERVER
    assert ScheduleRun.objects.get().schedule == "catalog"


def test_only_admins_are_led_to_users(as_role, small_bench):
    users = reverse("admin:access_user_changelist")
    assert users in as_role("admin").get(SETTINGS).content.decode()
    assert users not in as_role("operator").get(SETTINGS).content.decode()


# ------------------------------------------------------------------ signing in


def test_who_comes_from_a_page_signs_in_and_is_led_back(small_bench):
    client = Client()
    away = client.get(SETTINGS)
    assert away["Location"] == f"/admin/login/?next={SETTINGS}"
    page = client.get(away["Location"]).content.decode()
    assert f'name="next" value="{SETTINGS}"' in page
    wrong = client.post(away["Location"], {"username": "<b>x</b>", "password": "no", "next": SETTINGS}).content.decode()
    assert "User name or password is wrong" in wrong
    assert "<b>x</b>" not in wrong
    right = {"username": "viewer", "password": "a-password-for-tests", "next": SETTINGS}
    assert client.post(away["Location"], right)["Location"] == SETTINGS


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(small_bench, elsewhere):
    done = Client().post("/admin/login/", {"username": "viewer", "password": "a-password-for-tests", "next": elsewhere})
    assert "evil" not in done["Location"]
    assert "javascript" not in done["Location"]
