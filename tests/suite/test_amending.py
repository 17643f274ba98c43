"""Benchmarks mended in place: what has run keeps its scorer and its rows."""

from __future__ import annotations

from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums
from tests.suite.test_scorers import one_method

FOUR = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def named(driver: Driver, slug: str, tasks: list[dict[str, Any]], **more: Any) -> tuple[dict[str, Any], str]:
    """Makes a subset with a slug of its own."""
    benchmark = driver.benchmark()["id"]
    name = f"{slug}-{benchmark[-8:].lower()}"
    return driver.subset(tasks, benchmark, slug=name, **more), name


def test_an_edited_recipe_keeps_the_subset_and_moves_the_scorer(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset, slug = named(driver, "sums", sums(2))
    before = driver.ended(driver.launch(subset, model)["id"])
    read = driver.send("GET", f"build/subsets/{slug}/recipe")
    assert (read.json["config"], read.json["impl"]) == ({"grader": {"kind": "math"}}, before["impl"]["id"])
    change = {"config": {"run_timeout": 900, "trials": 3}, "note": "it boots slowly"}
    assert driver.send("PATCH", f"build/subsets/{slug}/recipe", change, If_Match='"old"').status == 412
    told = driver.api("PATCH", f"build/subsets/{slug}/recipe", change, If_Match=read.headers["etag"])
    assert (told["subset"], told["impl_before"], told["changed"]["trials"]) == (subset["id"], before["impl"]["id"], [None, 3])
    after = driver.ended(driver.launch(subset, model)["id"])
    assert after["impl"]["id"] == told["impl"] != before["impl"]["id"]
    assert (after["subset_id"], after["trials"]) == (subset["id"], 3)
    assert driver.api("GET", f"runs/{before['id']}")["impl"]["id"] == before["impl"]["id"]
    again = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": before["id"]}}, 201)["id"])
    assert again["impl"]["id"] == before["impl"]["id"], "a replay keeps its parent's"
    assert len(driver.api("GET", f"registry/subsets/{subset['id']}/leaderboard")["data"]) == 2
    back = driver.api("PATCH", f"build/subsets/{slug}/recipe", {"config": {"run_timeout": None, "trials": None}, "note": "it does not"})
    assert back["impl"] == before["impl"]["id"], "the same content is the same impl"
    looser = driver.api("PATCH", f"build/subsets/{slug}/recipe", {"config": {"grader": {"kind": "math", "tolerance": 0.1}}, "note": "rounded"})
    assert looser["impl"] not in (before["impl"]["id"], after["impl"]["id"])
    entries = bench.live.rows("access.AuditEntry", action="recipe.change", target=f"sums/{slug}")
    assert [entry["reason"] for entry in sorted(entries, key=lambda e: e["id"])] == ["it boots slowly", "it does not", "rounded"]


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_code_under_an_edited_recipe_is_another_impl_with_the_same_code(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(1)}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": one_method(score="\n        while True: pass")})
    told = driver.api("PATCH", f"build/subsets/{subset['id']}/recipe", {"config": {"run_timeout": 2}, "note": "shorter"})
    assert told["impl"] != told["impl_before"] == impl["id"]
    run = driver.ended(driver.launch(subset, model)["id"])
    assert run["impl"]["id"] == told["impl"]
    assert run["summary"]["judge_failed"] == 1, "ended after two seconds"
    assert driver.send("GET", f"impls/{told['impl']}/code").body == driver.send("GET", f"impls/{impl['id']}/code").body


def test_edited_samples_are_another_subset_that_takes_the_old_ones_place(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset, slug = named(driver, "sums", sums(3, wrong=1), recipe={"trials": 2})
    before = driver.ended(driver.launch(subset, model)["id"])
    read = driver.send("GET", f"build/subsets/{slug}/samples")
    assert [row["expected"]["value"] for row in read.json["data"]] == [5, 4, 4]
    mended = {**sums(1)[0], "task_id": "t0"}
    change = {"upsert": [mended, {**mended, "task_id": "new"}], "remove": ["t2"], "note": "t0 wanted 5"}
    assert driver.send("PATCH", f"build/subsets/{slug}/samples", change, If_Match='"x"').status == 412
    told = driver.api("PATCH", f"build/subsets/{slug}/samples", change, If_Match=read.headers["etag"])
    assert (told["before"], told["counts"]) == (subset["id"], {"changed": 1, "added": 1, "removed": 1})
    assert {(d["task_id"], d["change"]) for d in told["diff"]} == {("t0", "changed"), ("new", "added"), ("t2", "removed")}
    assert (told["subset"]["id"], told["subset"]["slug"], told["subset"]["recipe"]) == (told["after"], slug, {"trials": 2})
    gone = driver.send("POST", "runs", {"benchmark": subset["benchmark"], "subset": subset["id"], "sut": model})
    assert (gone.status, gone.json["code"], gone.json["replaced_by"]) == (410, "subset_retired", told["after"])
    for name in (slug, told["after"]):
        after = driver.ended(driver.api("POST", "runs", {"benchmark": subset["benchmark"], "subset": name, "sut": model}, 201)["id"])
        assert (after["subset_id"], after["summary"]["passed"], after["trials"]) == (told["after"], 3, 2)
        assert after["impl"]["id"] == before["impl"]["id"], "the scorer did not change"
    old = driver.api("GET", f"runs/{before['id']}?expand=summary,subset")
    assert (old["subset_id"], old["summary"]["passed"], old["subset"]["retired_because"]) == (subset["id"], 2, "t0 wanted 5")
    assert [row["task_id"] for row in driver.api("GET", f"build/subsets/{slug}/samples")["data"]] == ["t0", "t1", "new"]
    same = driver.api("PATCH", f"build/subsets/{slug}/samples", {"upsert": [mended], "note": "again"})
    assert (same["before"], same["after"], same["diff"]) == (told["after"], told["after"], [])
    late = driver.send("PATCH", f"build/subsets/{subset['id']}/samples", {"upsert": [mended], "note": "late"})
    assert (late.status, late.json["code"], late.json["replaced_by"]) == (410, "subset_retired", told["after"])


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("recipe", {"config": {"run_timeout": 900}}, "invalid_request"),
    ("recipe", {"config": {"run_timeout": 900}, "note": "  "}, "invalid_request"),
    ("recipe", {"note": "why"}, "invalid_request"),
    ("recipe", {"config": {"run_timeout": 0}, "note": "why"}, "invalid"),
    ("recipe", {"config": {"speed": 1}, "note": "why"}, "unknown_field"),
    ("recipe", {"config": {"impl": "imp_00000000000000000000000000"}, "note": "why"}, "impl_unknown"),
    ("recipe", {"config": {"grader": {"kind": "vibes"}}, "note": "why"}, "grader_unknown"),
    ("recipe", {"config": {"grader": {"kind": "claim"}}, "note": "why"}, "grader_unfit"),
    ("recipe", {"config": {"trials": 2}, "note": "why", "speed": 1}, "unknown_field"),
    ("samples", {"upsert": [{"task_id": "a"}], "note": "why"}, "invalid_row"),
    ("samples", {"note": "why"}, "invalid_request"),
    ("samples", {"remove": ["none"], "note": "why"}, "unknown_task"),
    ("samples", {"remove": ["t0", "t1"], "note": "why"}, "invalid_request"),
    ("samples", {"remove": ["t0"], "upsert": [{"task_id": "t0", "input": {"question": "?"}, "expected": {"value": 1}}], "note": "why"}, "invalid_request"),
    ("samples", {"remove": ["t0"]}, "invalid_request"),
]


def test_an_edit_that_cannot_be_meant_changes_nothing(driver: Driver) -> None:
    subset, slug = named(driver, "sums", sums(2))
    for part, body, code in BAD:
        answer = driver.send("PATCH", f"build/subsets/{slug}/{part}", body)
        assert (answer.status, answer.json["code"]) == (422, code), body
    assert driver.api("GET", f"registry/subsets/{subset['id']}") == subset


def test_only_the_owner_edits_and_a_reader_reads(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset, slug = named(driver, "sums", sums(1))
    other = Driver(bench, bench.key(owner="somebody", scopes=["registry:read", "registry:publish", "runs:read"]))
    reader = Driver(bench, bench.key(owner="reader", scopes=["registry:read"]))
    change = {"config": {"trials": 2}, "note": "mine now"}
    assert other.send("GET", f"build/subsets/{slug}/recipe").status == 404
    driver.api("POST", f"runs/{driver.ended(driver.launch(subset, model)['id'])['id']}/publish", {})
    assert other.api("GET", f"build/subsets/{slug}/recipe")["subset"] == subset["id"]
    assert reader.api("GET", f"build/subsets/{slug}/samples")["data"][0]["task_id"] == "t0"
    for part, body in (("recipe", change), ("samples", {"remove": ["t0"], "note": "mine now"})):
        assert other.send("PATCH", f"build/subsets/{slug}/{part}", body).status == 404
        assert reader.send("PATCH", f"build/subsets/{slug}/{part}", body).json["required_scope"] == "registry:publish"


def test_a_slug_that_several_benchmarks_have_wants_an_id(driver: Driver) -> None:
    one, two = driver.subset(sums(1), slug="twin"), driver.subset(sums(1), slug="twin")
    answer = driver.send("GET", "build/subsets/twin/recipe")
    assert (answer.status, answer.json["code"]) == (409, "slug_ambiguous")
    assert {one["id"], two["id"]} <= set(answer.json["subsets"])
    assert driver.api("GET", f"build/subsets/{two['id']}/recipe")["subset"] == two["id"]


def test_a_retired_subset_takes_no_runs_and_frees_its_slug(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    old = driver.subset(sums(1), slug="v1")
    told = driver.api("PATCH", f"subsets/{old['id']}", {"retired": True, "note": "it leaked"})
    assert (told["runnable"], told["retired_because"]) == (False, "it leaked")
    answer = driver.send("POST", "runs", {"benchmark": old["benchmark"], "subset": "v1", "sut": model})
    assert (answer.status, answer.json["code"], answer.json["replaced_by"]) == (410, "subset_retired", None)
    new = driver.subset(sums(2), old["benchmark"], slug="v1")
    assert driver.api("POST", "runs", {"benchmark": old["benchmark"], "subset": "v1", "sut": model}, 201)["subset_id"] == new["id"]
    assert driver.send("PATCH", f"subsets/{old['id']}", {"retired": False}).status == 409


def test_a_scorer_of_a_run_grades_another_subset(bench: Bench, driver: Driver) -> None:
    model = bench.model("close", reply("ANSWER: 4.001", usage=(20, 8)))
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1), grader={"kind": "math", "tolerance": 0.01}), model)["id"])
    assert run["summary"]["passed"] == 1
    benchmark = driver.benchmark()["id"]
    bare = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "bare", "tasks": sums(2)}, 201)
    impl = driver.api("POST", "impls:from-run", {"from_run": run["id"], "benchmark": benchmark, "subset": bare["id"], "label": "inherited"}, 201)
    assert (impl["id"], impl["from_run"], impl["label"]) == (run["impl"]["id"], run["id"], "inherited")
    found = driver.ended(driver.launch(bare, model)["id"])
    assert (found["impl"]["id"], found["summary"]["passed"]) == (impl["id"], 2)
    claims = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "claims", "tasks": [{"task_id": "a", "input": {"claim": "x", "code": "y"}}]}, 201)
    answer = driver.send("POST", "impls:from-run", {"from_run": run["id"], "subset": claims["id"]})
    assert (answer.status, answer.json["code"]) == (422, "grader_unfit")
