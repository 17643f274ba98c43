"""What happened to others who ran evaluations, by the case's id. Those that another file holds:

ru-01 test_durable_kill.py, a second death right after the first; ru-03 the same file, a run whose process dies again and again; ru-09 test_durable_limits.py,
ceilings of money; ru-11 test_again.py, two watchers; sb-02, sb-04, sb-06 test_sandbox.py and test_scorers.py.
"""

from __future__ import annotations

import pytest

from tests.fake import garbage, reply, status
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def test_su_01_a_provider_that_fails_passes_nothing_not_even_what_an_empty_answer_would(bench: Bench, driver: Driver) -> None:
    model = bench.model("gone", status(404, "model not found"), status(200, body={"error": "bad option"}), garbage())
    bench.load()
    rows = [{"task_id": f"t{n}", "input": {"code": "x = 1\ny = 2"}, "expected": {"lines": []}} for n in range(3)]
    run = driver.launch(driver.subset(rows, grader={"kind": "review_line"}), model, limits={"task": {"attempts": 1}})
    found = eventually(lambda: r if (r := driver.api("GET", f"runs/{run['id']}?expand=summary"))["status"] in ("ok", "failed") else None, "its end")
    told = found["summary"]
    assert (told["errored"], told["passed"], told["scored"], told["pass_rate"], told["coverage"]) == (3, 0, 0, None, 0.0)


@pytest.mark.parametrize(
    ("said", "want", "outcome"),
    [('{"blocked": false}', False, "passed"), ('{"blocked": 0}', 0, "passed"), ('{"blocked": ""}', "", "passed"), ("{}", False, "unparsed")],
)
def test_su_03_false_zero_and_an_empty_text_are_answers(bench: Bench, driver: Driver, said: str, want: object, outcome: str) -> None:
    model = bench.model("curt", reply(said))
    bench.load()
    rows = [{"task_id": "t", "input": {"question": "Is it blocked?"}, "expected": {"value": want, "path": "blocked"}}]
    found = driver.ended(driver.launch(driver.subset(rows, grader={"kind": "json"}), model)["id"])
    assert found["summary"]["outcomes"] == {outcome: 1}


def test_su_07_thinking_that_reaches_the_limit_was_cut_off_and_is_no_wrong_answer(bench: Bench, driver: Driver) -> None:
    model = bench.model("thinks", reply("", reasoning="let me think about it for", finish="length", usage=(5, 16)))
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(2)), {"model": model, "params": {"max_tokens": 16}})["id"])
    told = found["summary"]
    assert (told["truncated"], told["failed"], told["pass_rate"]) == (2, 0, None)
    assert "max_tokens" in told["warnings"][0]


def test_ru_05_a_key_and_a_body_make_one_run_whoever_repeats_them(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    subset = driver.subset(sums(1))
    body = {"benchmark": subset["benchmark"], "subset": subset["id"], "sut": model}
    first = driver.send("POST", "runs", body, Idempotency_Key=f"k1-{model}")
    again = driver.send("POST", "runs", dict(reversed(body.items())), Idempotency_Key=f"k1-{model}")
    assert (first.status, again.json["id"]) == (201, first.json["id"]), "the order of a body's fields says nothing"
    assert driver.send("POST", "runs", {**body, "trials": 2}, Idempotency_Key=f"k1-{model}").status == 422
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "runs:write", "registry:read", "ask"]))
    theirs = other.send("POST", "runs", body, Idempotency_Key=f"k1-{model}")
    assert theirs.status == 404, "another's key is another key, and this benchmark is not theirs to see"


def test_ru_07_a_run_that_came_to_nothing_passes_no_gate(bench: Bench, driver: Driver) -> None:
    model = bench.model("gone", ANSWER, *[status(500)] * 3)
    bench.load()
    run = driver.launch(driver.subset(sums(4)), model, limits={"task": {"attempts": 1}})["id"]
    found = driver.ended(run)
    assert (found["summary"]["coverage"], found["summary"]["pass_rate"]) == (0.25, 1.0)
    for gate in ("pass_rate=0.5", "coverage=0.5"):
        assert driver.api("GET", f"runs/{run}/gate?require={gate}")["verdict"] != "pass"
