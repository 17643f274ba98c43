"""A real browser for tests of pages: what went wrong on a page is kept, and axe-core says what somebody cannot use there.

open_page   the fixture: opens a browser signed in as a role
axe         the faults of a page that axe-core calls serious or critical
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from access.models import User

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
AXE = Path(__file__).parent / "vendor/axe-core-4.14.1.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

MARKS = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here"), pytest.mark.django_db(transaction=True)]
"""What a module of browser tests says as `pytestmark`."""


class Watched:
    """A page that keeps what went wrong on it: console errors, broken policies, dialogs, requests to other hosts."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address, self.wrong = page, address, list[str]()
        page.on("console", lambda m: self.wrong.append(f"console {m.type}: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.wrong.append(f"script: {e}"))
        page.on("dialog", self.refuse_dialog)
        page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else self.wrong.append(f"left for {r.url}"))

    def refuse_dialog(self, dialog: Any) -> None:
        # Leaving a form with something typed asks; that question is the admin's own.
        if dialog.type != "beforeunload":
            self.wrong.append(f"dialog: {dialog.message}")
        dialog.accept()

    def goto(self, path: str) -> None:
        answer = self.page.goto(self.address + path)
        assert answer.status == 200, (path, answer.status)

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def text(self) -> str:
        return str(self.page.inner_text("body"))

    def pictured(self, name: str) -> None:
        """Keeps a picture where BENCH_TEST_PICTURES names a folder."""
        if folder := os.environ.get("BENCH_TEST_PICTURES"):
            self.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@cache
def axe_source() -> str:
    return AXE.read_text(encoding="utf-8")


def axe(page: Any) -> list[str]:
    """Gives what axe-core finds wrong on a page as it stands and calls serious or critical: the rule, what it asks for, and where.

    It is put in by the debugger's door, which the page's policy does not guard: pages need not allow what only tests use.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_source())
    found = page.evaluate("(tags) => axe.run(document, {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']})", RULES)
    return [
        f"{fault['id']}: {fault['help']} – {node['target'][-1]} {node['html'][:160]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"][:5]
    ]


@pytest.fixture
def open_page(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watched]]:
    """Opens a browser with a fresh profile, signed in as a role, at `start` where one is given.

    The session is handed to it: to sign in by the form is a test of its own, not the way into each.
    """
    from playwright.sync_api import sync_playwright

    # Playwright keeps a loop in this thread; that the test itself asks the database beside it harms nothing.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def open_as(role: str, viewport: dict[str, int] = DESK, scheme: str = "light", start: str = "") -> Watched:
            user = User.objects.filter(username=role).first() or User.objects.create_user(username=role, password="a-password-for-tests", role=role)
            client = Client()
            client.force_login(user, backend="access.backends.RoleBackend")
            context = browser.new_context(viewport=viewport, color_scheme=scheme)
            name = settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url, "httpOnly": True, "sameSite": "Lax"}])
            watched = Watched(context.new_page(), live_server.url)
            if start:
                watched.goto(start)
            return watched

        yield open_as
        browser.close()
