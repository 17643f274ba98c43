"""The page that says how programs are pointed here."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import quote

import pytest
from django.urls import reverse

from catalog.models import Model
from panels import connecting
from tests.admin import seed

CONNECT = reverse("pages:connect")


def plan(page: str) -> dict[str, object]:
    (found,) = re.findall(r'<script id="plan" type="application/json">(.*?)</script>', page)
    return dict(json.loads(found))


@pytest.mark.parametrize("client", [one.name for one in connecting.EVERY])
def test_every_program_has_its_lines(as_role, small_bench, client):
    chosen = connecting.of(client)
    page = unescape(as_role("viewer").get(f"{CONNECT}?client={client}").content.decode())
    for one in chosen.write("http://testserver", "bench/core:route" if chosen.suits == "route" else "bench/core", connecting.NO_KEY):
        assert one.text in page
    assert ("pipx install http://testserver/bench/client/" in page) == chosen.is_ours
    assert chosen.title in page
    assert plan(page)["base"] == "http://testserver"


def test_the_public_address_is_told_and_the_page_itself_asks_where_it_is(admin, small_bench, settings):
    settings.PUBLIC_URL = "https://bench.example.org/under"
    page = unescape(admin.get(f"{CONNECT}?client=openai-python").content.decode())
    assert 'base_url="https://bench.example.org/under/v1"' in page
    assert plan(page)["base"] == "http://testserver"


def test_modes_and_single_models_can_be_chosen_and_a_panel_for_an_agent_is_warned_of(admin, small_bench):
    def model(query: str) -> object:
        return plan(admin.get(f"{CONNECT}?{query}").content.decode())["model"]

    assert model("client=curl") == "bench/core"
    assert model("client=curl&mode=merged&name=bench/core") == "bench/core:merged"
    assert model("client=codex") == "bench/core:route"
    assert model("client=codex&name=mercury&mode=merged") == "mercury"
    assert model("client=nothing&name=bench/gone&mode=dance") == "bench/core"
    assert "a panel refuses them" in admin.get(f"{CONNECT}?client=codex&mode=panel").content.decode()
    assert "a panel refuses them" not in admin.get(f"{CONNECT}?client=codex").content.decode()


def test_htmx_gets_the_lines_alone(admin, small_bench):
    part = admin.get(f"{CONNECT}?client=opencode", headers={"HX-Request": "true"}).content.decode()
    assert "opencode.json" in part
    assert "<html" not in part
    assert "<nav" not in part


@pytest.mark.parametrize("name", seed.HOSTILE)
def test_names_are_text_in_every_program(admin, hostile_bench, name):
    Model.objects.filter(status="retired").update(status="active")
    for client in connecting.EVERY:
        page = admin.get(f"{CONNECT}?client={client.name}&name={quote(name, safe='')}").content.decode()
        for raw in ("<img src=x", "<svg onload", "</script><script>alert"):
            assert raw not in page, client.name
        assert plan(page)["model"] == name


def test_an_empty_bench_says_that_there_is_nothing_to_ask_yet(admin):
    assert "Nothing to ask yet" in admin.get(CONNECT).content.decode()


def test_who_may_not_read_is_sent_to_sign_in(client, small_bench):
    answer = client.get(CONNECT)
    assert answer["Location"] == f"/admin/login/?next={CONNECT}"
