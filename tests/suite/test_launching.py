"""What a launch may say, what it freezes, and what it refuses before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from suite.running.limits import LEGACY, LEVELS
from tests import factories
from tests.fake import hang, reply
from tests.http import Reply
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

FOUR, THREE = reply("ANSWER: 4", usage=(20, 8)), reply("ANSWER: 3", usage=(20, 8))
WAYS: dict[str, Any] = {"request": "Run it", "benchmark": "bm_x", "replay": {"from_run": "run_x"}}


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


@pytest.mark.parametrize("fields", [pair for n in (2, 3) for pair in combinations(WAYS, n)], ids=" ".join)
def test_the_ways_to_launch_exclude_each_other_and_are_named(driver: Driver, fields: tuple[str, ...]) -> None:
    answer = driver.send("POST", "runs", {name: WAYS[name] for name in fields})
    assert (answer.status, answer.json["code"], answer.json["fields"]) == (422, "mode_conflict", list(fields))
    assert [e["pointer"] for e in answer.json["errors"]] == [f"/{name}" for name in fields]


def test_who_says_agent_is_told_what_is_meant(driver: Driver) -> None:
    answer = driver.send("POST", "runs", {"benchmark": "x", "agent": "m"})
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/agent")
    assert "driver" in answer.json["detail"]
    assert "sut" in answer.json["detail"]


def test_a_harness_that_is_not_here_is_refused_with_its_settings_and_never_replaced(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset = driver.subset(sums(1))
    for harness, settings in (
        ("inspect", {"inspect_harness": {"task": "inspect_evals/mmlu_0_shot", "args": {}}}),
        ("lmeval", {"lmeval_harness": {"task": "mmlu"}}),
        ("lighteval", {"lighteval_harness": {"task": "mmlu"}}),
        ("harbor", {"harbor_harness": {"dataset": "terminal-bench"}, "harbor_task": "x"}),
    ):
        answer = driver.send("POST", "runs", {"benchmark": subset["benchmark"], "sut": model, "harness": harness, "metadata": settings})
        assert (answer.status, answer.json["code"], answer.json["errors"][0]["pointer"]) == (422, "harness_unavailable", "/harness")
    assert driver.send("POST", "runs", {"benchmark": "x", "harness": "another"}).json["code"] == "invalid_request"


NAMED = (
    "id", "status", "phase", "request", "harness", "backend", "benchmark_name", "benchmark_id", "subset_id", "impl", "model", "driver", "cost", "links",
    "visibility", "review_resolution", "metadata", "error", "halt_reason", "started_at", "finished_at", "derived_from", "limits", "trials", "tags", "source",
)  # fmt: skip


def test_what_a_launch_resolved_is_frozen_on_its_run(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR, facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    subset = driver.subset(sums(9))
    run = driver.launch(
        subset,
        model,
        impl="latest:official",
        driver="some-model",
        phase_models={"report": "another"},
        hints=["be quick"],
        timeout=300,
        source="ci",
        tags=["nightly"],
        metadata={"limit": 5},
        limits={"run": {"cost": 7.5, "tasks": 3}},
        constraints={"max_cost_cents": 500, "max_duration_ms": 60_000, "max_tasks": 8},
    )
    assert not [name for name in NAMED if name not in run]
    assert (run["impl"]["requested"], run["impl"]["id"][:4]) == ("latest:official", "imp_")
    assert (run["driver"], run["source"], run["tags"], run["metadata"]) == ("some-model", "ci", ["nightly"], {"limit": 5})
    assert model in run["request"], "said in words, though nobody wrote any"
    assert run["limits"] == {"run": {"cost": 5.0, "duration": 60.0, "tasks": 3}}, "of two ceilings the stricter"
    assert (run["selection"]["strategy"], run["selection"]["n"], run["scope"]) == ("first", 3, "limited")
    assert len(run["selection"]["digest"]) == 64
    assert isinstance(run["selection"]["seed"], int)
    found = driver.ended(run["id"])
    assert [t["task_id"] for t in driver.api("GET", f"runs/{run['id']}/tasks")["data"]] == ["t0", "t1", "t2"]
    phases = {p["name"]: p for p in found["phases"]}
    assert phases["Materialize"]["status"] == "ok"
    assert phases["Materialize"]["started_at"] <= phases["Materialize"]["finished_at"]
    assert found["started_at"] <= found["finished_at"]
    bare = f"{int.from_bytes(_decoded(run['id']), 'big'):032x}"
    for name in (bare, f"{bare[:8]}-{bare[8:12]}-{bare[12:16]}-{bare[16:20]}-{bare[20:]}"):
        assert driver.api("GET", f"runs/{name}")["id"] == run["id"], "a bare UUID is the same id"


def _decoded(name: str) -> bytes:
    """The 16 bytes of an id in Crockford's base 32."""
    number = 0
    for letter in name.partition("_")[2]:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    return number.to_bytes(16, "big")


