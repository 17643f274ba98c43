"""The page that asks, as it is first drawn: whom one may ask, what links fill in, and a panel that is asked again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from catalog.models import Model
from panels.models import Panel
from tests.admin import seed

PAGE = "/app/ask"


def data(said: str, name: str) -> Any:
    found = re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', said, re.DOTALL)
    return json.loads(found[1]) if found else None


def test_collections_and_models_may_be_asked(small_bench: None, operator: Client) -> None:
    Model.objects.filter(alias="mercury").update(status="retired")
    said = operator.get(PAGE).content.decode()
    assert '<option value="c:core"' in said
    assert '<option value="m:slow-but-sure"' in said
    assert '<option value="m:mercury"' not in said
    assert data(said, "roster")["collections"][0]["members"]


def test_a_judge_asks_and_a_viewer_does_not(small_bench: None, as_role: Callable[[str], Client]) -> None:
    assert as_role("judge").get(PAGE).status_code == 200
    assert as_role("viewer").get(PAGE).status_code == 403


def test_an_empty_bench_says_what_comes_first(db: None, operator: Client) -> None:
    said = operator.get(PAGE).content.decode()
    assert "nobody to ask yet" in said
    assert 'id="composer"' not in said


def test_links_fill_it_in(small_bench: None, operator: Client) -> None:
    said = operator.get(PAGE, {"collection": "design", "mode": "merged", "prompt": "Why <b>?"}).content.decode()
    assert '<option value="c:design" selected>' in said
    assert 'value="merged" checked' in said
    assert "Why &lt;b&gt;?</textarea>" in said
    assert '<option value="m:mercury" selected>' in operator.get(PAGE, {"model": "mercury"}).content.decode()


def test_a_plain_question_is_asked_again_in_the_form(small_bench: None, operator: Client) -> None:
    row = Panel.objects.filter(collection="core").first()
    assert row
    Panel.objects.filter(pk=row.pk).update(prompt='[{"role":"user","content":"Why again?"}]')
    said = operator.get(PAGE, {"again": row.pk}).content.decode()
    assert "Why again?</textarea>" in said
    again = data(said, "again")
    assert again["wanted"] == "c:core"
    assert again["seats"] == list(dict.fromkeys(seat.model for seat in row.seats.order_by("position")))


def test_a_conversation_is_asked_again_as_it_was(small_bench: None, operator: Client) -> None:
    row = Panel.objects.filter(collection="core", prompt__isnull=False).first()
    assert row
    said = operator.get(PAGE, {"again": row.pk}).content.decode()  # it has a system message
    assert "sent again as it was" in said
    assert 'id="prompt"' not in said
    assert data(said, "again")["prompt"] is None


@pytest.mark.parametrize("missing", ["pan_nowhere", "gone"])
def test_what_cannot_be_asked_again_is_said(small_bench: None, operator: Client, missing: str) -> None:
    if missing == "gone":
        missing = Panel.objects.filter(prompt__isnull=True).values_list("pk", flat=True)[0]
    answer = operator.get(PAGE, {"again": missing})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()
    assert 'id="prompt"' in answer.content.decode()


def test_somebody_elses_panel_is_not_asked_again(small_bench: None, as_role: Callable[[str], Client]) -> None:
    row = Panel.objects.filter(judge="operator", prompt__isnull=False).first()
    assert row
    said = as_role("judge").get(PAGE, {"again": row.pk}).content.decode()
    assert "asked by somebody else" in said
    assert "Review this function" not in said


def test_names_of_any_kind_stand_there_as_text(hostile_bench: None, operator: Client) -> None:
    said = operator.get(PAGE).content.decode()
    assert "<img src=x" not in said
    assert "<script>alert" not in said
    names = {m["name"] for m in data(said, "roster")["collections"]}
    assert seed.HOSTILE[0] in names
    assert f'value="c:{seed.HOSTILE[0]}"' in unescape(said)
