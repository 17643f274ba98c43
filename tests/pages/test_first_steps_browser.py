"""The first run in a real browser on a real `serve`: from nothing to a first answer, and a batch that is watched while it goes on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import CHROMIUM, DESK, FLAGS, PHONE, Watched, axe
from tests.fake import FakeProvider, reply, status
from tests.live import Live, eventually

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]
KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with nothing on it, which this file's tests fill in order."""
    server = Live(tmp_path_factory.mktemp("first-steps"), BENCH_WORKERS="1")
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong, wrong


@pytest.fixture
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM or shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()


def signed_in(browser: Any, served: Live, viewport: dict[str, int] = DESK, scheme: str = "light") -> Watched:
    """Comes in as somebody does who just started the server: by the printed link."""
    link = re.search(r"https?://\S+/signin/\S+", served.manage("signin"))
    assert link
    watched = Watched(browser.new_context(viewport=viewport, color_scheme=scheme).new_page(), served.url)
    watched.page.goto(link[0])
    return watched


def faults(watched: Watched) -> list[str]:
    return [*watched.wrong, *axe(watched.page), *([f"{watched.overflow()} px too wide"] if watched.overflow() > 0 else [])]


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_an_empty_server_can_be_used_by_everybody(browser: Any, served: Live, viewport: dict[str, int], scheme: str) -> None:
    watched = signed_in(browser, served, viewport, scheme)
    assert watched.page.url.endswith("/app/start")
    for path in ("/app/start", "/app/start?step=1&provider=openrouter", "/app/discover", "/app/discover/served", "/app/onboarding"):
        watched.goto(path)
        assert faults(watched) == [], path


def test_from_nothing_to_a_first_answer(browser: Any, served: Live, fake: FakeProvider) -> None:
    fake.models = [f"vendor/model-{i}" for i in range(12)]
    fake.script("vendor/model-3", reply("ok"), reply("Paris, says three."))
    fake.script("vendor/model-7", reply("ok"), reply("Paris, says seven."))
    watched = signed_in(browser, served)
    page = watched.page

    # An address where nothing is, then the right one.
    page.fill("#f-name", "office")
    page.fill("#f-base_url", "http://127.0.0.1:9/v1")
    page.fill("#f-key", KEY)
    page.click("button:has-text('Add and test')")
    page.wait_for_selector("text=Nothing listens there")
    assert page.input_value("#f-key") == ""
    page.fill("#f-base_url", fake.url)
    page.fill("#f-key", KEY)
    page.click("button:has-text('Test again')")
    page.wait_for_selector("text=office answers, and lists 12 models.")
    assert KEY not in page.content()

    # Two of the twelve, found by typing; what is hidden stays ticked.
    assert page.is_disabled("button[value=check]")
    page.fill("#filter", "model-3")
    assert page.locator("tr[data-name]:visible").count() == 1
    page.locator("tr[data-name='vendor/model-3'] input").check()
    page.fill("#filter", "model-7")
    page.locator("tr[data-name='vendor/model-7'] input").check()
    page.fill("#filter", "")
    assert page.inner_text("button[value=check]").split() == ["Check", "and", "add", "2", "models"]
    assert faults(watched) == []
    page.click("button[value=check]")
    page.wait_for_url("**step=3**")
    page.wait_for_selector("text=2 models answer.")
    assert [len(fake.calls_to(f"vendor/model-{i}")) for i in (3, 7)] == [1, 1]

    assert page.input_value("#f-name") == "core"
    assert page.locator("input[name=members]:checked").count() == 2
    assert faults(watched) == []
    page.click("button:has-text('Make the collection')")
    page.wait_for_url("**step=4**collection=core**")
    assert faults(watched) == []
    page.click("a:has-text('Ask core')")
    page.wait_for_url("**/app/ask?collection=core")
    page.locator("textarea").first.fill("What is the capital of France?")
    page.locator("textarea").first.press("Control+Enter")
    page.wait_for_selector("text=Paris, says three.")
    page.wait_for_selector("text=Paris, says seven.")
    assert watched.wrong == []

    watched.goto("/app/start")
    assert page.locator("li.is-done").count() == 3


