"""What lists of models and collections say of verdicts, seats, speed and price; finding, sorting and paging; sums that follow every verdict."""

from __future__ import annotations

import importlib
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from access import preferences
from access.ids import new_id
from catalog.models import Price
from health.models import Alert, ModelHealth, ModelUse, Probe, Rest
from panels import records, tally, verdicts
from panels.models import JudgedPanel, Verdict, VerdictJudge, VerdictTotal
from tests.panels.conftest import Api, make_attempt, make_collection, make_endpoint, make_model, make_panel, ok, problem

pytestmark = pytest.mark.django_db


def judge(model: str, useful: bool | None, false: int = 0, collection: str = "core", who: str = "ada", call: str = "", days: float = 0) -> str:
    call = call or make_panel({"model": model, "called": False}, collection=collection).seats.get().call
    at = timezone.now() - timedelta(days=days)
    verdicts.record_verdict(who, call, useful, "", ["holds"] if useful is None else [], [f"claim {n}" for n in range(false)], at)
    return call


def listed(api: Api, query: str = "") -> list[str]:
    return [model["alias"] for model in ok(api.get(f"models{query}"))["data"]]


def kept() -> list[list[Any]]:
    totals = VerdictTotal.objects.exclude(judged=0).order_by("collection", "model", "day").values_list("collection", "model", "day", *tally.MEASURES)
    judges = VerdictJudge.objects.exclude(calls=0).order_by("collection", "model", "judge").values_list("collection", "model", "judge", "calls")
    panels = JudgedPanel.objects.order_by("panel").values_list("panel", "collection", "verdict", "models_judged", "wrong", "shared")
    return [list(totals), list(judges), list(panels)]


def test_the_sums_are_those_of_the_verdicts_whatever_is_said_again() -> None:
    luck = random.Random(11)
    panels = [make_panel({"model": "a", "called": False}, {"model": "b", "called": False}, {"model": "b", "called": False}) for _ in range(4)]
    calls = [seat.call for panel in panels for seat in panel.seats.all()]
    now = timezone.now()
    for n in range(150):
        said = luck.choice([True, False, None])
        claims = luck.sample(["the lock is held twice", "line 40 leaks", "it never ends"], luck.randrange(3))
        at = now - timedelta(days=luck.randrange(5))
        verdicts.record_verdict(luck.choice("xyzuvw"), luck.choice(calls), said, "", [] if said is not None or claims else ["real"], claims, at)
        if n % 50 == 49:
            found = kept()
            assert tally.rebuild() == Verdict.objects.filter(current=True).count()
            assert kept() == found


def test_an_upgrade_sums_the_verdicts_that_were_there() -> None:
    calls = [seat.call for seat in make_panel(*[{"model": model, "called": False} for model in "aabc"]).seats.all()]
    for n, call in enumerate([*calls, *calls[:2]]):
        claims = ["The lock isn’t held twice", "東京は日本の首都である"][: n % 3]
        verdicts.record_verdict(f"judge-{n % 3}", call, [True, False, None][n % 3], "", ["holds"], claims, timezone.now() - timedelta(days=n))
    found = kept()
    for table in (VerdictTotal, VerdictJudge, JudgedPanel):
        table.objects.all().delete()
    importlib.import_module("panels.migrations.0005_fill_verdict_totals").fill(apps, SimpleNamespace(connection=connection))
    assert kept() == found


def test_a_verdict_on_a_call_without_a_seat_counts_and_is_compared_with_nobody(operator: Api) -> None:
    judge("mercury", True, call=make_attempt().call)
    assert [(r.collection, r.useful.counted) for r in records.records_of_model("mercury", timezone.now())] == [("", 1)]
    assert not JudgedPanel.objects.exists()


