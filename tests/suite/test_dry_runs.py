"""Scorers tried on a few rows before anything is run by them (B61): no model is asked."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

needs_box = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def code(score: str = 'return 1.0 if output == str(expected["value"]) else 0.0', extract: str = "return json.loads(open(path).readline())") -> str:
    return textwrap.dedent(f"""
        import json
        from bench_task import BenchTask
        class Task(BenchTask):
            def extract(self, path, index):
                {extract}
            def solve(self, index, input):
                raise AssertionError("no model is asked")
            def score(self, index, output, expected):
                {score}
    """)


def tried(driver: Driver, source: str, body: Any = None, status: int = 200) -> dict[str, Any]:
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(5)}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": source})
    found: dict[str, Any] = driver.api("POST", f"impls/{impl['id']}/dry-run", {} if body is None else body, status)
    return found


@needs_box
def test_a_scorer_that_behaves_is_fine(driver: Driver) -> None:
    found = tried(driver, code())
    assert (found["ok"], found["findings"], len(found["rows"])) == (True, [], 3)
    first = found["rows"][0]
    assert (first["extract"]["ok"], first["oracle"]["output"], first["oracle"]["outcome"], first["empty"]["outcome"]) == (True, "4", "passed", "failed")


@needs_box
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (code("return 1.0"), "an empty answer passes"),
        (code("return 0.0"), "the right answer does not pass"),
        (code("return True"), "bad_score"),
        (code("return float('nan')"), "bad_score"),
        (code("return json.loads(output)['x']"), "scorer_failed"),
        (code("import os; os._exit(0)"), "scorer_failed"),
        (code(extract="raise KeyError('gone')"), "KeyError"),
        (code(extract='return {"task_id": "other", "input": {}, "expected": None}'), "does not give the row"),
    ],
)
def test_a_scorer_that_does_not_says_how(driver: Driver, source: str, said: str) -> None:
    found = tried(driver, source, {"task_ids": ["t1"]})
    assert found["ok"] is False
    assert any(said in finding for finding in found["findings"]), found["findings"]
    assert [row["task_id"] for row in found["rows"]] == ["t1"]


@needs_box
def test_rows_may_come_along(driver: Driver) -> None:
    assert tried(driver, code(), {"rows": [{"task_id": "mine", "input": {"q": 1}, "expected": {"value": "x"}}]})["ok"] is True


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({"rows": sums(4)}, "too_many_tasks"),
        ({"rows": []}, "rows_missing"),
        ({"rows": [{}]}, "invalid_row"),
        ({"task_ids": ["t0", "t1", "t2", "t3"]}, "invalid_request"),
        ({"task_ids": ["nobody"]}, "unknown_task"),
        ({"more": 1}, "unknown_field"),
    ],
)
def test_what_cannot_be_tried_is_refused(driver: Driver, body: Any, refused: str) -> None:
    assert tried(driver, code(), body, 422)["code"] == refused


def test_nobody_tries_a_strangers_scorer(bench: Bench, driver: Driver) -> None:
    benchmark = driver.benchmark()["id"]
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "code": code() + f"# {bench.tag}"})
    other = Driver(bench, bench.key(owner="somebody", scopes=["registry:publish", "registry:read"]))
    assert other.send("POST", f"impls/{impl['id']}/dry-run", {}).json["code"] == "impl_not_found"
    reader = Driver(bench, bench.key(scopes=["registry:read"]))
    assert reader.send("POST", f"impls/{impl['id']}/dry-run", {}).status == 403
    assert driver.send("POST", f"impls/{impl['id']}/dry-run", {}).json["code"] == "rows_missing"


def test_a_built_in_grader_is_tried_as_well_and_a_judge_is_not(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])
    found = driver.api("POST", f"impls/{run['impl']['id']}/dry-run", {"subset": run["subset_id"]})  # others have the same grader
    assert (found["ok"], found["rows"][0]["oracle"]["output"], found["rows"][0]["empty"]["outcome"]) == (True, "ANSWER: 4", "unparsed")
    task = {"task_id": "one", "input": {"question": "Why?"}, "expected": None}
    judged = driver.ended(driver.launch(driver.subset([task], grader={"kind": "judge", "judge": model}), model)["id"])
    assert driver.send("POST", f"impls/{judged['impl']['id']}/dry-run", {}).json["code"] == "dry_run_unsupported"
