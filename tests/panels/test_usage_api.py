"""Usage by day, sheets, the ledger's list, quotas, budgets and alerts under /bench."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from access import sheets
from access.models import AuditEntry, Budget, RosterVersion
from health import alerts, budgets, history
from health.limits import Meter as Held
from health.limits import encode
from health.models import Alert, Allowance, Attempt, LearnedLimit, Meter, Rest, ShadowHit
from tests.panels.conftest import NOW, Api, make_attempt, make_collection, make_model, ok, problem

pytestmark = pytest.mark.django_db


def sheet(response: Any) -> list[list[str]]:
    assert isinstance(response, StreamingHttpResponse)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in response["Content-Disposition"]
    data = b"".join(response.streaming_content)  # type: ignore[arg-type]
    assert data.startswith(b"\xef\xbb\xbf")
    assert data.endswith(b"\r\n")
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


# ------------------------------------------------------------------ usage


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", ["mercury"]),
        ("endpoint", ["local"]),
        ("key", ["bot"]),
        ("collection", ["core"]),
        ("purpose", ["panel"]),
        ("judge", ["ada"]),
        ("owner", ["ada"]),
        ("team", ["platform"]),
    ],
)
def test_usage_is_summed_by(operator: Api, by: str, names: list[str]) -> None:
    make_attempt(key_name="bot", key_id=7, collection="core", purpose="panel", team="platform")
    assert [row[by] for row in ok(operator.get(f"usage?by={by}"))["data"]] == names


def test_usage_by_day_has_the_days_that_were_asked_for(operator: Api) -> None:
    for back in (0, 1, 2, 40, 80):
        make_attempt(started_at=NOW - timedelta(days=back))
    days = [f"{(NOW - timedelta(days=back)).date()}" for back in (0, 1, 2, 40, 80)]
    assert [row["day"] for row in ok(operator.get("usage?group=day"))["data"]] == days
    assert [row["day"] for row in ok(operator.get(f"usage?group=day&from={days[3]}&to={days[1]}"))["data"]] == days[1:4]
    assert [(row["month"], row["calls"]) for row in ok(operator.get(f"usage?from={days[3]}&to={days[1]}"))["data"]] == [("2026-11", 2), ("2026-10", 1)]


def test_days_come_in_pages(operator: Api) -> None:
    for back in (0, 33, 34, 70):
        for model in ("a", "b"):
            make_attempt(started_at=NOW - timedelta(days=back), model=model)
    seen, path = [], "usage?group=day&limit=3"
    for _ in range(3):
        page = ok(operator.get(path))
        seen += [(row["day"], row["model"]) for row in page["data"]]
        path = f"usage?group=day&limit=3&page_token={page['next']}"
    assert page["next"] is None
    assert seen == [(f"{(NOW - timedelta(days=back)).date()}", model) for back in (0, 33, 34, 70) for model in ("a", "b")]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("group=week", "group"),
        ("from=2026-11", "from"),
        ("to=2026-02-30", "to"),
        ("from=2026-11-02&to=2026-11-01", "to"),
        ("month=2026-11&from=2026-11-01", "month"),
        ("format=xml", "format"),
        ("top=0.5", "top"),
        ("top=21", "top"),
        ("top=-1", "top"),
    ],
)
def test_a_wrong_question_about_usage_names_its_field(operator: Api, query: str, field: str) -> None:
    problem(operator.get(f"usage?{query}"), 400, field)


def test_the_dearest_are_told_apart_and_all_others_are_one_row(operator: Api) -> None:
    for model, cost in (("a", 5), ("b", 50), ("c", 7), ("d", None)):
        for back in (0, 1, 40):
            make_attempt(model=model, started_at=NOW - timedelta(days=back), cost_pusd=None if cost is None else cost * 10**12)
    days = [f"{(NOW - timedelta(days=back)).date()}" for back in (1, 0)]
    found = ok(operator.get("usage?group=day&month=2026-11&top=2"))
    rows = [(row["day"], row["model"], row["calls"], row["cost_usd"], row["unpriced_calls"]) for row in found["data"]]
    assert rows == [(day, *rest) for day in days for rest in (("b", 1, "50", 0), ("c", 1, "7", 0), (None, 2, "5", 1))]
    months = ok(operator.get("usage?top=1"))["data"]
    assert [(row["month"], row["model"], row["calls"]) for row in months] == [
        ("2026-10", "b", 1),
        ("2026-10", None, 3),
        ("2026-11", "b", 2),
        ("2026-11", None, 6),
    ]
    part = ok(operator.get(f"usage?top=9&from={days[0]}&to={days[0]}"))["data"]
    assert [(row["month"], row["model"], row["calls"]) for row in part] == [("2026-11", name, 1) for name in "bcad"]


def test_usage_as_a_sheet_has_all_of_it_and_numbers_stay_numbers(operator: Api) -> None:
    for n in range(60):
        make_attempt(model=f"m{n:02}", cost_pusd=None if n == 1 else 1_320_000_000)
    table = sheet(operator.get("usage?format=csv"))
    assert table[0][:3] == ["month", "model", "calls"]
    assert len(table) == 61
    assert table[1][-2:] == ["0.00132", "0"]
    assert table[2][-2:] == ["", "1"]


# ------------------------------------------------------------------ sheets


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("\n=1", "'\n'=1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("a;=1+1;-2;b", "a;'=1+1;'-2;b"),
        ("a\n=1", "a\n'=1"),
        ("a;b-c", "a;b-c"),
        ("plain", "plain"),
        (" a = b", " a = b"),
        (-5, -5),
        (1.5, 1.5),
        (True, "true"),
        (None, ""),
        (sheets.Money("0.00132"), "0.00132"),
        (sheets.Money(None), ""),
        (datetime(2026, 11, 29, 12, tzinfo=UTC), "2026-11-29T12:00:00.000Z"),
    ],
)
def test_a_cell_runs_no_formula(value: Any, cell: Any) -> None:
    assert sheets.cell(value) == cell


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=1200))
def test_whatever_stands_in_cells_reads_back(rows: list[list[str]]) -> None:
    data = b"".join(sheets.lines(["a", "b"], rows)).decode("utf-8-sig")
    table = list(csv.reader(io.StringIO(data, newline="")))
    assert [[str(sheets.cell(v)) for v in row] for row in rows] == [[v for v in row] for row in table[1:]] or any(
        "\ud800" <= c <= "\udfff" for row in rows for v in row for c in v
    )
    assert not any(v.startswith(sheets.RISKY) for row in table for v in row)


# ------------------------------------------------------------------ calls


def test_calls_are_listed_newest_first_without_texts(operator: Api) -> None:
    old = make_attempt(started_at=NOW - timedelta(days=1), team="platform", key_name="bot")
    new = make_attempt(model="venus", cost_pusd=None, ttft_ms=None)
    page = ok(operator.get("calls"))
    assert [row["id"] for row in page["data"]] == [new.pk, old.pk]
    assert page["data"][1] | {"seconds": 1.5, "ttft_seconds": 0.25, "cost_usd": "0.00132", "team": "platform", "key": "bot"} == page["data"][1]
    assert (page["data"][0]["cost_usd"], page["data"][0]["ttft_seconds"]) == (None, None)
    day = f"{(NOW - timedelta(days=1)).date()}"
    assert [row["id"] for row in ok(operator.get(f"calls?from={day}&to={day}"))["data"]] == [old.pk]
    for query in (f"panel={new.panel}", f"call={new.call}", "model=venus"):
        assert [row["id"] for row in ok(operator.get(f"calls?{query}"))["data"]] == [new.pk]


def test_calls_are_looked_for_by_what_no_index_finds_among_the_newest(operator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [make_attempt(started_at=NOW - timedelta(minutes=n), collection="core", purpose="panel", key_name="bot", judge="ada") for n in range(4)]
    bad = make_attempt(started_at=NOW - timedelta(minutes=9), status="timeout", endpoint="far")
    for query in ("status=failed", "status=timeout", "endpoint=far", "endpoint=far&status=failed"):
        found = ok(operator.get(f"calls?{query}"))
        assert ([row["id"] for row in found["data"]], "searched" in found) == ([bad.pk], False), query
    for query in ("status=ok", "collection=core", "purpose=panel", "key_name=bot", "judge=ada&key_name=bot"):
        assert [row["id"] for row in ok(operator.get(f"calls?{query}"))["data"]] == [one.pk for one in good], query

    monkeypatch.setattr(history, "MOST_LOOKED_AT", 3)
    found = ok(operator.get("calls?status=failed"))
    assert (found["data"], found["searched"]) == ([], 3)
    assert "searched" not in ok(operator.get("calls"))
    assert len(sheet(operator.get("calls?status=failed&format=csv"))) == 2


def test_calls_come_in_pages_and_as_a_sheet(operator: Api) -> None:
    Attempt.objects.bulk_create([Attempt(**row) for row in many(1203)])
    first = ok(operator.get("calls?limit=2"))
    second = ok(operator.get(f"calls?limit=2&page_token={first['next']}"))
    assert len({row["id"] for row in first["data"] + second["data"]}) == 4
    table = sheet(operator.get("calls?format=csv"))
    assert len(table) == 1204
    head, row = table[0], table[1]
    assert row[head.index("model")] == '\'=HYPERLINK("http://x")'
    assert row[head.index("input_tokens")] == "800"


def many(count: int) -> list[dict[str, Any]]:
    made = make_attempt()
    one = {f.attname: getattr(made, f.attname) for f in Attempt._meta.concrete_fields}
    made.delete()
    return [{**one, "id": f"att-{n}", "model": '=HYPERLINK("http://x")', "started_at": NOW + timedelta(seconds=n % 7)} for n in range(count)]


def test_calls_need_the_right_to_read(api_of: Any) -> None:
    asker = api_of("ask", "judge")
    for path in ("calls", "usage", "quotas", "rests", "sources", "budgets", "alerts"):
        problem(asker.get(path), 403, None, "not_allowed")


# ------------------------------------------------------------------ quotas


def test_quotas_tell_what_is_left_by_hand_by_provider_and_in_shadow(operator: Api) -> None:
    model = make_model(limits={"requests": {"minute": 10, "day": 100}, "parallel": 2, "shadow": {"tokens": {"day": 50}}})
    now = timezone.now()
    ms = int(now.timestamp() * 1000)
    today = now.date().isoformat()
    Meter.objects.create(scope=f"model:{model.pk}|requests", state=encode(Held(minute=((ms - 1000, 4),), day=(today, 30))))
    LearnedLimit.objects.create(scope=f"endpoint:{model.endpoint_id}", measure="tokens", window="minute", limit=6000, told_by="header", learned_at=now)
    LearnedLimit.objects.create(scope=f"model:{model.pk}", measure="requests", window="minute", limit=7, told_by="refusal", learned_at=now)
    Allowance.objects.create(scope=f"endpoint:{model.endpoint_id}", measure="tokens", window="minute", limit=6000, remaining=5000, told_at=now)
    Allowance.objects.create(scope=f"endpoint:{model.endpoint_id}", measure="credits", window="", remaining=3, resets_at=now, told_at=now)
    ShadowHit.objects.create(scope=f"model:{model.pk}", measure="tokens", window="day", day=now.date(), calls=5)
    found = {(q["scope"], q["measure"], q["window"], q["source"]): q for q in ok(operator.get("quotas"))["data"]}
    assert set(found) == {
        ("endpoint", "credits", "", "header"),
        ("endpoint", "tokens", "minute", "header"),
        ("model", "parallel", "parallel", "hand"),
        ("model", "requests", "day", "hand"),
        ("model", "requests", "minute", "hand"),  # a person's word goes before what the provider told
        ("model", "tokens", "day", "shadow"),
    }

    def of(*key: str) -> tuple[Any, ...]:
        q = found[key]  # type: ignore[index]
        return q["limit"], q["used"], q["left"], q["provider_remaining"], q["would_refuse"]

    assert of("model", "requests", "minute", "hand") == (10, 4, 6, None, None)
    assert of("model", "requests", "day", "hand") == (100, 30, 70, None, None)
    assert of("endpoint", "tokens", "minute", "header") == (6000, 0, 6000, 5000, None)
    assert of("endpoint", "credits", "", "header") == (None, None, 3, 3, None)
    assert of("model", "tokens", "day", "shadow") == (50, 0, 50, None, 5)
    assert found["model", "requests", "day", "hand"]["resets_at"] == f"{now.date() + timedelta(days=1)}T00:00:00.000Z"
    table = sheet(operator.get("quotas?format=csv"))
    assert len(table) == 7
    assert {q["scope"] for q in ok(operator.get("quotas?scope=endpoint,key"))["data"]} == {"endpoint"}
    assert {q["name"] for q in ok(operator.get("quotas?find=ERCU"))["data"]} == {"mercury"}
    problem(operator.get("quotas?scope=panel"), 400, "scope")


def test_rests_that_hold_are_listed_and_those_that_are_over_are_not(operator: Api) -> None:
    now = timezone.now()
    Rest.objects.create(scope="model:a:b", kind="overload", until=now + timedelta(minutes=1), reason="503", since=now)
    Rest.objects.create(scope="endpoint:local", kind="limit", until=now - timedelta(minutes=1), reason="429", since=now)
    (found,) = ok(operator.get("rests"))["data"]
    assert (found["scope"], found["name"], found["kind"], found["reason"]) == ("model", "a:b", "overload", "503")


def test_catalogs_tell_how_old_they_are(operator: Api) -> None:
    found = {one["name"]: one for one in ok(operator.get("sources"))["data"]}
    assert set(found) == {"models_dev", "openrouter", "freellmapi"}
    ok(operator.patch("settings/catalog.sources", {"value": {"openrouter": False}}))
    found = {one["name"]: one for one in ok(operator.get("sources"))["data"]}
    assert (found["openrouter"]["on"], found["openrouter"]["read_at"]) == (False, None)


def test_quotas_tell_what_keys_and_budgets_have_left(operator: Api, api_of: Any) -> None:
    api_of("ask", called="bot", rpm=5, tpm=1000, max_parallel=2, budget_usd="10", owner="ada")
    make_attempt(key_name="bot", key_id=None, started_at=timezone.now(), cost_pusd=10**12)
    ok(operator.post("budgets", {"kind": "owner", "name": "ada", "budget_usd": 4}), 201)
    found = {(q["scope"], q["name"], q["measure"]): (q["limit"], q["used"], q["left"]) for q in ok(operator.get("quotas"))["data"]}
    assert found == {
        ("key", "bot", "requests"): (5, 0, 5),
        ("key", "bot", "tokens"): (1000, 0, 1000),
        ("key", "bot", "parallel"): (2, 0, 2),
        ("key", "bot", "usd"): ("10", "0", "10"),
        ("owner", "ada", "usd"): ("4", "1", "3"),
    }


# ------------------------------------------------------------------ budgets


def test_a_budget_is_set_changed_and_deleted_each_with_its_trail_and_at_once(operator: Api) -> None:
    version = RosterVersion.objects.get().version
    made = ok(operator.post("budgets", {"kind": "team", "name": "a/b ü", "budget_usd": "250.5"}), 201)
    assert made | {"alert_at": [80, 100], "spent_usd": "0", "left_usd": "250.5"} == made
    assert RosterVersion.objects.get().version > version
    changed = ok(operator.patch("budgets/team/a%2Fb%20%C3%BC", {"alert_at": [100, 50, 50]}))
    assert (changed["alert_at"], changed["budget_usd"]) == ([50, 100], "250.5")
    assert ok(operator.get("budgets"))["data"] == [changed]
    assert operator.delete("budgets/team/a%2Fb%20%C3%BC").status_code == 204
    problem(operator.get("budgets/team/a%2Fb%20%C3%BC"), 404, None, "not_found")
    assert list(AuditEntry.objects.filter(action__startswith="budget.").order_by("id").values_list("action", "target")) == [
        (f"budget.{verb}", "team a/b ü") for verb in ("add", "change", "delete")
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "key", "name": "x", "budget_usd": 1}, "kind"),
        ({"kind": "team", "budget_usd": 1}, "name"),
        ({"kind": "team", "name": "", "budget_usd": 1}, "name"),
        ({"kind": "team", "name": "x"}, "budget_usd"),
        ({"kind": "team", "name": "x", "budget_usd": None}, "budget_usd"),
        ({"kind": "team", "name": "x", "budget_usd": -1}, "budget_usd"),
        ({"kind": "team", "name": "x", "budget_usd": 1, "alert_at": [0]}, "alert_at[0]"),
        ({"kind": "team", "name": "x", "budget_usd": 1, "alert_at": 80}, "alert_at"),
        ({"kind": "team", "name": "x", "budget_usd": 1, "limit": 2}, "limit"),
    ],
)
def test_a_wrong_budget_is_400_naming_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    problem(operator.post("budgets", body), 400, field, "invalid_request")
    assert not Budget.objects.exists()


def test_a_second_budget_of_one_name_is_409_and_names_do_not_change(operator: Api) -> None:
    ok(operator.post("budgets", {"kind": "team", "name": "x", "budget_usd": 1}), 201)
    problem(operator.post("budgets", {"kind": "team", "name": "x", "budget_usd": 2}), 409, "name", "in_use")
    problem(operator.patch("budgets/team/x", {"name": "y"}), 400, "name")
    problem(operator.get("budgets/key/x"), 404, None, "not_found")


# ------------------------------------------------------------------ alerts


def test_a_budget_alerts_once_a_month_at_each_percent(operator: Api) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    ok(operator.post("budgets", {"kind": "team", "name": "platform", "budget_usd": 1, "alert_at": [50, 90, 120]}), 201)
    make_attempt(started_at=now, team="platform", cost_pusd=4 * 10**11)
    assert budgets.watch(now) == 0
    make_attempt(started_at=now, team="platform", cost_pusd=5 * 10**11)
    assert budgets.watch(now) == 2
    assert budgets.watch(now) == 0
    found = ok(operator.get("alerts?unseen=true"))["data"]
    assert {(a["kind"], a["subject"]) for a in found} == {("budget", "team platform")}
    assert "$0.9 in 2026-11" in found[0]["message"]
    december = datetime(2026, 12, 2, tzinfo=UTC)
    make_attempt(started_at=december, team="platform", cost_pusd=6 * 10**11)
    assert budgets.watch(december) == 1
    ok(operator.patch("budgets/team/platform", {"budget_usd": "0.5"}))
    assert budgets.watch(december) == 3  # another amount is another budget


def test_a_keys_budget_alerts_too(operator: Api, api_of: Any) -> None:
    api_of("ask", called="bot", budget_usd="1")
    key_id = next(one for one in budgets.budgets.every() if one.name == "bot").key_id
    make_attempt(started_at=NOW, key_id=key_id, key_name="bot", cost_pusd=8 * 10**11)
    assert budgets.watch(NOW) == 1
    assert Alert.objects.get().subject == "key bot"


def test_an_alert_is_seen_once_and_stays_on_the_list(operator: Api) -> None:
    alerts.raise_alert("drift", "mercury", "drift:1", "It changed.")
    (shown,) = ok(operator.get("alerts"))["data"]
    assert operator.post(f"alerts/{shown['id']}/seen", {}).status_code == 204
    assert ok(operator.get("alerts?unseen=true"))["data"] == []
    (seen,) = ok(operator.get("alerts"))["data"]
    assert seen["seen_by"]
    problem(operator.post("alerts/999999/seen", {}), 404, None, "not_found")
    problem(operator.post(f"alerts/{10**30}/seen", {}), 404, None, "not_found")
    problem(operator.get("alerts?unseen=maybe"), 400, "unseen")


def test_a_meter_that_says_something_else_than_the_ledger_learns_it(operator: Api) -> None:
    ok(operator.post("budgets", {"kind": "collection", "name": "core", "budget_usd": 1}), 201)
    make_attempt(started_at=NOW, collection="core", cost_pusd=7)
    Meter.objects.update_or_create(scope="collection:core|pusd", defaults={"state": encode(Held(month=("2026-11", 99)))})
    budgets.watch(NOW)
    (found,) = budgets.standings(budgets.budgets.every(), NOW)
    assert (found.spent_pusd, found.reserved_pusd) == (7, 0)


# ------------------------------------------------------------------ the description


@pytest.mark.parametrize(
    ("path", "shape"), [("calls", "Call"), ("quotas", "Quota"), ("rests", "Rest"), ("sources", "Source"), ("budgets", "Budget"), ("alerts", "Alert")]
)
def test_lists_answer_what_the_description_says(operator: Api, path: str, shape: str) -> None:
    make_model(limits={"parallel": 1})
    make_collection()
    make_attempt()
    Rest.objects.create(scope="model:mercury", until=timezone.now() + timedelta(minutes=1), reason="429", since=NOW)
    alerts.raise_alert("drift", "mercury", "drift:1", "It changed.")
    ok(operator.post("budgets", {"kind": "team", "name": "x", "budget_usd": 1}), 201)
    schema = ok(operator.get("schema"))["components"]["schemas"]
    [first, *_] = ok(operator.get(path))["data"]
    assert set(first) == set(schema[shape]["properties"])
