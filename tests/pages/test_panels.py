"""The pages of panels on record: the list with its filters, one panel whole, verdicts and deleting without script, by role."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape, unescape

import pytest
from django.test import Client
from django.urls import reverse

from panels.models import Comparison, Panel, Seat, Verdict
from tests.admin import seed
from tests.admin.conftest import trail

LIST = "/app/panels"


def page_of(panel: Panel) -> str:
    return reverse("pages:panel", args=[panel.pk])


@pytest.fixture
def asked(db: None) -> Panel:
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("mercury", "venus", "mars")]
    core = seed.collection("core", models)
    seed.panel(core, models[:2], seed.NOW, judge="judge", texts=["One of the judge's."], prompt="Somebody else's question")
    return seed.panel(core, models, seed.NOW, judge="operator", texts=["It is **4**.", "It is 5."], prompt="What is 2 + 2?")


# ------------------------------------------------------------------ the list


def test_the_list_shows_how_prompts_begin_and_leads_to_each_panel(asked: Panel, operator: Client) -> None:
    said = operator.get(LIST).content.decode()
    assert "What is 2 + 2?" in said
    assert f'href="{page_of(asked)}"' in said
    assert "mercury" in said
    assert "2 of 3" in said


def test_a_judge_reads_only_own_prompts_there(asked: Panel, as_role: Callable[[str], Client]) -> None:
    said = as_role("judge").get(LIST).content.decode()
    assert escape("Somebody else's question") in said
    assert "What is 2 + 2?" not in said
    assert page_of(asked) not in said


def test_a_viewer_sees_figures_and_opens_nothing(asked: Panel, as_role: Callable[[str], Client]) -> None:
    viewer = as_role("viewer")
    said = viewer.get(LIST).content.decode()
    assert "mercury" in said
    assert "What is 2 + 2?" not in said
    assert page_of(asked) not in said
    assert viewer.get(page_of(asked)).status_code == 403


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"find": "question"}, 1),
        ({"find": "2 WHAT"}, 1),
        ({"find": "nowhere"}, 0),
        ({"model": "mars"}, 1),
        ({"judge": "judge"}, 1),
        ({"collection": "core", "status": "degraded"}, 1),
        ({"mode": "merged"}, 0),
        ({"verdict": "none"}, 2),
        ({"since": "2026-11-29", "until": "2026-11-29"}, 2),
        ({"until": "2026-11-28"}, 0),
    ],
)
def test_filters_narrow_it_and_stay_in_the_form(asked: Panel, operator: Client, query: dict[str, str], count: int) -> None:
    answer = operator.get(LIST, query)
    said = answer.content.decode()
    assert answer.status_code == 200
    assert len(re.findall(r"<th scope=\"row\"", said)) == count
    for value in query.values():
        assert f'value="{value}"' in said or f"selected>{value}" in said


def test_a_filter_that_is_refused_says_so_at_its_field(asked: Panel, operator: Client) -> None:
    answer = operator.get(LIST, {"since": "yesterday"})
    said = answer.content.decode()
    assert answer.status_code == 400
    assert 'role="alert"' in said
    assert re.search(r'name="since"[^>]*aria-invalid="true"[^>]*aria-describedby="refused"', said)


def test_changing_a_filter_draws_the_list_alone(asked: Panel, operator: Client) -> None:
    said = operator.get(LIST, {"find": "question"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in said
    assert "<form" not in said
    assert said.count('<th scope="row"') == 1


def test_an_empty_list_says_what_to_do_next(db: None, operator: Client) -> None:
    assert "Nobody has asked yet" in operator.get(LIST).content.decode()
    assert "Take a filter away" in operator.get(LIST, {"find": "x"}).content.decode()


def test_pages_go_on_with_the_filters(asked: Panel, operator: Client) -> None:
    core = seed.Collection.objects.get()
    for _ in range(60):
        seed.panel(core, [], seed.NOW, prompt="again")
    said = operator.get(LIST, {"collection": "core"}).content.decode()
    following = re.search(r'href="(\?[^"]*)" rel="next"', said)
    assert following
    assert "collection=core" in following[1]
    assert operator.get(LIST + unescape(following[1])).content.decode().count('<th scope="row"') == 12


# ------------------------------------------------------------------ one panel


def test_a_panel_shows_all_that_is_on_record(asked: Panel, operator: Client) -> None:
    said = operator.get(page_of(asked)).content.decode()
    for shown in (
        "What is 2 + 2?",
        "Be brief.",
        "It is **4**.",
        "mars",
        "rate_limit_exceeded",
        "at-venus",
        "first word after",
        "export?format=md",
        "Delete the texts",
    ):
        assert shown in said, shown


def test_an_unknown_panel_is_not_found(db: None, operator: Client) -> None:
    assert operator.get("/app/panels/pan_nowhere").status_code == 404


def test_somebody_elses_panel_is_closed_to_a_judge(asked: Panel, as_role: Callable[[str], Client]) -> None:
    judge = as_role("judge")
    assert judge.get(page_of(asked)).status_code == 403
    assert judge.post(page_of(asked), {"action": "delete"}).status_code == 403
    assert Seat.objects.filter(panel=asked, text__isnull=False).count() == 2


def test_a_verdict_is_kept_without_script(asked: Panel, operator: Client) -> None:
    call = asked.seats.order_by("position")[0].call
    answer = operator.post(
        page_of(asked), {"action": "verdict", "call": call, "useful": "false", "real": "one\n two \n\n", "false": "three", "note": "checked"}
    )
    assert (answer.status_code, answer["Location"]) == (302, f"{page_of(asked)}#{call}")
    kept = Verdict.objects.get()
    assert (kept.call, kept.judge, kept.useful, kept.real, kept.false, kept.note) == (call, "operator", False, ["one", "two"], ["three"], "checked")
    assert ("operator", "verdict.add", f"call {call}") in trail()
    said = operator.get(page_of(asked)).content.decode()
    assert "one\ntwo\n</textarea>" in said
    assert 'value="false" aria-pressed="true"' in said


def test_a_verdict_that_says_nothing_comes_back_with_what_was_typed(asked: Panel, operator: Client) -> None:
    call = asked.seats.order_by("position")[0].call
    answer = operator.post(page_of(asked), {"action": "verdict", "call": call, "note": "my note"})
    said = answer.content.decode()
    assert answer.status_code == 400
    assert "Nothing is judged" in said
    assert "my note" in said
    assert not Verdict.objects.exists()


def test_deleting_takes_the_texts_and_leaves_the_figures(asked: Panel, operator: Client) -> None:
    answer = operator.post(page_of(asked), {"action": "delete"}, follow=True)
    said = answer.content.decode()
    assert "are deleted" in said
    assert "The prompt is not kept any more" in said
    assert "It is **4**." not in said
    assert "Delete the texts" not in said
    assert "Ask again" not in said
    assert ("operator", "panel.delete_texts", f"panel {asked.pk}") in trail()


def test_a_panel_under_way_cannot_be_deleted_and_says_that_it_runs(asked: Panel, operator: Client) -> None:
    Panel.objects.filter(pk=asked.pk).update(status="running")
    said = operator.get(page_of(asked)).content.decode()
    assert "Still being answered" in said
    assert re.search(r"data-when-over hidden", said)
    assert operator.post(page_of(asked), {"action": "delete"}).status_code == 409


def test_blind_mixes_the_seats_the_same_way_each_time(asked: Panel, operator: Client) -> None:
    said = operator.get(page_of(asked), {"blind": "1"}).content.decode()
    order = re.findall(r'<article class="seat" id="(\w+)"', said)
    assert order == sorted(order, key=lambda call: call[::-1])
    assert re.findall(r'class="veil">(Answer \w)<', said) == ["Answer A", "Answer B", "Answer C"]
    assert "data-blindable data-blind" in said


def test_other_judges_verdicts_stand_apart_from_ones_own(asked: Panel, operator: Client, admin: Client) -> None:
    call = asked.seats.order_by("position")[0].call
    admin.post(page_of(asked), {"action": "verdict", "call": call, "useful": "true", "false": "it is odd", "note": "by the admin"})
    said = operator.get(page_of(asked)).content.decode()
    assert "by the admin" in said
    assert 'aria-pressed="true"' not in said.split('id="judging"')[1]


def test_a_comparison_groups_claims_and_quotes(asked: Panel, operator: Client) -> None:
    seats = list(asked.seats.order_by("position")[:2])
    claims = json.dumps([{"text": "It is 4.", "kind": "contradicted", "seats": [{"call": s.call, "quote": f"It is {n}"} for n, s in enumerate(seats, 4)]}])
    Comparison.objects.create(panel=asked, call="call_x", model="venus", judge="operator", at=seed.NOW, status="ok", claims=claims)
    said = operator.get(page_of(asked)).content.decode()
    assert "Contradicted" in said
    assert f'data-jump="{seats[0].call}" data-kind="contradicted" data-quote="It is 4"' in said


def test_a_merged_answer_stands_above_those_it_was_made_of(asked: Panel, operator: Client) -> None:
    last = asked.seats.order_by("position").last()
    Seat.objects.filter(pk=last.pk).update(seat="merger", status="ok", text="merged", code="", message="")
    said = operator.get(page_of(asked)).content.decode()
    assert re.findall(r'<article class="seat" id="(\w+)"', said)[0] == last.call


def test_nothing_that_anybody_wrote_becomes_markup(hostile_bench: None, operator: Client) -> None:
    for row in Panel.objects.all()[:4]:
        for path in (page_of(row), LIST):
            said = operator.get(path).content.decode()
            assert "<img src=x" not in said
            assert "<svg onload" not in said
            assert "<script>alert" not in said


def test_what_a_dialect_kept_is_laid_out(asked: Panel, operator: Client) -> None:
    Panel.objects.filter(pk=asked.pk).update(
        prompt='[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image","media_type":"image/png","data":"iVBORw0KGgo="},'
        '{"type":"image","url":"https://elsewhere.example/i.png"},{"type":"image","media_type":"image/svg+xml","data":"AAAA"}]},'
        '{"role":"assistant","content":[{"type":"tool_call","id":"1","name":"look","arguments":"{}"}]},{"role":"user","content":[{"type":"tool_result","call_id":"1","content":"found"}]}]'
    )
    said = operator.get(page_of(asked)).content.decode()
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in said
    assert "Image at https://elsewhere.example/i.png" in said
    assert 'src="https' not in said
    assert "svg+xml;base64" not in said
    assert "Calls look: {}" in said
    assert "found" in said
