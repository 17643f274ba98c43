"""Panels, seats and verdicts: who sees which, a verdict right at the seat, texts that are gone, records."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from panels.models import Panel, Verdict
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(db: None) -> Panel:
    at = seed.endpoint("groq")
    models = [seed.model(alias, at) for alias in ("mercury", "venus", "earth")]
    return seed.panel(
        seed.collection("core", models), models, seed.NOW, judge="judge", texts=["<img src=x onerror=alert(1)>\n\n  indented", "fine"], prompt="</script>why?"
    )


def page_of(client, panel):
    return client.get(reverse("admin:panels_panel_change", args=[quote(panel.pk)]))


def judge(client, panel, call, **said):
    form = {f"{call}-{name}": value for name, value in said.items()}
    return client.post(reverse("admin:panels_panel_judge", args=[quote(panel.pk), call]), form)


def test_a_panel_shows_prompt_answers_errors_tokens_and_money(operator, asked):
    text = page_of(operator, asked).content.decode()
    for said in (
        "&lt;/script&gt;why?",
        "&lt;img src=x onerror=alert(1)&gt;\n\n  indented",
        "rate limited",
        "asks to be left alone",
        "812 in, 240 out",
        "$0.00132",
        "$0.00264",
    ):
        assert said in text, said
    assert "<img src=x" not in text


def test_a_text_that_is_gone_is_said_to_be_gone(operator, asked):
    asked.seats.update(text=None)
    Panel.objects.filter(pk=asked.pk).update(prompt=None)
    text = page_of(operator, asked).content.decode()
    assert "The prompt is not kept any more" in text
    assert "The answer&#x27;s text is not kept any more" in text or "The answer's text is not kept any more" in text


def test_a_verdict_is_recorded_at_the_seat_in_the_users_name(as_role, asked):
    client, call = as_role("judge"), asked.seats.first().pk
    response = judge(client, asked, call, useful="true", note="Ran it.", real="One claim\n\n  Another  \n", false="")
    assert response["Location"].endswith(f"#{call}")
    kept = Verdict.objects.get()
    assert (kept.judge, kept.call, kept.useful, kept.note, kept.real, kept.false) == ("judge", call, True, "Ran it.", ["One claim", "Another"], [])
    assert trail() == [("judge", "verdict.add", f"call {call}")]
    assert "Change your verdict" in page_of(client, asked).content.decode()


def test_a_second_verdict_replaces_the_first_and_the_history_shows_both(as_role, asked):
    client, call = as_role("judge"), asked.seats.first().pk
    judge(client, asked, call, useful="true")
    judge(client, asked, call, useful="false", note="On second thought.")
    current = Verdict.objects.get(current=True)
    assert (current.useful, current.replaces.useful) == (False, True)
    text = client.get(reverse("admin:panels_verdict_change", args=[current.pk])).content.decode()
    assert "On second thought." in text
    assert text.count("bench-badge is-") == 2


def test_a_verdict_that_judges_nothing_comes_back_with_the_reason_and_what_was_typed(as_role, asked):
    client, call = as_role("judge"), asked.seats.first().pk
    response = judge(client, asked, call, useful="", note="Hm.")
    assert response.status_code == 400
    text = response.content.decode()
    assert "Nothing is judged" in text
    assert "Hm." in text
    assert not Verdict.objects.exists()


def test_too_many_claims_are_refused_at_their_field(as_role, asked):
    client, call = as_role("judge"), asked.seats.first().pk
    response = judge(client, asked, call, useful="true", real="\n".join(f"claim {i}" for i in range(201)))
    assert "at most 200" in response.content.decode()


def test_a_seat_of_another_panel_is_not_found(operator, asked):
    assert judge(operator, asked, "call_of_another", useful="true").status_code == 404


def test_a_verdict_needs_a_post_and_a_judge(as_role, asked):
    call = asked.seats.first().pk
    address = reverse("admin:panels_panel_judge", args=[quote(asked.pk), call])
    assert as_role("operator").get(address).status_code == 405
    assert judge(as_role("viewer"), asked, call, useful="true").status_code in (403, 404)
    assert not Verdict.objects.exists()


def test_judges_see_their_own_panels_only_and_operators_all(as_role, asked):
    models = [seed.model("mars", seed.endpoint("local"))]
    other = seed.panel(seed.collection("side", models), models, seed.NOW, judge="somebody", texts=["secret plan"], prompt="secret question")
    shown = {r: [p.pk for p in as_role(r).get(reverse("admin:panels_panel_changelist")).context["cl"].result_list] for r in ("judge", "operator")}
    assert shown["judge"] == [asked.pk]
    assert set(shown["operator"]) == {asked.pk, other.pk}
    client = as_role("judge")
    assert page_of(client, other).status_code == 404
    assert judge(client, other, other.seats.first().pk, useful="true").status_code == 404
    overview = client.get("/admin/").content.decode()
    assert other.pk not in overview
    assert quote(asked.pk) in overview


def test_the_overview_counts_and_tells_what_waits(operator, asked):
    from datetime import UTC, datetime

    Panel.objects.update(asked_at=datetime.now(UTC))
    shown = operator.get("/admin/").context["shown"]
    assert shown["models"] == {"active": 3, "resting": 0, "retired": 0, "endpoints": 1, "all": 3}
    assert shown["day"]["panels"] == 1
    assert [p.panel for p in shown["waiting"]["panels"]] == [asked.pk]
    assert [(p["panel"].pk, p["ok"], p["seats"], p["cost"]) for p in shown["newest"]] == [(asked.pk, 2, 3, "$0.00264")]


def test_the_records_page_draws_each_models_rates(operator, asked):
    for seat in asked.seats.filter(status="ok"):
        seed.record_verdict("judge", seat.pk, seat.position == 0, "", [], ["wrong"] if seat.position else [], seed.NOW)
    rows = operator.get(reverse("admin:panels_verdict_records_page"), {"collection": "core"}).context["rows"]
    assert [(r["record"].model, r["useful"]["counted"], r["wrong"]["counted"]) for r in rows] == [
        ("mercury", "1 of 1", "0 of 1"),
        ("venus", "0 of 1", "1 of 1"),
    ]
    assert 0 <= rows[0]["useful"]["low"] < rows[0]["useful"]["mean"] < rows[0]["useful"]["low"] + rows[0]["useful"]["width"] <= 100
    assert b"<svg" in operator.get(reverse("admin:panels_verdict_records_page"), {"collection": "core"}).content


def test_a_verdict_by_call_id_says_when_there_is_no_such_call(as_role, asked):
    client = as_role("judge")
    address = reverse("admin:panels_verdict_add")
    assert "No call with this id" in client.post(address, {"call": "call_nothing", "useful": "true"}).content.decode()
    client.post(address, {"call": asked.seats.first().pk, "useful": "false"})
    assert Verdict.objects.get().useful is False


def test_a_verdict_is_neither_edited_nor_deleted(admin, asked):
    kept = seed.record_verdict("judge", asked.seats.first().pk, True, "", [], [], seed.NOW)
    for page in ("change", "delete"):
        admin.post(reverse(f"admin:panels_verdict_{page}", args=[kept.id]), {"post": "yes", "useful": "false"})
    assert Verdict.objects.get().useful is True
