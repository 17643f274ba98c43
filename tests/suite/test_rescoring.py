"""Stored outputs graded again by what runs code: programs' tests and scorers of one's own. No model is asked; a scoring is whole or not there."""

from __future__ import annotations

from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply, status
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums
from tests.suite.test_scorers import launched, one_method

boxed = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
PROGRAM = "```python\ndef foo(x):\n    return x + 1\n```"
WORSE = "assert foo(1) == 3"


def program(name: str, tests: str, **more: Any) -> dict[str, Any]:
    return {"task_id": name, "input": {"prompt": "Write foo."}, "expected": {"test_code": tests}, **more}


def both(name: str, tests: str) -> dict[str, Any]:
    """A row that two kinds of grader can use."""
    return {"task_id": name, "input": {"prompt": "Write foo.", "question": "Write foo."}, "expected": {"test_code": tests, "value": "nothing"}}


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def ran(bench: Bench, driver: Driver, tasks: list[dict[str, Any]], *answers: Any, grader: Any = None, **more: Any) -> tuple[dict[str, Any], str]:
    """Gives a run that has ended, and the model that answered."""
    model = bench.model("calm", *(answers or [reply("ANSWER: 4", usage=(20, 8))]))
    bench.load()
    return driver.ended(driver.launch(driver.subset(tasks, grader=grader), model, **more)["id"]), model


def again(driver: Driver, run: str, body: dict[str, Any], ends: str = "ok", **headers: str) -> dict[str, Any]:
    """Asks for a scoring that takes its time, and gives what came of it."""
    told = driver.api("POST", f"runs/{run}/rescore", body, 202, **headers)
    assert (told["status"], told["rows"]) == ("queued", [])
    found: dict[str, Any] = eventually(
        lambda: r if (r := driver.api("GET", f"runs/{run}/rescorings/{told['id']}?wait=5"))["status"] not in ("queued", "running") else None,
        f"the end of {told['id']}",
    )
    assert found["status"] == ends, found
    return found


def grades(driver: Driver, run: str, version: int | str = "latest") -> dict[str, tuple[str, float | None]]:
    return {t["task_id"]: (t["outcome"], t["score"]) for t in driver.api("GET", f"runs/{run}/tasks?version={version}")["data"]}


# ------------------------------------------------------------------ programs


@boxed
def test_programs_are_tried_again_by_their_tests(bench: Bench, driver: Driver) -> None:
    tasks = [both("good", "assert foo(1) == 2"), both("bad", WORSE)]
    run, model = ran(bench, driver, tasks, reply(PROGRAM, usage=(9, 9)), grader={"kind": "exact"})
    calls = len(bench.fake.calls_to(model))
    assert set(grades(driver, run["id"]).values()) == {("failed", 0.0)}
    found = again(driver, run["id"], {"grader": {"kind": "code"}})
    assert (found["version"], found["tasks"], found["done"], found["changed"], found["now_passed"], found["now_not"]) == (2, 2, 2, 1, 1, 0)
    assert [(row["task_id"], row["before"], row["after"], row["outcome"]) for row in found["rows"]] == [
        ("good", False, True, "passed"),
    ]
    assert grades(driver, run["id"]) == {"good": ("passed", 1.0), "bad": ("failed", 0.0)}
    assert set(grades(driver, run["id"], 1).values()) == {("failed", 0.0)}
    assert len(bench.fake.calls_to(model)) == calls
    after = driver.api("GET", f"runs/{run['id']}?expand=summary")
    assert (after["scoring"], after["graded_by"], after["impl"], after["cost"]) == (2, found["impl"], run["impl"], run["cost"])
    assert (after["summary"]["passed"], after["summary"]["version"]) == (1, 2)
    assert driver.api("GET", f"runs/{run['id']}/events?limit=500")["data"][-1]["type"] == "RunFinished"
    assert found["impl"].encode() in driver.send("GET", f"runs/{run['id']}/report").body


