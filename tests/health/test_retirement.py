"""Retirement through the queue: two looks, evidence kept, nobody blamed for the connection's trouble, and back in one step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from access import preferences
from access.models import AuditEntry
from catalog import editing
from catalog.models import Endpoint, Model
from health.models import Alert, Attempt, Errand, Probe, Rest
from tests.fake import FakeProvider, hang, html, reply, status
from tests.health import probed
from tests.health.conftest import row

pytestmark = pytest.mark.usefixtures("tables")

GONE = status(404, "The model `gone` does not exist or you do not have access to it.", error_code="model_not_found")


def test_a_missing_model_is_asked_once_more_and_then_retired_with_both_looks_kept(fake: FakeProvider) -> None:
    for alias in ("a", "b"):
        probed.model(fake, alias, reply("OK"))
    probed.model(fake, "gone", GONE)
    probed.run_word()
    assert probed.status_of("gone") == "active"
    assert "no such model" in probed.health("gone").suspect_reason
    confirm = Errand.objects.get(kind="confirm")
    assert datetime.now(UTC) + timedelta(minutes=28) < confirm.due_at < datetime.now(UTC) + timedelta(minutes=31)
    probed.hasten(kind="confirm")
    model = Model.objects.get(alias="gone")
    assert model.status == "retired"
    evidence = model.status_evidence
    assert evidence["by"] == "health"
    attempts = {evidence["first"]["attempt"], evidence["second"]["attempt"]}
    assert attempts == set(Attempt.objects.filter(model="gone").values_list("id", flat=True))
    assert (evidence["second"]["http_status"], evidence["listed"]) == (404, True)
    assert "does not exist" in model.status_reason
    assert Alert.objects.filter(kind="retired", subject="gone").count() == 1
    assert AuditEntry.objects.filter(action="model.retire", actor="health", target="gone").count() == 1
    assert len(fake.calls_to("gone")) == 2
    assert {probed.status_of(a) for a in ("a", "b")} == {"active"}
    # Back in one step, and nothing old is held against it.
    editing.restore_model("gone", "It is there again.", "ada")
    fake.script("gone", reply("OK"))
    probed.run_word()
    assert probed.status_of("gone") == "active"
    assert probed.health("gone").suspect_since is None


def test_one_error_never_retires(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "shaky", GONE, reply("OK"))
    probed.run_word()
    assert probed.health("shaky").suspect_since is not None
    probed.hasten(kind="confirm")
    assert probed.status_of("shaky") == "active"
    assert probed.health("shaky").suspect_since is None
    assert probed.outcome("confirm", "shaky")["decision"] == "clear"


def test_a_missing_model_is_no_matter_of_the_key_and_a_refused_key_none_of_the_models(fake: FakeProvider) -> None:
    for alias, answer in (("m1", reply("OK")), ("m2", GONE), ("m3", reply("OK"))):
        probed.model(fake, alias, answer, status(401, "Invalid API key"))
    probed.run_word()
    assert probed.health("m2").suspect_since is not None
    assert probed.health("m1").suspect_since is None
    assert probed.health("m3").suspect_since is None
    probed.run_word()
    # The first refusal rests the endpoint: the others are not even asked.
    assert len(fake.calls) == 4
    assert Rest.objects.filter(scope="endpoint:here", kind="key").exists()
    probed.hasten(kind="confirm")
    assert set(Model.objects.values_list("status", flat=True)) == {"active"}
    alert = Alert.objects.get(kind="endpoint")
    assert "refuses the key" in alert.message
    Rest.objects.all().delete()
    probed.run_word()
    assert Alert.objects.filter(kind="endpoint").count() == 1  # the same outage


@pytest.mark.parametrize("answer", [status(500, "oops"), html(), GONE, status(503, "busy")], ids=["500", "page", "404", "503"])
def test_an_outage_of_the_whole_endpoint_retires_nobody_however_long(fake: FakeProvider, answer: object) -> None:
    for alias in ("a", "b", "c"):
        probed.model(fake, alias, answer)
    for _ in range(6):
        probed.run_word()
        probed.hasten()
        probed.a_day_passes()
        Rest.objects.all().delete()
    assert set(Model.objects.values_list("status", flat=True)) == {"active"}
    assert not Errand.objects.filter(kind="confirm").exists()
    assert Alert.objects.filter(kind="endpoint").count() == 1


def test_nothing_behind_the_address_blames_no_model(fake: FakeProvider) -> None:
    nowhere = probed.endpoint(fake, "nowhere")
    Endpoint.objects.filter(pk=nowhere.pk).update(base_url="http://127.0.0.1:9/v1")
    probed.model(fake, "alone", at=nowhere)
    for _ in range(5):
        probed.run_word()
        probed.hasten()
        probed.a_day_passes()
        Rest.objects.all().delete()
    assert probed.status_of("alone") == "active"
    assert Alert.objects.filter(kind="endpoint", subject="nowhere").count() == 1


def test_a_model_that_stops_answering_is_retired_after_one_confirming_call(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "broken", status(500, "oops"))
    probed.run_word()
    assert probed.status_of("broken") == "active"
    probed.hasten(kind="confirm")
    assert probed.status_of("broken") == "retired"
    assert len(fake.calls_to("broken")) == 2


@pytest.fixture
def three_days(tables: None) -> None:
    preferences.change("health.failed_probes", 3, "ada")


@pytest.mark.usefixtures("three_days")
def test_an_admin_can_ask_for_several_silent_days_first(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "broken", status(500, "oops"))
    for _ in range(2):
        probed.run_word()
        assert not Errand.objects.filter(kind="confirm").exists()
        probed.a_day_passes()
    probed.run_word()
    assert probed.status_of("broken") == "active"
    probed.hasten(kind="confirm")
    assert probed.status_of("broken") == "retired"


@pytest.mark.usefixtures("three_days")
def test_several_probes_of_one_day_count_as_one(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "broken", status(500, "oops"))
    for _ in range(4):
        probed.run_word()
    assert not Errand.objects.filter(kind="confirm").exists()


@pytest.mark.usefixtures("three_days")
def test_a_live_answer_between_failed_days_begins_the_count_anew(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "broken", status(500, "oops"))
    for _ in range(3):
        probed.run_word()
        probed.a_day_passes()
        Attempt.objects.create(**{**row(model="broken", purpose="direct"), "started_at": datetime.now(UTC) - timedelta(minutes=5)})
    assert not Errand.objects.filter(kind="confirm").exists()


def test_a_refused_probe_is_unknown_not_dead(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "odd", status(400, "Something about this request is wrong."))
    for _ in range(5):
        probed.run_word()
        probed.hasten()
        probed.a_day_passes()
    assert probed.status_of("odd") == "active"
    assert set(Probe.objects.filter(model="odd").values_list("outcome", "fault")) == {("unknown", "request")}


def test_a_limit_is_unknown_and_a_rest_not_a_retirement(fake: FakeProvider) -> None:
    probed.model(fake, "busy", status(429, "slow down"))
    probed.run_word()
    assert probed.status_of("busy") == "active"
    assert not probed.health("busy").suspect_since
    assert Rest.objects.filter(kind="limit").exists()


def test_what_the_endpoint_no_longer_lists_is_suspected_only_once_it_does_not_answer(fake: FakeProvider) -> None:
    for alias in ("a", "b", "c"):
        probed.model(fake, alias, reply("OK"))
    fake.models = ["a", "b"]
    probed.run_word()
    assert probed.health("c").unlisted_since is not None
    assert probed.health("c").suspect_since is None
    fake.script("c", status(400, "bad request"))
    probed.run_word()
    assert probed.health("c").suspect_since is not None
    assert probed.status_of("c") == "active"
    fake.script("c", status(500, "oops"))
    probed.hasten(kind="confirm")
    model = Model.objects.get(alias="c")
    assert model.status == "retired"
    assert model.status_evidence["listed"] is False
    # Listed again: said once, and left to a person.
    fake.models = ["a", "b", "c"]
    for _ in range(2):
        probed.run_word()
    assert probed.status_of("c") == "retired"
    assert Alert.objects.filter(once__startswith="back:c:").count() == 1


@pytest.mark.parametrize("listing", [[], ["x", "y"]], ids=["empty", "another key's"])
def test_a_list_that_lacks_nearly_all_is_no_evidence(fake: FakeProvider, listing: list[str]) -> None:
    for alias in ("a", "b", "c"):
        probed.model(fake, alias, status(400, "bad request") if alias == "a" else reply("OK"))
    fake.models = listing
    probed.run_word()
    assert not Errand.objects.filter(kind="confirm").exists()


def test_a_live_call_to_a_missing_model_makes_it_a_suspect(fake: FakeProvider) -> None:
    for alias in ("a", "b"):
        probed.model(fake, alias, reply("OK"))
    probed.model(fake, "gone", status(400, "cannot do this"))
    failed = row(model="gone", purpose="route", status="error", http_status=404, code="upstream_error", error="The model `gone` does not exist")
    Attempt.objects.create(**{**failed, "started_at": datetime.now(UTC) - timedelta(hours=2)})
    probed.run_word()
    assert "live call" in probed.health("gone").suspect_reason


def test_a_suspect_whose_endpoint_falls_over_waits(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "gone", GONE)
    probed.run_word()
    fake.script("a", status(500, "oops"))
    probed.run_word()
    probed.hasten(kind="confirm")
    assert probed.status_of("gone") == "active"
    assert probed.outcome("confirm", "gone")["decision"] == "wait"
    fake.script("a", reply("OK"))
    probed.run_word()
    probed.hasten(kind="confirm")
    assert probed.status_of("gone") == "retired"


def test_who_retires_it_meanwhile_is_right(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "gone", GONE)
    probed.run_word()
    editing.retire_model("gone", "I saw it.", "ada")
    probed.hasten(kind="confirm")
    assert Model.objects.get(alias="gone").status_evidence["by"] == "ada"
    assert Errand.objects.get(kind="confirm").state == "failed"
    assert len(fake.calls_to("gone")) == 1


def test_an_ad_hoc_model_is_never_asked_whatever_its_list_says(fake: FakeProvider) -> None:
    probed.model(fake, "a", reply("OK"))
    probed.model(fake, "b", hang(), ad_hoc=True)
    fake.models = ["a"]
    probed.run_word()
    assert not fake.calls_to("b")
    assert probed.status_of("b") == "active"
