"""Runs done again in part, and watched while they are done."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import requests

from tests.fake import hang, reply, status
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def watched(driver: Driver, run: str, last: str = "") -> list[dict[str, Any]]:
    """Reads a run's stream to its end."""
    found: list[dict[str, Any]] = []
    with requests.Session() as session:
        session.trust_env = False
        headers = {"authorization": f"Bearer {driver.key}", "accept": "text/event-stream", **({"last-event-id": last} if last else {})}
        with session.get(f"{driver.bench.live.url}/v1/runs/{run}/events", headers=headers, stream=True, timeout=60) as answer:
            assert answer.status_code == 200, answer.text
            for line in answer.iter_lines():
                if line.startswith(b"data: "):
                    found.append(json.loads(line[6:]))
    return found


def test_two_watchers_see_every_event_and_a_late_one_what_it_missed(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(12)), model)["id"]
    seen: list[list[dict[str, Any]]] = []
    watchers = [threading.Thread(target=lambda: seen.append(watched(driver, run))) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join(60)
    driver.ended(run)
    every = driver.api("GET", f"runs/{run}/events?limit=500")["data"]
    assert [[e["seq"] for e in events] for events in seen] == [[e["seq"] for e in every]] * 2
    assert every[-1]["type"] == "RunFinished"
    assert [e["seq"] for e in watched(driver, run, last="10")] == [e["seq"] for e in every if e["seq"] > 10]


def test_a_stream_is_refused_like_a_page(bench: Bench, driver: Driver) -> None:
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read"]))
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)["id"]
    answer = other.send("GET", f"runs/{run}/events", accept="text/event-stream")
    assert (answer.status, answer.json["code"]) == (404, "run_not_found")
    assert driver.send("GET", f"runs/{run}/events", accept="text/event-stream", last_event_id="x").status == 400


def test_stored_outputs_are_graded_again_without_asking_anybody(bench: Bench, driver: Driver) -> None:
    model = bench.model("close", reply("ANSWER: 4.001", usage=(20, 8)))
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(5)), model)["id"])
    assert run["summary"]["passed"] == 0
    calls = len(bench.fake.calls_to(model))
    told = driver.api("POST", f"runs/{run['id']}/rescore", {"grader": {"kind": "math", "tolerance": 0.01}})
    assert (told["version"], told["changed"], told["now_passed"]) == (2, 5, 5)
    assert [(row["task_id"], row["before"], row["after"]) for row in told["rows"]] == [(f"t{i}", False, True) for i in range(5)]
    assert len(bench.fake.calls_to(model)) == calls
    assert driver.api("GET", f"runs/{run['id']}/tasks")["summary"]["passed"] == 5
    assert driver.api("GET", f"runs/{run['id']}/tasks?version=1")["summary"]["passed"] == 0


def test_a_fork_keeps_all_but_the_scorer(bench: Bench, driver: Driver) -> None:
    model = bench.model("close", reply("ANSWER: 4.001", usage=(20, 8)))
    bench.load()
    parent = driver.ended(driver.launch(driver.subset(sums(3)), model, metadata={"pr": 7})["id"])
    fork = driver.ended(driver.api("POST", f"runs/{parent['id']}/fork", {"description": "looser", "grader": {"kind": "math", "tolerance": 0.01}}, 201)["id"])
    assert fork["impl"]["id"] != parent["impl"]["id"]
    assert (fork["derived_from"], fork["metadata"], fork["summary"]["passed"]) == (parent["id"], {"pr": 7}, 3)
    assert driver.send("POST", f"runs/{parent['id']}/fork", {"description": "compare sets"}).status == 501
    assert driver.send("POST", f"runs/{parent['id']}/fork", {}).json["code"] == "description_missing"


def test_what_failed_on_the_way_is_asked_again_and_the_rest_is_not(bench: Bench, driver: Driver) -> None:
    model = bench.model("shaky", ANSWER, ANSWER, *[status(500)] * 9, ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(5)), model, limits={"task": {"attempts": 1}})
    first = eventually(lambda: r if (r := driver.api("GET", f"runs/{run['id']}?expand=summary"))["status"] in ("ok", "failed") else None, "the run's end")
    assert first["summary"]["passed"] == 2
    assert first["summary"]["errored"] == 3
    bench.fake.script(model, ANSWER)
    calls = len(bench.fake.calls_to(model))
    told = driver.api("POST", f"runs/{run['id']}/requeue", {}, 202)
    assert told["requeued"] == 3
    again = driver.ended(run["id"])
    assert again["summary"]["passed"] == 5
    assert len(bench.fake.calls_to(model)) == calls + 3
    assert driver.send("POST", f"runs/{run['id']}/requeue", {}).json["code"] == "nothing_to_requeue"


@pytest.mark.parametrize("path", ["webhooks", "secrets", "host-policy"])
def test_what_comes_later_says_so(driver: Driver, path: str) -> None:
    answer = driver.send("POST", path, {})
    assert (answer.status, answer.json["code"]) == (501, "not_implemented")
    assert answer.json["feature"]


def test_what_there_is_not_is_a_problem(driver: Driver) -> None:
    answer = driver.send("GET", "nothing/here")
    assert (answer.status, answer.json["code"]) == (404, "not_found")


def test_a_stream_that_has_nothing_to_say_says_that_it_is_there(bench: Bench, driver: Driver) -> None:
    model = bench.model("stuck", hang())
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)["id"]
    with requests.Session() as session:
        session.trust_env = False
        headers = {"authorization": f"Bearer {driver.key}", "accept": "text/event-stream"}
        with session.get(f"{bench.live.url}/v1/runs/{run}/events", headers=headers, stream=True, timeout=60) as answer:
            assert b": still here" in answer.iter_lines(chunk_size=1)
    driver.api("POST", f"runs/{run}/halt", {}, 202)
    driver.ended(run, "halted")
