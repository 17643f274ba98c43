"""Every page, as every role: links lead somewhere, and in a real browser nobody is shut out, nothing leaves the server, and nothing is wider than a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin import seed
from tests.browser import DESK, MARKS, PHONE, Watched, axe

ROLES = ("viewer", "judge", "operator", "admin")
LINKS = re.compile(r"""<(?:a|button|form)\b[^>]*?\s(?:href|formaction|action|hx-get)="([^"]+)""")
LOOK_ALIKE = re.compile(r"(?:pan|call|onb|run|tsk|bm|sub|imp|swp)_\w+|\d+")
NOT_PAGES = ("/logout", "/signin/", "/static/", "/admin/", "/bench/")
MOST, OF_A_KIND = 220, 2


def pages_of(client: Client, start: str = "/app/", within: str = "/") -> Iterator[tuple[str, str]]:
    """Walks all links of the pages, two of each kind that differ by numbers, ids or queries alone. Gives each address with where it was found.

    `within` is a pattern: addresses that do not begin so are left alone.
    """
    waiting, seen, kinds = [(start, "")], {start}, dict[str, int]()
    while waiting and len(seen) < MOST:
        path, found_on = waiting.pop(0)
        yield path, found_on
        answer = client.get(path, follow=True)
        if "html" not in answer.headers.get("Content-Type", "") or answer.status_code >= 400:
            continue
        here = answer.redirect_chain[-1][0] if answer.redirect_chain else path
        for link in LINKS.findall(answer.content.decode()):
            address = urlsplit(urljoin(f"http://testserver{here}", unescape(link)))
            target = address.path + (f"?{address.query}" if address.query else "")
            kind = LOOK_ALIKE.sub("#", re.sub(r"^(/app/(?:models|collections|panels)/).*", r"\1*", address.path)) + re.sub(r"=[^&]*", "", address.query)
            if not re.match(within, address.path):
                continue
            if address.netloc != "testserver" or address.path.startswith(NOT_PAGES) or any(part in address.path for part in NOT_PAGES) or target in seen:
                continue
            if kinds.get(kind, 0) < OF_A_KIND:
                kinds[kind] = kinds.get(kind, 0) + 1
                seen.add(target)
                waiting.append((target, path))


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "count"), [*((role, 3) for role in ROLES), ("viewer", 0), ("operator", 0), ("admin", 60)])
def test_every_link_leads_somewhere(as_role, role, count):
    seed.bench(count)
    client, walked = as_role(role), []
    for path, found_on in pages_of(client):
        answer = client.get(path, follow=True)
        assert answer.status_code < 400, f"{role}: {path}, linked on {found_on}, answers {answer.status_code}"
        walked.append(path)
    assert len(walked) >= (8 if role == "viewer" else 10)


@pytest.mark.django_db
def test_hostile_names_lead_to_their_pages_and_stay_text(as_role):
    seed.bench(len(seed.HOSTILE), hostile=True)
    client = as_role("admin")
    for path, found_on in pages_of(client):
        answer = client.get(path, follow=True)
        assert answer.status_code < 400, f"{path}, linked on {found_on}, answers {answer.status_code}"
        if "html" in answer.headers.get("Content-Type", ""):
            text = answer.content.decode()
            for bad in ("<img src=x", "<script>alert", "<svg onload", "49}"):
                assert bad not in text, path


@pytest.mark.django_db
def test_nobody_sees_a_page_without_signing_in():
    seed.people()
    for path, _ in [*pages_of(Client())][:1] + [(reverse(f"pages:{name}"), "") for name in ("models", "collections", "panels")]:
        answer = Client().get(path)
        assert (answer.status_code, urlsplit(answer.url).path) == (302, reverse("admin:login")), path


# ------------------------------------------------------------------ in a real browser


def browsed(role: str, *where: str) -> list[str]:
    """What the browser looks at: of each kind of page one, as the Django client finds them."""
    from access.models import User

    client = Client()
    client.force_login(User.objects.get(username=role), backend="access.backends.RoleBackend")
    found = dict[str, str]()
    for path, _ in pages_of(client, *where):
        answer = client.get(path)
        if answer.status_code == 200 and "html" in answer.headers.get("Content-Type", ""):
            names = ",".join(sorted(re.findall(r"([\w.]+)=", urlsplit(path).query)))
            tab = re.search(r"tab=(\w+)", path)
            found.setdefault(f"{answer.resolver_match.view_name}?{names}{tab[1] if tab else ''}", path)
    return list(found.values())


def faults_of(watched: Watched) -> list[str]:
    """What went wrong, but for what this server cannot: asking runs on the gateway's own entry, which Django answers 501 for."""
    return [fault for fault in watched.wrong if "status of 501" not in fault]


class TestInABrowser:
    pytestmark = MARKS

    @pytest.mark.parametrize(
        ("role", "viewport", "scheme"), [("admin", DESK, "light"), ("admin", PHONE, "dark"), ("viewer", PHONE, "light"), ("judge", DESK, "dark")]
    )
    def test_nobody_is_shut_out_and_nothing_leaves_the_server(self, open_page, role, viewport, scheme):
        seed.bench(9)
        watched, wrong = open_page(role, viewport, scheme), list[str]()
        for path in browsed(role):
            watched.goto(path)
            watched.page.wait_for_load_state("networkidle")
            wrong += [f"{path}: {fault}" for fault in axe(watched.page)]
            wrong += [f"{path}: {fault}" for fault in faults_of(watched)]
            watched.wrong.clear()
            if watched.overflow() > 0:
                wrong.append(f"{path}: {watched.overflow()} px wider than {viewport['width']}")
            assert watched.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == scheme, path
        assert not wrong, "\n".join(wrong)

    def test_hostile_names_do_nothing(self, open_page):
        seed.bench(len(seed.HOSTILE), hostile=True)
        watched = open_page("admin", PHONE)
        for path in browsed("admin"):
            watched.goto(path)
            assert faults_of(watched) == [], path
            assert watched.overflow() <= 0, path
