"""A verdict on a panel's page becomes private tasks with one click, and is asked of models as any other benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from access.models import AuditEntry
from panels.models import Panel
from suite.models import Row, Subset
from tests.admin import seed

TASKS = "/v1/subsets:from-verdict"


@pytest.fixture
def asked(db: None) -> Panel:
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("mercury", "venus")]
    return seed.panel(seed.collection("core", models), models, seed.NOW, judge="operator", texts=["It never ends.", "It is fine."], prompt="while True: pass")


def call_of(panel: Panel, position: int = 0) -> str:
    return str(panel.seats.get(position=position).call)


def judge(client: Client, panel: Panel, **said: str) -> str:
    page = reverse("pages:panel", args=[panel.pk])
    sent = {"action": "verdict", "call": call_of(panel), "useful": "true", "note": "", "real": "", "false": "", **said}
    assert client.post(page, sent).status_code == 302
    return page


def kept() -> dict[str, bool]:
    bodies = [json.loads(row.body) for row in Row.objects.all()]
    return {body["input"]["claim"]: body["expected"]["value"] for body in bodies}


def test_one_click_keeps_what_was_judged_as_tasks_with_a_control(asked: Panel, operator: Client) -> None:
    page = judge(operator, asked, real="It never ends.", false="It prints something.\nIt ends by itself.")
    assert "Keep as private tasks" in operator.get(page).content.decode()
    said = operator.post(page, {"action": "task", "call": call_of(asked)}, follow=True).content.decode()
    assert "3 private tasks kept." in said
    assert kept() == {"It never ends.": True, "It prints something.": False, "It ends by itself.": False}
    subset = Subset.objects.get()
    assert (subset.benchmark.owner, subset.benchmark.built_in, subset.rolling, subset.grader) == ("operator", "", True, {"kind": "claim"})
    assert json.loads(Row.objects.all()[0].body)["input"]["code"] == "while True: pass"
    again = operator.post(page, {"action": "task", "call": call_of(asked)}, follow=True).content.decode()
    assert "kept as tasks before" in again
    assert [entry.action for entry in AuditEntry.objects.filter(action="subset.from_verdict")] == ["subset.from_verdict"]


def test_without_claims_there_is_no_button_and_the_api_says_why(asked: Panel, operator: Client) -> None:
    page = judge(operator, asked)
    assert "Keep as private tasks" not in operator.get(page).content.decode()
    answer = operator.post(TASKS, json.dumps({"call": call_of(asked)}), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "nothing_to_ask")


def test_a_claim_that_is_judged_otherwise_later_is_told(asked: Panel, operator: Client) -> None:
    judge(operator, asked, real="It never ends.")
    assert operator.post(TASKS, json.dumps({"call": call_of(asked)}), content_type="application/json").status_code == 201
    judge(operator, asked, false="It never ends.")
    answer = operator.post(TASKS, json.dumps({"call": call_of(asked)}), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "task_conflict")
    assert kept() == {"It never ends.": True}


@pytest.mark.parametrize(("role", "call", "status"), [("operator", "call_none", 404), ("operator", "\u0000", 422), ("judge", "", 404), ("viewer", "", 403)])
def test_only_ones_own_verdict_is_kept(asked: Panel, operator: Client, as_role: Callable[[str], Client], role: str, call: str, status: int) -> None:
    judge(operator, asked, real="It never ends.")
    sent: Any = json.dumps({"call": call or call_of(asked)})
    assert as_role(role).post(TASKS, sent, content_type="application/json").status_code == status
    assert not Row.objects.exists()


def test_a_panel_whose_text_is_gone_cannot_be_asked_again(asked: Panel, operator: Client) -> None:
    page = judge(operator, asked, real="It never ends.")
    operator.post(page, {"action": "delete"})
    answer = operator.post(TASKS, json.dumps({"call": call_of(asked)}), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "nothing_to_ask")