def test_a_run_under_way_is_neither_replayed_nor_forked_nor_destroyed(bench: Bench, driver: Driver) -> None:
    model = bench.model("stuck", hang())
    bench.load()
    run = driver.launch(driver.subset(sums(2)), model)["id"]
    eventually(lambda: bench.fake.calls_to(model), "a call")
    replay = driver.send("POST", "runs", {"replay": {"from_run": run}})
    assert (replay.status, replay.json["code"]) == (409, "parent_not_replayable")
    fork = driver.send("POST", f"runs/{run}/fork", {"grader": {"kind": "math"}})
    assert (fork.status, fork.json["code"]) == (409, "parent_not_forkable")
    assert driver.send("DELETE", f"runs/{run}?confirm={run}").json["code"] == "run_not_over"
    assert driver.send("GET", f"runs/{run}/gate?require=pass_rate=0.5").json["code"] == "run_not_over"
    driver.api("POST", f"runs/{run}/halt", {}, 202)
    found = driver.api("GET", f"runs/{run}?wait=60&fields=status,halt_reason")
    assert found == {"object": "run", "id": run, "status": "halted", "halt_reason": "user_requested"}, "a look that waits sees the end"
    assert driver.send("GET", f"runs/{run}?wait=soon").status == 422


def test_a_replay_names_tasks_that_there_are(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    parent = driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])["id"]

    def replayed(**more: Any) -> Any:
        return driver.send("POST", "runs", {"replay": {"from_run": parent, **more}})

    unknown = replayed(task_ids=["t0", "no", "nor"])
    assert (unknown.status, unknown.json["code"], unknown.json["unknown"]) == (422, "unknown_task", ["no", "nor"])
    assert [e["pointer"] for e in unknown.json["errors"]] == ["/replay/task_ids/1", "/replay/task_ids/2"]
    for more, code in (
        ({"task_ids": []}, "empty_scope"),
        ({"only_failed": True}, "empty_scope"),
        ({"only_failed": True, "task_ids": ["t0"]}, "mode_conflict"),
        ({"subset_version": 2}, "invalid_request"),
        ({"subset_version": "oldest"}, "invalid_request"),
        ({"task_ids": "t0"}, "invalid_request"),
    ):
        answer = replayed(**more)
        assert (answer.status, answer.json["code"]) == (422, code), more
    fork = driver.send("POST", f"runs/{parent}/fork", {"grader": {"kind": "math"}, "from_phase": "lunch"})
    assert (fork.status, fork.json["errors"][0]["pointer"]) == (422, "/from_phase")


