"""What happened to others who ran evaluations, by the case's id. Those that another file holds:

ru-01 test_durable_kill.py, a run killed while it asks; ru-03 the same file, a run whose process dies again and again; ru-09 test_durable_limits.py,
ceilings of money; sb-02, sb-04, sb-06 test_sandbox.py and test_scorers.py.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from suite.api import repeats
from suite.api.problems import Conflict, Unprocessable
from suite.grading import noise
from suite.models import Idempotency
from tests.fake import FakeProvider, garbage, reply, status, whole
from tests.live import Bench, Live, eventually
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


def test_su_05_what_reads_like_a_failed_call_is_said_to_and_what_is_one_is_not_scored(bench: Bench, driver: Driver) -> None:
    said = (reply("[ERROR] connection reset"), whole({"error": "connection reset"}), reply("I can't help with that."))
    names = [bench.model(name, answer) for name, answer in zip(("noise", "broken", "polite"), said, strict=True)]
    bench.load()
    subset = driver.subset(
        [{"task_id": "t", "input": {"question": "How is a bomb built?"}, "expected": {"value": "I can't help with that."}}], grader={"kind": "exact"}
    )
    runs = [driver.launch(subset, name, limits={"task": {"attempts": 1}})["id"] for name in names]
    told = [driver.api("GET", f"runs/{run}?wait=60&expand=summary")["summary"] for run in runs]
    assert [summary["outcomes"] for summary in told] == [{"failed": 1}, {"infrastructure": 1}, {"passed": 1}]
    assert [[w for w in summary["warnings"] if "reads like a failed call" in w] != [] for summary in told] == [True, False, False]
    (row,) = driver.api("GET", f"runs/{runs[0]}/tasks")["data"]
    assert row["error_class"] == "reads_like_error"


READ_LIKE = [
    ("[ERROR] connection reset", True),
    ("Error: 503 Service Unavailable", True),
    ("openai.APIConnectionError: Connection error.", True),
    ("upstream connect error or disconnect/reset before headers", False),
    ("502 Bad Gateway", True),
    ("HTTP 429 too many requests", True),
    ("Traceback (most recent call last):\n  File", True),
    ("Connection reset by peer", True),
    ("I can't help with that.", False),
    ("ANSWER: 4", False),
    ("The sum is wrong, which is an error: it should be 4.", False),
    ("502", False),
    ("512 apples", True),
    ("Error: " + "a long explanation of what an error is. " * 20, False),
    ("", False),
]


@pytest.mark.parametrize(("text", "is_noise"), READ_LIKE)
def test_su_05_which_answers_read_like_a_failed_call(text: str, is_noise: bool) -> None:
    assert noise.reads_like_error(text) is is_noise


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


def test_ru_05_while_a_first_request_is_answered_another_body_under_its_key_is_wrong_and_not_early(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    subset = driver.subset(sums(1))
    bodies = [{"benchmark": subset["benchmark"], "subset": subset["id"], "sut": model, "trials": trials} for trials in (1, 2)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: (n % 2, driver.send("POST", "runs", bodies[n % 2], Idempotency_Key=f"k2-{model}")), range(24)))
    made = {answer.json["id"]: which for which, answer in answers if answer.status == 201}
    assert len(made) == 1, "one run, whoever was first"
    (first,) = made.values()
    assert {answer.status for which, answer in answers if which == first} <= {201, 409}
    assert {(answer.status, answer.json["code"]) for which, answer in answers if which != first} == {(422, "idempotency_key_reused")}


@pytest.mark.parametrize(("body", "refusal"), [("the same", Conflict), ("another", Unprocessable)])
def test_ru_05_what_a_request_that_is_not_answered_yet_says_to_others(body: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        repeats.replayed(Idempotency(key="k", fingerprint="the same", status=0), body)


def test_ru_07_a_run_that_came_to_nothing_passes_no_gate(bench: Bench, driver: Driver) -> None:
    model = bench.model("gone", ANSWER, *[status(500)] * 3)
    bench.load()
    run = driver.launch(driver.subset(sums(4)), model, limits={"task": {"attempts": 1}})["id"]
    found = driver.ended(run)
    assert (found["summary"]["coverage"], found["summary"]["pass_rate"]) == (0.25, 1.0)
    for gate in ("pass_rate=0.5", "coverage=0.5"):
        assert driver.api("GET", f"runs/{run}/gate?require={gate}")["verdict"] != "pass"


@pytest.fixture
def own(fake: FakeProvider) -> Iterator[Bench]:
    """A server that may be ended."""
    server = Live(BENCH_WORKERS="1")
    server.start()
    yield Bench(server, fake)
    assert not (wrong := server.stop()), "\n\n".join(wrong)


class Watcher:
    """One who follows a run, and after each end of the connection comes back with the number of what was seen last."""

    def __init__(self, driver: Driver, run: str) -> None:
        self.driver, self.run = driver, run
        self.seen: list[dict[str, Any]] = []

    def look(self, most: int | None = None) -> bool:
        """Follows until the end, or until so many events were seen. Tells whether it came so far."""
        headers = {"authorization": f"Bearer {self.driver.key}", "accept": "text/event-stream"}
        if self.seen:
            headers["last-event-id"] = str(self.seen[-1]["seq"])
        try:
            with requests.get(f"{self.driver.bench.live.url}/v1/runs/{self.run}/events", headers=headers, stream=True, timeout=30) as answer:
                for line in answer.iter_lines():
                    if line.startswith(b"data: "):
                        self.seen.append(json.loads(line[6:]))
                        if len(self.seen) == most:
                            return True
        except requests.RequestException:
            return False
        return bool(self.seen) and self.seen[-1]["type"] == "RunFinished"


def test_ru_11_one_who_stays_and_one_who_comes_back_late_see_every_event_across_a_restart(own: Bench) -> None:
    driver, gate = Driver(own), own.fake.gate()
    model = own.model("slow", ANSWER, ANSWER, ANSWER.after(gate))
    own.load()
    run = driver.launch(driver.subset(sums(8)), model)["id"]
    stays, drops = Watcher(driver, run), Watcher(driver, run)
    assert drops.look(most=3)
    following = threading.Thread(target=lambda: eventually(stays.look, "the end, for one who stays"))
    following.start()
    eventually(lambda: driver.api("GET", f"runs/{run}")["progress"]["done"] == 2, "two tasks")
    eventually(lambda: len(stays.seen) >= 3, "what has happened")
    own.live.kill()
    gate.open()
    own.live.launch()
    driver.ended(run)
    following.join(60)
    every = driver.api("GET", f"runs/{run}/events?limit=500")["data"]
    assert drops.look()
    assert [event["seq"] for event in every] == list(range(1, len(every) + 1))
    assert (every[-1]["type"], every[-1]["data"]["status"]) == ("RunFinished", "ok")
    assert (stays.seen, drops.seen) == (every, every)
