"""Who sees what: a benchmark follows its runs, a team sees what is shared with it, and what an admin changes is on record."""

from __future__ import annotations

import pytest

from tests import factories
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

FOUR = reply("ANSWER: 4", usage=(20, 8))
SCOPES = ["runs:read", "runs:write", "registry:read", "registry:publish"]


@pytest.fixture
def author(bench: Bench) -> Driver:
    team = factories.tag("team-")
    return Driver(bench, bench.key(owner=f"{team}-author", team=team, scopes=SCOPES))


def test_a_benchmark_is_seen_as_far_as_its_runs_are(bench: Bench, author: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    team = author.api("GET", "me")["team"]
    mate = Driver(bench, bench.key(owner="mate", team=team, scopes=SCOPES))
    stranger = Driver(bench, bench.key(owner="stranger", scopes=SCOPES))
    subset = author.subset(sums(1))
    run = author.ended(author.launch(subset, model)["id"])["id"]

    def seen(who: Driver) -> list[int]:
        paths = (
            f"registry/benchmarks/{subset['benchmark']}",
            f"registry/subsets/{subset['id']}",
            f"registry/subsets/{subset['id']}/leaderboard",
            f"runs/{run}",
        )
        return [who.send("GET", path).status for path in paths]

    assert (seen(mate), seen(stranger)) == ([404] * 4, [404] * 4)
    author.api("POST", f"runs/{run}/publish", {"visibility": "team"})
    assert (seen(mate), seen(stranger)) == ([200] * 4, [404] * 4)
    assert mate.send("PATCH", f"runs/{run}", {"tags": ["mine"]}).status == 404, "reading is not owning"
    author.api("POST", f"runs/{run}/publish", {})
    assert seen(stranger) == [200] * 4
    assert author.api("GET", f"registry/benchmarks/{subset['benchmark']}")["visibility"] == "public"
    assert stranger.api("GET", f"registry/benchmarks?name=sums&filter[owner]={team}-author")["data"][0]["id"] == subset["benchmark"]
    for path in (f"benchmarks/{subset['benchmark']}", f"subsets/{subset['id']}"):
        answer = author.send("PATCH", path, {"visibility": "private"})
        assert (answer.status, answer.json["code"]) == (422, "visibility_is_derived")
    etag = author.send("GET", f"runs/{run}").headers["etag"]
    author.api("PATCH", f"runs/{run}", {"visibility": "private"}, If_Match=etag)
    assert (seen(mate), seen(stranger)) == ([404] * 4, [404] * 4), "hiding its runs hides it"
    assert author.api("GET", f"registry/benchmarks/{subset['benchmark']}")["visibility"] == "private"


def test_publishing_to_all_wants_a_scope_of_its_own(bench: Bench, author: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    run = author.ended(author.launch(author.subset(sums(1)), model)["id"])
    me = author.api("GET", "me")
    plain = Driver(bench, bench.key(owner=me["user"]["name"], team=me["team"], scopes=["runs:read", "runs:write"]))
    for method, path, body in (("POST", "/publish", {}), ("PATCH", "", {"visibility": "public"})):
        answer = plain.send(method, f"runs/{run['id']}{path}", body, If_Match=f'"{run["etag"]}"')
        assert (answer.status, answer.json["required_scope"]) == (403, "registry:publish")
    assert plain.api("PATCH", f"runs/{run['id']}", {"visibility": "team"}, If_Match=f'"{run["etag"]}"')["visibility"] == "team"


def test_an_admin_may_and_it_is_on_record(bench: Bench, author: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    run = author.ended(author.launch(author.subset(sums(1)), model)["id"])["id"]
    admin = Driver(bench, bench.key(name=(name := factories.tag("root-")), owner="root", scopes=["admin"]))
    admin.api("PATCH", f"runs/{run}", {"review_resolution": "rejected"})
    assert author.api("GET", f"runs/{run}")["review_resolution"] == "rejected"
    (entry,) = bench.live.rows("access.AuditEntry", action="run.change", target=run)
    assert (entry["actor"], entry["changes"]["review_resolution"]) == (f"key {name}", [None, "rejected"])


def test_a_benchmark_names_those_that_it_came_from_and_those_that_came_from_it(bench: Bench, author: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    source = author.subset(sums(2, wrong=1))
    run = author.ended(author.launch(source, model)["id"])["id"]
    derived = author.api("POST", "subsets:distill", {"runs": [run], "rule": "failed_by_all", "name": "Hard"}, 201)
    by_hand = author.api("POST", "benchmarks", {"name": "By hand", "parents": [source["benchmark"]]}, 201)
    edges = author.api("GET", f"registry/benchmarks/{source['benchmark']}?expand=edges")["edges"]
    assert ([e["id"] for e in edges["derived"]], edges["derived_from"]) == ([derived["benchmark"], by_hand["id"]], [])
    back = author.api("GET", f"registry/benchmarks/{derived['benchmark']}?expand=edges")["edges"]
    assert [(e["id"], e["name"]) for e in back["derived_from"]] == [(source["benchmark"], "sums")]
    assert by_hand["parents"] == [source["benchmark"]]


def test_kinds_of_task_stand_apart_on_a_board(bench: Bench, author: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    claims = [{"task_id": f"c{i}", "kind": "claim", "input": {"claim": "It adds.", "code": "a + b"}, "expected": {"value": True}} for i in range(2)]
    subset = author.subset([*({**row, "kind": "math"} for row in sums(3)), *claims], grader={})
    author.ended(author.launch(subset, model)["id"])
    (board,) = author.api("GET", f"registry/subsets/{subset['id']}/leaderboard")["data"]
    kinds = board["rows"][0]["kinds"]
    assert {name: (kind["total"], kind["passed"], kind["pass_rate"]) for name, kind in kinds.items()} == {"math": (3, 3, 1.0), "claim": (2, 0, 0.0)}
    assert kinds["math"]["ci95"][0] < 1.0