def test_a_batch_is_watched_while_it_goes_on(browser: Any, served: Live, fake: FakeProvider) -> None:
    fake.models = [f"vendor/model-{i}" for i in range(12)]
    gate = fake.gate()
    fake.script("vendor/model-1", reply("ok").after(gate))
    fake.script("vendor/model-2", status(404, "The model does not exist.", error_code="model_not_found"))
    watched = signed_in(browser, served)
    page = watched.page
    watched.goto("/app/discover/served")
    page.click("button:has-text('Ask all endpoints now')")
    page.wait_for_selector("text=models are not on the bench")
    for name in ("vendor/model-1", "vendor/model-2"):
        page.locator(f"tr[data-name='{name}'] input").check()
        page.wait_for_selector(f"button:has-text('Onboard {1 if name.endswith('1') else 2} model')")
    # A filter is no change of mind: what was ticked and is out of sight goes along.
    page.fill("#text", "model-9")
    page.wait_for_selector("#list [data-told='1 model']", state="attached")
    assert page.locator("tr[data-name]").count() == 1
    page.wait_for_selector("button:has-text('Onboard 2 models')")
    assert faults(watched) == []
    page.click("button:has-text('Onboard 2 models')")
    page.wait_for_selector("h1:has-text('Onboard 2 models')")
    assert "2 calls" in watched.text()
    assert faults(watched) == []
    page.click("button:has-text('Begin')")
    page.wait_for_url("**/app/onboarding/onb_*")

    fake.wait_for(lambda: fake.calls_to("vendor/model-1"))
    page.wait_for_selector("text=check …")
    page.locator("details summary").first.click()
    opened = page.locator("details[open]").get_attribute("data-of")
    # Drawn anew every two seconds: what was opened stays open.
    page.evaluate("document.querySelector('#batch').dataset.mark = 'before'")
    page.wait_for_selector("#batch:not([data-mark])")
    assert page.locator("details[open]").get_attribute("data-of") == opened
    assert faults(watched) == []

    gate.open()
    page.wait_for_selector("#batch[data-over]")
    page.wait_for_selector("#told:has-text('Finished: 2 of 2 finished, 1 failed')", state="attached")
    assert "✓ check" in watched.text()
    assert "check: failed" in watched.text()

    fake.script("vendor/model-2", reply("ok"))
    before = page.url
    page.click("#retry")
    page.wait_for_url(lambda url: "onb_" in url and url != before)
    page.wait_for_selector("#batch[data-over]")
    assert "1 of 1 finished" in watched.text()
    assert faults(watched) == []


def test_a_batch_is_cancelled_after_a_question(browser: Any, served: Live, fake: FakeProvider) -> None:
    fake.models = [f"vendor/model-{i}" for i in range(12)]
    gate = fake.gate()
    fake.script("vendor/model-8", reply("ok").after(gate))
    batch = served.api("POST", "onboard", {"endpoint": "office", "served_names": ["vendor/model-8", "vendor/model-10"], "mode": "quick"}, status=202)["batch"]
    watched = signed_in(browser, served)
    page = watched.page
    watched.goto(f"/app/onboarding/{batch}")
    page.click("#cancel")
    page.wait_for_selector("dialog[open]")
    page.click("dialog >> text=Yes, do it")
    page.wait_for_selector("text=The batch is cancelled.")
    assert page.locator(".badge:has-text('cancelled')").count() >= 1
    gate.open()
    eventually(lambda: served.api("GET", f"onboard/{batch}")["state"] == "cancelled", "the end")
    assert watched.wrong == []


def test_the_demo_model_is_asked_for_by_one_button(browser: Any, served: Live) -> None:
    """It is not fetched here: what would serve it is put there beforehand, and does not start. What is said then is what is tried."""
    from catalog import demo_download

    folder = served.home / "demo"
    site = folder / Path(demo_download.site().name)
    site.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(b"GGUF")
    (site / "xllamacpp.py").write_text("raise SystemExit(1)")
    watched = signed_in(browser, served)
    page = watched.page
    watched.goto("/app/start?step=1")
    page.click("summary:has-text('The small demo model')")
    page.click("button:has-text('Use the small demo model')")
    page.wait_for_selector("text=The model server does not start.")
    assert faults(watched) == []
