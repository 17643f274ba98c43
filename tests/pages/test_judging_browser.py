"""Pending verdicts and panels on record in a real browser: one key each, filters that follow, and nothing that shuts anybody out."""

from __future__ import annotations

from typing import Any

import pytest

from panels.models import Panel, Verdict
from tests.admin import seed
from tests.browser import DESK, MARKS, PHONE, axe
from tests.live import eventually

pytestmark = MARKS


def waiting(count: int) -> list[Panel]:
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("mercury", "venus")]
    core = seed.collection("core", models)
    return [seed.panel(core, models, seed.NOW, texts=["It is 4. It is even.", "It is 5."], prompt=f"Question {n}") for n in range(count)]


def test_each_answer_that_waits_takes_one_key(open_page: Any) -> None:
    rows = waiting(2)
    watched = open_page("operator", start="/app/pending")
    page = watched.page
    page.wait_for_selector("article.seat[data-current]")
    for key in ("u", "n", "u"):
        page.keyboard.press(key)
    page.keyboard.press(".")
    page.keyboard.press("r")
    last = rows[1].seats.order_by("position").last()
    page.locator(f"[id='{last.call}'] .verdict-said", has_text="Kept: 1 real.").wait_for()
    page.keyboard.press("n")
    page.wait_for_selector("text=All of these are judged.")
    eventually(lambda: Verdict.objects.filter(call=last.call, current=True, useful=False).exists(), "the last key's verdict")
    said = {v.call: v for v in Verdict.objects.filter(current=True)}
    assert [said[s.call].useful for row in rows for s in row.seats.order_by("position")] == [True, False, True, False]
    assert Verdict.objects.get(call=last.call, current=True).real == ["It is 5."]
    page.keyboard.press("Enter")  # the link to what still waits has the focus
    page.wait_for_selector("text=Nothing waits for you")
    assert watched.wrong == []


def test_a_blind_verdict_shows_the_names_once_a_panel_is_judged(open_page: Any) -> None:
    waiting(2)
    watched = open_page("operator", start="/app/pending")
    page = watched.page
    page.keyboard.press("b")
    page.wait_for_url("**?blind=1")
    page.wait_for_selector("article.seat[data-current]")
    first, second = page.locator("section.waiting").all()
    assert "mercury" not in page.inner_text("main")
    assert page.url.endswith("?blind=1")
    page.keyboard.press("u")
    page.keyboard.press("u")
    first.locator("text=mercury").wait_for()
    assert "mercury" not in second.inner_text()
    assert watched.wrong == []


def test_a_filter_follows_what_is_typed(open_page: Any) -> None:
    waiting(3)
    watched = open_page("operator", start="/app/panels")
    page = watched.page
    assert page.locator("tbody tr").count() == 3
    page.fill("#find", "question 2")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert "find=question" in page.url
    page.fill("#find", "")
    page.select_option("#status", "failed")
    page.wait_for_selector("text=No panel fits")
    page.reload()
    assert page.locator("#status").input_value() == "failed"
    assert watched.wrong == []


def test_deleting_asks_first(open_page: Any) -> None:
    row = waiting(1)[0]
    watched = open_page("operator", start=f"/app/panels/{row.pk}")
    page = watched.page
    page.click("text=Delete the texts")
    page.click("dialog[open] >> text=Cancel")
    assert Panel.objects.get(pk=row.pk).prompt
    page.click("text=Delete the texts")
    page.click("dialog[open] >> text=Yes, do it")
    page.wait_for_selector("text=The prompt is not kept any more")
    assert watched.wrong == []


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_hostile_names_and_texts_shut_nobody_out(open_page: Any, viewport: dict[str, int], scheme: str) -> None:
    seed.bench(len(seed.HOSTILE), hostile=True)
    watched = open_page("admin", viewport, scheme)
    whole, gone = Panel.objects.filter(prompt__isnull=False).first(), Panel.objects.filter(prompt__isnull=True).first()
    assert whole
    assert gone
    for path in ("/app/ask", f"/app/ask?again={whole.pk}", "/app/panels", f"/app/panels/{whole.pk}", f"/app/panels/{gone.pk}?blind=1", "/app/pending"):
        watched.goto(path)
        watched.page.wait_for_load_state("networkidle")
        watched.wrong[:] = [
            w for w in watched.wrong if "/bench/estimate" not in w and "status of 4" not in w and "status of 5" not in w
        ]  # the gateway is not there
        assert watched.wrong == [], path
        assert watched.overflow() <= 0, path
        assert axe(watched.page) == [], path
        watched.pictured(f"hostile-{path.split('?')[0].strip('/').replace('/', '-')}-{scheme}")
