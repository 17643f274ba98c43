"""Many subjects through one thing, and subsets made of what they failed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

FOUR, THREE = reply("ANSWER: 4", usage=(20, 8)), reply("ANSWER: 3", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def swept(driver: Driver, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Launches a sweep and reads it once all of its runs are over."""
    made = driver.api("POST", "sweeps", body, 201, **headers)
    for entry in made["runs"]:
        driver.ended(entry["run"])
    found: dict[str, Any] = driver.api("GET", f"sweeps/{made['id']}")
    return found


def test_a_sweep_runs_each_subject_by_the_anchors_impl_and_ranks_them(bench: Bench, driver: Driver) -> None:
    good, bad, fair = bench.model("good", FOUR), bench.model("bad", THREE), bench.model("fair", FOUR)
    bench.load()
    anchor = driver.ended(driver.launch(driver.subset(sums(20)), good, metadata={"family": "sums"})["id"])
    found = swept(driver, {"anchor": anchor["id"], "models": [bad, fair, bad, "no-such-model"], "name": "all of them"})
    assert (found["status"], found["counts"]) == ("ok", {"runs": 2, "over": 2, "refused": 1})
    assert (found["refused"][0]["sut"], found["refused"][0]["code"]) == ("no-such-model", "sut_unknown")
    (board,) = found["boards"]
    assert board["impl"] == anchor["impl"]["id"]
    assert [(row["subject"], row["rank"]) for row in board["rows"]] == [*sorted([(fair, [1, 2]), (good, [1, 2])]), (bad, [3, 3])]
    assert found["baseline"] == anchor["id"]
    verdicts = {pair["second"]: (pair["verdict"], pair["p_holm"]) for pair in found["pairs"]}
    by_subject = {entry["subject"]: entry["run"] for entry in found["runs"]}
    assert verdicts[by_subject[bad]][0] == "better"
    assert verdicts[by_subject[bad]][1] < 0.001
    assert verdicts[by_subject[fair]] == ("inconclusive", 1.0)
    run = driver.api("GET", f"runs/{by_subject[bad]}")
    assert (run["sweep"], run["derived_from"], run["metadata"]) == (found["id"], anchor["id"], {"family": "sums"})
    assert {r["id"] for r in driver.api("GET", f"runs?filter[sweep]={found['id']}")["data"]} == set(by_subject.values())
    assert [s["id"] for s in driver.api("GET", f"sweeps?filter[anchor]={anchor['id']}")["data"]] == [found["id"]]


def test_a_pinned_sweep_under_one_key_is_one(bench: Bench, driver: Driver) -> None:
    one, two = bench.model("one", FOUR), bench.model("two", FOUR)
    bench.load()
    subset = driver.subset(sums(2))
    body = {"benchmark": subset["benchmark"], "subset": subset["id"], "suts": [one, {"model": two}], "trials": 2}
    first, again = (driver.send("POST", "sweeps", body, Idempotency_Key=f"sweep-{one}") for _ in range(2))
    assert (first.status, again.status, again.json["id"], again.headers["idempotent-replayed"]) == (201, 201, first.json["id"], "true")
    in_body = driver.api("POST", "sweeps", {**body, "idempotency_key": f"body-{one}"}, 201)
    assert driver.api("POST", "sweeps", {**body, "idempotency_key": f"body-{one}"}, 201)["id"] == in_body["id"] != first.json["id"]
    for entry in first.json["runs"]:
        assert driver.ended(entry["run"])["trials"] == 2


REFUSED = [
    ({"models": ["x"]}, "mode_missing"),
    ({"anchor": "ANCHOR", "models": []}, "invalid_request"),
    ({"anchor": "ANCHOR"}, "invalid_request"),
    ({"anchor": "ANCHOR", "models": ["x"], "suts": ["x"]}, "mode_conflict"),
    ({"anchor": "ANCHOR", "models": ["x"], "benchmark": "b"}, "mode_conflict"),
    ({"anchor": "ANCHOR", "models": ["no-such", "nor-such"]}, "sweep_empty"),
    ({"anchor": "ANCHOR", "models": ["x"], "speed": 1}, "unknown_field"),
    ({"anchor": "ANCHOR", "models": ["MODEL"], "trials": 0}, "invalid_request"),
    ({"anchor": "ANCHOR", "models": ["MODEL"], "compute": "moon"}, "backend_unknown"),
    ({"anchor": "ANCHOR", "models": ["MODEL"], "only_failed": True}, "empty_scope"),
]


def test_a_sweep_that_cannot_be_meant_launches_nothing(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    anchor = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])["id"]
    for body, code in REFUSED:
        said = {name: anchor if value == "ANCHOR" else [model] if value == ["MODEL"] else value for name, value in body.items()}
        answer = driver.send("POST", "sweeps", said)
        assert (answer.status, answer.json["code"]) == (422, code), body
    assert [r["id"] for r in driver.api("GET", f"runs?filter[derived_from]={anchor}")["data"]] == []
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "runs:write"]))
    assert other.send("POST", "sweeps", {"anchor": anchor, "models": [model]}).status == 404
    assert driver.send("GET", "sweeps/swp_00000000000000000000000000").json["code"] == "sweep_not_found"


