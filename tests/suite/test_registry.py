"""Runs side by side, through the public door."""

from __future__ import annotations

import pytest

from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

RIGHT, WRONG = reply("ANSWER: 4", usage=(20, 8)), reply("ANSWER: 3", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def test_a_clear_difference_is_called_one_and_a_replay_is_not(bench: Bench, driver: Driver) -> None:
    good, bad = bench.model("good", RIGHT), bench.model("bad", WRONG)
    bench.load()
    subset = driver.subset(sums(20, wrong=2))
    first, second = (driver.ended(driver.launch(subset, model)["id"]) for model in (good, bad))
    again = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": first["id"]}}, 201)["id"])
    told = driver.api("GET", f"compare?runs={first['id']},{second['id']},{again['id']}")
    pairs = {pair["second"]: pair for pair in told["pairs"]}
    assert (pairs[second["id"]]["verdict"], pairs[second["id"]]["method"], pairs[second["id"]]["wins"], pairs[second["id"]]["losses"]) == (
        "better",
        "mcnemar",
        18,
        0,
    )
    assert pairs[second["id"]]["p_holm"] >= pairs[second["id"]]["p"]
    assert (pairs[again["id"]]["verdict"], pairs[again["id"]]["ties"]) == ("inconclusive", 20)
    assert all(pair["comparable"] for pair in pairs.values())
    assert driver.api("GET", f"compare?runs={first['id']},{second['id']}")["flips"][0]["first"] is True


def test_a_comparison_says_what_differs_besides_the_subject(bench: Bench, driver: Driver) -> None:
    model = bench.model("good", RIGHT)
    bench.load()
    one = driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])
    other = driver.ended(driver.launch(driver.subset(sums(3), grader={"kind": "math", "tolerance": 0.01}), model)["id"])
    (pair,) = driver.api("GET", f"compare?runs={one['id']},{other['id']}")["pairs"]
    assert pair["comparable"] is False
    assert any("subset" in caveat for caveat in pair["caveats"])
    assert any("impl" in caveat for caveat in pair["caveats"])


def test_a_board_holds_whole_runs_of_one_version_and_impl(bench: Bench, driver: Driver) -> None:
    good, bad = bench.model("good", RIGHT), bench.model("bad", WRONG)
    bench.load()
    subset = driver.subset(sums(12), rolling=True)
    runs = [driver.ended(driver.launch(subset, model)["id"]) for model in (bad, good)]
    driver.ended(driver.launch(subset, good, metadata={"limit": 3})["id"])
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": [{**sums(1)[0], "task_id": "later"}]})
    driver.ended(driver.launch(subset, good)["id"])
    boards = driver.api("GET", f"registry/subsets/{subset['id']}/leaderboard")["data"]
    assert [(b["version"], len(b["rows"])) for b in boards] == [(2, 1), (1, 2)]
    assert [row["subject"] for row in boards[1]["rows"]] == [good, bad]
    assert [row["rank"] for row in boards[1]["rows"]] == [[1, 1], [2, 2]]
    assert {row["run"] for row in boards[1]["rows"]} == {r["id"] for r in runs}


def test_all_subsets_are_one_list_that_is_narrowed(bench: Bench, driver: Driver) -> None:
    owner = f"author-{bench.tag}"
    author = Driver(bench, bench.key(owner=owner, scopes=["registry:read", "registry:publish"]))
    one, two = author.benchmark("one")["id"], author.benchmark("two")["id"]
    made = [author.subset(sums(2), benchmark=of, slug=slug, name=f"{slug} of it", recipe=recipe) for of, slug, recipe in (
        (one, "first", {}), (one, "second", {"passes": True}), (two, "first", {"passes": False}), (two, "third", {"trials": 2}),
    )]  # fmt: skip
    author.api("PATCH", f"subsets/{made[3]['id']}", {"retired": True, "note": "old"})

    def listed(query: str) -> list[str]:
        return [row["id"] for row in author.api("GET", f"registry/subsets?{query}")["data"]]

    ids = [row["id"] for row in made]
    assert [name for name in listed("limit=500") if name in ids] == ids
    for query, wanted in (
        (f"benchmark={one}", ids[:2]), (f"benchmark={one}&benchmark={two}", ids), (f"benchmark={two}&slug=first", [ids[2]]),
        (f"benchmark={one}&passes=true", [ids[1]]),
        (f"benchmark={two}&passes=false", ids[2:]), (f"benchmark={two}&retired=true", [ids[3]]), (f"benchmark={two}&retired=false", [ids[2]]),
        (f"benchmark={one}&q=SECOND%20it", [ids[1]]), (f"benchmark={one}&q=third", []),
    ):  # fmt: skip
        assert listed(query) == wanted, query
    page = author.api("GET", f"registry/subsets?benchmark={one}&limit=1")
    assert (page["data"], page["has_more"]) == ([author.api("GET", f"registry/subsets/{ids[0]}")], True)
    assert listed(f"benchmark={one}&limit=1&page_token={page['next']}") == [ids[1]]
    assert author.send("GET", f"registry/subsets?benchmark={two}&limit=1&page_token={page['next']}").json["code"] == "invalid_page_token"
    for query, status in (("passes=perhaps", 422), ("kind=math", 422), ("benchmark=bm_00000000000000000000000000", 404)):
        assert author.send("GET", f"registry/subsets?{query}").status == status, query
    stranger = Driver(bench, bench.key(owner=f"stranger-{bench.tag}", scopes=["registry:read"]))
    assert not [row for row in stranger.api("GET", "registry/subsets?limit=500")["data"] if row["id"] in ids], "somebody else's and private"
    assert stranger.send("GET", f"registry/subsets?benchmark={one}").status == 404


def test_coverage_lists_the_holes(bench: Bench, driver: Driver) -> None:
    model = bench.model("good", RIGHT)
    bench.load()
    subset = driver.subset(sums(6))
    driver.ended(driver.launch(subset, model, metadata={"limit": 3})["id"])
    told = driver.api("GET", f"benchmarks/{subset['benchmark']}/coverage?range=0-5")
    assert told["uncovered"] == [3, 4, 5]
    assert told["data"][0]["holes"] == [3, 4, 5]
    assert driver.send("GET", f"benchmarks/{subset['benchmark']}/coverage?range=5-0").status == 422


def test_a_models_score_reaches_the_record(bench: Bench, driver: Driver) -> None:
    model, other = bench.model("good", RIGHT), bench.model("never_measured", RIGHT)
    collection = bench.collection([model, other])
    bench.load()
    driver.ended(driver.launch(driver.subset(sums(10, wrong=1)), model)["id"])
    assert bench.live.api("GET", f"collections/{collection.removeprefix('bench/')}")["scores"] == {model: 0.9}
    shown = bench.live.api("GET", f"models/{model}")
    assert shown["record"] is not None
    listed = next(m for m in bench.live.api("GET", f"models?find={model}")["data"] if m["alias"] == model)
    assert listed["record"]["score"] == 0.9
