"""Pages of schedules, settings and onboarding."""

from __future__ import annotations

import pytest
from django.urls import reverse

from access import preferences
from access.models import Preference
from catalog.models import Model
from health import onboarding, schedules
from health.models import Batch, Errand, Onboarding, Schedule, ScheduleRun
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db
SCHEDULE = "admin:health_schedule_change"


def test_a_schedule_is_switched_on_by_a_preset_and_says_its_next_runs(operator):
    page = reverse(SCHEDULE, args=["probe"])
    assert "30 4 * * *" in operator.get(page).content.decode()
    done = operator.post(page, {"enabled": "on", "preset": "0 3 * * 0", "cron": "", "time_zone": "Europe/Paris"}, follow=True)
    text = done.content.decode()
    assert "At 03:00 on Sunday" in text
    assert text.count(" 03:00</li>") == 5
    row = Schedule.objects.get(pk="probe")
    assert (row.enabled, row.cron, row.time_zone) == (True, "0 3 * * 0", "Europe/Paris")
    assert trail() == [("operator", "schedule.change", "probe")]
    assert "Sun " in operator.get(reverse("admin:health_schedule_changelist")).content.decode()


@pytest.mark.parametrize(("given", "said"), [({"cron": "nightly"}, "must have five fields"), ({"time_zone": "Mars"}, "must be a time zone")])
def test_what_a_schedule_cannot_be_is_said_at_its_field(given, said, operator):
    text = operator.post(reverse(SCHEDULE, args=["probe"]), {"preset": "", "cron": "", "time_zone": "", **given}).content.decode()
    assert said in text.lower()
    assert not Schedule.objects.exists()


def test_a_schedule_is_run_now_and_its_runs_stand_there(operator):
    page = reverse(SCHEDULE, args=["catalog"])
    assert "is queued" in operator.post(page, {"run": "1"}, follow=True).content.decode()
    assert ScheduleRun.objects.get().by == "operator"
    ScheduleRun.objects.update(state="failed", error="<b>No</b> route", interruptions=2)
    text = operator.get(page).content.decode()
    assert "&lt;b&gt;No&lt;/b&gt; route" in text
    assert "2 interruptions" in text


def test_the_suite_says_why_it_cannot_be_switched_on(operator):
    page = reverse(SCHEDULE, args=["suite"])
    assert "cannot be switched on" in operator.get(page).content.decode()
    assert "no benchmark is set up" in operator.post(page, {"enabled": "on"}, follow=True).content.decode().lower()
    assert not Schedule.objects.exists()


def test_the_expected_cost_stands_there_before_anything_is_spent(operator, small_bench):
    text = operator.get(reverse(SCHEDULE, args=["probe"])).content.decode()
    assert "A run is expected to cost" in text


@pytest.mark.parametrize("name", ["health_schedule_change", "access_preference_changelist"])
def test_readers_look_and_change_nothing(name, as_role):
    client = as_role("judge")
    page = reverse(f"admin:{name}", args=["probe"] if "schedule" in name else [])
    assert client.get(page).status_code == 200
    for body in ({"run": "1"}, {"enabled": "on"}, {"name": "health.failed_probes", "value": "5"}):
        assert client.post(page, body).status_code == 403
    assert not Schedule.objects.exists()
    assert not Preference.objects.exists()
    assert not Errand.objects.exists()


def test_an_unknown_schedule_is_not_there(operator):
    assert operator.get(reverse(SCHEDULE, args=["nightly"])).status_code == 404


def test_a_setting_is_changed_refused_and_put_back(operator):
    page, name = reverse("admin:access_preference_changelist"), "health.failed_probes"
    assert f"{name} is 5 from now on" in operator.post(page, {"name": name, "value": "5"}, follow=True).content.decode()
    assert preferences.value(name) == 5
    assert "must be a whole number" in operator.post(page, {"name": name, "value": "lots"}, follow=True).content.decode()
    assert "is no setting" in operator.post(page, {"name": "no.such", "value": "1"}, follow=True).content.decode()
    operator.post(page, {"name": name, "value": "5", "default": "1"})
    assert not Preference.objects.exists()
    assert [action for _, action, _ in trail()] == ["setting.change"] * 2


