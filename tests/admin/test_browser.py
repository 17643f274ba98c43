"""The admin in a real browser: the way from an empty bench to a verdict, and that nothing there breaks the content policy or leaves the server."""

from __future__ import annotations

import pytest
from django.urls import reverse

from panels.models import Collection, Panel, Verdict
from tests.admin import pages, seed
from tests.browser import DESK, MARKS, PHONE

pytestmark = MARKS


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_no_page_breaks_the_policy_leaves_the_server_or_overflows(open_page, viewport, scheme):
    seed.bench(len(seed.HOSTILE), hostile=True)
    watched = open_page("admin", viewport, scheme)
    for path in {**pages.lists(), **pages.of_rows()}:
        watched.goto(path)
        assert watched.wrong == [], path
        assert watched.overflow() <= 0, path
        assert ("dark" in (watched.page.get_attribute("html", "class") or "")) == (scheme == "dark"), path


def test_a_person_signs_in_by_the_form(open_page):
    seed.people()
    watched = open_page("viewer")
    watched.page.context.clear_cookies()
    watched.goto("/admin/login/?next=/admin/")
    watched.page.fill("#id_username", "viewer")
    watched.page.fill("#id_password", "a-password-for-tests")
    watched.page.click("button[type=submit]")
    watched.page.wait_for_url("**/admin/")
    assert watched.wrong == []


def test_from_an_empty_bench_to_a_collection(open_page, fake):
    fake.models = ["fake/fast", "fake/slow", "fake/other"]
    seed.people()
    watched = open_page("operator", start="/admin/")
    page = watched.page
    page.click("text=Add an endpoint >> nth=-1")
    page.fill("#id_name", "local")
    page.fill("#id_base_url", fake.url)
    page.fill("#id_key", seed.CANARY)
    page.click("button[name=_save]")

    page.wait_for_selector("#served")
    page.fill("input[type=search]", "s")
    assert page.locator("#served tbody tr:visible").count() == 2
    page.fill("input[type=search]", "")
    page.check("input[value='fake/fast']")
    page.check("input[value='fake/slow']")
    page.click("text=Add the ticked models")
    page.wait_for_selector("text=Added fake/fast, fake/slow")

    watched.goto(reverse("admin:panels_collection_add"))
    page.fill("#id_name", "core")
    for i, alias in enumerate(("fake/fast", "fake/slow")):
        page.click("#places-group >> text=Add another")
        page.click(f"#id_places-{i}-model + .select2 .select2-selection")
        page.fill(".select2-search__field", alias)
        page.click(f".select2-results__option >> text={alias}")
    page.click("button[name=_save]")
    page.wait_for_selector("text=was added successfully")
    row = Collection.objects.get(name="core")
    assert [p.model.alias for p in row.places.order_by("position")] == ["fake/fast", "fake/slow"]

    watched.goto(reverse("admin:panels_collection_ask_it", args=[row.pk]))
    assert f"curl {watched.address}/v1/chat/completions" in watched.text()
    assert seed.CANARY not in page.content()
    assert watched.wrong == []


def test_members_are_dragged_into_another_order(open_page):
    seed.people()
    at = seed.endpoint("local")
    row = seed.collection("core", [seed.model(alias, at) for alias in ("mercury", "venus", "earth")])
    watched = open_page("operator", start="/admin/")
    watched.goto(reverse("admin:panels_collection_change", args=[row.pk]))
    page = watched.page
    handles = page.locator("#places-group .material-symbols-outlined:text('drag_indicator')")
    handles.nth(2).scroll_into_view_if_needed()
    start, end = handles.nth(2).bounding_box(), handles.nth(0).bounding_box()
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] + 20, steps=8)
    page.mouse.move(end["x"] + 5, end["y"] - 10, steps=8)
    page.mouse.up()
    page.click("button[name=_save]")
    page.wait_for_selector("text=was changed successfully")
    assert [p.model.alias for p in row.places.order_by("position")] == ["earth", "mercury", "venus"]
    assert watched.wrong == []


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_a_verdict_is_given_at_the_seat(open_page, viewport):
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("mercury", "venus")]
    panel: Panel = seed.panel(seed.collection("core", models), models, seed.NOW, judge="judge", texts=["It is 4."])
    watched = open_page("judge", viewport, start="/admin/")
    page = watched.page
    page.click("text=core >> nth=0")
    seat = page.locator("article").first
    seat.locator("summary", has_text="Record a verdict").click()
    seat.locator("label", has_text="Yes").click()
    seat.locator("textarea").first.fill("It is 4")
    seat.locator("text=Keep the verdict").click()
    page.wait_for_selector("text=The verdict is kept.")
    kept = Verdict.objects.get()
    assert (kept.judge, kept.useful, kept.real, kept.call) == ("judge", True, ["It is 4"], panel.seats.first().pk)
    assert watched.wrong == []


def test_a_filter_narrows_the_ledger(open_page):
    seed.bench(3)
    watched = open_page("viewer", start="/admin/")
    watched.goto(reverse("admin:health_attempt_changelist"))
    page = watched.page
    page.click("text=Filters")
    page.select_option("select[name=endpoint]", "local")
    page.locator("#changelist-filter, form").locator("button:visible", has_text="Apply").first.click()
    page.wait_for_url("**endpoint=local**")
    assert set(page.locator("td.field-endpoint").all_inner_texts()) == {"local"}
    assert watched.wrong == []