def test_a_replay_of_a_rolling_subset_takes_the_latest_rows_unless_told(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset = driver.subset(sums(2), rolling=True)
    parent = driver.ended(driver.launch(subset, model)["id"])
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(3)})

    def replayed(**more: Any) -> tuple[int, str, int]:
        run = driver.api("POST", "runs", {"replay": {"from_run": parent["id"], **more}}, 201)
        found = driver.ended(run["id"])
        assert found["impl"]["id"] == parent["impl"]["id"]
        return found["subset_version"], found["scope"], found["summary"]["total"]

    assert replayed() == (2, "full", 3)
    assert replayed(subset_version="parent") == (1, "full", 2)
    assert replayed(task_ids=["t2"]) == (2, "ids", 1), "a row that came since"
    assert driver.send("POST", "runs", {"replay": {"from_run": parent["id"], "task_ids": ["t2"], "subset_version": 1}}).json["code"] == "unknown_task"
    boards = driver.api("GET", f"registry/subsets/{subset['id']}/leaderboard")["data"]
    assert [(board["version"], board["rows"][0]["total"]) for board in boards] == [(2, 3), (1, 2)], "no part stands on a board"


def test_a_replay_of_a_part_asks_no_more_than_that_part(bench: Bench, driver: Driver) -> None:
    """A run of two tasks, replayed after four more came, once asked all six: three times what its launch allowed."""
    model = bench.model("calm", FOUR)
    bench.load()
    subset = driver.subset(sums(4, wrong=3), rolling=True)
    full = driver.ended(driver.launch(subset, model)["id"])["id"]
    by_metadata = driver.ended(driver.launch(subset, model, metadata={"limit": 2})["id"])["id"]
    by_limits = driver.ended(driver.launch(subset, model, limits={"run": {"tasks": 2}})["id"])["id"]
    roomy = driver.ended(driver.launch(subset, model, limits={"run": {"tasks": 5}})["id"])["id"]

    def replayed(run: str, more: Mapping[str, Any] | None = None, **launch: Any) -> tuple[str, int, int, str]:
        made = driver.api("POST", "runs", {"replay": {"from_run": run, **(more or {})}, **launch}, 201)
        return made["scope"], made["progress"]["total"], made["subset_version"], made["id"]

    ids = driver.ended(replayed(full, {"task_ids": ["t0", "t3"]})[-1])["id"]
    failed = driver.ended(replayed(full, {"only_failed": True})[-1])["id"]
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(6, wrong=3)})
    late = driver.ended(replayed(full, {"task_ids": ["t3", "t5"]})[-1])["id"]
    one: dict[str, Any] = {"limits": {"run": {"tasks": 1}}}
    cases: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, int, int]]] = [
        (by_metadata, {}, {}, ("limited", 2, 2)),
        (by_limits, {}, {}, ("limited", 2, 2)),
        (by_limits, {"subset_version": "parent"}, one, ("limited", 1, 1)),
        (roomy, {}, {}, ("limited", 5, 2)),
        (roomy, {}, {"limits": {"run": {"tasks": 6}}}, ("full", 6, 2)),
        (roomy, {"subset_version": 1}, {}, ("full", 4, 1)),
        (ids, {}, {}, ("ids", 2, 2)),
        (ids, {}, {"metadata": {"limit": 1}}, ("ids", 1, 2)),
        (failed, {}, {}, ("failed", 3, 2)),
        (failed, {}, one, ("failed", 1, 2)),
        (full, {}, {}, ("full", 6, 2)),
        (full, {}, one, ("limited", 1, 2)),
        (full, {"only_failed": True}, one, ("failed", 1, 2)),
        (full, {"task_ids": ["t5", "t4"]}, {"metadata": {"limit": 1}}, ("ids", 1, 2)),
        (late, {"subset_version": 1}, {}, ("ids", 1, 1)),
    ]
    for run, more, launch, expected in cases:
        assert replayed(run, more, **launch)[:3] == expected, (more, launch)
    newest = driver.ended(replayed(full, {"task_ids": ["t5"]})[-1])["id"]
    answer = driver.send("POST", "runs", {"replay": {"from_run": newest, "subset_version": 1}})
    assert (answer.status, answer.json["code"]) == (422, "empty_scope"), "none of its tasks were there then"


