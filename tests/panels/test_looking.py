"""The list of panels: its filters, words of prompts, a panel as a file, and what waits for a verdict with its texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from panels import looking
from panels.models import Comparison, Panel, Verdict
from tests.panels.conftest import NOW, Api, make_panel, ok, problem

pytestmark = pytest.mark.django_db


def listed(api: Api, query: str = "") -> list[str]:
    return [p["panel"] for p in ok(api.get(f"panels?{query}"))["data"]]


def prompt(*said: Any) -> str:
    return json.dumps([{"role": "user", "content": words} for words in said], ensure_ascii=False)


def judged(panel: Panel) -> Panel:
    Verdict.objects.create(call=panel.seats.first().call, judge="kim", model="mercury", useful=True, at=NOW)  # type: ignore[union-attr]
    return panel


# ------------------------------------------------------------------ filters


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("collection=other", {"collection": "other"}),
        ("mode=merged", {"mode": "merged"}),
        ("status=degraded", {"status": "degraded"}),
        ("judge=kim", {"judge": "kim"}),
    ],
)
def test_a_list_holds_what_it_is_asked_for(operator: Api, query: str, fields: dict[str, Any]) -> None:
    make_panel()
    wanted = make_panel(**fields)
    assert listed(operator, query) == [wanted.pk]


def test_panels_are_found_by_who_sat_there(operator: Api) -> None:
    make_panel({"model": "mercury"})
    both = make_panel({"model": "mercury"}, {"model": "venus"})
    assert listed(operator, "model=venus") == [both.pk]
    assert listed(operator, "model=ven") == []


def test_panels_are_found_by_whether_anybody_judged_them(operator: Api) -> None:
    waiting, done = make_panel(), judged(make_panel())
    assert listed(operator, "verdict=none") == [waiting.pk]
    assert listed(operator, "verdict=some") == [done.pk]


def test_a_day_is_included_and_a_time_is_exact(operator: Api, settings: Any) -> None:
    settings.BENCH_TIME_ZONE = "Europe/Berlin"  # an hour ahead of UTC in November
    late = make_panel(asked_at=datetime.fromisoformat("2026-11-28T22:30:00Z"))
    early = make_panel(asked_at=datetime.fromisoformat("2026-11-28T23:30:00Z"))
    assert listed(operator, "since=2026-11-29&until=2026-11-29") == [early.pk]
    assert listed(operator, "until=2026-11-28") == [late.pk]
    assert listed(operator, "since=2026-11-28T23:00:00Z") == [early.pk]
    assert listed(operator, "until=2026-11-29T00:00:00%2B01:00") == [late.pk]
    assert listed(operator, "until=2026-11-29T00:00:00+01:00") == [late.pk]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("mode=council", "mode"),
        ("status=done", "status"),
        ("verdict=all", "verdict"),
        ("since=yesterday", "since"),
        ("until=2026-13-01", "until"),
        ("since=0001-01-01T00:00:00%2B14:00", "since"),
        ("since=2026-11-29&until=2026-11-28", "until"),
        ("find=" + "%20".join("abcdefghijk"), "find"),
        ("find=" + "x" * 201, "find"),
    ],
)
def test_what_no_list_can_be_asked_for_names_its_field(operator: Api, query: str, field: str) -> None:
    problem(operator.get(f"panels?{query}"), 400, field=field)


def test_filters_go_with_pages(operator: Api) -> None:
    wanted = [make_panel(prompt=prompt(f"race {n}")).pk for n in range(5)]
    for _ in range(3):
        make_panel(prompt=prompt("other"))
    seen, path = [], "find=race&limit=2"
    while True:
        page = ok(operator.get(f"panels?{path}"))
        seen += [p["panel"] for p in page["data"]]
        if page["next"] is None:
            break
        path = f"find=race&limit=2&page_token={page['next']}"
    assert seen == wanted[::-1]


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("find", "said"),
    [
        ("race", "Where is the RACE?"),
        ("where race", "Where is the race?"),
        ("größe", "Welche GRÖßE?"),
        ("ÄRGER", "viel Ärger"),
        ("日本", "これは日本語です"),
        ('"quoted"', 'He said "quoted".'),
        ("100%", "It is 100% so."),
        ("a_b", "the name a_b"),
        ("back\\slash", "a back\\slash"),
        ("part", [{"type": "text", "text": "a part of it"}, {"type": "image", "media_type": "image/png", "data": "AAAA"}]),
    ],
)
def test_words_are_found_without_regard_to_case(operator: Api, find: str, said: Any) -> None:
    wanted = make_panel(prompt=prompt(said))
    make_panel(prompt=prompt("nothing of it, ab, 1000"))
    make_panel(prompt=None)
    assert listed(operator, f"find={quote(find)}") == [wanted.pk]


def test_what_the_bytes_of_an_image_spell_is_no_word(operator: Api) -> None:
    make_panel(prompt=prompt([{"type": "image", "media_type": "image/png", "data": "AAARACEAAA"}, {"type": "text", "text": "Look."}]))
    assert listed(operator, "find=race") == []
    assert listed(operator, "find=image") == []


def test_nobody_finds_words_in_prompts_that_they_may_not_read(api_of: Callable[..., Api], operator: Api, keyless: Api) -> None:
    own = make_panel(judge="kim", prompt=prompt("a secret"))
    make_panel(judge="ada", prompt=prompt("a secret"))
    local = make_panel(judge="local", prompt=prompt("a secret"))
    reader = api_of("read", "ask", owner="kim")
    Panel.objects.filter(pk=own.pk).update(key_id=reader.key.pk)  # type: ignore[attr-defined]
    assert len(listed(reader)) == 3
    assert listed(reader, "find=secret") == [own.pk]
    assert len(listed(operator, "find=secret")) == 3
    assert listed(keyless, "find=secret") == [local.pk]


def test_only_the_newest_are_looked_through_and_the_answer_says_so(operator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LOOKED_THROUGH", 3)
    made = [make_panel(prompt=prompt(f"race {n}")).pk for n in range(5)]
    page = ok(operator.get("panels?find=race"))
    assert [p["panel"] for p in page["data"]] == made[:1:-1]
    assert page["searched"] > 0
    assert "searched" not in ok(operator.get("panels?find=race&since=2030-01-01"))
    monkeypatch.setattr(looking, "LOOKED_THROUGH", 5)
    assert "searched" not in ok(operator.get("panels?find=race"))


def test_a_search_that_takes_too_long_goes_on_where_it_came_to(operator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LOOKED_FOR_S", -1.0)  # each look is one too many
    made = [make_panel(prompt=prompt(f"race {n}")).pk for n in range(3)]
    seen, query = [], "find=race"
    for _ in range(10):
        page = ok(operator.get(f"panels?{query}"))
        seen += [p["panel"] for p in page["data"]]
        if page["next"] is None:
            break
        query = f"find=race&page_token={page['next']}"
    assert seen == made[::-1]


def test_the_list_takes_few_queries_whatever_it_is_asked_for(operator: Api, django_assert_max_num_queries: Callable[[int], Any]) -> None:
    for _ in range(10):
        make_panel({"model": "mercury"}, {"model": "venus"})
    with django_assert_max_num_queries(9):
        assert len(listed(operator, "model=venus&verdict=none&mode=panel&since=2020-01-01")) == 10


# ------------------------------------------------------------------ as a file


def test_a_panel_is_a_file_in_json(operator: Api) -> None:
    panel = make_panel()
    answer = operator.get(f"panels/{panel.pk}/export")
    assert answer["Content-Disposition"] == f'attachment; filename="{panel.pk}.json"'
    assert answer.json() == ok(operator.get(f"panels/{panel.pk}"))


def test_a_panel_is_a_file_in_which_nothing_is_markup(operator: Api) -> None:
    evil = "![x](http://evil.example/pixel.png)\n<script>alert(1)</script>\n~~~~\n# Not a heading\n[a](javascript:alert(1))"
    panel = make_panel({"text": evil, "model": "<b>![m](http://evil.example)"}, prompt=prompt(evil), judge="*kim*\n# x")
    judged(panel)
    Comparison.objects.create(
        panel=panel,
        call="call_1",
        model="m",
        judge="kim",
        at=NOW,
        status="ok",
        claims=json.dumps([{"text": evil, "kind": "unique", "seats": [{"call": "c", "quote": evil}]}]),
    )
    answer = operator.get(f"panels/{panel.pk}/export?format=md")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="{panel.pk}.md"'
    outside, fence = [], ""
    for line in answer.content.decode().split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("~~~~"):
            fence = line.removesuffix("text")
        else:
            outside.append(line)
    assert not fence
    said = "\n".join(outside)
    assert "evil" in said  # the model's name is there, and harmless
    for mark in ("![", "<b", "<script", "](", "# Not", "\n# x"):
        assert mark not in said.replace("\\" + mark[0], "")
    assert evil in answer.content.decode()


def test_a_file_is_for_who_may_read_the_panel(operator: Api, api_of: Callable[..., Api]) -> None:
    panel = make_panel(judge="ada")
    problem(api_of("ask", "read").get(f"panels/{panel.pk}/export"), 403, code="not_allowed")
    problem(operator.get("panels/pan_x/export?format=md"), 404, code="not_found")
    problem(operator.get(f"panels/{panel.pk}/export?format=pdf"), 400, field="format")


# ------------------------------------------------------------------ what waits


def test_what_waits_for_a_verdict_comes_with_its_texts(operator: Api, api_of: Callable[..., Api]) -> None:
    mine = api_of("ask", "judge", owner="ada")
    panel = make_panel({"text": "one"}, {"text": None, "model": "venus"}, key_id=mine.key.pk)  # type: ignore[attr-defined]
    make_panel({"text": "another's"})
    [found] = ok(mine.get("verdicts/pending?texts=1"))["data"]
    assert found["panel"] == panel.pk
    assert found["prompt"] == [{"role": "user", "content": "Where is the race?"}]
    assert [(s["model"], s["text"], s["status"], s["seat"]) for s in found["seats"]] == [("mercury", "one", "ok", "member"), ("venus", None, "ok", "member")]
    [plain] = ok(mine.get("verdicts/pending"))["data"]
    assert set(plain) == {"panel", "asked_at", "collection", "seats"}
    problem(mine.get("verdicts/pending?texts=yes"), 400, field="texts")


def test_what_waits_comes_in_pages_with_its_texts(api_of: Callable[..., Api]) -> None:
    mine = api_of("judge", owner="ada")
    made = [make_panel(key_id=mine.key.pk, asked_at=NOW + timedelta(minutes=n)).pk for n in range(3)]  # type: ignore[attr-defined]
    first = ok(mine.get("verdicts/pending?texts=1&limit=2"))
    second = ok(mine.get(f"verdicts/pending?texts=1&limit=2&page_token={first['next']}"))
    assert [p["panel"] for p in first["data"] + second["data"]] == made
    assert second["next"] is None


# ------------------------------------------------------------------ what the gateway's own entry answers


@pytest.mark.parametrize("path", ["ask", "estimate", "calls/x/cancel", "panels/x/cancel", "panels/x/compare"])
def test_without_the_gateways_entry_its_paths_say_where_they_are(operator: Api, path: str) -> None:
    problem(operator.post(path), 501, code="not_served")