def test_a_model_shows_what_verdicts_say_of_it(operator: Api) -> None:
    make_model("mercury", facts={"output_limit": {"value": 5, "source": "hand"}})
    shown = ok(operator.get("models/mercury"))
    assert shown["record"] == {
        "judged": 0,
        "useful": 0,
        "usefulness": None,
        "claims": {"real": 0, "false": 0},
        "confidently_wrong": None,
        "seats": 0,
        "last_seated": None,
        "score": None,
    }
    assert (shown["records"], shown["speed"], shown["price"]) == ([], None, {"input_usd_per_mtok": None, "output_usd_per_mtok": None})
    judge("mercury", True)
    judge("mercury", False, false=2, collection="other")
    judge("mercury", True, days=60)
    ModelUse.objects.create(model="mercury", seats=7, last_seated_at=timezone.now())
    ModelHealth.objects.create(model="mercury", speed={"short": {"ttft_ms": 90, "tokens_per_s": 20.0, "of": 5, "at": "2026-11-29T12:00:00+00:00"}})
    ok(operator.patch("models/mercury", {"facts": {"input_usd_per_mtok": "0.5"}}))
    shown = ok(operator.get("models"))["data"][0]
    record = shown["record"]
    assert (record["judged"], record["useful"], record["seats"], record["claims"]) == (3, 2, 7, {"real": 0, "false": 2})
    assert record["usefulness"]["mean"] == pytest.approx(2.5 / 4.5, abs=1e-6)
    assert record["confidently_wrong"]["rate"] == pytest.approx(2 / 4.5, abs=1e-6)
    assert 0 < record["usefulness"]["low"] < record["usefulness"]["mean"] < record["usefulness"]["high"] < 1
    assert (shown["speed"]["ttft_ms"], shown["speed"]["tokens_per_s"], shown["speed"]["short"]["of"]) == (90, 20, 5)
    assert shown["price"] == {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": None}
    assert [r["collection"] for r in ok(operator.get("models/mercury"))["records"]] == ["core", "other"]
    [here] = ok(operator.get("models?collection=other"))["data"]
    assert (here["record"]["judged"], here["record"]["useful"]) == (1, 0)


def test_a_collection_shows_what_verdicts_say_of_its_answers(operator: Api) -> None:
    make_collection("core")
    make_collection("empty")
    judge("a", True)
    judge("b", False)
    judge("c", True, collection="gone")
    core, empty = ok(operator.get("collections"))["data"]
    assert (core["record"]["judged"], core["record"]["useful"], core["record"]["usefulness"]["mean"]) == (2, 1, 0.5)
    assert (empty["record"]["judged"], empty["record"]["usefulness"]) == (0, None)
    shown = ok(operator.get("collections/core"))
    assert shown["record"] == core["record"]
    assert [r["model"] for r in shown["records"]] == ["a", "b"]


def test_the_half_life_that_holds_decides_how_old_verdicts_weigh(operator: Api) -> None:
    make_model("mercury")
    judge("mercury", True, days=30)
    means = []
    for days in (30, 0, 3650):
        preferences.change(records.HALF_LIFE, days, "ada")
        means.append(ok(operator.get("models"))["data"][0]["record"]["usefulness"]["mean"])
    assert means == pytest.approx([1.5 / 2.5, 2 / 3, (1 + 0.5 ** (30 / 3650)) / (2 + 0.5 ** (30 / 3650))], abs=1e-6)


@pytest.mark.parametrize(
    ("find", "expected"), [("ЖЁЛТ", ["жёлтый"]), ("straße", ["STRASSE"]), ("fake/Ж", ["жёлтый"]), ("ＳＴＲ", ["STRASSE"]), ("%", ["50%"]), ("zzz", [])]
)
def test_models_are_found_by_alias_and_served_name_in_any_script(operator: Api, find: str, expected: list[str]) -> None:
    for alias in ("жёлтый", "STRASSE", "50%", "plain"):
        make_model(alias)
    assert listed(operator, f"?find={quote(find)}") == expected


def test_models_are_listed_by_status(operator: Api) -> None:
    for alias in ("plays", "rests", "retired"):
        make_model(alias)
    ok(operator.post("models/retired/retire", {"reason": "slow"}))
    now = timezone.now()
    Rest.objects.create(scope="model:rests", until=now + timedelta(hours=1), reason="429", since=now)
    assert [listed(operator, f"?status={status}") for status in ("active", "resting", "retired")] == [["plays"], ["rests"], ["retired"]]
    problem(operator.get("models?status=asleep"), 400, "status", "invalid_request")


def test_models_are_sorted_from_the_best_end_and_the_unknown_are_last(operator: Api) -> None:
    for alias, price in (("a", None), ("b", "3"), ("c", "1")):
        make_model(alias)
        if price:
            ok(operator.patch(f"models/{alias}", {"facts": {"input_usd_per_mtok": price, "output_usd_per_mtok": price, "context_window": int(price) * 1000}}))
    judge("b", False)
    judge("c", True)
    ModelUse.objects.create(model="a", seats=9, last_seated_at=timezone.now())
    ModelHealth.objects.create(model="b", speed={"long": {"ttft_ms": 90, "tokens_per_s": 20.0, "of": 5, "at": "2026-11-29T12:00:00+00:00"}})
    expected = {
        "alias": "abc", "-alias": "cba", "useful": "cba", "-useful": "bca", "wrong": "bca", "judged": "bca", "seats": "abc", "-seats": "bca",
        "last_seated": "abc", "score": "abc", "price": "cba", "-price": "bca", "ttft": "bac", "speed": "bac", "context": "bca",
    }  # fmt: skip
    assert {sort: "".join(listed(operator, f"?sort={sort}")) for sort in expected} == expected
    assert listed(operator, "?free=0&sort=price") == ["c", "b", "a"]
    assert listed(operator, "?endpoint=local&limit=2") == ["a", "b"]
    assert listed(operator, "?endpoint=elsewhere") == []
    ok(operator.patch("models/a", {"facts": {"tools": True, "vision": True, "input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}}))
    ok(operator.patch("models/b", {"facts": {"tools": True}}))
    assert (listed(operator, "?can=tools"), listed(operator, "?can=tools,vision"), listed(operator, "?free=1")) == (["a", "b"], ["a"], ["a"])
    assert ok(operator.get("models?limit=1"))["total"] == 3
    problem(operator.get("models?can=fly"), 400, "can", "invalid_request")
    problem(operator.get("models?free=yes"), 400, "free", "invalid_request")
    for sort in ("size", "--alias", "-"):
        problem(operator.get(f"models?sort={sort}"), 400, "sort", "invalid_request")
    problem(operator.get("models?collection=nowhere"), 404, code="not_found")


@pytest.mark.parametrize("sort", ["alias", "-alias", "useful"])
def test_pages_hold_each_model_once_also_where_one_goes_meanwhile(operator: Api, sort: str) -> None:
    for n in range(9):
        make_model(f"m{n}")
        judge(f"m{n}", bool(n % 2))
    whole = listed(operator, f"?sort={sort}")
    seen: list[str] = []
    query = f"?sort={sort}&limit=2"
    for n in range(5):
        page = ok(operator.get(f"models{query}"))
        seen += [model["alias"] for model in page["data"]]
        query = f"?sort={sort}&limit=2&page_token={page['next']}"
        assert (page["next"] is None) is (n == 4)
    assert seen == whole
    page = ok(operator.get(f"models?sort={sort}&limit=3"))
    ok(operator.delete(f"models/{page['data'][0]['alias']}"), 204)
    assert listed(operator, f"?sort={sort}&limit=500&page_token={page['next']}") == whole[3:]
    problem(operator.get("models?page_token=bm8"), 400, "page_token", "invalid_request")


def test_a_list_is_narrowed_by_endpoint_by_what_models_can_and_by_price(operator: Api) -> None:
    other = make_endpoint(name="two")
    make_model("plain", facts={"tools": True, "vision": False})
    seeing = make_model("seeing", endpoint=other, facts={"tools": True, "vision": True})
    Price.objects.create(model=seeing, since=timezone.now().date() - timedelta(days=2), input_usd_per_mtok=0, output_usd_per_mtok=0)
    make_model("unknown", endpoint=other)
    assert listed(operator, "?endpoint=two") == ["seeing", "unknown"]
    assert listed(operator, "?can=tools") == ["plain", "seeing"]
    assert listed(operator, "?can=tools,vision") == ["seeing"]
    assert listed(operator, "?free=1") == ["seeing"]
    assert listed(operator, "?free=0&endpoint=none") == []
    page = ok(operator.get("models?limit=1"))
    assert (len(page["data"]), page["total"]) == (1, 3)
    problem(operator.get("models?can=flight"), 400, "can", "invalid_request")
    problem(operator.get("models?free=maybe"), 400, "free", "invalid_request")


# ------------------------------------------------------------------ one model's story


def test_a_models_days_are_all_there_with_what_is_known_of_each(operator: Api) -> None:
    make_model("mercury")
    now = timezone.now()
    today = now.date()
    make_attempt(started_at=now, latency_ms=100)
    make_attempt(started_at=now, latency_ms=300, status="error", cost_pusd=None)
    make_attempt(started_at=now - timedelta(days=2), cost_pusd=10**12)
    make_attempt(started_at=now, model="venus")
    judge("mercury", True)
    judge("mercury", False, days=1)
    for kind, ttft, rate in (("short", 80, 9.0), ("short", 120, 9.0), ("long", 500, 33.0)):
        Probe.objects.create(
            attempt=new_id("att"), model="mercury", endpoint="local", kind=kind, at=now, outcome="ok", status="ok", ttft_ms=ttft, tokens_per_s=rate
        )
    told = ok(operator.get("models/mercury/history?days=3"))
    assert (told["model"], told["from"], told["to"]) == ("mercury", f"{today - timedelta(days=2)}", f"{today}")
    first, second, third = told["days"]
    assert (first["calls"], first["failed"], first["cost_usd"], first["useful"], first["not_useful"]) == (1, 0, "1", 0, 0)
    assert (second["calls"], second["cost_usd"], second["latency_ms"], second["useful"], second["not_useful"], second["ttft_ms"]) == (0, "0", None, 0, 1, None)
    assert (third["calls"], third["failed"], third["latency_ms"], third["unpriced_calls"], third["useful"]) == (2, 1, 200, 1, 1)
    assert (third["ttft_ms"], third["tokens_per_s"]) == (100, 33)
    assert len(ok(operator.get("models/mercury/history"))["days"]) == 90
    for days in ("0", "401", "many", "-3", "١"):
        problem(operator.get(f"models/mercury/history?days={days}"), 400, "days", "invalid_request")
    problem(operator.get("models/nobody/history"), 404, code="not_found")


def test_what_happened_to_a_model_is_listed_newest_first_in_pages(operator: Api) -> None:
    model = make_model("mercury")
    ok(operator.post("models/mercury/retire", {"reason": "it is gone"}))
    ok(operator.post("models/mercury/restore", {"reason": "it came back"}))
    now = timezone.now()
    for n in range(3):
        Probe.objects.create(
            attempt=new_id("att"),
            model="mercury",
            endpoint="local",
            kind="word",
            at=now - timedelta(days=n + 1),
            outcome="failed",
            fault="server",
            status="error",
            message="503",
        )
    Alert.objects.create(kind="drift", subject="mercury", once="x", message="It answers otherwise.", at=now - timedelta(days=1))
    Alert.objects.create(kind="budget", subject="mercury", once="y", message="No event of a model.", at=now)
    Rest.objects.create(scope=f"endpoint:{model.endpoint.name}", until=now + timedelta(hours=1), reason="429", since=now - timedelta(days=9))
    whole = ok(operator.get("models/mercury/evidence"))
    assert [(e["kind"], e["what"]) for e in whole["data"]] == [
        ("rest", "limit"), ("status", "restore"), ("status", "retire"), ("probe", "failed"), ("alert", "drift"), ("probe", "failed"), ("probe", "failed"),
    ]  # fmt: skip
    assert (whole["data"][2]["reason"], whole["data"][2]["by"], whole["next"]) == ("it is gone", "key operator", None)
    assert whole["data"][0]["details"]["scope"] == "endpoint:local"
    seen, query = [], "?limit=2"
    while query:
        page = ok(operator.get(f"models/mercury/evidence{query}"))
        assert len(page["data"]) <= 2
        seen += page["data"]
        query = f"?limit=2&page_token={page['next']}" if page["next"] else ""
    assert seen == whole["data"]
    problem(operator.get("models/mercury/evidence?page_token=bm8"), 400, "page_token", "invalid_request")


def test_an_alias_that_ends_as_a_story_does_is_that_model(operator: Api) -> None:
    make_model("mercury")
    make_model("mercury/history")
    assert ok(operator.get("models/mercury%2Fhistory"))["alias"] == "mercury/history"
    assert ok(operator.get("models/mercury%2Fhistory/history"))["model"] == "mercury/history"
    problem(operator.get("models/history"), 404, code="not_found")


def test_stories_need_the_right_to_read(api_of: Any) -> None:
    make_model("mercury")
    for path in ("history", "evidence"):
        problem(api_of("ask").get(f"models/mercury/{path}"), 403, code="not_allowed")