def test_a_sweep_is_its_owners_until_one_of_its_runs_is_shared(bench: Bench, driver: Driver) -> None:
    one, two = bench.model("one", FOUR), bench.model("two", FOUR)
    bench.load()
    subset = driver.subset(sums(1))
    found = swept(driver, {"benchmark": subset["benchmark"], "models": [one, two]})
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read"]))
    assert other.send("GET", f"sweeps/{found['id']}").status == 404
    assert other.api("GET", "sweeps")["data"] == []
    shared = found["runs"][0]["run"]
    driver.api("POST", f"runs/{shared}/publish", {})
    assert [entry["run"] for entry in other.api("GET", f"sweeps/{found['id']}")["runs"]] == [shared]
    assert len(other.api("GET", "sweeps")["data"]) == 1


def distilled(driver: Driver, status: int = 201, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = driver.api("POST", "subsets:distill", body, status)
    return found


def test_what_all_failed_what_some_failed_and_what_tells_them_apart(bench: Bench, driver: Driver) -> None:
    """Four and three answer the same rows: the first 3 want 5, which nobody says, the other 3 want 4."""
    good, bad = bench.model("good", FOUR), bench.model("bad", THREE)
    bench.load()
    subset = driver.subset(sums(6, wrong=3))
    found = swept(driver, {"benchmark": subset["benchmark"], "models": [good, bad]})
    runs = [entry["run"] for entry in found["runs"]]
    hard = distilled(driver, runs=runs, rule="failed_by_all", name="Hard sums", tags=["hard"])
    assert (hard["tasks"], hard["distilled"]["looked_at"], hard["parents"], hard["runnable"]) == (3, 6, [subset["benchmark"]], True)
    rows = driver.api("GET", f"build/subsets/{hard['id']}/samples")["data"]
    assert [(row["task_id"], row["expected"], row["source"]["subset"]) for row in rows] == [(f"t{i}", {"value": 5}, subset["id"]) for i in range(3)]
    assert rows[0]["source"] | {"benchmark": subset["benchmark"], "task_id": "t0"} == rows[0]["source"]
    assert distilled(driver, sweep=found["id"], rule="k_of_n", k=1, name="x")["tasks"] == 6
    apart = distilled(driver, runs=runs, rule="discriminating", benchmark=subset["benchmark"], slug="apart")
    assert (apart["tasks"], apart["benchmark"], apart["parents"]) == (3, subset["benchmark"], [])
    run = driver.ended(driver.launch(hard, bad)["id"])
    assert run["impl"]["id"] == driver.api("GET", f"runs/{runs[0]}")["impl"]["id"], "graded as the runs were"
    assert run["summary"]["pass_rate"] == 0.0


def test_tasks_of_several_benchmarks_make_one_subset_with_their_origins(bench: Bench, driver: Driver) -> None:
    bad = bench.model("bad", THREE)
    bench.load()
    one = driver.ended(driver.launch(driver.subset(sums(2)), bad)["id"])
    two = driver.ended(driver.launch(driver.subset(sums(2), grader={"kind": "exact"}), bad)["id"])
    found = distilled(driver, runs=[one["id"], two["id"]], rule="failed_by_all", name="Gauntlet")
    assert found["parents"] == [one["benchmark_id"], two["benchmark_id"]]
    rows = driver.api("GET", f"build/subsets/{found['id']}/samples")["data"]
    wanted = [(f"{run['benchmark_id']}::t{i}", kind) for run, kind in ((one, "math"), (two, "exact")) for i in range(2)]
    assert [(row["task_id"], row["kind"]) for row in rows] == wanted
    assert driver.ended(driver.launch(found, bad)["id"])["summary"]["scored"] == 4


def test_a_dry_distilling_counts_and_makes_nothing(bench: Bench, driver: Driver) -> None:
    good, bad = bench.model("good", FOUR), bench.model("bad", THREE)
    bench.load()
    first = driver.subset(sums(6, wrong=3))
    second = driver.subset(sums(6, wrong=3), benchmark=first["benchmark"], slug="twin")
    found = swept(driver, {"benchmark": first["benchmark"], "subset": first["id"], "models": [good, bad]})
    runs = [entry["run"] for entry in found["runs"]]
    other = driver.ended(driver.launch(second, bad)["id"])["id"]
    before = driver.api("GET", "registry/benchmarks?limit=500")["data"]

    def counted(**body: Any) -> dict[str, Any]:
        told: dict[str, Any] = driver.api("POST", "subsets:distill?dry_run=1", body, 200)
        return told

    hard = counted(runs=runs, rule="failed_by_all")
    assert (hard["object"], hard["dry_run"], hard["taken"], hard["looked_at"], hard["task_ids"]) == ("distillation", True, 3, 6, ["t0", "t1", "t2"])
    assert (hard["k"], hard["runs"], hard["per_source"]) == (None, runs, {first["id"]: 3})
    assert [counted(sweep=found["id"], rule=rule, k=1)["taken"] for rule in ("k_of_n", "discriminating")] == [6, 3]
    # Of two subsets of one benchmark the first stands for a task that both have.
    several = counted(runs=[*runs, other], rule="failed_by_all")
    assert (several["taken"], several["per_source"]) == (6, {first["id"]: 3, second["id"]: 6})
    assert several["task_ids"][0] == f"{first['benchmark']}::t0"
    assert driver.api("GET", "registry/benchmarks?limit=500")["data"] == before, "nothing was made"
    assert distilled(driver, runs=[*runs, other], rule="failed_by_all", name="Both")["tasks"] == several["taken"]


def test_a_dry_distilling_and_the_real_one_are_two_requests_under_one_key(bench: Bench, driver: Driver) -> None:
    bad = bench.model("bad", THREE)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(2)), bad)["id"])["id"]
    body, key = {"runs": [run], "rule": "failed_by_all", "name": "Hard"}, f"once-{bench.tag}"
    dry = driver.send("POST", "subsets:distill?dry_run=1", body, Idempotency_Key=key)
    made = driver.send("POST", "subsets:distill", body, Idempotency_Key=key)
    assert (dry.status, dry.json["taken"], made.status, made.json["object"], made.json["tasks"]) == (200, 2, 201, "subset", 2)


