"""The pages' tests stand on the admin's: the same seeded bench, the same clients by role, the same browser. What streams is looked at on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.admin.conftest import admin, as_role, collected_static_files, hostile_bench, open_page, operator, quick_passwords, small_bench, trail
from tests.browser import CHROMIUM, DESK, FLAGS, Watched
from tests.live import Live

__all__ = ["admin", "as_role", "collected_static_files", "hostile_bench", "open_page", "operator", "quick_passwords", "small_bench", "trail"]


@pytest.fixture(scope="module")
def signed_in(live: Live) -> Iterator[Any]:
    """A browser in which somebody is signed in at the running server: what opens pages there, or by `address` the same server by another way."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        link = re.search(r"https?://\S+/signin/\S+", live.manage("signin"))
        assert link
        first = browser.new_context().new_page()
        first.goto(link[0])
        state = first.context.storage_state()

        @contextmanager
        def opened(path: str, viewport: dict[str, int] = DESK, scheme: str = "light", address: str = "", heard: Any = None) -> Iterator[Watched]:
            context = browser.new_context(viewport=viewport, color_scheme=scheme, storage_state=state)
            if heard is not None:
                context.expose_function("heard", heard)
                context.add_init_script(HEARING)
            watched = Watched(context.new_page(), address or live.url)
            watched.page.set_default_timeout(20_000)
            watched.goto(path)
            yield watched
            assert watched.wrong == [], "\n".join(watched.wrong)
            context.close()

        yield opened
        browser.close()


# Tells a test the number and kind of every event that a page's own streams bring; the page itself stays as it is.
HEARING = """
const Real = window.EventSource, dispatch = Real.prototype.addEventListener;
window.EventSource = class extends Real {
  addEventListener(kind, ...rest) {
    if (kind !== "error") dispatch.call(this, kind, (event) => window.heard(Number(event.lastEventId), kind));
    return dispatch.call(this, kind, ...rest);
  }
};
"""
