"""What came of a question, whatever form it has: failures, thoughts without an end, long answers and how they are given out."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.fake import html, reply, status, whole
from tests.live import Bench
from tests.suite.driving import Driver, sums

FOUR = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def test_a_failure_of_any_form_is_no_answer(bench: Bench, driver: Driver) -> None:
    """A row that asks for nothing would be passed by silence, so whatever failed on the way must not be graded (su-01, su-05)."""
    task = {"task_id": "q", "input": {"question": "Which line is wrong?", "code": "x = 1\n"}, "expected": {"lines": []}}
    failures = {
        "not-found": status(404, body={"error": "model not found"}),
        "an-error-with-200": whole({"error": "bad option"}),
        "no-json": whole(b"not json"),
        "a-page": html(),
        "nothing": whole(b""),
    }
    models = {name: bench.model(name, failure) for name, failure in failures.items()}
    bench.load()
    subset = driver.subset([task], grader={"kind": "review_line"})
    runs = {name: driver.launch(subset, model, limits={"task": {"attempts": 1}})["id"] for name, model in models.items()}
    for name, run in runs.items():
        summary = driver.api("GET", f"runs/{run}?wait=60&expand=summary")["summary"]
        assert (summary["errored"], summary["scored"], summary["passed"], summary["pass_rate"]) == (1, 0, 0, None), name
        assert summary["coverage"] == 0.0, name
        (row,) = driver.api("GET", f"runs/{run}/tasks")["data"]
        assert (row["outcome"], row["score"], row["passed"], row["preview"]) == ("infrastructure", None, None, ""), name


def test_thinking_that_never_ends_is_no_answer_and_not_wrong(bench: Bench, driver: Driver) -> None:
    cut = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "reasoning_content": "It is 4, so ANSWER: 4"}, "finish_reason": "length"}],
    }  # fmt: skip
    for name, answer in (("apart", whole(cut)), ("inside", reply("<think>It is 4, so ANSWER: 4", finish="length"))):
        model = bench.model(name, answer)
        bench.load()
        found = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])
        summary = found["summary"]
        assert (summary["truncated"], summary["failed"], summary["passed"], summary["pass_rate"]) == (1, 0, 0, None), name
        assert "max_tokens" in summary["warnings"][0]
        assert "stop" not in bench.fake.calls_to(model)[0].json, "nothing that could fire while it thinks"


def test_the_same_question_with_another_answer_is_another_task(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    tasks = [{"task_id": f"t{value}", "input": {"question": "What is 2 + 2?"}, "expected": {"value": value}} for value in (4, 5)]
    run = driver.ended(driver.launch(driver.subset(tasks), model)["id"])
    assert {t["task_id"]: t["passed"] for t in driver.api("GET", f"runs/{run['id']}/tasks")["data"]} == {"t4": True, "t5": False}
    assert len(bench.fake.calls_to(model)) == 2, "neither is answered out of a store"


def test_a_payload_is_given_packed_whole_or_in_part(bench: Bench, driver: Driver) -> None:
    model = bench.model("wordy", reply("\U0001f600" * 200_000 + "\nANSWER: 4", usage=(20, 8)))
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])["id"]
    (task,) = driver.api("GET", f"runs/{run}/tasks")["data"]
    assert task["preview"] == "\U0001f600" * 120, "cut between characters"
    assert task["truncated"] is True
    path = f"runs/{run}/tasks/{task['id']}/payload"
    plain = driver.send("GET", path)
    assert int(plain.headers["content-length"]) == len(plain.body) > 800_000
    packed = driver.send("GET", path, Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 50
    assert json.loads(gzip.decompress(packed.body)) == plain.json
    part = driver.send("GET", path, Range="bytes=100-199", Accept_Encoding="gzip")
    assert (part.status, part.body) == (206, plain.body[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{len(plain.body)}"
    assert driver.send("GET", path, If_None_Match=plain.headers["etag"]).status == 304
    assert driver.send("GET", path, Range=f"bytes={len(plain.body)}-").status == 416
