"""Answers that are thought aloud, cut off, empty or broken: none of them is taken for what it is not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply, status
from tests.live import Bench
from tests.suite.driving import Driver, sums


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def outcome_of(bench: Bench, driver: Driver, answer: Any, tasks: list[dict[str, Any]] | None = None, params: Any = None, grader: Any = None) -> dict[str, Any]:
    model = bench.model("calm", answer)
    bench.load()
    sut = {"model": model, **({"params": params} if params else {})}
    run = driver.launch(driver.subset(sums(1) if tasks is None else tasks, grader=grader), sut, limits={"task": {"attempts": 1}})
    over = driver.ended(run["id"])
    (task,) = driver.api("GET", f"runs/{over['id']}/tasks")["data"]
    return {**task, "asked": bench.fake.calls_to(model)[-1].json, "summary": over["summary"]}


ANSWERS: list[tuple[str, Any, str]] = [
    ("thought, then said", reply("<think>It is 5, no, 7.</think>ANSWER: 4", usage=(1, 1)), "passed"),
    ("cut off in thought", reply("<think>It is 4. ANSWER: 4", finish="length", usage=(1, 1)), "truncated"),
    ("thought without end", reply("<think>It is 4. ANSWER: 4", usage=(1, 1)), "truncated"),
    ("only reasoning, then cut off", reply("", reasoning="It is 4", finish="length", usage=(1, 1)), "truncated"),
    ("cut off in the answer", reply("ANSWER: 4", finish="length", usage=(1, 1)), "truncated"),
    ("filtered", reply("ANSWER: 4", finish="content_filter", usage=(1, 1)), "refused"),
    ("a NUL and half a character", reply("ANSWER: 4\u0000 \u202e", usage=(1, 1)), "passed"),
    ("no such model", status(404), "infrastructure"),
    ("an error that looks like an answer", status(500), "infrastructure"),
]


@pytest.mark.parametrize(("_", "answer", "outcome"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_an_answer_counts_as_what_it_is(bench: Bench, driver: Driver, _: str, answer: Any, outcome: str) -> None:
    if outcome == "infrastructure":
        model = bench.model("calm", answer)
        bench.load()
        run = driver.launch(driver.subset(sums(1)), model, limits={"task": {"attempts": 1}})
        over = driver.api("GET", f"runs/{run['id']}?wait=60&expand=summary")
        assert (over["summary"]["errored"], over["summary"]["pass_rate"]) == (1, None)
        return
    found = outcome_of(bench, driver, answer)
    assert found["outcome"] == outcome
    assert found["passed"] is (True if outcome == "passed" else False if outcome == "refused" else None)


def test_a_stop_word_ends_what_is_said_and_not_what_is_thought(bench: Bench, driver: Driver) -> None:
    found = outcome_of(bench, driver, reply("<think>One.\n\nTwo.</think>ANSWER: 4\n\nANSWER: 5", usage=(1, 1)), params={"stop": "\n\n"})
    assert (found["outcome"], found["preview"]) == ("passed", "ANSWER: 4")
    assert "stop" not in found["asked"]


def test_a_task_that_cannot_be_asked_is_told_as_such_and_holds_up_no_other(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4", usage=(1, 1)))
    bench.load()
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
    shapes: list[Any] = [{"name": "add", "parameters": "none"}, {"name": "add", "parameters": [1]}, {"name": "add", "description": 7}]
    rows = [{"task_id": f"t{i}", "input": {"question": "Add.", "functions": [tool if i == 0 else shapes[i - 1]]}, "expected": {"value": []}} for i in range(4)]
    subset = driver.subset(rows, grader={"kind": "function_call"})
    over = driver.ended(driver.launch(subset, model)["id"])
    found = {task["task_id"]: (task["outcome"], task["error_class"]) for task in driver.api("GET", f"runs/{over['id']}/tasks")["data"]}
    assert found.pop("t0") == ("passed", None)
    assert set(found.values()) == {("infrastructure", "not_askable")}
    assert len(bench.fake.calls_to(model)) == 1, "nobody is asked what cannot be asked, nor is it tried again"
    sums_run = driver.ended(driver.launch(driver.subset(sums(2)), model)["id"])
    for kind in ("function_call", "multiple_choice", "review_line", "claim"):
        fork = driver.api("POST", f"runs/{sums_run['id']}/fork", {"grader": {"kind": kind}}, 201)
        told = driver.ended(fork["id"], "failed")["summary"]
        assert (told["errored"], told["pass_rate"], told["coverage"]) == (2, None, 0), kind


COMMAS = """
import os, requests
from bench_task import BenchTask

class Task(BenchTask):
    def extract(self, path, index):
        import json
        return json.loads(open(path).readline())
    def solve(self, index, input):
        r = requests.post(os.environ["BW_MODEL_PROXY_URL"] + "/v1/chat/completions",
            headers={"Authorization": "Bearer " + os.environ["BW_MODEL_PROXY_KEY"]},
            json={"model": os.environ["BW_MODEL_MODEL"], "messages": [{"role": "user", "content": "no commas"}]})
        return r.json()["choices"][0]["message"]["content"]
    def score(self, index, output, expected):
        return 0.0 if "," in output or not output else 1.0
"""


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("<think>One, two, three.</think>No comma here", "passed"), ("A comma, here", "failed"), ("<think>One, two", "truncated")],
)
def test_a_scorer_grades_what_was_said_and_not_what_was_thought(bench: Bench, driver: Driver, answer: str, outcome: str) -> None:
    model = bench.model("calm", reply(answer, usage=(1, 1)))
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(1)}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": textwrap.dedent(COMMAS)})
    run = driver.ended(driver.api("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "impl": impl["id"], "sut": model}, 201)["id"])
    assert run["summary"]["outcomes"] == {outcome: 1}
