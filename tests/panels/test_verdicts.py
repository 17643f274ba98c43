"""Verdicts: kept, replaced, refused; what still waits for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access.ids import new_id
from access.models import AuditEntry
from panels import verdicts
from panels.models import Seat, Verdict
from tests.panels.conftest import NOW, Api, make_attempt, make_panel, make_seat, ok, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def seat() -> Seat:
    return make_panel().seats.get()


# ------------------------------------------------------------------ keeping


def test_a_verdict_comes_back_as_it_is_kept(keyless: Api, seat: Seat) -> None:
    sent = {"call": seat.call, "useful": True, "note": "found the bug", "real": ["the race in refresh()"], "false": ["the SQL injection"]}
    kept = ok(keyless.post("verdict", sent))
    assert {field: kept[field] for field in sent} == sent
    assert (kept["judge"], kept["replaces"]) == ("local", None)
    assert kept["at"].endswith("Z")
    assert set(kept) == {"id", "call", "judge", "useful", "note", "real", "false", "at", "replaces"}


def test_a_verdict_knows_the_model_and_collection_of_its_call(keyless: Api, seat: Seat) -> None:
    ok(keyless.post("verdict", {"call": seat.call, "useful": False}))
    row = Verdict.objects.get()
    assert (row.model, row.collection) == ("mercury", "core")


def test_a_second_verdict_by_one_judge_replaces_the_first_and_keeps_it(keyless: Api, seat: Seat) -> None:
    first = ok(keyless.post("verdict", {"call": seat.call, "useful": True}))
    second = ok(keyless.post("verdict", {"call": seat.call, "useful": False, "false": ["all of it"]}))
    assert second["replaces"] == first["id"]
    assert [(v.id, v.useful) for v in verdicts.history_of_call(seat.call)] == [(first["id"], True), (second["id"], False)]
    assert [v.id for v in verdicts.current_of_calls([seat.call])[seat.call]] == [second["id"]]


def test_judges_keep_their_own_verdicts(keyless: Api, api_of: Callable[..., Api], seat: Seat) -> None:
    ok(keyless.post("verdict", {"call": seat.call, "useful": True}))
    other = ok(api_of("judge", owner="bob").post("verdict", {"call": seat.call, "useful": False}))
    assert (other["judge"], other["replaces"]) == ("bob", None)
    assert {v.judge: v.useful for v in verdicts.current_of_calls([seat.call])[seat.call]} == {"local": True, "bob": False}


def test_a_key_without_an_owner_judges_as_itself(api_of: Callable[..., Api], seat: Seat) -> None:
    kept = ok(api_of("judge", called="review-bot").post("verdict", {"call": seat.call, "useful": True}))
    assert "review-bot" in kept["judge"]


def test_a_direct_call_that_only_the_ledger_knows_can_be_judged(keyless: Api) -> None:
    make_attempt("call_x", model="slow", collection="", http_status=503, status="error", started_at=NOW - timedelta(seconds=2))
    make_attempt("call_x", model="mercury", collection="core")
    ok(keyless.post("verdict", {"call": "call_x", "useful": True}))
    assert Verdict.objects.get().model == "mercury"  # who answered, not who was tried first


def test_an_unknown_call_is_404(keyless: Api) -> None:
    problem(keyless.post("verdict", {"call": new_id("call"), "useful": True}), 404)
    problem(keyless.post("verdict", {"call": "call\0", "useful": True}), 404)


def test_where_no_texts_are_kept_a_verdict_holds_only_claims(keyless: Api, seat: Seat, settings: Any) -> None:
    settings.KEEP_TEXT_DAYS = 0
    kept = ok(keyless.post("verdict", {"call": seat.call, "note": "it wrote: …", "real": ["the race"]}))
    assert (kept["note"], kept["real"]) == ("", ["the race"])


def test_the_audit_trail_tells_who_judged_and_repeats_no_claim(keyless: Api, seat: Seat) -> None:
    ok(keyless.post("verdict", {"call": seat.call, "useful": True, "real": ["canary-claim"], "note": "canary-note"}))
    ok(keyless.post("verdict", {"call": seat.call, "useful": False}))
    said = list(AuditEntry.objects.filter(action__startswith="verdict.").order_by("id").values_list("actor", "action"))
    assert said == [("local", "verdict.add"), ("local", "verdict.replace")]
    assert "canary" not in json.dumps(list(AuditEntry.objects.values_list("changes", flat=True)))


def test_what_no_database_holds_becomes_the_replacement_character(keyless: Api, seat: Seat) -> None:
    body = b'{"call": "%s", "useful": true, "note": "a\\u0000b", "real": ["\\ud800"]}' % seat.call.encode()
    kept = ok(keyless.send("POST", "verdict", raw=body))
    assert (kept["note"], kept["real"]) == ("a\ufffdb", ["\ufffd"])


# ------------------------------------------------------------------ refusing


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({}, "useful"),
        ({"note": "only a note"}, "useful"),
        ({"useful": None, "real": [], "false": []}, "useful"),
        ({"useful": "yes"}, "useful"),
        ({"useful": 1}, "useful"),
        ({"useful": True, "note": ["x"]}, "note"),
        ({"useful": True, "note": "x" * 10_001}, "note"),
        ({"useful": True, "real": "one"}, "real"),
        ({"useful": True, "real": {"a": 1}}, "real"),
        ({"useful": True, "false": [1]}, "false[0]"),
        ({"useful": True, "false": ["ok", None]}, "false[1]"),
        ({"useful": True, "real": ["  "]}, "real[0]"),
        ({"useful": True, "real": ["x"] * 201}, "real"),
        ({"useful": True, "real": ["x"] * 150, "false": ["x"] * 51}, "false"),
        ({"useful": True, "false": ["x" * 10_001]}, "false[0]"),
        ({"useful": True, "call": 7}, "call"),
        ({"useful": True, "call": None}, "call"),
    ],
)
def test_what_cannot_be_kept_is_400_naming_the_field(keyless: Api, seat: Seat, more: dict[str, Any], field: str) -> None:
    problem(keyless.post("verdict", {"call": seat.call, **more}), 400, field, "invalid_request")
    assert not Verdict.objects.exists()


def test_the_largest_verdict_is_kept(keyless: Api, seat: Seat) -> None:
    ok(keyless.post("verdict", {"call": seat.call, "real": ["x" * 10_000] * 100, "false": ["y" * 10_000] * 100}))


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"3", b"{", b'{"call": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 10_000, b'{"call": 1e999}'])
def test_a_body_that_is_no_object_is_400(keyless: Api, raw: bytes) -> None:
    problem(keyless.send("POST", "verdict", raw=raw), 400)


def test_a_body_beyond_the_limit_is_413(keyless: Api, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 1024 * 1024
    problem(keyless.send("POST", "verdict", raw=b" " * (1024 * 1024 + 1)), 413, code="body_too_large")


def test_another_content_type_is_415(keyless: Api) -> None:
    response = keyless.client.post("/bench/verdict", b"<a/>", content_type="application/xml", headers={"host": "localhost"})
    problem(response, 415)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
verdict_bodies = json_values | st.fixed_dictionaries(
    {}, optional={field: json_values for field in ("call", "useful", "note", "real", "false")} | {"x": json_values}
)


@given(body=verdict_bodies, known=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
def test_no_body_whatever_breaks_the_server(keyless: Api, seat: Seat, body: Any, known: bool) -> None:
    if known and isinstance(body, dict):
        body["call"] = seat.call
    response = keyless.send("POST", "verdict", raw=json.dumps(body).encode())
    assert response.status_code in (200, 400, 404), response.content
    if response.status_code == 400 and isinstance(body, dict):
        assert response.json()["field"].split("[")[0] in ("call", "useful", "note", "real", "false")


# ------------------------------------------------------------------ pending


def waiting(api: Api, path: str = "verdicts/pending") -> list[str]:
    return [entry["panel"] for entry in ok(api.get(path))["data"]]


def test_pending_shows_the_seats_that_nobody_has_judged(operator: Api, user_api: Callable[..., Api]) -> None:
    panel = make_panel({"model": "a"}, {"model": "b", "status": "truncated"}, {"model": "c", "status": "error"}, {"model": "d", "status": "partial"})
    calls = dict(panel.seats.values_list("model", "call"))
    ok(operator.post("verdict", {"call": calls["a"], "useful": True}))
    [entry] = ok(user_api("olga", "operator").get("verdicts/pending"))["data"]
    assert (entry["panel"], entry["collection"]) == (panel.pk, "core")
    assert entry["asked_at"].endswith("Z")
    assert entry["seats"] == [{"call": calls["b"], "model": "b"}, {"call": calls["d"], "model": "d"}]


def test_a_panel_whose_answers_are_all_judged_waits_no_more(keyless: Api) -> None:
    panel = make_panel(judge="local")
    assert waiting(keyless) == [panel.pk]
    ok(keyless.post("verdict", {"call": panel.seats.get().call, "useful": True}))
    assert waiting(keyless) == []


def test_a_mergers_text_and_what_is_no_panel_wait_for_nobody(keyless: Api) -> None:
    make_panel({"seat": "merger"}, judge="local", mode="merged")
    make_panel({"seat": "route"}, judge="local", mode="route")
    make_panel({"status": "running", "called": False}, judge="local", status="running")
    assert waiting(keyless) == []


def test_everyone_sees_what_they_asked(keyless: Api, operator: Api, api_of: Callable[..., Api], user_api: Callable[..., Api]) -> None:
    mine, twin = api_of("judge", owner="ada"), api_of("judge", owner="ada")
    local = make_panel(judge="local")
    of_key = make_panel(judge="ada", key_id=mine.key.pk, key_name=mine.key.name)  # type: ignore[attr-defined]
    of_user = make_panel(judge="ada")
    named_local = make_panel(judge="local", key_id=twin.key.pk)  # type: ignore[attr-defined]
    assert waiting(keyless) == [local.pk]
    assert waiting(mine) == [of_key.pk]
    assert waiting(twin) == [named_local.pk]
    assert waiting(operator) == []
    assert waiting(user_api("ada", "judge")) == [of_key.pk, of_user.pk]
    assert waiting(user_api("olga", "operator")) == [local.pk, of_key.pk, of_user.pk, named_local.pk]


def test_pending_comes_in_pages_oldest_first(keyless: Api) -> None:
    # Two of each moment: the id tells them apart.
    panels = [make_panel(judge="local", asked_at=NOW + timedelta(seconds=i // 2)) for i in range(7)]
    made = [panel.pk for panel in sorted(panels, key=lambda panel: (panel.asked_at, panel.pk))]
    seen: list[str] = []
    path = "verdicts/pending?limit=2"
    for _ in range(4):
        page = ok(keyless.get(path))
        seen += [entry["panel"] for entry in page["data"]]
        if page["next"] is None:
            break
        path = f"verdicts/pending?limit=2&page_token={page['next']}"
    assert seen == made


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("limit=%D9%A1", "limit"),
        ("page_token=x", "page_token"),
        ("page_token=W10", "page_token"),
        ("page_token=WyJhIiwiYiJd", "page_token"),
        ("page_token=%00%F0%9F", "page_token"),
        ("page_token=WzEsMl0", "page_token"),
    ],
)
def test_a_wrong_page_is_400_naming_the_parameter(keyless: Api, query: str, field: str) -> None:
    problem(keyless.get(f"verdicts/pending?{query}"), 400, field)


def test_pending_takes_the_same_queries_however_much_waits(keyless: Api, django_assert_num_queries: Any) -> None:
    make_panel(judge="local")
    with django_assert_num_queries(2):
        keyless.get("verdicts/pending")
    for _ in range(8):
        panel = make_panel({}, {}, judge="local")
        make_seat(panel, 3)
    with django_assert_num_queries(2):
        assert len(waiting(keyless)) == 9


def test_who_may_only_ask_may_not_judge(api_of: Callable[..., Api], seat: Seat, user_api: Callable[..., Api]) -> None:
    for api in (api_of("ask", "read"), user_api("vera", "viewer")):
        problem(api.get("verdicts/pending"), 403, code="not_allowed")
    problem(api_of("ask").post("verdict", {"call": seat.call, "useful": True}), 403, code="not_allowed")


def test_nobody_in_particular_is_401(keyless: Api, outside_loopback: None) -> None:
    response = keyless.post("verdict", {"call": "x", "useful": True})
    problem(response, 401, code="missing_key")
    assert response["WWW-Authenticate"] == "Bearer"


# ------------------------------------------------------------------ listing


def test_what_judges_say_now_is_listed_newest_first_by_model_collection_and_judge(operator: Api, keyless: Api) -> None:
    one, other = make_panel().seats.get(), make_panel().seats.get()
    ok(keyless.post("verdict", {"call": one.call, "useful": False}))
    ok(keyless.post("verdict", {"call": one.call, "useful": True, "note": "on second thoughts"}))
    ok(keyless.post("verdict", {"call": other.call, "real": ["it races"]}))
    found = ok(operator.get("verdicts"))["data"]
    assert [v["call"] for v in found] == [other.call, one.call]
    assert (found[1]["useful"], found[1]["note"], found[1]["model"]) == (True, "on second thoughts", one.model)
    assert ok(operator.get("verdicts?judge=nobody"))["data"] == []
    assert len(ok(operator.get(f"verdicts?model={one.model}&collection={one.panel.collection}&judge=local"))["data"]) >= 1
    first = ok(operator.get("verdicts?limit=1"))
    assert [v["call"] for v in ok(operator.get(f"verdicts?limit=1&page_token={first['next']}"))["data"]] == [one.call]


def test_who_may_only_ask_does_not_read_what_others_judge(keyless: Api) -> None:
    assert keyless.get("verdicts").status_code in (401, 403)
