"""Panels read back: their seats, money and verdicts; direct calls; and the end of their texts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from access.ids import new_id
from access.models import AuditEntry
from health import jobs
from panels import history
from panels.models import Panel, Seat, Verdict
from tests.panels.conftest import NOW, Api, make_attempt, make_panel, make_seat, ok, problem

pytestmark = pytest.mark.django_db

BENCH = {"panel", "collection", "mode", "status", "seats", "cost_usd", "seconds"}
SEAT = {"call", "model", "seat", "status", "seconds", "ttft_seconds", "text", "finish_reason", "usage", "cost_usd", "tries", "error"}


def test_a_panel_comes_back_as_its_reply_showed_it(operator: Api) -> None:
    panel = make_panel({"model": "mercury"}, {"model": "venus", "seat": "explorer", "cost_pusd": 1})
    shown = ok(operator.get(f"panels/{panel.pk}"))
    assert set(shown) >= BENCH
    assert (shown["panel"], shown["collection"], shown["mode"], shown["status"], shown["seconds"]) == (panel.pk, "core", "panel", "complete", 2.5)
    first, second = shown["seats"]
    assert set(first) >= SEAT
    assert (first["model"], second["model"], second["seat"]) == ("mercury", "venus", "explorer")
    assert first["text"] == "In refresh()."
    assert first["usage"] == {
        "input_tokens": 800,
        "output_tokens": 200,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "estimated": False,
    }
    assert first["tries"] == [{"model": "mercury", "status": 200, "code": None, "seconds": 1.5, "cost_usd": "0.00132"}]
    assert (first["cost_usd"], second["cost_usd"], shown["cost_usd"]) == ("0.00132", "0.000000000001", "0.001320000001")
    assert first["error"] is None
    assert shown["prompt"] == [{"role": "user", "content": "Where is the race?"}]


def test_an_unknown_price_makes_the_sum_unknown_and_never_nothing(operator: Api) -> None:
    panel = make_panel({}, {"cost_pusd": None})
    shown = ok(operator.get(f"panels/{panel.pk}"))
    assert [seat["cost_usd"] for seat in shown["seats"]] == ["0.00132", None]
    assert shown["cost_usd"] is None


def test_a_skipped_seat_cost_nothing_and_says_why(operator: Api) -> None:
    panel = make_panel({}, {"status": "skipped", "code": "no_vision", "message": "It sees no images.", "text": None, "called": False}, status="degraded")
    skipped = ok(operator.get(f"panels/{panel.pk}"))["seats"][1]
    assert (skipped["cost_usd"], skipped["tries"], skipped["text"]) == ("0", [], None)
    assert skipped["error"] == {"code": "no_vision", "message": "It sees no images."}


def test_a_running_panel_shows_as_running(operator: Api) -> None:
    panel = make_panel({"status": "running", "called": False, "text": None, "seconds": None, "ttft_seconds": None}, status="running", seconds=None)
    shown = ok(operator.get(f"panels/{panel.pk}"))
    assert (shown["status"], shown["seats"][0]["status"], shown["seats"][0]["usage"], shown["cost_usd"]) == ("running", "running", None, None)


def test_every_judges_verdict_stands_with_its_seat(operator: Api, keyless: Api) -> None:
    panel = make_panel()
    call = panel.seats.get().call
    for api, useful in ((keyless, True), (operator, False), (operator, True)):
        ok(api.post("verdict", {"call": call, "useful": useful, "note": "n"}))
    shown = ok(operator.get(f"panels/{panel.pk}"))["seats"][0]["verdicts"]
    assert [(v["judge"], v["useful"], v["note"]) for v in shown] == [("local", True, "n"), ("key:operator", True, "n")]


def test_a_direct_call_is_a_panel_of_one_seat(operator: Api) -> None:
    make_attempt("call_1", "pan_1", key_name="bot")
    shown = ok(operator.get("panels/pan_1"))
    assert set(shown) >= BENCH
    assert (shown["mode"], shown["status"], shown["collection"], shown["key"], shown["prompt"]) == ("direct", "complete", None, "bot", None)
    [seat] = shown["seats"]
    assert set(seat) >= SEAT
    assert (seat["call"], seat["seat"], seat["status"], seat["seconds"], seat["ttft_seconds"], seat["text"]) == ("call_1", "direct", "ok", 1.5, 0.25, None)


def test_a_call_that_tried_several_models_is_one_seat_with_its_tries(operator: Api) -> None:
    make_attempt("call_1", "pan_1", purpose="route", seat="route", model="a", status="error", http_status=503, code="upstream_overloaded", latency_ms=500)
    make_attempt("call_1", "pan_1", purpose="route", seat="route", model="b", started_at=NOW + timedelta(seconds=1), cost_pusd=1_000_000_000_000)
    [seat] = ok(operator.get("panels/pan_1"))["seats"]
    assert (seat["model"], seat["status"], seat["seconds"], seat["ttft_seconds"]) == ("b", "ok", 2.5, 1.25)
    assert [(t["model"], t["status"], t["code"]) for t in seat["tries"]] == [("a", 503, "upstream_overloaded"), ("b", 200, None)]
    assert seat["cost_usd"] == "1.00132"
    assert seat["usage"]["input_tokens"] == 1600


def test_a_direct_call_that_failed_tells_its_error(operator: Api) -> None:
    make_attempt("call_1", "pan_1", status="timeout", http_status=None, code="upstream_timeout", error="No answer within 600 s.", cost_pusd=None)
    shown = ok(operator.get("panels/pan_1"))
    assert (shown["status"], shown["cost_usd"]) == ("failed", None)
    assert shown["seats"][0]["error"] == {"code": "upstream_timeout", "message": "No answer within 600 s."}


def test_an_unknown_panel_is_404(operator: Api) -> None:
    for name in (new_id("pan"), "x", "pan_%00", "a%2Fb", "%F0%9F%A6%80"):
        problem(operator.get(f"panels/{name}"), 404, code="not_found")
        problem(operator.delete(f"panels/{name}"), 404, code="not_found")


# ------------------------------------------------------------------ who may see


def test_prompts_and_answers_of_others_need_an_operator(keyless: Api, operator: Api, api_of: Callable[..., Api], user_api: Callable[..., Api]) -> None:
    owner, reader = api_of("ask"), api_of("ask", "read", "judge")
    panel = make_panel(judge="key:x", key_id=owner.key.pk)  # type: ignore[attr-defined]
    local = make_panel(judge="local")
    ok(owner.get(f"panels/{panel.pk}"))
    ok(operator.get(f"panels/{panel.pk}"))
    ok(user_api("olga", "operator").get(f"panels/{panel.pk}"))
    ok(keyless.get(f"panels/{local.pk}"))
    for api in (reader, keyless, user_api("jane", "judge")):
        problem(api.get(f"panels/{panel.pk}"), 403, code="not_allowed")
        problem(api.delete(f"panels/{panel.pk}"), 403, code="not_allowed")
    problem(user_api("vera", "viewer").get(f"panels/{panel.pk}"), 403, code="not_allowed")


def test_the_list_shows_no_prompt_and_no_answer(operator: Api, api_of: Callable[..., Api]) -> None:
    make_panel({"text": "canary-answer"}, prompt='"canary-prompt"')
    for api in (operator, api_of("read")):
        response = api.get("panels")
        assert len(ok(response)["data"]) == 1
        assert b"canary" not in response.content


def test_without_the_right_to_read_the_list_holds_what_one_asked(api_of: Callable[..., Api], keyless: Api) -> None:
    asker = api_of("ask")
    mine = make_panel(key_id=asker.key.pk)  # type: ignore[attr-defined]
    local = make_panel(judge="local")
    assert [p["panel"] for p in ok(asker.get("panels"))["data"]] == [mine.pk]
    assert [p["panel"] for p in ok(keyless.get("panels"))["data"]] == [local.pk]


# ------------------------------------------------------------------ the list


def test_panels_come_newest_first_in_pages_by_collection(operator: Api) -> None:
    made = [make_panel(collection="core").pk for _ in range(5)]
    make_panel(collection="other")
    seen: list[str] = []
    path = "panels?collection=core&limit=2"
    for _ in range(3):
        page = ok(operator.get(path))
        seen += [p["panel"] for p in page["data"]]
        path = f"panels?collection=core&limit=2&page_token={page['next']}"
    assert page["next"] is None
    assert seen == made[::-1]


def test_the_list_tells_costs_and_who_judged(operator: Api) -> None:
    panel = make_panel({}, {"model": "venus"})
    ok(operator.post("verdict", {"call": panel.seats.get(position=0).call, "useful": True}))
    [shown] = ok(operator.get("panels"))["data"]
    assert shown["cost_usd"] == "0.00264"
    assert [seat["judges"] for seat in shown["seats"]] == [["key:operator"], []]
    assert "text" not in shown["seats"][0]


def test_lists_take_the_same_queries_however_long(operator: Api, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):  # the key, and panels: none
        operator.get("panels")
    make_panel()
    with django_assert_num_queries(6):
        operator.get("panels")
    for _ in range(6):
        make_panel({}, {}, {})
    with django_assert_num_queries(6):
        assert len(ok(operator.get("panels"))["data"]) == 7


def test_one_panel_takes_the_same_queries_whatever_its_size(operator: Api, django_assert_num_queries: Any) -> None:
    small, large = make_panel(), make_panel(*[{} for _ in range(9)])
    for panel in (small, large):
        with django_assert_num_queries(5):
            operator.get(f"panels/{panel.pk}")


# ------------------------------------------------------------------ the end of texts


def test_deleting_takes_the_texts_and_leaves_everything_else(operator: Api) -> None:
    panel = make_panel({}, {})
    ok(operator.post("verdict", {"call": panel.seats.first().call, "real": ["the race"]}))  # type: ignore[union-attr]
    ok(operator.delete(f"panels/{panel.pk}"), 204)
    shown = ok(operator.get(f"panels/{panel.pk}"))
    assert shown["prompt"] is None
    assert [seat["text"] for seat in shown["seats"]] == [None, None]
    assert shown["cost_usd"] == "0.00264"
    assert shown["seats"][0]["verdicts"][0]["real"] == ["the race"]
    assert AuditEntry.objects.filter(action="panel.delete_texts", actor="key operator", target=f"panel {panel.pk}").exists()
    ok(operator.delete(f"panels/{panel.pk}"), 204)


def test_whoever_asked_may_delete_the_texts(api_of: Callable[..., Api]) -> None:
    asker = api_of("ask")
    panel = make_panel(key_id=asker.key.pk)  # type: ignore[attr-defined]
    ok(asker.delete(f"panels/{panel.pk}"), 204)
    panel.refresh_from_db()
    assert panel.prompt is None


def test_a_panel_that_is_still_answered_keeps_its_texts_till_it_is_done(operator: Api) -> None:
    panel = make_panel({"status": "running", "called": False}, status="complete")
    problem(operator.delete(f"panels/{panel.pk}"), 409, code="panel_running")


def test_a_direct_call_has_no_texts_to_delete(operator: Api) -> None:
    make_attempt("call_1", "pan_1")
    ok(operator.delete("panels/pan_1"), 204)


def texts() -> tuple[int, int]:
    return Panel.objects.filter(prompt__isnull=False).count(), Seat.objects.filter(text__isnull=False).count()


def test_texts_are_kept_for_so_many_days_and_verdicts_for_good(settings: Any, keyless: Api) -> None:
    settings.KEEP_TEXT_DAYS = 30
    old = make_panel({}, {}, asked_at=NOW - timedelta(days=31))
    young = make_panel({}, asked_at=NOW - timedelta(days=29))
    ok(keyless.post("verdict", {"call": old.seats.first().call, "false": ["an invention"]}))  # type: ignore[union-attr]
    assert history.forget_old_texts(NOW) == 1
    assert texts() == (1, 1)
    young.refresh_from_db()
    assert young.prompt
    assert Verdict.objects.get().false == ["an invention"]
    assert history.forget_old_texts(NOW) == 0


def test_zero_days_keep_no_text(settings: Any) -> None:
    settings.KEEP_TEXT_DAYS = 0
    make_panel(asked_at=NOW - timedelta(seconds=1))
    history.forget_old_texts(NOW)
    assert texts() == (0, 0)


def test_an_answer_without_its_prompt_is_forgotten_too(settings: Any) -> None:
    settings.KEEP_TEXT_DAYS = 1
    make_panel(asked_at=NOW - timedelta(days=2), prompt=None)
    history.forget_old_texts(NOW)
    assert texts() == (0, 0)


def test_texts_go_oldest_first_in_small_transactions(settings: Any, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any) -> None:
    settings.KEEP_TEXT_DAYS = 1
    monkeypatch.setattr(history, "BATCH", 3)
    same = NOW - timedelta(days=3)
    for i in range(8):
        panel = make_panel(asked_at=same if i % 2 else same - timedelta(hours=i))
        make_seat(panel, 1, called=False)
    assert history.forget_old_texts(NOW) == 8
    assert texts() == (0, 0)


def test_the_job_is_registered() -> None:
    assert jobs.registered["texts"].function is history.forget_old_texts


# ------------------------------------------------------------------ what is a moment old


@pytest.mark.django_db(transaction=True)
def test_a_call_that_stands_in_an_outbox_is_found(operator: Api, outbox_folder: Path) -> None:
    from health.lines import dumps

    call, panel = new_id("call"), new_id("pan")
    row = {"id": new_id("att"), "call": call, "panel": panel, "purpose": "direct", "seat": "direct", "model": "mercury", "judge": "ada", "status": "ok"}
    row |= {"started_at": NOW.isoformat(), "latency_ms": 10, "endpoint": "local", "served_name": "m"}
    outbox_folder.mkdir()
    (outbox_folder / "web-1.jsonl").write_bytes(dumps({"attempts": [row]}))
    assert ok(operator.get(f"panels/{panel}"))["seats"][0]["model"] == "mercury"
    kept = ok(operator.post("verdict", {"call": call, "useful": True}))
    assert kept["call"] == call
