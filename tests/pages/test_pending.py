"""The page of pending verdicts, without script: what waits, oldest first, and judging it there."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from panels.models import Panel, Verdict
from tests.admin import seed

PAGE = "/app/pending"


@pytest.fixture
def waiting(db: None) -> list[Panel]:
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("mercury", "venus")]
    core = seed.collection("core", models)
    said = [("judge", "the older question"), ("operator", "the newer question")]
    return [
        seed.panel(core, models, seed.NOW + timedelta(hours=n), judge=judge, texts=[f"Answer to {prompt}."], prompt=prompt)
        for n, (judge, prompt) in enumerate(said)
    ]


def test_what_waits_stands_there_with_question_and_answers_oldest_first(waiting: list[Panel], operator: Client) -> None:
    said = operator.get(PAGE).content.decode()
    assert said.index("the older question") < said.index("Answer to the older question.") < said.index("the newer question")
    assert said.count('name="useful" value="true"') == 4


def test_a_judge_sees_what_the_judge_asked(waiting: list[Panel], as_role: Callable[[str], Client]) -> None:
    said = as_role("judge").get(PAGE).content.decode()
    assert "the older question" in said
    assert "the newer question" not in said


def test_a_viewer_may_not_judge(waiting: list[Panel], as_role: Callable[[str], Client]) -> None:
    assert as_role("viewer").get(PAGE).status_code == 403


def test_a_judged_answer_waits_no_longer(waiting: list[Panel], operator: Client) -> None:
    call = waiting[0].seats.order_by("position")[0].call
    answer = operator.post(PAGE, {"action": "verdict", "call": call, "useful": "true"})
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert Verdict.objects.get().useful is True
    said = operator.get(PAGE).content.decode()
    assert call not in said
    assert said.count('name="useful" value="true"') == 3


def test_a_verdict_that_is_refused_comes_back_with_what_was_typed(waiting: list[Panel], operator: Client) -> None:
    call = waiting[0].seats.order_by("position")[0].call
    answer = operator.post(PAGE, {"action": "verdict", "call": call, "real": "", "note": "my note"})
    assert answer.status_code == 400
    assert "my note" in answer.content.decode()


def test_when_nothing_waits_it_says_so(db: None, operator: Client) -> None:
    assert "Nothing waits for you" in operator.get(PAGE).content.decode()


def test_blind_stays_from_verdict_to_verdict(waiting: list[Panel], operator: Client) -> None:
    call = waiting[0].seats.order_by("position")[0].call
    assert operator.post(f"{PAGE}?blind=1", {"action": "verdict", "call": call, "useful": "true"})["Location"] == f"{PAGE}?blind=1"
    said = operator.get(PAGE, {"blind": "1"}).content.decode()
    assert said.count("data-blindable data-blind") == 2
    assert re.search(r'action="/app/pending\?blind=1"', said)


def test_more_than_a_page_can_be_passed_over(waiting: list[Panel], operator: Client) -> None:
    core, models = seed.Collection.objects.get(), list(seed.Model.objects.all())
    for n in range(12):
        seed.panel(core, models, seed.NOW + timedelta(days=1 + n), texts=["x"], prompt=f"number {n}")
    said = operator.get(PAGE).content.decode()
    assert said.count('class="waiting"') == 10
    assert "Pass over these" in said
