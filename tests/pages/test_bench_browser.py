"""The pages of models and collections where script takes part: filters as one types, choosing several, moving members by keyboard, asking first."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from catalog.models import Model
from panels.models import Collection, Member
from tests.admin import seed
from tests.browser import DESK, MARKS, PHONE, axe

pytestmark = MARKS


def seated() -> list[str]:
    return list(Member.objects.filter(collection__name="core", place="member").order_by("position").values_list("model__alias", flat=True))


def test_the_list_narrows_while_somebody_types_and_keeps_the_focus(open_page):
    seed.bench(30)
    watched = open_page("operator", start="/app/models")
    page = watched.page
    page.fill("#find", "scout")
    rows = page.locator("table.models tbody tr")
    expect(rows).to_have_count(1)
    expect(page.locator("#told")).to_have_text("1 model")
    expect(page.locator("#find")).to_be_focused()
    assert "find=scout" in page.url
    page.fill("#find", "")
    page.select_option("#endpoint", "local")
    expect(rows).to_have_count(10)
    page.click("th >> text=Seats")
    page.wait_for_url("**sort=seats**")
    assert "endpoint=local" in page.url, "sorting keeps the filter"
    expect(page.locator("#endpoint")).to_have_value("local")
    page.fill("#find", "no such model")
    expect(page.locator("text=No model fits")).to_be_visible()
    assert watched.wrong == []


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_several_are_chosen_compared_and_retired(open_page, viewport):
    seed.bench(4)
    watched = open_page("operator", viewport, start="/app/models")
    page = watched.page
    compare = page.locator("button", has_text="Compare")
    expect(compare).to_be_disabled()
    page.check("input[value=mercury]")
    expect(page.locator("[data-chosen-count]")).to_have_text("1 chosen")
    expect(compare).to_be_disabled()
    page.check("input[value=slow-but-sure]")
    compare.click()
    page.wait_for_selector("table.compare")
    assert page.locator("thead th a[href$='/mercury']").count() == 1
    assert axe(page) == []
    assert watched.overflow() <= 0
    watched.goto("/app/models")
    page.check("input[value=mercury]")
    page.click("button[value=retire]")
    page.fill("#reason", "too dear")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Retired mercury.")
    expect(page.locator(".notice[data-tone=bad]")).to_contain_text("too dear")
    assert Model.objects.get(alias="mercury").status == "retired"
    assert watched.wrong == []


def test_facts_are_edited_in_place(open_page):
    seed.bench(3)
    watched = open_page("operator", start="/app/models/mercury")
    page = watched.page
    page.click("text=Edit >> nth=0")
    first = page.locator("[name='facts.context_window']")
    expect(first).to_be_focused()
    first.fill("65536")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Kept.")
    expect(page.locator("#facts dd").first).to_contain_text("set by hand")
    assert Model.objects.get(alias="mercury").facts["context_window"] == 65536
    assert watched.wrong == []


def test_members_are_moved_added_and_taken_out_by_keyboard_alone(open_page):
    seed.bench(4)
    Collection.objects.filter(name="core").update(explorers=0)
    seed.model("fresh", Model.objects.first().endpoint)
    watched = open_page("operator", start="/app/collections/core")
    page = watched.page
    before = seated()
    page.focus("#members-down-0")
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text(f"{before[0]} is member number 2 of {len(before)}.")
    expect(page.locator("#members-down-1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#members-down-2")).to_be_focused()
    page.keyboard.press("Enter")
    # The last can go no further down.
    expect(page.locator("#members-up-3")).to_be_focused()
    assert seated() == [*before[1:], before[0]]

    page.focus("#members-add")
    page.keyboard.type("fre")
    expect(page.locator("#members-known option[value=fresh]")).to_have_count(1)
    page.keyboard.type("sh")
    page.keyboard.press("Enter")
    expect(page.locator("#members li")).to_have_count(5)
    expect(page.locator("#members-add")).to_be_focused()
    page.focus("#members-remove-0")
    page.keyboard.press("Enter")
    expect(page.locator("#members li")).to_have_count(4)
    assert seated()[-1] == "fresh"

    page.fill("#members-add", "nobody")
    page.keyboard.press("Enter")
    expect(page.locator("#w-members")).to_contain_text("names no model")
    assert axe(page) == []
    assert [fault for fault in watched.wrong if "status of 400" not in fault] == []


def test_deleting_asks_first(open_page):
    seed.bench(3)
    watched = open_page("operator", start="/app/collections/core")
    page = watched.page
    page.click("button[value=delete]")
    expect(page.locator("dialog")).to_contain_text("Delete core?")
    page.click("dialog >> text=Cancel")
    assert Collection.objects.filter(name="core").exists()
    page.click("button[value=delete]")
    page.click("dialog >> text=Yes, do it")
    page.wait_for_selector("text=core is gone")
    assert not Collection.objects.filter(name="core").exists()
    assert watched.wrong == []


def test_it_works_without_script(open_page, live_server):
    """What a member list and a filter do is a form's own doing."""
    seed.bench(3)
    watched = open_page("operator")
    context = watched.page.context.browser.new_context(java_script_enabled=False, storage_state=watched.page.context.storage_state())
    page = context.new_page()
    page.goto(f"{live_server.url}/app/collections/core")
    before = seated()
    page.click("#members-up-1")
    assert page.url.endswith("?focus=members-down-0#members")
    assert seated() == [before[1], before[0], *before[2:]]
    page.goto(f"{live_server.url}/app/models")
    page.fill("#find", "scout")
    page.click("noscript button")
    assert page.locator("table.models tbody tr").count() == 1
    assert json.loads(page.locator("[name=models]").first.evaluate("e => JSON.stringify(e.value)")) == "scout"