@boxed
def test_programs_among_other_rows_are_graded_again_as_well(bench: Bench, driver: Driver) -> None:
    tasks = [program("program", WORSE, kind="code"), {**sums(1)[0], "kind": "math"}]
    run, _ = ran(bench, driver, tasks, reply(f"{PROGRAM}\nANSWER: 4", usage=(9, 9)), grader={})
    assert grades(driver, run["id"]) == {"program": ("failed", 0.0), "t0": ("passed", 1.0)}
    found = again(driver, run["id"], {})
    assert (found["changed"], found["impl"]) == (0, run["impl"]["id"])
    assert grades(driver, run["id"]) == {"program": ("failed", 0.0), "t0": ("passed", 1.0)}


@boxed
def test_a_program_that_broke_its_limit_has_another_try_under_another(bench: Bench, driver: Driver) -> None:
    slow = "```python\nimport time\ndef foo(x):\n    time.sleep(3)\n    return x + 1\n```"
    run, _ = ran(bench, driver, [program("slow", "assert foo(1) == 2")], reply(slow, usage=(9, 9)), grader={"kind": "code", "timeout": 1})
    assert grades(driver, run["id"])["slow"][0] == "limit"
    assert again(driver, run["id"], {"grader": {"kind": "code", "timeout": 30}})["now_passed"] == 1


# ------------------------------------------------------------------ scorers as code

COUNTS = 'return {"value": 1.0 if output.strip().endswith("4") else 0.0, "answer": output[-1:], "explanation": "its last sign", "metadata": {"of": "mine"}}'


@boxed
@pytest.mark.formats
def test_a_scorer_of_ones_own_judges_what_was_answered_and_solves_nothing(bench: Bench, driver: Driver) -> None:
    run, model = ran(bench, driver, sums(3, wrong=1), trials=2)
    calls = len(bench.fake.calls_to(model))
    code = one_method(solve="raise RuntimeError('solve was run')", score=COUNTS)
    found = again(driver, run["id"], {"code": code, "label": "last sign"})
    assert (found["now_passed"], found["now_not"]) == (1, 0)
    assert grades(driver, run["id"]) == {f"t{i}": ("passed", 1.0) for i in range(3)}
    assert len(bench.fake.calls_to(model)) == calls
    assert driver.api("GET", f"impls/{found['impl']}")["label"] == "last sign"
    told = driver.api("GET", f"runs/{run['id']}/tasks/{found['rows'][0]['task']}/payload")
    assert [(s["outcome"], s["answer"], s["explanation"], s["metadata"]) for s in told["samples"]] == [("passed", "4", "its last sign", {"of": "mine"})] * 2
    (first,) = [t for t in driver.api("GET", f"runs/{run['id']}/tasks?version=1")["data"] if t["task_id"] == "t0"]
    assert {s["outcome"] for s in driver.api("GET", f"runs/{run['id']}/tasks/{first['id']}/payload")["samples"]} == {"failed"}


@boxed
def test_what_a_scorer_solved_is_graded_by_a_grader_and_by_another_scorer(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("unasked"))
    bench.load()
    subset = driver.subset(sums(2), grader={"kind": "math"})
    impl = driver.api("POST", "impls", {"subset": subset["id"], "code": one_method(solve='return {"said": "ANSWER: 4"}', score="return 0.0")})
    run = driver.ended(driver.launch(subset, model, impl=impl["id"])["id"])
    assert run["summary"]["passed"] == 0
    assert driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "math"}}, 200)["now_passed"] == 2
    other = driver.api("POST", "impls", {"code": one_method(score='import json; return 1.0 if json.loads(output) == {"said": "ANSWER: 5"} else 0.25')})
    assert again(driver, run["id"], {"impl": other["id"]})["now_not"] == 2
    assert grades(driver, run["id"]) == {"t0": ("failed", 0.25), "t1": ("failed", 0.25)}
    assert not bench.fake.calls_to(model)
    every = driver.api("GET", f"runs/{run['id']}/rescorings")["data"]
    assert [(r["version"], r["impl"] == other["id"], r["status"]) for r in every] == [(3, True, "ok"), (2, False, "ok")]
    assert driver.send("DELETE", f"impls/{other['id']}").json["code"] == "impl_in_use"