def test_a_replay_takes_no_pin_beside_its_parents(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset = driver.subset(sums(1))
    run = driver.ended(driver.launch(subset, model)["id"])
    for pins in ({"impl": run["impl"]["id"]}, {"impl": "latest"}, {"subset": subset["id"]}, {"subset": "all", "impl": "latest"}):
        answer = driver.send("POST", "runs", {"replay": {"from_run": run["id"]}, **pins})
        assert (answer.status, answer.json["code"], answer.json["fields"]) == (422, "mode_conflict", ["replay", *pins]), pins


def test_a_version_is_pinned_by_its_id(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    subset = driver.subset(sums(2), rolling=True)
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(3)})
    body = {"benchmark": subset["benchmark"], "sut": model}
    for named, version, total in ((subset["id"], 2, 3), (f"{subset['id']}@1", 1, 2), (f"{subset['id']}@2", 2, 3)):
        made = driver.api("POST", "runs", {**body, "subset": named}, 201)
        assert (made["subset_version"], made["progress"]["total"], made["scope"]) == (version, total, "full"), named
    for wrong in ("0", "3", "-1", "x", "", "1.0", "\u0661", "9" * 30):
        answer = driver.send("POST", "runs", {**body, "subset": f"{subset['id']}@{wrong}"})
        assert (answer.status, answer.json["code"]) == (404, "subset_not_found"), wrong


