"""What a benchmark must stand before it is published: the right answer, none, one for all, and lots."""

from __future__ import annotations

from typing import Any

import pytest

from suite.grading.contract import Options
from suite.registry import baselines
from suite.registry.baselines import Task
from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver
from tests.suite.test_scorers import one_method


def math(values: list[Any]) -> list[Task]:
    return [Task(f"t{i}", "math", {"question": f"{i}?"}, {"value": value}) for i, value in enumerate(values)]


def claims(values: list[bool]) -> list[Task]:
    return [Task(f"t{i}", "claim", {"claim": f"{i}.", "code": "x"}, {"value": value}) for i, value in enumerate(values)]


def choices(letters: str, count: int = 4) -> list[Task]:
    return [Task(f"t{i}", "multiple_choice", {"question": "?", "choices": [f"c{j}" for j in range(count)]}, {"value": v}) for i, v in enumerate(letters)]


def calls(values: list[list[dict[str, Any]]]) -> list[Task]:
    return [Task(f"t{i}", "function_call", {"question": "?", "functions": []}, {"value": value}) for i, value in enumerate(values)]


CASES: list[tuple[str, list[Task], str, list[str]]] = [
    ("many answers", math(list(range(40))), "admitted", []),
    ("one answer", math([4] * 40), "failed", ["constant", "random"]),
    ("one answer, but few tasks", math([4] * 5), "admitted", []),
    ("half of them one answer", math([4] * 20 + list(range(100, 120))), "admitted", []),
    ("balanced claims", claims([True, False] * 20), "admitted", []),
    ("claims that nearly all hold", claims([True] * 36 + [False] * 4), "failed", ["constant"]),
    ("letters spread", choices("ABCD" * 10), "admitted", []),
    ("always C", choices("C" * 40), "failed", ["constant"]),
    ("two choices, balanced", choices("AB" * 20, 2), "admitted", []),
    ("a letter that is no choice", choices("ABCDE" * 8, 4), "failed", ["oracle"]),
    ("calls, some of them none", calls([[{"name": "f", "args": {"x": i}}] for i in range(30)] + [[]] * 10), "admitted", []),
    ("a judge's", [Task("t", "judge", {"question": "?"}, {"value": "x"})], "unchecked", []),
    ("a schema alone", [Task(f"t{i}", "json", {"question": "?"}, {"schema": {"type": "string"}}) for i in range(3)], "unchecked", []),
]


@pytest.mark.parametrize(("name", "tasks", "status", "failed"), CASES, ids=[case[0] for case in CASES])
def test_baselines_must_behave(name: str, tasks: list[Task], status: str, failed: list[str]) -> None:
    found = baselines.checks(tasks, Options())
    assert baselines.verdict(found) == status, found
    assert [check.name for check in found if check.ok is False] == failed, found


def test_a_grader_that_raises_fails_its_oracle() -> None:
    found = baselines.checks([Task("t0", "math", {"question": "?"}, {"value": "no number"})], Options())
    assert [(check.name, check.tasks) for check in found if check.ok is False] == [("oracle", ("t0",))]


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def of_one_answer(count: int = 20) -> list[dict[str, Any]]:
    return [{"task_id": f"t{i}", "input": {"question": f"What is 2 + 2? ({i})"}, "expected": {"value": 4}} for i in range(count)]