@boxed
def test_tool_calls_come_to_a_scorer_as_json(bench: Bench, driver: Driver) -> None:
    tasks = [
        {
            "task_id": "call",
            "input": {"question": "Look.", "functions": [{"name": "look", "parameters": {"type": "object", "properties": {}}}]},
            "expected": {"value": [{"name": "look", "args": {}}]},
        }
    ]
    run, _ = ran(bench, driver, tasks, reply("", tools=[("call_1", "look", "{}")], usage=(9, 9)), grader={"kind": "function_call"})
    code = one_method(score='import json; return 1.0 if json.loads(output) == [{"name": "look", "arguments": "{}"}] else 0.0')
    again(driver, run["id"], {"code": code})
    assert grades(driver, run["id"])["call"] == ("passed", 1.0)


@boxed
def test_what_was_never_answered_whole_stays_what_it_came_to(bench: Bench, driver: Driver) -> None:
    answers = [reply("ANSWER: 4", usage=(9, 9)), status(500), reply("ANSW", finish="length"), reply("", finish="content_filter")]
    run, _ = ran(bench, driver, sums(4), *answers, limits={"task": {"attempts": 1}})
    before = grades(driver, run["id"])
    assert sorted(outcome for outcome, _ in before.values()) == ["infrastructure", "passed", "refused", "truncated"]
    for body in ({"code": one_method(score="return 1.0")}, {"code": one_method(score="return 0.5")}):
        again(driver, run["id"], body)
        after = grades(driver, run["id"])
        assert {name for name in before if after[name] != before[name]} <= {name for name, (outcome, _) in before.items() if outcome == "passed"}
    assert [grade for grade in after.values() if grade[1] == 0.5] == [("failed", 0.5)]


BAD = {
    "return float('nan')": "bad_score",
    "return 2": "bad_score",
    "return 'yes'": "bad_score",
    "1/0": "scorer_failed",
    "raise SystemExit(0)": "scorer_failed",
    "import os; os._exit(0)": "scorer_failed",
    "while True: pass": "scorer_failed",
    "import os\n        while True: os.fork()": "scorer_failed",
}


@boxed
@pytest.mark.parametrize("score", BAD)
def test_a_scorer_that_fails_is_told_as_that_and_loses_no_answer(bench: Bench, driver: Driver, score: str) -> None:
    run = quick(bench, driver)
    found = again(driver, run["id"], {"code": one_method(score=score)})
    (row,) = found["rows"]
    assert (row["before"], row["after"], row["outcome"], row["error_class"]) == (True, None, "judge_failed", BAD[score])
    told = driver.api("GET", f"runs/{run['id']}/tasks/{row['task']}/payload")
    assert (told["output"], bool(told["samples"][0]["explanation"])) == ("ANSWER: 4", True)
    assert grades(driver, run["id"], 1) == {"t0": ("passed", 1.0)}
    assert driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "math"}}, 200)["now_passed"] == 1


def quick(bench: Bench, driver: Driver) -> dict[str, Any]:
    """Gives a run whose scorers have two seconds."""
    model = bench.model("calm", reply("ANSWER: 4", usage=(20, 8)))
    bench.load()
    subset = driver.subset(sums(1))
    driver.api("PATCH", f"build/subsets/{subset['id']}/recipe", {"config": {"run_timeout": 2}, "note": "quickly"})
    return driver.ended(driver.launch(subset, model)["id"])


# ------------------------------------------------------------------ asked twice, called off, changed meanwhile

SLOW = one_method(score="import time; time.sleep(60); return 1.0")


