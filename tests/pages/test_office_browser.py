"""Keys, connect, quotas, usage and settings in a real browser: a key is made and used, connections are tried at a running server, all can use the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from access import budgets
from catalog.models import Endpoint
from health import alerts, rollups
from health.models import Attempt, LearnedLimit
from panels import connecting
from tests.admin import seed
from tests.browser import CHROMIUM, DESK, FLAGS, MARKS, PHONE, Watched, axe
from tests.fake import reply
from tests.live import Bench, Live, eventually

pytestmark = MARKS

PAGES = [
    "quotas",
    "budgets",
    "budget",
    "alerts",
    "usage",
    "calls",
    "keys",
    "key_new",
    "connect",
    "settings",
    "schedules",
    "server",
]

# Each canvas has something on it.
DRAWN = """() => {
  const charts = [...document.querySelectorAll("#sums canvas")];
  const is_drawn = (c) => c.width > 0 && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(Boolean);
  return charts.length >= 2 && charts.every(is_drawn);
}"""


@pytest.fixture
def full_bench(db: None) -> None:
    """Hostile names, limits of each kind, budgets nearly spent, alerts."""
    seed.bench(len(seed.HOSTILE), hostile=True)
    at = Endpoint.objects.first()
    now = timezone.now()
    LearnedLimit.objects.create(scope=f"endpoint:{at.pk}", measure="tokens", window="day", limit=600_000, told_by="header", learned_at=now)
    rows = [seed.attempt(f"c{n}", f"p{n}", model, now - timedelta(days=n), "ok" if n % 3 else "timeout") for n, model in enumerate(at.models.all())]
    Attempt.objects.bulk_create(rows)
    rollups.rebuild()
    for name, usd in ((seed.HOSTILE[0], "0.001"), ("operator", "0.02"), (seed.HOSTILE[-1], "5")):
        budgets.make({"kind": "owner", "name": name, "budget_usd": usd}, "admin")
    alerts.raise_alert("drift", seed.HOSTILE[0], "d:1", seed.HOSTILE[1])


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_everybody_can_use_the_pages_and_none_breaks_the_policy(open_page, full_bench, viewport, scheme):
    # What a try costs only the gateway knows, which a viewer's page does not ask.
    admin, viewer = open_page("admin", viewport, scheme), open_page("viewer", viewport, scheme)
    edit = f"{reverse('pages:key_edit')}?name=review-bot"
    agent = f"{reverse('pages:connect')}?client=claude-code"
    runs = f"{reverse('pages:schedule')}?name=catalog"
    for path in [*(reverse(f"pages:{name}") for name in PAGES), edit, agent, runs, f"{reverse('pages:usage')}?month=all&by=owner"]:
        watched = viewer if path.startswith(reverse("pages:connect")) else admin
        watched.goto(path)
        watched.page.wait_for_load_state("networkidle")
        assert watched.wrong == [], path
        assert watched.overflow() <= 0, path
        assert axe(watched.page) == [], path
        watched.pictured(re.sub(r"\W+", "-", path).strip("-") + f"-{scheme}")


def test_the_page_to_sign_in_at_can_be_used_by_everybody(open_page, live_server):
    watched = open_page("viewer")
    watched.page.context.clear_cookies()
    watched.goto(reverse("pages:quotas"))
    page = watched.page
    assert axe(page) == []
    page.fill("#id_username", "viewer")
    page.fill("#id_password", "wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("text=User name or password is wrong")
    assert axe(page) == []
    page.fill("#id_password", "a-password-for-tests")
    page.press("#id_password", "Enter")
    page.wait_for_url(f"**{reverse('pages:quotas')}")
    assert watched.wrong == []


def test_limits_are_narrowed_while_typing_and_the_address_keeps_it(open_page, full_bench):
    watched = open_page("viewer", start=reverse("pages:quotas"))
    page = watched.page
    page.fill("#q-find", "groq")
    page.wait_for_selector("#limits >> text=30 requests a minute")
    page.wait_for_selector("#limits:not(:has-text('4 calls at once'))")
    assert "find=groq" in page.url
    page.select_option("#q-scope", "key")
    page.wait_for_selector("#limits >> text=has a limit")
    assert watched.wrong == []


def test_an_alert_is_marked_as_seen(open_page, full_bench):
    watched = open_page("operator", start=reverse("pages:alerts"))
    watched.page.click("text=Mark as seen")
    watched.page.wait_for_selector("text=Nothing to look at")
    assert watched.wrong == []


def test_usage_is_grouped_anew_with_its_charts(open_page, full_bench):
    watched = open_page("viewer", start=reverse("pages:usage"))
    page = watched.page
    page.select_option("#u-by", "purpose")
    page.wait_for_selector("text=By purpose")
    # A canvas that has been drawn on is no longer empty.
    eventually(lambda: page.evaluate(DRAWN), "a drawing in each chart")
    assert watched.wrong == []


def test_a_refused_setting_is_said_and_a_right_one_kept(open_page, full_bench):
    watched = open_page("operator", start=reverse("pages:settings"))
    page = watched.page
    field = page.locator("[id='records.half_life_days'] input[name=value]")
    field.fill("12")
    field.press("Enter")
    page.wait_for_selector("text=Half-life of a verdict: saved.")
    assert page.locator("[id='records.half_life_days'] input[name=value]").input_value() == "12"
    assert watched.wrong == []


def test_revoking_asks_first(open_page, full_bench):
    watched = open_page("admin", start=f"{reverse('pages:key_edit')}?name=review-bot")
    page = watched.page
    page.click("text=Revoke this key")
    page.click("dialog >> text=Cancel")
    assert page.url.endswith("review-bot")
    page.click("text=Revoke this key")
    assert axe(page) == []
    page.click("dialog >> text=Yes, do it")
    page.wait_for_selector("text=review-bot is revoked")
    assert watched.wrong == []


# ------------------------------------------------------------------ at a running server


@pytest.fixture
def at_live(live: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watched]]:
    """Opens a browser that is signed in as the running server's admin."""
    from playwright.sync_api import sync_playwright

    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    link = re.search(r"https?://\S+/signin/\S+", live.manage("signin"))
    assert link
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = browser.new_context(viewport=DESK)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live.url)
        watched = Watched(context.new_page(), live.url)
        watched.page.goto(link[0])

        def open_at(path: str) -> Watched:
            watched.goto(path)
            return watched

        yield open_at
        browser.close()