@pytest.mark.parametrize(
    ("query", "body", "status", "code"),
    [
        ("dry_run=1", {"rule": "failed_by_all"}, 200, ""),
        ("dry_run=true", {"rule": "failed_by_all"}, 200, ""),
        ("dry_run=perhaps", {"rule": "failed_by_all", "name": "x"}, 422, "invalid_request"),
        ("dry_run=0", {"rule": "failed_by_all"}, 422, "invalid_request"),
        ("dry_run=1", {"rule": "k_of_n", "k": 2}, 422, "invalid_request"),
        ("dry_run=1", {"rule": "discriminating"}, 422, "invalid_request"),
        ("dry_run=1", {"rule": "failed_by_all", "slug": "no slug"}, 422, "invalid_request"),
        ("dry_run=1", {"rule": "failed_by_all", "speed": 1}, 422, "unknown_field"),
    ],
)
def test_a_dry_distilling_of_nothing_is_none_and_of_nonsense_is_refused(
    bench: Bench, driver: Driver, query: str, body: dict[str, Any], status: int, code: str
) -> None:
    calm = bench.model("calm", FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), calm)["id"])["id"]
    answer = driver.send("POST", f"subsets:distill?{query}", {"runs": [run], **body})
    assert (answer.status, answer.json.get("code", "")) == (status, code), answer.body
    if status == 200:
        assert (answer.json["taken"], answer.json["looked_at"], answer.json["task_ids"]) == (0, 1, [])


WRONG = [
    ({"rule": "failed_by_all", "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "sweep": "swp_x", "rule": "failed_by_all", "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "hardest", "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "k_of_n", "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "k_of_n", "k": 2, "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "discriminating", "name": "x"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "failed_by_all"}, 422, "invalid_request"),
    ({"runs": ["RUN"], "rule": "failed_by_all", "name": "x"}, 422, "empty_scope"),
    ({"runs": ["RUN"], "rule": "failed_by_all", "name": "x", "speed": 1}, 422, "unknown_field"),
    ({"runs": ["run_00000000000000000000000000"], "rule": "failed_by_all", "name": "x"}, 404, "run_not_found"),
    ({"sweep": "swp_00000000000000000000000000", "rule": "failed_by_all", "name": "x"}, 404, "sweep_not_found"),
]


def test_a_distilling_that_cannot_be_meant_makes_nothing(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])["id"]
    owner = f"author-{bench.tag}"
    mine = Driver(bench, bench.key(owner=owner, scopes=["runs:read", "registry:read", "registry:publish"]))
    for body, status, code in WRONG:
        answer = driver.send("POST", "subsets:distill", {**body, **({"runs": [run]} if body.get("runs") == ["RUN"] else {})})
        assert (answer.status, answer.json["code"]) == (status, code), body
    answer = mine.send("POST", "subsets:distill", {"runs": [run], "rule": "k_of_n", "k": 1, "name": "x"})
    assert (answer.status, answer.json["code"]) == (404, "run_not_found"), "only what one may read"
    assert mine.api("GET", f"registry/benchmarks?filter[owner]={owner}")["data"] == []
