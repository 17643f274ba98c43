"""The suite's pages in a real browser: nobody is shut out, nothing leaves the server, nothing is wider than a phone; and a run is followed while it goes."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from access.models import User
from suite.models import Run
from tests.admin import seed
from tests.browser import DESK, MARKS, PHONE, axe
from tests.pages import suites
from tests.pages.test_every_page import browsed, faults_of, pages_of

SUITE = "/app/suite", "/app/(?:suite|runs|registry)|/v1/"


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_every_link_leads_somewhere(as_role, role):
    seed.bench(3)
    suites.fill()
    client, walked = as_role(role), set()
    for path, found_on in pages_of(client, *SUITE):
        answer = client.get(path, follow=True)
        assert answer.status_code < 400, f"{role}: {path}, linked on {found_on}, answers {answer.status_code}"
        walked.add(answer.resolver_match.view_name if "html" in answer.headers["Content-Type"] else "")
    named = {"pages:suite", "pages:runs", "pages:run", "pages:task", "pages:registry", "pages:benchmark", "pages:subset", "pages:impl", "pages:self_checks"}
    writing = {"pages:launch", "pages:run_again", "pages:benchmark_new", "pages:subset_new", "pages:subset_edit", "pages:sweep_new"}
    assert walked >= (named | writing if role == "operator" else named)
    assert not walked & writing or role == "operator"


class TestInABrowser:
    pytestmark = MARKS

    @pytest.mark.parametrize(("role", "viewport", "scheme"), [("operator", DESK, "light"), ("operator", PHONE, "dark")])
    def test_nobody_is_shut_out_and_nothing_leaves_the_server(self, open_page, role, viewport, scheme):
        seed.bench(3)
        suites.fill(going="ok", hostile=viewport is PHONE)
        watched, wrong = open_page(role, viewport, scheme), list[str]()
        paths = [path for path in browsed(role, *SUITE) if path.startswith("/app/")]
        assert len(paths) > 14
        for path in paths:
            watched.goto(path)
            watched.page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
            watched.page.wait_for_load_state("networkidle")
            wrong += [f"{path}: {fault}" for fault in axe(watched.page)]
            wrong += [f"{path}: {fault}" for fault in faults_of(watched)]
            watched.wrong.clear()
            if watched.overflow() > 0:
                wrong.append(f"{path}: {watched.overflow()} px wider than {viewport['width']}")
        assert not wrong, "\n".join(wrong)

    def test_a_run_is_launched_by_keyboard_after_a_look(self, open_page):
        seed.bench(3)
        filled = suites.fill(going="ok")
        watched = open_page("operator", start=f"/app/suite/launch?sut=mercury&benchmark={filled.benchmark.pk}")
        page = watched.page
        page.focus("#subset")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.locator("#sut")).to_be_focused()
        page.fill("#f-tasks", "3")
        page.keyboard.press("Enter")
        expect(page.locator("#look")).to_contain_text("mercury 3 tasks: 3 calls")
        page.click("text=The first prompts as they go out")
        expect(page.locator("#look")).to_contain_text("What is 0 + 0?")
        assert Run.objects.filter(source="manual", total=3).count() == 0
        page.focus("#go")
        page.keyboard.press("Enter")
        expect(page.locator("#messages")).to_contain_text("The run is on its way.")
        assert Run.objects.filter(total=3, subject="mercury").count() == 1

    def test_a_form_counts_what_runs_failed_as_it_is_filled_in(self, open_page):
        seed.bench(3)
        filled = suites.fill(going="ok")
        watched = open_page("operator", PHONE, start=f"/app/suite/compare?runs={filled.good.pk}&runs={filled.bad.pk}")
        page, look = watched.page, watched.page.locator("#distil-look")
        page.click("text=Make a subset of what they failed")
        expect(look).to_contain_text("None of the 19 tasks that every run scored.")
        page.check("input[name=rule][value=discriminating]")
        expect(look).to_contain_text("13 tasks of the 19")
        page.fill("#f-distil-k", "2")
        expect(look).to_contain_text("must be a whole number from 1 to 1")
        page.fill("#f-distil-k", "1")
        expect(look).to_contain_text("13 tasks of the 19")
        assert watched.overflow() <= 0
        page.fill("#f-distil-name", "What tells them apart")
        page.click("text=Make the subset")
        expect(page.locator("#messages")).to_contain_text("It holds 13 of the 19 tasks")
        expect(page.locator("h1")).to_have_text("What tells them apart")
        assert watched.wrong == []

    def test_the_starter_pack_is_loaded_and_its_passes_are_switched_on_after_a_question(self, open_page):
        seed.bench(3)
        watched = open_page("operator", PHONE, start="/app/suite")
        page = watched.page
        page.click("text=Load it")
        expect(page.locator("#messages")).to_contain_text("Passes are off: nothing asks it by itself.")
        page.click("text=Switch passes on")
        expect(page.locator("dialog[open]")).to_contain_text("That spends money: 108 calls a model")
        page.click("dialog[open] button.primary, dialog[open] button.danger")
        expect(page.locator("#messages")).to_contain_text("Passes are on")
        expect(page.locator("text=Switch passes off")).to_be_visible()
        assert watched.wrong == []

    @pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
    def test_words_without_an_end_break_and_lie_over_nothing(self, open_page, viewport):
        seed.bench(3)
        of = suites.benchmark("x" * 200, description="W" * 300, tags=["t" * 80])
        long = suites.subset(of, suites.task_rows(2), "s" * 120, name="n" * 200)
        for subject in ("q" * 190, "m" * 190, "\u202e" + "r" * 180):
            suites.run(long, subject, ["passed", "failed"], tags=["g" * 80])
        watched = open_page("operator", viewport)
        for path in ("/app/suite", "/app/registry", "/app/runs", "/app/suite/compare", f"/app/registry/{of.pk}", f"/app/registry/{of.pk}/{'s' * 120}"):
            watched.goto(path)
            wide = watched.page.evaluate(
                "[...document.querySelectorAll('main .table-wrap, main .choices label, main .plain-list, main .card > header')]"
                ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.className + ' ' + e.textContent.trim().slice(0, 40))"
            )
            assert wide == [], path
            assert watched.overflow() <= 0, path

    def test_tasks_narrow_while_the_rest_stays_and_both_answers_open(self, open_page):
        seed.bench(3)
        filled = suites.fill(going="ok")
        watched = open_page("viewer", start=f"/app/runs/{filled.bad.pk}")
        page = watched.page
        page.select_option("#outcome", "refused")
        expect(page.locator("#task-list tbody tr")).to_have_count(1)
        watched.goto(f"/app/suite/compare?runs={filled.good.pk}&runs={filled.bad.pk}")
        page.click("details.flip >> nth=0 >> summary")
        expect(page.locator("details.flip >> nth=0")).to_contain_text("whole task")
        assert watched.wrong == []


def test_the_list_of_those_signed_out_leads_to_signing_in(db):
    User.objects.all().delete()
    answer = Client().get(reverse("pages:suite"))
    assert (answer.status_code, answer.url.split("?")[0]) == (302, reverse("admin:login"))