def test_a_key_is_made_copied_and_asks_as_each_program_would(bench: Bench, at_live: Callable[..., Watched]) -> None:
    core = bench.collection([bench.model("fast", reply("ready"), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "10"})], mergers=[])
    bench.load()
    watched = at_live("/app/keys/new")
    page = watched.page
    page.fill("#f-name", f"{bench.tag}-laptop")
    page.click("text=Make the key")
    page.wait_for_selector("#the-key")
    secret = page.inner_text("#the-key")
    page.click("text=Copy the key")
    page.wait_for_selector("#messages >> text=Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == secret
    assert f"export BENCHWARMERS_KEY={secret}" in page.inner_text("main")

    page.click("text=Set up a program")
    page.wait_for_selector("#c-client")
    page.select_option("#c-name", core)
    page.fill("#c-key", secret)
    for client in ("claude-code", "codex", "gemini-cli", "ollama-python", "curl", "mcp"):
        chosen = connecting.of(client)
        page.select_option("#c-client", client)
        page.wait_for_selector(f"#l-setup:text-is('{chosen.title}')")
        assert secret in page.inner_text("#setup"), client
        page.wait_for_selector(f"#expected:has-text('{'costs nothing' if client == 'mcp' else 'should cost about $'}')")
        page.click("#try")
        page.wait_for_selector("#tried > li:nth-child(2) .badge")
        marks = page.locator("#tried .badge").all_inner_texts()
        assert marks == ["200", "200"], (client, page.inner_text("#tried"))
        assert ("Tools: " if client == "mcp" else "ready") in page.inner_text("#tried > li:nth-child(2)"), client
    assert axe(page) == []
    watched.pictured("connect-tried")
    assert {call.model for call in bench.fake.calls} == {bench.models[next(iter(bench.models))]["served_name"]}
    assert watched.wrong == []


def test_a_key_that_is_wrong_is_said_to_be(bench: Bench, at_live: Callable[..., Watched]) -> None:
    core = bench.collection([bench.model("fast")], mergers=[])
    bench.load()
    watched = at_live(f"/app/connect?client=claude-code&name={core}")
    page = watched.page
    page.fill("#c-key", "bw_live_not-a-key")
    page.click("#try")
    page.wait_for_selector("#tried .badge[data-tone=bad]")
    said: Any = page.inner_text("#tried")
    assert "401" in said
    assert "not valid here" in said
    assert page.locator("#tried > li").count() == 1, "nothing is asked after a refusal"
    assert bench.fake.calls == []
