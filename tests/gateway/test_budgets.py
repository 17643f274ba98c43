"""Budgets of owners, teams and collections through the gateway: reserved like a key's, whoever asks and in whatever mode."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.fake import reply
from tests.live import Bench, eventually

# 100,000 tokens of output at most cost 0.05 + 0.15 dollars and a little more.
FACTS = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "1"}


@pytest.fixture
def budget(bench: Bench) -> Callable[..., dict[str, Any]]:
    def make(kind: str, name: str, usd: str, **more: Any) -> dict[str, Any]:
        return dict(bench.live.api("POST", "budgets", {"kind": kind, "name": name, "budget_usd": usd, **more}, status=201))

    return make


def standing(bench: Bench, kind: str, name: str) -> dict[str, Any]:
    return dict(bench.live.api("GET", f"budgets/{kind}/{quote(name, safe='')}"))


def settled(bench: Bench, kind: str, name: str, spent: str) -> None:
    """The meter says what the ledger says once nothing is under way."""
    found = eventually(lambda: f if (f := standing(bench, kind, name))["spent_usd"] == spent and f["reserved_usd"] == "0" else None, f"{spent} spent")
    assert found["spent_usd"] == spent


@pytest.mark.parametrize("kind", ["owner", "team", "collection"])
def test_a_budget_for_one_call_admits_one_of_fifty(bench: Bench, budget: Callable[..., dict[str, Any]], kind: str) -> None:
    gate = bench.fake.gate()
    model = bench.model("fast", *[reply("hi", usage=(10, 90)).after(gate)] * 50, facts=FACTS)
    core = bench.collection([model])
    name = {"owner": f"{bench.tag}-ann", "team": f"{bench.tag}-team ünï|x", "collection": core.removeprefix("bench/")}[kind]
    keys = [bench.key(owner=f"{bench.tag}-ann", team=f"{bench.tag}-team ünï|x") for _ in range(2)]
    made = budget(kind, name, "0.015")
    assert (made["spent_usd"], made["left_usd"], made["alert_at"]) == ("0", "0.015", [80, 100])
    with ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(bench.ask, core, key=keys[n % 2], max_tokens=10_000) for n in range(50)]
        eventually(lambda: sum(a.done() for a in asked) == 49, "49 refusals")
        gate.open()
        answers = [a.result() for a in asked]
    assert sorted({a.status for a in answers}) == [200, 402]
    assert sum(a.status == 200 for a in answers) == 1
    refused = next(a for a in answers if a.status == 402)
    assert refused.code == "budget_exceeded"
    assert name in refused.json["error"]["message"]
    settled(bench, kind, name, "0.0001")
    (alert,) = eventually(lambda: [a for a in bench.live.listed("alerts") if name in a["subject"]], "an alert of the refusals")
    assert alert["kind"] == "budget"
    assert bench.ask(core, key=keys[0], max_tokens=10_000).status == 200  # what was reserved and not spent came back


def test_what_was_spent_before_a_budget_was_set_counts(bench: Bench, budget: Callable[..., dict[str, Any]]) -> None:
    model = bench.model("fast", *[reply("hi", usage=(100_000, 900_000))] * 3, facts=FACTS)
    team = f"{bench.tag}-team"
    key = bench.key(team=team)
    assert bench.ask(model, key=key).status == 200
    bench.live.attempts(1, team=team)
    assert budget("team", team, "1.001")["spent_usd"] == "1"
    refused = bench.ask(model, key=key, max_tokens=10_000)
    assert (refused.status, refused.code) == (402, "budget_exceeded")
    bench.live.api("PATCH", f"budgets/team/{team}", {"budget_usd": "1.5"})
    assert bench.ask(model, key=key, max_tokens=10_000).status == 200
    settled(bench, "team", team, "2")
    bench.live.api("DELETE", f"budgets/team/{team}", status=204)
    assert bench.ask(model, key=key, max_tokens=10_000).status == 200
    bench.live.attempts(3, team=team)
    assert budget("team", team, "9")["spent_usd"] == "3"  # the meter learned what was spent while there was no budget
    assert standing(bench, "team", team)["reserved_usd"] == "0"


def test_a_keys_budget_set_in_the_middle_of_a_month_counts_what_the_key_spent(bench: Bench) -> None:
    model = bench.model("fast", *[reply("hi", usage=(100_000, 900_000))] * 2, facts=FACTS)
    name = f"{bench.tag}-key"
    key = bench.key(name=name)
    assert bench.ask(model, key=key).status == 200
    bench.live.attempts(1, key_name=name)
    bench.live.api("PATCH", f"keys/{name}", {"budget_usd": "1.001"})
    refused = bench.ask(model, key=key, max_tokens=10_000)
    assert (refused.status, refused.code) == (402, "budget_exceeded")
    assert "This key's budget" in refused.json["error"]["message"]


def test_a_budget_refuses_what_has_no_price_and_says_which_budget(bench: Bench, budget: Callable[..., dict[str, Any]]) -> None:
    model = bench.model("unpriced", reply("hi"))
    core = bench.collection([model])
    bench.load()
    budget("collection", core.removeprefix("bench/"), "5")
    refused = bench.ask(core)
    assert (refused.status, refused.code) == (402, "price_unknown")
    assert core.removeprefix("bench/") in refused.json["error"]["message"]
    assert bench.ask(model).status == 200  # a direct call is no call to the collection


def test_callers_without_a_key_count_for_a_collection(bench: Bench, budget: Callable[..., dict[str, Any]]) -> None:
    model = bench.model("fast", *[reply("hi", usage=(100_000, 900_000))] * 2, facts=FACTS)
    route = f"{bench.collection([model])}:route"
    bench.load()
    name = route.removeprefix("bench/").removesuffix(":route")
    budget("collection", name, "1.05")
    assert bench.ask(route, max_tokens=900_000).status == 200
    settled(bench, "collection", name, "1")
    assert bench.ask(route, max_tokens=900_000).code == "budget_exceeded"


def test_shadow_seats_are_paid_from_all_budgets(bench: Bench, budget: Callable[..., dict[str, Any]]) -> None:
    first = bench.model("first", *[reply("hi", usage=(100, 900))] * 2, facts=FACTS)
    other = bench.model("other", *[reply("hi", usage=(100, 900))] * 2, facts=FACTS, ad_hoc=False)
    name = bench.collection([first, other], shadow_share=1).removeprefix("bench/")
    bench.load()
    budget("collection", name, "0.025")
    assert bench.ask(f"bench/{name}:route", max_tokens=10_000).status == 200
    settled(bench, "collection", name, "0.002")
    bench.live.api("PATCH", f"budgets/collection/{name}", {"budget_usd": "0.0125"})  # room for the turn, and then not for a shadow
    assert bench.ask(f"bench/{name}:route", max_tokens=10_000).status == 200
    settled(bench, "collection", name, "0.003")


def test_a_panel_pays_for_all_its_seats_from_every_budget_it_falls_under(bench: Bench, budget: Callable[..., dict[str, Any]]) -> None:
    seats = [bench.model(n, reply("hi", usage=(100, 900)), facts=FACTS) for n in ("one", "two", "three")]
    name = bench.collection(seats).removeprefix("bench/")
    owner, team = f"{bench.tag}-ann", f"{bench.tag}-{'long' * 40}"
    key = bench.key(owner=owner, team=team)
    for kind, whose in (("owner", owner), ("team", team), ("collection", name)):
        budget(kind, whose, "10")
    assert bench.ask(f"bench/{name}", key=key, max_tokens=1000).status == 200
    for kind, whose in (("owner", owner), ("team", team), ("collection", name)):
        settled(bench, kind, whose, "0.003")
    quotas = [q for q in bench.live.listed("quotas") if q["measure"] == "usd" and q["name"] in (owner, team, name)]
    assert {(q["scope"], q["limit"], q["used"], q["left"]) for q in quotas} == {(k, "10", "0.003", "9.997") for k in ("owner", "team", "collection")}