def test_a_name_that_others_have_as_well_is_ones_own_benchmark(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    name = f"shared name {bench.tag}"
    scopes = ["runs:read", "runs:write", "registry:read", "registry:publish"]
    first, second, third = (Driver(bench, bench.key(owner=f"{bench.tag}-{i}", team=f"{bench.tag}-{i % 2}", scopes=scopes)) for i in range(3))
    theirs, own = (who.subset(sums(1), who.benchmark(name)["id"]) for who in (first, second))

    def launched(who: Driver) -> Reply:
        return who.send("POST", "runs", {"benchmark": name, "sut": model})

    assert (launched(first).json["benchmark_id"], launched(second).json["benchmark_id"]) == (theirs["benchmark"], own["benchmark"])
    assert launched(third).json["code"] == "benchmark_not_found"
    run = first.ended(launched(first).json["id"])
    first.api("POST", f"runs/{run['id']}/publish", {"visibility": "team"})
    assert launched(third).json["benchmark_id"] == theirs["benchmark"], "the one that it may read"
    assert launched(second).json["benchmark_id"] == own["benchmark"], "its own before another's"


def test_too_little_room_for_multiple_choice_is_warned_of_beforehand(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: B"))
    bench.load()
    task = {"task_id": "q", "input": {"question": "?", "choices": ["x", "y"]}, "expected": {"value": "B"}}
    subset = driver.subset([task], grader={"kind": "multiple_choice"})
    tight = driver.launch(subset, {"model": model, "params": {"max_tokens": 16}})
    assert "near chance" in tight["warnings"][0]
    assert driver.launch(subset, {"model": model, "params": {"max_tokens": 4096}})["warnings"] == []
    assert driver.launch(driver.subset(sums(1)), {"model": model, "params": {"max_tokens": 16}})["warnings"] == []
    logged = driver.api("GET", f"runs/{tight['id']}/events?types=Log")["data"]
    assert [e["data"]["message"] for e in logged[:1]] == tight["warnings"]


def test_a_retired_subject_is_tested_only_where_that_is_meant(bench: Bench, driver: Driver) -> None:
    model = bench.model("old", FOUR)
    bench.load()
    subset = driver.subset(sums(1))
    bench.live.api("POST", f"models/{model}/retire", {"reason": "replaced"})
    answer = driver.send("POST", "runs", {"benchmark": subset["benchmark"], "sut": model})
    assert (answer.status, answer.json["code"]) == (409, "sut_retired")
    assert "replaced" in answer.json["detail"]
    run = driver.ended(driver.launch(subset, {"model": model, "retired_too": True})["id"])
    assert run["summary"]["passed"] == 1
    again = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": run["id"]}}, 201)["id"])
    assert (again["summary"]["passed"], again["fingerprint"]) == (1, run["fingerprint"])
    assert bench.live.ask(model).status == 404, "others do not get to it by that"
    again = driver.send("POST", f"runs/{run['id']}/fork", {"grader": {"kind": "exact"}})
    assert (again.status, again.json["sut"]["retired_too"]) == (201, True)


def test_a_retired_subject_is_retired_by_each_of_its_names(bench: Bench, driver: Driver) -> None:
    model, endpoint = bench.model("alias", FOUR, served_name=factories.tag("served-")), f"{bench.tag}-here"
    served = bench.models[model]["served_name"]
    bench.fake.script(served, FOUR)
    bench.load()
    subset = driver.subset(sums(1))
    run = driver.ended(driver.launch(subset, model)["id"])
    names = [model, f"{model}@{endpoint}", f"{served}@{endpoint}", {"model": model, "provider": endpoint}, {"model": served, "provider": endpoint}]
    bench.live.api("POST", f"models/{model}/retire", {"reason": "replaced"})
    for sut in names:
        answer = driver.send("POST", "runs", {"benchmark": subset["benchmark"], "sut": sut})
        assert (answer.status, answer.json["code"]) == (409, "sut_retired"), sut
    meant = driver.launch(subset, {"model": served, "provider": endpoint, "retired_too": True})["sut"]
    assert (meant["kind"], meant["model"], meant["retired_too"]) == ("model", model, True)
    refused = driver.send("POST", f"runs/{run['id']}/fork", {"grader": {"kind": "exact"}})
    assert (refused.status, refused.json["code"]) == (409, "sut_retired")
    bench.live.api("DELETE", f"models/{model}")
    gone = driver.send("POST", f"runs/{run['id']}/fork", {"grader": {"kind": "exact"}})
    assert (gone.status, gone.json["code"]) == (422, "sut_unknown")


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"compute": "moon"}, "backend_unknown", "/compute"),
    ({"sut": {"model": "MODEL", "speed": 1}}, "unknown_field", "/sut/speed"),
    ({"sut": {"collection": "no such"}}, "sut_unknown", "/sut"),
    ({"sut": None}, "sut_missing", "/sut"),
    ({"trials": 0}, "invalid_request", "/trials"),
    ({"trials": True}, "invalid_request", "/trials"),
    ({"source": "nobody"}, "invalid_request", "/source"),
    ({"visibility": "public"}, "invalid_request", "/visibility"),
    ({"tags": ["x" * 81]}, "invalid_request", "/tags"),
    ({"metadata": []}, "invalid_request", "/metadata"),
    ({"impl": "newest"}, "impl_not_found", ""),
    ({"limits": {"task": {"attempts": 1.5}}}, "invalid_limits", "/limits/task/attempts"),
    ({"limits": {"moon": {"cost": 1}}}, "invalid_limits", "/limits/moon"),
    *(({"limits": {level: {name: 1e300}}}, "invalid_limits", f"/limits/{level}/{name}") for level, names in LEVELS.items() for name in names),
    *(({"constraints": {name: 10**30}}, "invalid_limits", f"/constraints/{name}") for name in LEGACY),
]