def test_what_fails_its_checks_is_not_published_but_by_an_admin_with_a_reason(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    author = Driver(bench, bench.key(owner="author", scopes=["runs:read", "runs:write", "registry:read", "registry:publish", "ask"]))
    subset = author.subset(of_one_answer())
    run = author.ended(author.launch(subset, model)["id"])["id"]
    seen = author.api("GET", f"registry/subsets/{subset['id']}/admission")
    assert (seen["status"], [c["name"] for c in seen["checks"] if c["ok"] is False]) == ("failed", ["constant", "random"])
    etag = author.send("GET", f"runs/{run}").headers["etag"]
    for answer in (
        author.send("POST", f"runs/{run}/publish", {}),
        author.send("PATCH", f"runs/{run}", {"visibility": "public"}, If_Match=etag),
    ):
        assert (answer.status, answer.json["code"]) == (409, "admission_failed")
        assert {check["name"] for check in answer.json["failed"]} == {"constant", "random"}
        assert "'ANSWER: 4' passes 100%" in answer.json["detail"]
    assert author.api("GET", f"runs/{run}")["visibility"] == "private"
    assert author.api("GET", f"registry/benchmarks/{subset['benchmark']}")["admission"]["status"] == "failed"
    assert author.api("POST", f"runs/{run}/publish", {"visibility": "team"})["visibility"] == "team", "sharing is not publishing"
    refused = author.send("POST", f"runs/{run}/publish", {"override": "please"})
    assert (refused.status, refused.json["required_scope"]) == (403, "admin")
    assert driver.api("POST", f"runs/{run}/publish", {"override": "a smoke test"})["visibility"] == "public"
    kept = author.api("GET", f"registry/benchmarks/{subset['benchmark']}")["admission"]
    assert (kept["status"], [one["reason"] for one in kept["checked"].values()]) == ("overridden", ["a smoke test"])
    assert [e["reason"] for e in bench.live.rows("access.AuditEntry", action="admission.override") if e["changes"]["run"][1] == run] == ["a smoke test"]


def test_what_stands_its_checks_is_published_with_them(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    tasks = [{**row, "expected": {"value": i}} for i, row in enumerate(of_one_answer(24))]
    subset = driver.subset(tasks)
    run = driver.ended(driver.launch(subset, model)["id"])["id"]
    driver.api("POST", f"runs/{run}/publish", {})
    kept = driver.api("GET", f"registry/benchmarks/{subset['benchmark']}")["admission"]
    (found,) = kept["checked"].values()
    assert (kept["status"], found["subset"], found["version"]) == ("admitted", subset["id"], 1)
    assert [(c["name"], c["ok"], c["rate"]) for c in found["checks"][:2]] == [("oracle", True, 1.0), ("empty", True, 0.0)]


def test_a_version_is_tried_once_with_each_scorer_and_anew_where_it_is_asked_for(bench: Bench, driver: Driver) -> None:
    tasks = [{**row, "expected": {"value": i}} for i, row in enumerate(of_one_answer(24))]
    subset = driver.subset(tasks[:23], rolling=True)
    where = f"registry/subsets/{subset['id']}/admission"
    first = driver.api("GET", where)
    assert (first["status"], first["version"]) == ("admitted", 1)
    assert driver.api("GET", where) == first, "as it was found, to the time of day"
    again = driver.api("GET", f"{where}?fresh=1")
    assert again["checked_at"] > first["checked_at"]
    assert {**again, "checked_at": ""} == {**first, "checked_at": ""}
    assert driver.api("GET", f"{where}?fresh=0") == again, "what was found last is kept"
    assert driver.send("GET", f"{where}?fresh=soon").status == 422
    # Another version, or another scorer, was not tried yet.
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": tasks[23:]})
    grown = driver.api("GET", where)
    assert (grown["version"], grown["impl"], grown["checks"][0]["of"]) == (2, first["impl"], 24)
    driver.api("PATCH", f"build/subsets/{subset['id']}/recipe", {"config": {"grader": {"kind": "exact"}}, "note": "word for word"})
    other = driver.api("GET", where)
    assert other["impl"] != first["impl"]
    assert driver.api("GET", f"{where}?impl={first['impl']}") == grown
    rows = bench.live.rows("suite.Admission", subset_id=subset["id"])
    assert len(rows) == 3


def test_publishing_goes_by_what_was_found_before_unless_it_failed(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    good = driver.subset([{**row, "expected": {"value": i}} for i, row in enumerate(of_one_answer(24))])
    run = driver.ended(driver.launch(good, model)["id"])["id"]
    found = driver.api("GET", f"registry/subsets/{good['id']}/admission")
    driver.api("POST", f"runs/{run}/publish", {})
    (published,) = driver.api("GET", f"registry/benchmarks/{good['benchmark']}")["admission"]["checked"].values()
    assert published == {name: value for name, value in found.items() if name != "object"}
    bad = driver.subset(of_one_answer())
    run = driver.ended(driver.launch(bad, model)["id"])["id"]
    found = driver.api("GET", f"registry/subsets/{bad['id']}/admission")
    assert driver.send("POST", f"runs/{run}/publish", {}).json["admission"]["checked_at"] > found["checked_at"], "it is looked at again"


OWN = {
    "one that passes all": ("return 1.0", "failed", ["empty"]),
    "one that fails by itself": ("raise ValueError('no')", "failed", ["oracle"]),
    "one that compares": ('return 1.0 if output == str(expected["value"]) else 0.0', "admitted", []),
    "one that wants another form": ('return 1.0 if output == "so " + str(expected["value"]) else 0.0', "admitted", []),
}


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
@pytest.mark.parametrize("name", OWN)
def test_a_scorer_of_ones_own_is_tried_in_the_sandbox(driver: Driver, name: str) -> None:
    score, status, failed = OWN[name]
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": of_one_answer(2)}, 201)
    driver.api("POST", "impls", {"subset": subset["id"], "code": f"{one_method(score=score)}# {benchmark}\n"}, 201)
    found = driver.api("GET", f"registry/subsets/{subset['id']}/admission")
    assert (found["status"], [check["name"] for check in found["checks"] if check["ok"] is False]) == (status, failed), found


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_programs_are_tried_by_their_own_solutions(driver: Driver) -> None:
    good = {"input": {"prompt": "Write double(x)."}, "expected": {"test_code": "assert double(4) == 8", "solution": "def double(x):\n    return 2 * x"}}
    wrong = {**good, "expected": {**good["expected"], "solution": "def double(x):\n    return x"}}
    bare = {**good, "expected": {"test_code": "assert double(4) == 8"}}
    for rows, status in (([good, bare], "admitted"), ([good, wrong], "failed"), ([bare], "unchecked")):
        subset = driver.subset([{"task_id": f"t{i}", **row} for i, row in enumerate(rows)], grader={"kind": "code"})
        found = driver.api("GET", f"registry/subsets/{subset['id']}/admission")
        assert found["status"] == status, found
        assert len(driver.bench.live.rows("suite.Admission", subset_id=subset["id"])) == (status != "unchecked"), "what could not be told is not kept"