@boxed
def test_one_scoring_at_a_time_and_one_can_be_called_off(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(3))
    told = driver.api("POST", f"runs/{run['id']}/rescore", {"code": SLOW}, 202)
    assert told["links"]["self"].endswith(f"/v1/runs/{run['id']}/rescorings/{told['id']}")
    for body in ({"code": SLOW}, {"grader": {"kind": "math"}}):
        refused = driver.send("POST", f"runs/{run['id']}/rescore", body)
        assert (refused.status, refused.json["code"]) == (409, "rescoring")
    eventually(lambda: driver.api("GET", f"runs/{run['id']}/rescorings/{told['id']}")["status"] == "running", "its beginning")
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "runs:write"]))
    for method, path in (("GET", ""), ("GET", f"/{told['id']}"), ("DELETE", f"/{told['id']}")):
        assert other.send(method, f"runs/{run['id']}/rescorings{path}").status == 404
    driver.api("DELETE", f"runs/{run['id']}/rescorings/{told['id']}", status=204)
    assert driver.api("GET", f"runs/{run['id']}/rescorings/{told['id']}")["status"] == "cancelled"
    assert driver.send("DELETE", f"runs/{run['id']}/rescorings/{told['id']}").json["code"] == "rescoring_over"
    assert driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "math"}}, 200)["version"] == 2
    assert driver.send("GET", f"runs/{run['id']}/rescorings/rsc_00000000000000000000000000").json["code"] == "rescoring_not_found"
    assert driver.send("GET", f"runs/{run['id']}/rescorings/{told['id']}?wait=soon").status == 422


@boxed
def test_a_run_that_is_deleted_meanwhile_takes_its_scoring_along(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(2))
    told = driver.api("POST", f"runs/{run['id']}/rescore", {"code": SLOW}, 202)
    eventually(lambda: driver.api("GET", f"runs/{run['id']}/rescorings/{told['id']}")["status"] == "running", "its beginning")
    driver.send("DELETE", f"runs/{run['id']}?confirm={run['id']}")
    assert not bench.live.rows("suite.Rescoring", run=run["id"])
    # What the worker had in its hands is let go of: another run's turn comes.
    other, _ = ran(bench, driver, sums(1))
    again(driver, other["id"], {"code": one_method(score="return 1.0")})
    assert not bench.live.rows("suite.Task", run=run["id"])


@boxed
def test_a_run_that_goes_on_meanwhile_gets_no_scoring_of_what_it_was(bench: Bench, driver: Driver) -> None:
    run, model = ran(bench, driver, sums(2), reply("ANSWER: 4", usage=(9, 9)), status(500), limits={"task": {"attempts": 1}})
    told = driver.api("POST", f"runs/{run['id']}/rescore", {"code": one_method(score="import time; time.sleep(4); return 1.0")}, 202)
    bench.fake.script(model, reply("ANSWER: 4", usage=(9, 9)))
    driver.api("POST", f"runs/{run['id']}/requeue", {}, 202)
    found = eventually(
        lambda: r if (r := driver.api("GET", f"runs/{run['id']}/rescorings/{told['id']}"))["status"] not in ("queued", "running") else None, "its end"
    )
    assert (found["status"], found["error"]["code"], found["done"]) == ("failed", "run_changed", 0)
    assert driver.ended(run["id"])["scoring"] == 1
    assert {row["scoring"] for row in bench.live.rows("suite.Task", run=run["id"])} == {1}


@boxed
def test_a_repeated_request_makes_no_second_scoring(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(1))
    body = {"code": one_method(score="return 1.0")}
    first = again(driver, run["id"], body, idempotency_key=run["id"])
    repeated = driver.send("POST", f"runs/{run['id']}/rescore", body, **{"Idempotency-Key": run["id"]})
    assert (repeated.status, repeated.json["id"], repeated.headers["idempotent-replayed"]) == (202, first["id"], "true")
    assert driver.send("POST", f"runs/{run['id']}/rescore", {}, **{"Idempotency-Key": run["id"]}).json["code"] == "idempotency_key_reused"
    assert len(driver.api("GET", f"runs/{run['id']}/rescorings")["data"]) == 1


