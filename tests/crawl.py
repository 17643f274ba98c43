"""A reader of the server's pages without a browser: signs in by a one-time link and follows every link once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin, urlsplit

import requests

from tests.live import Live

LINKS = re.compile(r"""(?:href|action)=["']([^"'#]+)["']""")
NUMBERS = re.compile(r"\d+|pan_\w+|call_\w+")
LEFT_ALONE = ("/logout", "/signin/", "/static/", "/jsi18n")
MOST = 250


def signed_in(live: Live) -> requests.Session:
    link = re.search(r"https?://\S+/signin/\S+", live.manage("signin"))
    assert link, "signin prints a link"
    session = requests.Session()
    session.trust_env = False
    answer = session.get(link[0], timeout=60)
    assert answer.status_code == 200, answer.text[:500]
    assert "/app/" in answer.url
    return session


def crawl(live: Live, session: requests.Session, start: str = "/admin/") -> Iterator[requests.Response]:
    """Every page that links lead to; of pages that differ by numbers, ids or queries alone, two of each kind."""
    waiting, seen, kinds = [start], {start}, dict[str, int]()
    while waiting and len(seen) < MOST:
        path = waiting.pop(0)
        answer = session.get(urljoin(live.url, path), timeout=60)
        yield answer
        if "html" not in answer.headers.get("content-type", ""):
            continue
        for link in LINKS.findall(answer.text):
            address = urlsplit(urljoin(answer.url, unescape(link)))
            if address.netloc != urlsplit(live.url).netloc or any(part in address.path for part in LEFT_ALONE):
                continue
            target = address.path + (f"?{address.query}" if address.query else "")
            kind = NUMBERS.sub("#", address.path) + re.sub(r"=[^&]*", "", address.query)
            if target not in seen and kinds.get(kind, 0) < 2:
                kinds[kind] = kinds.get(kind, 0) + 1
                seen.add(target)
                waiting.append(target)
