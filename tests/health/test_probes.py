"""Probes through the queue: the cheapest form that a model takes, its cost beforehand, who is left out, what a killed worker leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.load import load_model
from catalog.models import Model
from health import errands, probes
from health.estimates import estimate
from health.lines import COLUMNS
from health.models import Attempt, Errand, Probe, Rest
from health.outbox import Outbox
from health.probes import ProbeError, probe_word
from tests.fake import FakeProvider, reply, status
from tests.health import probed

pytestmark = pytest.mark.usefixtures("tables")


def probe(alias: str) -> Any:
    model = load_model(alias)
    assert model
    return probe_word(model, "probe", "schedule")


def bodies(fake: FakeProvider, alias: str) -> list[dict[str, Any]]:
    return [c.json for c in fake.calls_to(alias)]


# ------------------------------------------------------------------ the form


def test_a_word_is_asked_for_with_the_smallest_limit_and_nothing_that_costs(fake: FakeProvider) -> None:
    probed.model(fake, "fast", reply("OK"))
    result = probe("fast")
    assert (result.outcome, result.text, result.calls) == ("ok", "OK", 1)
    (body,) = bodies(fake, "fast")
    assert body["max_tokens"] == 1
    assert not {"tools", "temperature", "reasoning_effort"} & set(body)
    assert len(body["messages"]) == 1
    row = Probe.objects.get()
    call = Attempt.objects.get()
    assert (row.attempt, row.kind, row.outcome, row.cost_pusd) == (call.id, "word", "ok", call.cost_pusd)
    assert (call.purpose, call.judge) == ("probe", "schedule")
    assert probed.health("fast").last_ok_at is not None


def test_a_refused_form_is_followed_by_one_that_the_refusal_asks_for_and_the_form_is_remembered(fake: FakeProvider) -> None:
    least = status(400, "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.")
    name = status(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    probed.model(fake, "picky", name, least, reply("OK"), reply("OK"))
    assert probe("picky").is_ok
    sent = bodies(fake, "picky")
    assert [("max_tokens" in b, b.get("max_completion_tokens")) for b in sent] == [(True, None), (False, 1), (False, 16)]
    probe("picky")
    assert bodies(fake, "picky")[3]["max_completion_tokens"] == 16
    assert [p.outcome for p in Probe.objects.order_by("id")] == ["unknown", "unknown", "ok", "ok"]


def test_a_model_that_thinks_is_asked_not_to_and_gets_room_where_it_must(fake: FakeProvider) -> None:
    no = status(400, "Unsupported value: 'none' is not supported with this model. Supported values are 'minimal' and 'low'.", error_code="unsupported_value")
    out = reply("", finish="length", usage=(11, 128))
    probed.model(fake, "deep", no, out, reply("OK", usage=(11, 300)), facts={"reasoning": True})
    result = probe("deep")
    assert result.is_ok
    assert [(b.get("reasoning_effort"), b["max_tokens"]) for b in bodies(fake, "deep")] == [("none", 128), ("minimal", 128), ("minimal", 1024)]
    assert result.calls == 3
    assert result.cost_pusd == sum(row.cost_pusd or 0 for row in Attempt.objects.all())


def test_a_request_that_no_form_pleases_says_nothing_of_the_model(fake: FakeProvider) -> None:
    probed.model(fake, "odd", status(400, "This is not how we do it here."))
    result = probe("odd")
    assert (result.outcome, result.fault, result.calls) == ("unknown", "request", 1)


def test_an_answer_that_stays_empty_is_a_failure(fake: FakeProvider) -> None:
    probed.model(fake, "mute", reply("", finish="length", usage=(11, 4096)))
    result = probe("mute")
    assert (result.outcome, result.fault) == ("failed", "server")
    assert result.calls <= 6


# ------------------------------------------------------------------ runs


def test_a_run_probes_each_active_model_once_and_leaves_out_who_must_be_left_alone(fake: FakeProvider) -> None:
    for alias in ("a", "b"):
        probed.model(fake, alias, reply("OK"))
    probed.model(fake, "adhoc", ad_hoc=True)
    probed.model(fake, "gone", status="retired")
    probed.model(fake, "text-embedding-3-small")
    slot, now = probed.SLOT, datetime.now(UTC)
    report = probes.plan_word(slot, now)
    again = probes.plan_word(slot, now)
    assert (report["models"], report["queued"], again["queued"]) == (2, 3, 0)
    assert (report["left_out_ad_hoc"], report["left_out_retired"], report["left_out_not_chat"]) == (1, 1, 1)
    probed.work()
    assert sorted(c.model for c in fake.calls) == ["a", "b"]
    assert set(Errand.objects.values_list("state", flat=True)) == {"done"}


def test_what_rests_is_asked_later_and_given_up_in_the_end(fake: FakeProvider) -> None:
    probed.model(fake, "tired", status(429, "slow down", headers={"retry-after": "900"}), reply("OK"))
    assert probe("tired").fault == "limit"
    probes.plan_word(probed.SLOT, datetime.now(UTC))
    probed.work()
    assert len(fake.calls) == 1
    errand = Errand.objects.get(kind="probe")
    assert errand.state == "waiting"
    assert errand.due_at > datetime.now(UTC) + timedelta(minutes=10)
    # Past its patience it is left out, and counts as nothing.
    Errand.objects.filter(pk=errand.pk).update(details={**errand.details, "until": datetime.now(UTC).isoformat()})
    probed.hasten()
    errand.refresh_from_db()
    assert (errand.state, errand.outcome["outcome"], errand.outcome["fault"]) == ("done", "unknown", "limit")
    assert probed.status_of("tired") == "active"


def test_a_person_may_look_whether_a_refused_key_works_again(fake: FakeProvider) -> None:
    probed.model(fake, "locked", status(401, "bad key"), reply("OK"))
    probe("locked")
    assert Rest.objects.filter(scope="endpoint:here").exists()
    queued = probes.request("locked", "word", "ada")
    probed.work()
    assert probed.outcome("probe", "locked")["outcome"] == "ok"
    assert not Rest.objects.exists()
    assert queued.is_new
    assert Attempt.objects.filter(judge="ada").count() == 1


def test_a_probe_that_waits_is_not_queued_again(fake: FakeProvider) -> None:
    probed.model(fake, "fast", reply("OK"))
    first, second = probes.request("fast", "word", "ada"), probes.request("fast", "word", "bob")
    assert (first.is_new, second.is_new, second.errand) == (True, False, first.errand)


@pytest.mark.parametrize(("alias", "more"), [("adhoc", {"ad_hoc": True}), ("bge-m3", {})])
def test_some_models_cannot_be_probed(fake: FakeProvider, alias: str, more: dict[str, Any]) -> None:
    probed.model(fake, alias, **more)
    with pytest.raises(ProbeError):
        probes.request(alias, "word", "ada")


# ------------------------------------------------------------------ what a killed worker leaves


def test_what_was_asked_before_its_process_died_is_not_paid_again(fake: FakeProvider) -> None:
    probed.model(fake, "fast", reply("OK"))
    probes.plan_word(probed.SLOT, datetime.now(UTC))
    probed.work()
    # As if the process had died between the answer and the errand's end, with the evidence kept or not yet.
    for kept in (True, False):
        Errand.objects.filter(kind="probe").update(state="running", finished_at=None, worker="dead", outcome={})
        if not kept:
            Probe.objects.all().delete()
            # A cut answer's words are not in the ledger; a whole one needs no second look.
            Attempt.objects.update(status="ok")
        probed.work()
        errand = Errand.objects.get(kind="probe")
        assert (errand.state, errand.outcome["outcome"]) == ("done", "ok")
        assert len(fake.calls) == 1


def test_what_was_answered_while_the_database_was_away_is_not_paid_again(fake: FakeProvider, folder: Path, settings: Any) -> None:
    settings.OUTBOX_FOLDER = folder
    probed.model(fake, "fast", reply("OK"))
    probes.plan_word(probed.SLOT, datetime.now(UTC))
    probed.work()
    # As if its line had not got past the outbox, nor its evidence anywhere.
    row = Attempt.objects.values(*COLUMNS).get()
    box = Outbox(Path(settings.OUTBOX_FOLDER), "calls")
    box.append({"attempts": [{**row, "started_at": row["started_at"].isoformat()}]})
    box.close()
    Attempt.objects.all().delete()
    Probe.objects.all().delete()
    Errand.objects.filter(kind="probe").update(state="running", finished_at=None, worker="dead", outcome={})
    probed.work()
    assert Errand.objects.get(kind="probe").outcome["outcome"] == "ok"
    assert len(fake.calls) == 1
    assert Attempt.objects.count() == 1


def test_a_call_that_was_lost_is_asked_again_and_both_are_on_record(fake: FakeProvider) -> None:
    probed.model(fake, "fast", reply("OK"))
    probes.plan_word(probed.SLOT, datetime.now(UTC))
    probed.work()
    Attempt.objects.update(status="lost", code="lost")
    Probe.objects.all().delete()
    Errand.objects.filter(kind="probe").update(state="running", worker="dead")
    probed.work()
    assert Errand.objects.get(kind="probe").outcome["outcome"] == "ok"
    assert sorted(Attempt.objects.values_list("status", flat=True)) == ["lost", "ok"]


# ------------------------------------------------------------------ costs beforehand


def test_costs_are_told_before_and_unknown_prices_are_said(fake: FakeProvider) -> None:
    probed.model(fake, "fast", reply("OK", usage=(14, 1)))
    probed.model(fake, "free-form")
    Model.objects.get(alias="free-form").prices.all().delete()
    found = estimate("word")
    assert found.unpriced == 1
    assert found.cost_of("free-form") is None
    assert 0 < (found.cost_pusd or 0) < 100_000_000  # a hundredth of a cent
    probe("fast")
    # Once it was asked, what it took is what it will take: 14 tokens in, 1 out.
    assert estimate("word").cost_of("fast") == 14 * 500_000 + 1_500_000


def test_with_no_price_known_the_sum_is_unknown(fake: FakeProvider) -> None:
    probed.model(fake, "dark").prices.all().delete()
    assert (estimate("perf").cost_pusd, estimate("perf").unpriced) == (None, 1)


def test_every_kind_of_errand_is_registered() -> None:
    assert {"probe", "perf", "judge", "confirm", "drift"} <= set(errands.registered)


def test_what_no_database_takes_in_a_text_is_left_out(fake: FakeProvider) -> None:
    probed.model(fake, "odd", reply("a\0b\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), extra={"system_fingerprint": "fp\0"}))
    assert probe("odd").is_ok
    assert "\0" not in str(Probe.objects.get().seen)
