"""Runs through the public door: launched, worked on by the queue, read."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from tests.fake import hang, reply, status
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("2 + 2 makes four.\nANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def test_a_pinned_run_ends_with_every_task_and_an_honest_summary(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER, facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    subset = driver.subset(sums(10, wrong=2))
    run = driver.launch(subset, model, metadata={"purpose": "baseline"})
    assert run["status"] == "queued"
    found = driver.ended(run["id"])
    told = found["summary"]
    assert (told["total"], told["scored"], told["passed"], told["failed"], told["pass_rate"], told["coverage"]) == (10, 10, 8, 2, 0.8, 1.0)
    assert told["ci95"][0] < 0.8 < told["ci95"][1]
    assert found["model"]["identifier"] == model
    assert found["cost"]["metered_usd"] == "0.00036"  # ten times 20 tokens at 1 and 8 at 2 dollars a million
    page = driver.api("GET", f"runs/{run['id']}/tasks?passed=false")
    assert [t["task_id"] for t in page["data"]] == ["t0", "t1"]
    assert page["summary"]["total"] == 10
    payload = driver.api("GET", f"runs/{run['id']}/tasks/{page['data'][0]['id']}/payload")
    assert payload["output"] == "2 + 2 makes four.\nANSWER: 4"
    assert payload["expected"] == {"value": 5}
    assert [r["id"] for r in driver.api("GET", "runs?filter[metadata.purpose]=baseline")["data"]] == [run["id"]]
    assert len(bench.fake.calls_to(model)) == 10


def test_events_have_numbers_without_a_gap_and_tell_the_end_last(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(5)), model)
    driver.ended(run["id"])
    events = driver.api("GET", f"runs/{run['id']}/events?limit=500")["data"]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "RunQueued"
    assert events[-1]["type"] == "RunFinished"
    assert sum(e["type"] == "MaterializeTaskResult" for e in events) == 5


def test_every_call_of_a_run_stands_in_the_ledger_for_the_suite(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])
    rows = bench.live.attempts(3, model=model)
    assert {row["purpose"] for row in rows} == {"suite"}


@pytest.mark.parametrize("mode", ["panel", "merged", "route"])
def test_a_collection_is_a_subject_in_any_mode(bench: Bench, driver: Driver, mode: str) -> None:
    one, two = bench.model("one", ANSWER), bench.model("two", ANSWER)
    core = bench.collection([one, two], mergers=[one])
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(2)), {"collection": core.removeprefix("bench/"), "mode": mode})["id"])
    assert found["summary"]["pass_rate"] == 1.0
    assert not driver.bench.live.api("GET", f"panels?collection={core.removeprefix('bench/')}")["data"], "nobody's panel, and nothing to judge"


def test_what_is_served_without_being_on_the_bench_runs_without_joining(bench: Bench, driver: Driver) -> None:
    model = bench.model("known", ANSWER)
    bench.fake.script("guest", ANSWER)
    bench.load()
    endpoint = bench.live.api("GET", f"models/{model}")["endpoint"]
    found = driver.ended(driver.launch(driver.subset(sums(2)), {"model": "guest", "provider": endpoint})["id"])
    assert found["summary"]["passed"] == 2
    assert found["cost"]["complete"] is False, "its price is unknown, which is not free"
    assert not [m for m in bench.live.listed("models") if m["served_name"] == "guest"]


def test_what_the_endpoints_list_lacks_is_no_subject_and_the_nearest_are_named(bench: Bench, driver: Driver) -> None:
    model = bench.model("known", ANSWER)
    bench.load()
    endpoint, subset = bench.live.api("GET", f"models/{model}")["endpoint"], driver.subset(sums(1))
    bench.fake.script("visitor-large", ANSWER)
    asked = {"benchmark": subset["benchmark"], "subset": subset["id"]}
    driver.ended(driver.launch(subset, f"visitor-lagre@{endpoint}")["id"])  # its list was never read, so it is asked
    bench.live.api("GET", f"candidates?endpoint={endpoint}&refresh=1")
    for sut in (f"visitor-lagre@{endpoint}", {"model": "visitor-lagre", "provider": endpoint}):
        for path in ("runs", "runs:preview"):
            refused = driver.send("POST", path, {**asked, "sut": sut})
            assert (refused.status, refused.json["code"]) == (422, "sut_unknown"), (path, refused.json)
            assert refused.json["nearest"][0] == f"visitor-large@{endpoint}"
            assert "refresh=1" in refused.json["detail"]
    driver.ended(driver.launch(subset, f"visitor-large@{endpoint}")["id"])


def test_a_subject_that_does_not_answer_fails_the_run_early_and_scores_nothing(bench: Bench, driver: Driver) -> None:
    model = bench.model("gone", status(404, {"error": {"message": "model not found"}}))
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(40)), model)["id"], "failed")
    assert "does not answer" in found["error"]
    assert found["summary"]["pass_rate"] is None
    assert found["summary"]["coverage"] == 0.0
    assert len(bench.fake.calls_to(model)) < 40


@pytest.mark.parametrize("answers", [[status(404, {"error": {"message": "model not found"}})], [status(500)], [status(404), status(500)]])
def test_a_short_run_of_which_nothing_was_answered_has_failed(bench: Bench, driver: Driver, answers: list[Any]) -> None:
    model = bench.model("gone", *answers)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(2)), model, limits={"task": {"attempts": 1}})["id"], "failed")
    assert "answered none of its tasks" in found["error"]
    assert (found["summary"]["pass_rate"], found["summary"]["coverage"], found["summary"]["errored"]) == (None, 0.0, 2)


def test_one_answer_among_failures_is_no_failed_run(bench: Bench, driver: Driver) -> None:
    model = bench.model("half", status(404, {"error": {"message": "not today"}}), ANSWER)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(2)), model, limits={"task": {"attempts": 1}})["id"])
    assert (found["summary"]["passed"], found["summary"]["errored"]) == (1, 1)


def test_failures_on_the_way_are_tried_again_and_never_scored_as_wrong(bench: Bench, driver: Driver) -> None:
    model = bench.model("shaky", status(500), ANSWER)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(4)), model)["id"])
    assert (found["summary"]["passed"], found["summary"]["errored"]) == (4, 0)


def test_an_answer_cut_off_by_its_limit_is_listed_apart(bench: Bench, driver: Driver) -> None:
    model = bench.model("wordy", reply("let me think about it for", finish="length"))
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])
    assert (found["summary"]["truncated"], found["summary"]["failed"], found["summary"]["pass_rate"]) == (3, 0, None)
    assert "output limit" in found["summary"]["warnings"][0]


def test_a_replay_asks_the_same_again_and_one_of_the_failed_only_those(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    parent = driver.ended(driver.launch(driver.subset(sums(6, wrong=2)), model)["id"])
    whole = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": parent["id"]}}, 201)["id"])
    assert whole["impl"]["id"] == parent["impl"]["id"]
    assert (whole["scope"], whole["summary"]["total"], whole["derived_from"], whole["fingerprint"]) == ("full", 6, parent["id"], parent["fingerprint"])
    part = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": parent["id"], "only_failed": True}}, 201)["id"])
    assert (part["scope"], part["summary"]["total"], part["summary"]["passed"]) == ("failed", 2, 0)
    named = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": parent["id"], "task_ids": ["t5"]}}, 201)["id"])
    assert (named["scope"], named["summary"]["total"], named["summary"]["passed"]) == ("ids", 1, 1)


def test_a_halted_run_keeps_what_had_ended(bench: Bench, driver: Driver) -> None:
    model = bench.model("stuck", ANSWER, ANSWER, hang())
    bench.load()
    run = driver.launch(driver.subset(sums(30)), model)
    eventually(lambda: driver.api("GET", f"runs/{run['id']}")["progress"]["done"] == 2, "two tasks")
    answer = driver.api("POST", f"runs/{run['id']}/halt", {"reason": "seen enough"}, 202)
    assert answer["status"] in ("halting", "halted")
    found = driver.ended(run["id"], "halted")
    assert (found["halt_reason"], found["halt_note"], found["summary"]["passed"], found["summary"]["skipped"]) == ("user_requested", "seen enough", 2, 28)
    assert driver.send("POST", f"runs/{run['id']}/halt", {}).json["code"] == "run_over"


def test_a_ceiling_of_cost_halts_the_run_and_says_which(bench: Bench, driver: Driver) -> None:
    model = bench.model(
        "dear", reply("ANSWER: 4", usage=(10_000, 5_000)), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2", "context_window": 100_000}
    )
    bench.load()
    run = driver.launch(driver.subset(sums(30)), model, limits={"run": {"cost": 0.05}})
    found = driver.ended(run["id"], "halted")
    assert found["halt_reason"] == "limit_exceeded:run.cost"
    assert float(found["cost"]["metered_usd"]) <= 0.07, "at most one call of 0.02 over it"
    assert found["summary"]["passed"] == found["progress"]["done"] >= 2


def test_twenty_launches_with_one_key_make_one_run(bench: Bench, driver: Driver) -> None:

    model = bench.model("calm", ANSWER)
    bench.load()
    subset = driver.subset(sums(1))
    body = {"benchmark": subset["benchmark"], "subset": subset["id"], "sut": model}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: driver.send("POST", "runs", body, Idempotency_Key=f"k-{model}"), range(12)))
    made = {r.json["id"] for r in replies if r.status == 201}
    assert len(made) == 1
    assert all(r.status in (201, 409) for r in replies)
    again = eventually(lambda: r if (r := driver.send("POST", "runs", body, Idempotency_Key=f"k-{model}")).status == 201 else None, "the kept answer")
    assert again.headers["idempotent-replayed"] == "true"
    assert driver.send("POST", "runs", {**body, "trials": 2}, Idempotency_Key=f"k-{model}").status == 422


REFUSED = [
    ({}, 422, "mode_missing"),
    ({"benchmark": "bm_x", "request": "run it"}, 422, "mode_conflict"),
    ({"benchmark": "bm_x", "replay": {"from_run": "run_x"}}, 422, "mode_conflict"),
    ({"request": "Run MMLU on it"}, 501, "not_implemented"),
    ({"benchmark": "none such"}, 404, "benchmark_not_found"),
    ({"benchmark": "x", "agent": "gpt"}, 422, "unknown_field"),
    ({"benchmark": "x", "speed": 3}, 422, "unknown_field"),
    ({"benchmark": "x", "harness": "inspect"}, 422, "harness_unavailable"),
    ({"benchmark": "x", "limits": {"run": {"cost": 0}}}, 422, "invalid_limits"),
    ({"benchmark": "x", "limits": {"run": {"model_cost": 1}}}, 422, "invalid_limits"),
    ({"benchmark": "x", "constraints": {"max_cost_cents": -5}}, 422, "invalid_limits"),
    ({"benchmark": "x", "metadata": {"limit": 0}}, 422, "invalid_request"),
    ({"replay": {"from_run": "run_00000000000000000000000000"}}, 404, "run_not_found"),
    ({"replay": {"from_run": "x", "slice": 1}}, 422, "unknown_field"),
]


@pytest.mark.parametrize(("body", "code_http", "code"), REFUSED)
def test_a_launch_that_cannot_be_meant_is_refused_with_a_problem(driver: Driver, body: dict[str, object], code_http: int, code: str) -> None:
    answer = driver.send("POST", "runs", body)
    assert (answer.status, answer.json["code"]) == (code_http, code)
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert answer.json["request_id"]


def test_an_unknown_subject_names_the_nearest(bench: Bench, driver: Driver) -> None:
    model = bench.model("mercury", ANSWER)
    bench.load()
    answer = driver.send("POST", "runs", {"benchmark": driver.subset(sums(1))["benchmark"], "sut": f"{model}x"})
    assert (answer.status, answer.json["code"]) == (422, "sut_unknown")
    assert model in answer.json["nearest"]


def test_lists_are_walked_by_token_without_skip_or_repeat(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    subset = driver.subset(sums(1))
    made = [driver.launch(subset, model, tags=["walk"])["id"] for _ in range(7)]
    seen, token = [], ""
    while True:
        page = driver.api("GET", f"runs?filter[subset]={subset['id']}&limit=3{f'&page_token={token}' if token else ''}")
        seen += [r["id"] for r in page["data"]]
        if len(seen) == 3:
            driver.launch(subset, model)  # one that arrives meanwhile
        assert page["has_more"] is (page["next"] is not None)
        if not page["has_more"]:
            break
        token = page["next"]
    assert seen == list(reversed(made))
    assert driver.send("GET", f"runs?limit=3&page_token={token}").status == 400, "a token of another filter"
    assert driver.send("GET", f"runs?filter[subset]={subset['id']}&page_token={token[:-1]}x").status == 400
    assert driver.send("GET", "runs?limit=0").status == 400
    assert driver.send("GET", "runs?filter[colour]=red").json["code"] == "unknown_filter"


def test_a_huge_limit_gives_the_largest_page_and_says_that_there_is_more(driver: Driver) -> None:
    subset = driver.subset(sums(501))
    page = driver.api("GET", f"build/subsets/{subset['id']}/samples?limit=100000")
    assert (len(page["data"]), page["has_more"]) == (500, True)
    rest = driver.api("GET", f"build/subsets/{subset['id']}/samples?limit=100000&page_token={page['next']}")
    assert (len(rest["data"]), rest["next"], rest["has_more"]) == (1, None, False)


def test_what_is_somebody_elses_is_as_if_it_were_not_there(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "runs:write", "registry:read", "ask"]))
    for method, path in (
        ("GET", f"runs/{run['id']}"),
        ("GET", f"runs/{run['id']}/tasks"),
        ("POST", f"runs/{run['id']}/halt"),
        ("GET", f"registry/benchmarks/{run['benchmark_id']}"),
    ):
        assert other.send(method, path, {} if method == "POST" else None).status == 404
    assert run["id"] not in [r["id"] for r in other.api("GET", "runs")["data"]]
    driver.ended(run["id"])
    etag = driver.send("GET", f"runs/{run['id']}").headers["etag"]
    assert driver.send("PATCH", f"runs/{run['id']}", {"visibility": "public"}).status == 428
    assert driver.send("PATCH", f"runs/{run['id']}", {"visibility": "public"}, If_Match='"0"').status == 412
    driver.api("PATCH", f"runs/{run['id']}", {"visibility": "public"}, If_Match=etag)
    assert other.send("GET", f"runs/{run['id']}").status == 200
    assert other.api("GET", f"registry/benchmarks/{run['benchmark_id']}")["visibility"] == "public"


def test_a_missing_scope_is_named(bench: Bench, driver: Driver) -> None:
    reader = Driver(bench, bench.key(scopes=["runs:read"]))
    answer = reader.send("POST", "runs", {"benchmark": "x"})
    assert (answer.status, answer.json["required_scope"], answer.json["granted"]) == (403, "runs:write", ["runs:read"])


def test_a_deleted_run_leaves_its_digests(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)
    driver.ended(run["id"])
    assert driver.send("DELETE", f"runs/{run['id']}").json["code"] == "confirmation_missing"
    assert driver.send("DELETE", f"runs/{run['id']}?confirm={run['id']}").status == 204
    left = driver.api("GET", f"runs/{run['id']}")
    assert left["status"] == "deleted"
    assert left["fingerprint"] == run["fingerprint"]
    assert driver.send("POST", "runs", {"replay": {"from_run": run["id"]}}).json["code"] == "parent_not_replayable"
    changes: list[tuple[str, str, Any]] = [
        ("PATCH", "", {"tags": ["again"]}),
        ("PATCH", "", {"metadata": {"said": "again"}}),
        ("PATCH", "", {"visibility": "team"}),
        ("PATCH", "", {"visibility": "public"}),
        ("POST", "/publish", {}),
        ("POST", "/publish", {"visibility": "team"}),
        ("POST", "/requeue", {}),
        ("POST", "/rescore", {"grader": {"kind": "math"}}),
    ]
    for method, path, body in changes:
        answer = driver.send(method, f"runs/{run['id']}{path}", body, If_Match="*")
        assert (answer.status, answer.json["code"]) == (409, "run_deleted"), (method, path, body)
    assert driver.send("DELETE", f"runs/{run['id']}?confirm={run['id']}").status == 204
    assert driver.api("GET", f"runs/{run['id']}") == left, "deleted once"
    (row,) = bench.live.rows("suite.Run", pk=run["id"])
    assert (row["visibility"], row["tags"], row["metadata"]) == ("private", [], {})


def test_a_run_is_published_once_it_has_ended(bench: Bench, driver: Driver) -> None:
    gate = bench.fake.gate()
    model = bench.model("calm", ANSWER.after(gate))
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)
    for method, path in (("PATCH", ""), ("POST", "/publish")):
        answer = driver.send(method, f"runs/{run['id']}{path}", {"visibility": "public"}, If_Match="*")
        assert (answer.status, answer.json["code"]) == (409, "run_not_over")
    assert driver.api("GET", f"registry/benchmarks/{run['benchmark_id']}")["visibility"] == "private"
    assert driver.api("POST", f"runs/{run['id']}/publish", {"visibility": "team"})["visibility"] == "team", "a team may watch"
    gate.open()
    driver.ended(run["id"])
    assert driver.api("POST", f"runs/{run['id']}/publish", {})["visibility"] == "public"
    driver.api("PATCH", f"runs/{run['id']}", {"visibility": "private"}, If_Match="*")


def test_of_changes_that_saw_the_same_state_one_is_made(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seen = f'"{run["etag"]}"'
        answers = list(pool.map(lambda i: driver.send("PATCH", f"runs/{run['id']}", {"tags": [f"by-{i}"]}, If_Match=seen).status, range(16)))
        assert sorted(answers) == [200] + [412] * 15
        answers = list(pool.map(lambda i: driver.send("PATCH", f"runs/{run['id']}", {"tags": [f"by-{i}"]}).status, range(16)))
    assert answers == [200] * 16, "who names no state changes whatever there is"
    assert driver.api("GET", f"runs/{run['id']}")["etag"] == run["etag"] + 17
