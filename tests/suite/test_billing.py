"""Money of a team: grants, caps and allowances that hold before each call, and lists that say what was spent."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from tests import factories
from tests.fake import hang, reply
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

# Five thousand tokens at 4 dollars a million, the most that an answer may have: two cents a call, reserved and spent.
DEAR = reply("ANSWER: 4", usage=(10, 5_000))
PRICES = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "4", "context_window": 100_000, "output_limit": 5_000}


@pytest.fixture
def team(bench: Bench) -> Driver:
    """An admin of a team of its own."""
    name = factories.tag("team-")
    return Driver(bench, bench.key(owner=f"{name}-lead", team=name, scopes=["admin", "ask"]))


def balance(team: Driver) -> dict[str, Any]:
    found: dict[str, Any] = team.api("GET", "billing/balance")
    return found


def test_an_account_that_nothing_limits_says_so(team: Driver) -> None:
    found = balance(team)
    assert (found["object"], found["balance"], found["is_limited"], found["billable"]) == ("balance", None, False, False)
    assert found["month_spent"] == {"amount_cents": 0, "currency": "USD", "usd": "0"}


def test_a_grant_is_a_completed_topup_without_a_checkout(team: Driver) -> None:
    made = team.api("POST", "billing/topups", {"amount_cents": 5000, "flow": "hosted", "note": "for November"}, 201, Idempotency_Key="g-1")
    assert (made["status"], made["flow"], made["checkout_url"], made["amount"]["usd"]) == ("completed", "manual", None, "50")
    again = team.send("POST", "billing/topups", {"amount_cents": 5000, "flow": "hosted", "note": "for November"}, Idempotency_Key="g-1")
    assert (again.json["id"], again.headers["idempotent-replayed"]) == (made["id"], "true")
    assert team.api("GET", f"billing/topups/{made['id']}") == made
    team.api("POST", "billing/topups", {"amount_cents": -1500, "kind": "adjustment"}, 201)
    assert (balance(team)["balance"]["amount_cents"], balance(team)["granted"]["usd"]) == (3500, "35")
    assert [t["kind"] for t in team.api("GET", "billing/topups")["data"]] == ["adjustment", "grant"]


BAD_TOPUPS: list[dict[str, Any]] = [
    {}, {"amount_cents": 0}, {"amount_cents": -5}, {"amount_cents": 1.5}, {"amount_cents": "50"}, {"amount_cents": True}, {"amount_cents": 10**12},
    {"amount_cents": 5, "flow": "stripe"}, {"amount_cents": 5, "kind": "trace_debit"}, {"amount_cents": 5, "colour": "red"},
    {"amount_cents": 5, "account": "nobody"},
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_TOPUPS)
def test_a_topup_that_cannot_be_is_refused(team: Driver, body: dict[str, Any]) -> None:
    assert team.send("POST", "billing/topups", body).status == 422


BAD_CONTROLS: list[dict[str, Any]] = [
    {"monthly_cap_cents": -1}, {"monthly_cap_cents": "10"}, {"monthly_cap_cents": 10.5}, {"alert_at_cap_pct": 0}, {"alert_at_cap_pct": 101},
    {"alert_enabled": 1}, {"auto_refill_enabled": True}, {"auto_refill_enabled": True, "auto_refill_amount_cents": 0}, {"idempotency_key": "k"},
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_CONTROLS)
def test_controls_that_cannot_be_are_refused(team: Driver, body: dict[str, Any]) -> None:
    assert team.send("PATCH", "billing/controls", body).status == 422


def test_money_is_seen_and_moved_by_those_who_may(bench: Bench, team: Driver) -> None:
    name = team.api("GET", "me")["team"]
    mate = Driver(bench, bench.key(team=name, scopes=["billing:read"]))
    stranger = Driver(bench, bench.key(team=factories.tag("other-"), scopes=["billing:read", "billing:write"]))
    made = team.api("POST", "billing/topups", {"amount_cents": 700}, 201)
    assert balance(mate)["balance"]["amount_cents"] == 700
    assert mate.send("POST", "billing/topups", {"amount_cents": 5}).json["required_scope"] == "billing:write"
    assert balance(stranger)["balance"] is None
    assert stranger.send("GET", f"billing/topups/{made['id']}").status == 404
    assert stranger.send("GET", f"billing/balance?account=team:{name}").status == 404
    assert stranger.send("POST", "billing/topups", {"amount_cents": 5, "account": f"team:{name}"}).status == 404
    assert Driver(bench).api("GET", f"billing/balance?account=team:{name}")["balance"]["amount_cents"] == 700, "an admin sees every team's"


def test_a_used_up_balance_halts_a_run_before_the_call_that_it_does_not_cover(bench: Bench, team: Driver) -> None:
    model = bench.model("dear", DEAR, facts=PRICES)
    bench.load()
    team.api("POST", "billing/topups", {"amount_cents": 7}, 201)
    found = team.ended(team.launch(team.subset(sums(20)), model)["id"], "halted")
    assert found["halt_reason"] == "team_budget_exceeded"
    assert "balance of the team" in found["halt_note"]
    left = eventually(lambda: b if (b := balance(team))["reserved"]["usd"] == "0" else None, "nothing to be under way")
    spent = Decimal(left["spent_of_grants"]["usd"])
    assert spent <= Decimal("0.07"), "never beyond what was granted"
    assert Decimal(left["balance"]["usd"]) == Decimal("0.07") - spent
    assert len(bench.fake.calls_to(model)) * Decimal("0.02") == spent
    asked = bench.live.ask(model, key=team.key, max_tokens=40_000)
    assert (asked.status, asked.code) == (402, "budget_exceeded")
    team.api("POST", "billing/topups", {"amount_cents": 100}, 201)
    assert bench.live.ask(model, key=team.key).status == 200, "a grant holds from the next request on, in every process"


def test_what_was_spent_before_the_first_grant_is_not_taken_from_it(bench: Bench, team: Driver) -> None:
    model = bench.model("dear", DEAR, facts=PRICES)
    bench.load()
    assert bench.live.ask(model, key=team.key).status == 200
    eventually(lambda: balance(team)["month_spent"]["usd"] == "0.02", "the call to be counted")
    team.api("POST", "billing/topups", {"amount_cents": 50}, 201)
    assert balance(team)["balance"]["usd"] == "0.5"
    bench.live.ask(model, key=team.key)
    eventually(lambda: balance(team)["spent_of_grants"]["usd"] == "0.02", "the second call to be counted")
    assert balance(team)["balance"]["usd"] == "0.48"
    assert balance(team)["month_spent"]["usd"] == "0.04"


def test_a_cap_is_the_teams_budget_and_alerts_once(bench: Bench, team: Driver) -> None:
    model = bench.model("dear", DEAR, facts=PRICES)
    bench.load()
    name = team.api("GET", "me")["team"]
    said = team.api("PATCH", "billing/controls", {"monthly_cap_cents": 9, "alert_at_cap_pct": 40})
    assert (said["monthly_cap_cents"], said["alert_at_cap_pct"]) == (9, 40)
    assert bench.live.api("GET", f"budgets/team/{name}")["budget_usd"] == "0.09"
    found = team.ended(team.launch(team.subset(sums(20)), model)["id"], "halted")
    assert (found["halt_reason"], "budget of the team" in found["halt_note"]) == ("team_budget_exceeded", True)
    eventually(lambda: balance(team)["month_spent"]["usd"] == "0.08", "all calls to be counted")
    assert (balance(team)["balance"]["usd"], balance(team)["spendable"]["usd"]) == ("0.01", "0.01")
    for ahead in (60, 120, 180):
        bench.live.order({"ring": ahead})
    alerts = [a for a in bench.live.listed("alerts") if name in a["subject"]]
    assert sorted(a["message"].partition(" ")[2][:40] for a in alerts if "40%" in a["message"]) == [f"budget of the team {name} ($0.09 a month)"[:40]]
    assert not [a for a in alerts if "80%" in a["message"]]
    team.api("PATCH", "billing/controls", {"monthly_cap_cents": None})
    assert balance(team)["is_limited"] is False


def test_an_allowance_comes_when_little_is_left_and_not_before(bench: Bench, team: Driver) -> None:
    said = {"auto_refill_enabled": True, "auto_refill_amount_cents": 300, "auto_refill_threshold_cents": 100}
    team.api("PATCH", "billing/controls", said)
    assert balance(team)["balance"]["amount_cents"] == 300, "there was nothing yet"
    team.rung("suite_allowances", 60)
    assert balance(team)["balance"]["amount_cents"] == 300
    team.api("POST", "billing/topups", {"amount_cents": -250, "kind": "adjustment"}, 201)
    team.rung("suite_allowances", 60)
    assert balance(team)["balance"]["amount_cents"] == 350
    first, *_, last = team.api("GET", "billing/topups")["data"]
    assert (first["created_by"], last["created_by"]) == ("server", "server")


# ------------------------------------------------------------------ lists


def walked(team: Driver, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = team.api("GET", f"{path}&limit=2{f'&page_token={token}' if token else ''}")
        found += page["data"]
        if not page["next"]:
            return found
        token = page["next"]


def test_transactions_add_up_and_are_walked_without_skip_or_repeat(bench: Bench, team: Driver) -> None:
    model, judge = bench.model("dear", DEAR, facts=PRICES), bench.model("judge", reply("A"), facts=PRICES)
    bench.load()
    del judge
    team.api("POST", "billing/topups", {"amount_cents": 10_000, "note": "=HYPERLINK(1)"}, 201)
    runs = [team.ended(team.launch(team.subset(sums(n)), model)["id"])["id"] for n in (1, 2, 3)]
    team.api("POST", "billing/topups", {"amount_cents": 33, "kind": "refund"}, 201)
    eventually(lambda: balance(team)["spent_of_grants"]["usd"] == "0.12", "all calls to be counted")
    every = walked(team, "billing/transactions?")
    assert [(t["kind"], t["amount"]["amount_cents"]) for t in every] == [
        ("refund", 33), ("trace_debit", -6), ("trace_debit", -4), ("trace_debit", -2), ("grant", 10_000),
    ]  # fmt: skip
    assert [t["reference_id"] for t in every if t["kind"] == "trace_debit"] == runs[::-1]
    assert {t["billable"] for t in every} == {False}
    assert sum(Decimal(t["amount"]["usd"]) for t in every) == Decimal(balance(team)["balance"]["usd"])
    assert [t["kind"] for t in walked(team, "billing/transactions?filter[kind]=trace_debit")] == ["trace_debit"] * 3
    assert team.api("GET", "billing/transactions?kind=driver_debit")["data"] == []
    page = team.api("GET", "billing/transactions?limit=1")
    for path in (f"transactions?kind=grant&page_token={page['next']}", f"transactions?page_token={page['next'][:-2]}", "transactions?page_token=abc.def"):
        assert team.send("GET", f"billing/{path}").json["code"] == "invalid_page_token"
    for path in ("kind=magic", "kind=grant&kind=refund", "kind=grant,refund"):
        assert team.send("GET", f"billing/transactions?{path}").json["code"] == "invalid_filter"
    assert team.send("GET", "billing/transactions?colour=red").json["code"] == "unknown_filter"
    sheet = team.send("GET", "billing/export?type=transactions")
    assert sheet.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(sheet.body.decode("utf-8-sig"))))
    assert [row["id"] for row in rows] == [t["id"] for t in every]
    assert rows[-1]["note"] == "'=HYPERLINK(1)", "no formula for a spreadsheet to run"
    assert sum(Decimal(row["amount_usd"]) for row in rows) == Decimal("100.21")
    rows = list(csv.DictReader(io.StringIO(team.send("GET", "billing/export?type=runs").body.decode("utf-8-sig"))))
    assert [(row["id"], row["cost_usd"]) for row in rows] == list(zip(runs[::-1], ("0.06", "0.04", "0.02"), strict=True))
    assert team.send("GET", "billing/export?type=secrets").status == 422
    trend = team.api("GET", "billing/usage-trend?days=2")["data"]
    assert (len(trend), sum(Decimal(d["spent"]["usd"]) for d in trend), sum(d["calls"] for d in trend)) == (2, Decimal("0.12"), 6)


def test_a_run_that_is_under_way_has_no_line_yet_and_holds_what_it_may_cost(bench: Bench, team: Driver) -> None:
    model = bench.model("stuck", hang(), facts=PRICES)
    bench.load()
    team.api("POST", "billing/topups", {"amount_cents": 10_000}, 201)
    run = team.launch(team.subset(sums(1)), model)["id"]
    eventually(lambda: Decimal(balance(team)["reserved"]["usd"]) > 0, "a reservation")
    assert [t["kind"] for t in team.api("GET", "billing/transactions")["data"]] == ["grant"]
    team.api("POST", f"runs/{run}/halt", {}, 202)
    team.ended(run, "halted")