@boxed
def test_outputs_that_fill_more_than_one_look_are_all_graded(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(40), limits={})
    found = again(driver, run["id"], {"code": one_method(score="return index / 1")})
    assert (found["done"], found["tasks"]) == (40, 40)


# ------------------------------------------------------------------ what is refused


@boxed
def test_bodies_that_name_no_scorer_are_refused(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(1))
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"impl": "imp_00000000000000000000000000"}, 404, "impl_not_found"),
        ({"impl": "nonsense"}, 404, "impl_not_found"),
        ({"code": "def (:"}, 422, "invalid_impl"),
        ({"code": "x = 1"}, 422, "invalid_impl"),
        ({"grader": {"kind": "telepathy"}}, 422, ""),
        ({"grader": {"kind": "judge", "judge": "somebody"}}, 422, "rescore_unsupported"),
        ({"scorer": "x"}, 422, "unknown_field"),
    ]
    for body, wanted, code in cases:
        refused = driver.send("POST", f"runs/{run['id']}/rescore", body)
        assert refused.status == wanted, (body, refused.body)
        assert not code or refused.json["code"] == code, (body, refused.json)
    assert not driver.api("GET", f"runs/{run['id']}/rescorings")["data"]


@boxed
def test_rows_that_say_no_kind_need_a_grader_that_does(bench: Bench, driver: Driver) -> None:
    run, _ = launched(bench, driver, one_method())
    refused = driver.send("POST", f"runs/{run['id']}/rescore", {"grader": {}})
    assert (refused.status, refused.json["code"]) == (422, "grader_unknown")
    assert driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "exact"}}, 200)["version"] == 2


def test_judged_answers_are_graded_again_by_what_asks_nobody(bench: Bench, driver: Driver) -> None:
    judge, model = bench.model("judge", reply("GRADE: C")), bench.model("calm", reply("blue", usage=(9, 9)))
    bench.load()
    tasks = [{"task_id": "sky", "input": {"question": "Which colour?"}, "expected": {"value": "blue"}}]
    run = driver.ended(driver.launch(driver.subset(tasks, grader={"kind": "judge", "judge": judge}), model)["id"])
    asked = len(bench.fake.calls_to(judge))
    refused = driver.send("POST", f"runs/{run['id']}/rescore", {})
    assert (refused.status, refused.json["code"]) == (422, "rescore_unsupported")
    assert "Replay" in refused.json["detail"]
    assert "fork" in refused.json["detail"]
    assert driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "exact"}}, 200)["now_passed"] == 1
    assert driver.api("GET", f"runs/{run['id']}?expand=summary")["summary"]["judges"] is None
    assert len(bench.fake.calls_to(judge)) == asked


def test_another_graders_scoring_stands_on_that_graders_board(bench: Bench, driver: Driver) -> None:
    run, _ = ran(bench, driver, sums(2), reply("ANSWER: 4.001", usage=(9, 9)))
    found = driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "math", "tolerance": 0.01}}, 200)
    boards = driver.api("GET", f"registry/subsets/{run['subset_id']}/leaderboard")["data"]
    assert [(board["impl"], [row["pass_rate"] for row in board["rows"]]) for board in boards] == [(found["impl"], [1.0])]
    assert bench.live.api("GET", f"models/{run['model']['identifier']}")["record"]["score"] == 0.0, "as the run's own grader has it"
    back = driver.api("POST", f"runs/{run['id']}/rescore", {}, 200)
    boards = driver.api("GET", f"registry/subsets/{run['subset_id']}/leaderboard")["data"]
    assert [(board["impl"], [row["pass_rate"] for row in board["rows"]]) for board in boards] == [(back["impl"], [0.0])]
    assert back["impl"] == run["impl"]["id"]