# ------------------------------------------------------------------ onboarding


def test_ticked_models_are_onboarded_after_a_look_at_the_cost(operator):
    at = seed.endpoint("local")
    page = reverse("admin:catalog_endpoint_serves", args=[at.pk])
    asked = {"onboard": "1", "mode": "full", "pick": ["vendor/m", "<svg onload=x>"]}
    confirm = operator.post(page, asked).content.decode()
    assert "6 calls" in confirm
    assert "&lt;svg onload=x&gt;" in confirm
    assert not Batch.objects.exists()
    done = operator.post(page, {**asked, "begin": "1"}, follow=True)
    batch = Batch.objects.get()
    assert (batch.mode, batch.by, batch.models.count()) == ("full", "operator", 2)
    text = done.content.decode()
    assert 'http-equiv="refresh"' in text
    assert "&lt;svg onload=x&gt;" in text
    again = operator.post(page, {**asked, "begin": "1"}, follow=True).content.decode()
    assert "this batch has them already" in again
    assert Batch.objects.count() == 1
    assert not Model.objects.exists()


def test_nothing_ticked_begins_nothing(operator):
    at = seed.endpoint("local")
    text = operator.post(reverse("admin:catalog_endpoint_serves", args=[at.pk]), {"onboard": "1", "mode": "quick"}, follow=True).content.decode()
    assert "No model was ticked" in text
    assert not Batch.objects.exists()


def test_a_batch_shows_stages_log_and_cost_and_is_cancelled(operator, as_role):
    seed.endpoint("local")
    batch = onboarding.start("local", ["a", "b"], "full", "ann").batch
    Onboarding.objects.filter(served_name="a").update(
        state="running",
        stage="check",
        alias="a@local",
        cost_pusd=2_500_000,
        stages_done={"register": {"outcome": "ok", "said": "Added."}},
        log=[{"at": "2026-11-29T12:00:00+00:00", "said": "<i>Added</i>"}],
    )
    page = reverse("admin:health_batch_change", args=[batch])
    text = operator.get(page).content.decode()
    for said in ("register: ok", "check: now", "speed: to come", "$0.0000025", "&lt;i&gt;Added&lt;/i&gt;", "12:00:00", "as a@local"):
        assert said in text, said
    assert as_role("viewer").post(page).status_code == 403
    assert "Cancelled 2 models" in operator.post(page, follow=True).content.decode()
    assert set(Onboarding.objects.values_list("state", flat=True)) == {"cancelled"}
    assert "Cancel what is left" not in operator.get(page).content.decode()
    assert 'http-equiv="refresh"' not in operator.get(page).content.decode()
    assert ("operator", "onboarding.cancel", batch) in trail()
    assert "2" in operator.get(reverse("admin:health_batch_changelist")).content.decode()


def test_calls_without_a_known_price_stand_beside_a_batchs_cost(operator):
    seed.endpoint("local")
    batch = onboarding.start("local", ["a"], "full", "ann").batch
    Onboarding.objects.update(unpriced=3)
    for page in (reverse("admin:health_batch_changelist"), reverse("admin:health_batch_change", args=[batch])):
        assert "and 3 calls without a known price" in operator.get(page).content.decode()


@pytest.mark.parametrize(("name", "title"), [("health_batch", "Batchs"), ("access_preference", "Preferences")])
def test_pages_are_called_as_the_sidebar_calls_them(operator, name, title):
    assert f">{title}<" not in "".join(operator.get(reverse(f"admin:{name}_changelist")).content.decode().split())


def test_every_registered_schedule_has_its_page(operator):
    for name in schedules.registered:
        assert operator.get(reverse(SCHEDULE, args=[name])).status_code == 200, name