def test_a_wrong_field_is_refused_by_its_name(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    benchmark = driver.subset(sums(1))["benchmark"]
    for more, code, pointer in BAD:
        said = {"benchmark": benchmark, "sut": model, **more}
        answer = driver.send("POST", "runs", said)
        assert (answer.status, answer.json["code"]) == (404 if code == "impl_not_found" else 422, code), more
        assert [e["pointer"] for e in answer.json.get("errors", [])][:1] == ([pointer] if pointer else []), more
    assert driver.api("GET", f"runs?filter[benchmark]={benchmark}")["data"] == [], "nothing was launched"


def test_runs_are_found_by_what_was_said_of_them(bench: Bench) -> None:
    team = factories.tag("team-")
    driver = Driver(bench, bench.key(owner=team, team=team, scopes=["runs:read", "runs:write", "registry:read", "registry:publish"]))
    good, bad = bench.model("good", FOUR), bench.model("bad", THREE)
    bench.load()
    subset = driver.subset(sums(1))
    one = driver.ended(driver.launch(subset, good, tags=["a", "b"], metadata={"pr": 7}, source="ci", visibility="team")["id"])
    two = driver.ended(driver.launch(subset, bad, tags=["b"], metadata={"pr": 8})["id"])
    found = {
        "": [two, one],
        "sort=created_at": [one, two],
        "sort=-started_at": [two, one],
        "filter[tag]=b": [two, one],
        "filter[tag]=a&filter[tag]=b": [one],
        "filter[metadata.pr]=7": [one],
        "filter[metadata.pr]=9": [],
        f"filter[subject]={bad}": [two],
        "filter[source]=ci": [one],
        "filter[status]=ok,failed": [two, one],
        "filter[status]=running": [],
        "filter[visibility]=team": [one],
        f"filter[subset]={subset['id']}&filter[impl]={one['impl']['id']}": [two, one],
        f"filter[owner]={team}": [two, one],
        "filter[finished_at]=>2020-01-01": [two, one],
        "filter[finished_at]=<2020-01-01T00:00:00Z": [],
        f"filter[started_at]={one['started_at'][:10]}&filter[source]=ci": [one],
        "status=ok&tag=a": [one],
    }
    for query, runs in found.items():
        mine = "" if "owner" in query else f"&filter[owner]={team}"  # other tests' runs are there as well
        assert [r["id"] for r in driver.api("GET", f"runs?{query}{mine}")["data"]] == [r["id"] for r in runs], query
    for query, code in (
        ("filter[colour]=red", "unknown_filter"),
        ("filter[metadata]=7", "unknown_filter"),
        ("filter[started_at]=lately", "invalid_filter"),
        ("sort=colour", "unknown_sort"),
        ("expand=everything", "unknown_expand"),
    ):
        answer = driver.send("GET", f"runs?{query}")
        assert (answer.status, answer.json["code"]) == (422, code), query


def test_several_trials_of_a_task_are_one_figure_and_all_of_them_are_kept(bench: Bench, driver: Driver) -> None:
    model = bench.model("fickle", FOUR, THREE, FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), model, trials=3)["id"])
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks")["data"]
    assert (task["trials"], task["trials_passed"], task["trials_scored"]) == (3, 2, 3)
    assert task["score"] == pytest.approx(2 / 3)
    assert task["passed"] is False, "two thirds are below the threshold of 1"
    samples = driver.api("GET", f"runs/{run['id']}/tasks/{task['id']}/payload")["samples"]
    assert [s["trial"] for s in samples] == [1, 2, 3]
    assert sorted(s["score"] for s in samples) == [0.0, 1.0, 1.0]
    told = run["summary"]["trials"]
    assert (told["of_each"], told["tasks"]) == (3, 1)
    assert told["pass_at"] == {"1": pytest.approx(2 / 3), "2": pytest.approx(1.0), "3": pytest.approx(1.0)}
    assert told["pass_hat"] == {"1": pytest.approx(2 / 3), "2": pytest.approx(1 / 3), "3": pytest.approx(0.0)}
    assert told["majority"] == 1.0
    lenient = driver.ended(driver.launch(driver.subset(sums(1), grader={"kind": "math", "pass_threshold": 0.5}), model, trials=1)["id"])
    assert lenient["summary"]["trials"] is None
