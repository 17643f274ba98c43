"""The smaller rules of a launch, each refusal with its code; what lists of runs know."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from access.ids import ALPHABET
from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums
from tests.suite.test_scorers import one_method

FOUR = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def calm(bench: Bench) -> str:
    model = bench.model("calm", FOUR)
    bench.load()
    return model


# A run that began with one of these measured something else than it said, or never ended.
UNKNOWN_PARAMS: list[tuple[str, Any]] = [("temprature", 0), ("model", "other"), ("messages", []), ("stream", True), ("n", 5), ("tools", []), ("", 1)]
WRONG_PARAMS: list[tuple[str, Any]] = [
    ("temperature", "hot"),
    ("temperature", True),
    ("top_p", []),
    ("max_tokens", -5),
    ("max_tokens", 0),
    ("max_tokens", "many"),
    ("max_completion_tokens", 1.5),
    ("seed", "lucky"),
    ("stop", 7),
    ("stop", ["x", 7]),
    ("presence_penalty", {}),
]
WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"compute": "moon"}, 422, "backend_unknown"),
    ({"harness": "tea"}, 422, "invalid_request"),
    ({"impl": "latest:best"}, 422, "invalid_request"),
    ({"impl": "imp_00000000000000000000000000"}, 404, "impl_not_found"),
    ({"subset": "none"}, 404, "subset_not_found"),
    ({"trials": 0}, 422, "invalid_request"),
    ({"trials": True}, 422, "invalid_request"),
    ({"trials": 101}, 422, "invalid_request"),
    ({"metadata": []}, 422, "invalid_request"),
    ({"metadata": {"limit": True}}, 422, "invalid_request"),
    ({"metadata": {"limit": 0}}, 422, "invalid_request"),
    ({"metadata": {"x": "y" * 70_000}}, 422, "invalid_request"),
    ({"tags": ["x" * 81]}, 422, "invalid_request"),
    ({"tags": "x"}, 422, "invalid_request"),
    ({"source": "moon"}, 422, "invalid_request"),
    ({"driver": 7}, 422, "invalid_request"),
    ({"phase_models": {"dream": "x"}}, 422, "invalid_request"),
    ({"timeout": 0}, 422, "invalid_request"),
    ({"priority": 0}, 422, "invalid_request"),
    ({"visibility": "public"}, 422, "invalid_request"),
    ({"sut": {"model": "MODEL", "speed": 1}}, 422, "unknown_field"),
    ({"sut": {"model": "MODEL", "params": []}}, 422, "invalid_request"),
    *(({"sut": {"model": "MODEL", "params": {name: value}}}, 422, "unknown_field") for name, value in UNKNOWN_PARAMS),
    *(({"sut": {"model": "MODEL", "params": {name: value}}}, 422, "invalid_request") for name, value in WRONG_PARAMS),
    ({"sut": {"model": ""}}, 422, "sut_unknown"),
    ({"sut": "bench/none"}, 422, "sut_unknown"),
    ({"sut": "name@nowhere"}, 422, "sut_unknown"),
    ({"sut": 7}, 422, "sut_unknown"),
    ({"sut": None}, 422, "sut_missing"),
    ({"idempotency_key": 7}, 400, "invalid_idempotency_key"),
]


def test_a_launch_that_cannot_be_meant_leaves_no_run(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    subset = driver.subset(sums(1))
    for more, status, code in WRONG:
        body = {"benchmark": subset["benchmark"], "subset": subset["id"], "sut": model, **more}
        if isinstance(body["sut"], dict):
            body["sut"] = {name: model if value == "MODEL" else value for name, value in body["sut"].items()}
        answer = driver.send("POST", "runs", body)
        assert (answer.status, answer.json["code"]) == (status, code), (more, answer.json)
    assert driver.api("GET", f"runs?filter[subset]={subset['id']}")["data"] == []


def test_a_benchmark_with_several_subsets_wants_one_named(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    one = driver.subset(sums(1), slug="one")
    assert driver.api("POST", "runs", {"benchmark": one["benchmark"], "sut": model}, 201)["subset_id"] == one["id"], "the only one"
    driver.subset(sums(1), one["benchmark"], slug="two")
    assert driver.send("POST", "runs", {"benchmark": one["benchmark"], "sut": model}).json["code"] == "subset_missing"
    assert driver.api("POST", "runs", {"benchmark": one["benchmark"], "subset": "one", "sut": model}, 201)["subset_id"] == one["id"]
    empty = driver.subset([], one["benchmark"], slug="three", rolling=True)
    assert driver.send("POST", "runs", {"benchmark": one["benchmark"], "subset": empty["id"], "sut": model}).json["code"] == "subset_not_runnable"


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_an_alias_of_an_impl_is_resolved_and_frozen(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    subset = driver.subset(sums(1))
    first = driver.api("POST", "impls", {"subset": subset["id"], "code": f"{one_method()}# {subset['id']}\n"}, 201)
    run = driver.ended(driver.launch(subset, model, impl="latest:official")["id"])
    assert run["impl"] == {"id": first["id"], "requested": "latest:official"}
    second = driver.api("POST", "impls", {"subset": subset["id"], "code": f"{one_method()}# {subset['id']} 2\n"}, 201)
    assert driver.launch(subset, model, impl="latest")["impl"]["id"] == second["id"]
    assert driver.launch(subset, model)["impl"]["id"] not in (first["id"], second["id"]), "its own grader comes first"
    assert driver.api("GET", f"runs/{run['id']}")["impl"]["id"] == first["id"]
    stranger = Driver(bench, bench.key(owner="somebody", scopes=["runs:write", "registry:read", "registry:publish"]))
    own = stranger.subset(sums(1))
    answer = stranger.send("POST", "runs", {"benchmark": own["benchmark"], "sut": model, "impl": first["id"]})
    assert (answer.status, answer.json["code"]) == (404, "impl_not_found"), "somebody else's scorer"


REPLAYS: list[tuple[dict[str, Any], str]] = [
    ({"only_failed": True}, "empty_scope"),
    ({"task_ids": []}, "empty_scope"),
    ({"task_ids": ["t0", "none", "nor this"]}, "unknown_task"),
    ({"task_ids": "t0"}, "invalid_request"),
    ({"task_ids": ["t0"], "only_failed": True}, "mode_conflict"),
    ({"only_failed": "yes"}, "invalid_request"),
    ({"subset_version": 2}, "invalid_request"),
    ({"subset_version": "newest"}, "invalid_request"),
]


def test_a_replay_that_selects_nothing_or_what_there_is_not_is_refused(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    run = driver.ended(driver.launch(driver.subset(sums(2)), model)["id"])["id"]
    for more, code in REPLAYS:
        answer = driver.send("POST", "runs", {"replay": {"from_run": run, **more}})
        assert (answer.status, answer.json["code"]) == (422, code), more
        if code == "unknown_task":
            assert answer.json["unknown"] == ["none", "nor this"]
            assert [e["pointer"] for e in answer.json["errors"]] == ["/replay/task_ids/1", "/replay/task_ids/2"]


def test_who_operates_goes_first_and_others_may_step_back(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    subset = driver.subset(sums(1))
    assert driver.launch(subset, model, priority=1)["status"] == "queued"
    judge = Driver(bench, bench.key(owner="judge", scopes=["runs:write", "runs:read", "registry:read", "registry:publish"]))
    own = judge.subset(sums(1))
    assert judge.launch(own, model, priority=90)["status"] == "queued"
    answer = judge.send("POST", "runs", {"benchmark": own["benchmark"], "sut": model, "priority": 10})
    assert (answer.status, answer.json["required_scope"]) == (403, "operate")


def test_lists_know_only_their_filters_fields_and_sorts(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    subset = driver.subset(sums(3))
    one = driver.ended(driver.launch(subset, model, tags=["night", "ci"], metadata={"pr": 7, "deep": {"x": 1}})["id"])
    two = driver.ended(driver.launch(subset, model, tags=["night"], metadata={"pr": 8})["id"])
    of = f"filter[subset]={subset['id']}"

    def ids(query: str) -> list[str]:
        return [r["id"] for r in driver.api("GET", f"runs?{of}&{query}")["data"]]

    assert ids("filter[metadata.pr]=7") == [one["id"]]
    assert ids("filter[metadata.pr]=9") == []
    assert ids("filter[tag]=night") == [two["id"], one["id"]]
    assert ids("filter[tag]=night&filter[tag]=ci") == [one["id"]]
    assert ids("filter[status]=ok,failed&sort=created_at") == [one["id"], two["id"]]
    assert ids(f"filter[subject]={model}&sort=-started_at&limit=1") == [two["id"]]
    assert ids("filter[finished_at]=>2020-01-01T00:00:00Z&filter[started_at]=<2020-01-01") == []
    first = driver.api("GET", f"runs?{of}&sort=started_at&limit=1")
    assert [r["id"] for r in driver.api("GET", f"runs?{of}&sort=started_at&limit=1&page_token={first['next']}")["data"]] == [two["id"]]
    for query, code in (
        ("filter[metadata]=7", "unknown_filter"),
        ("filter[colour]=red", "unknown_filter"),
        ("colour=red", "unknown_filter"),
        ("sort=cost", "unknown_sort"),
        ("expand=everything", "unknown_expand"),
        ("filter[started_at]=soon", "invalid_filter"),
    ):
        answer = driver.send("GET", f"runs?{query}")
        assert (answer.status, answer.json["code"]) == (422, code), query
    for query, code in (("fields=colour", "unknown_fields"), ("expand=tasks", "unknown_expand")):
        assert driver.send("GET", f"runs/{one['id']}?{query}").json["code"] == code
    assert set(driver.api("GET", f"runs/{one['id']}?fields=status,summary")) == {"object", "id", "status", "summary"}
    assert driver.send("GET", f"runs/{one['id']}/tasks?sort=cost").json["code"] == "unknown_sort"
    assert driver.send("GET", f"runs/{one['id']}/tasks?passed=maybe").status == 422
    page = driver.api("GET", f"runs/{one['id']}/tasks?sort=-score&limit=2")
    rest = driver.api("GET", f"runs/{one['id']}/tasks?sort=-score&limit=2&page_token={page['next']}")
    assert sorted(t["task_id"] for t in [*page["data"], *rest["data"]]) == ["t0", "t1", "t2"]


def test_a_bare_uuid_names_the_same_run(bench: Bench, driver: Driver) -> None:
    run = driver.launch(driver.subset(sums(1)), calm(bench))["id"]
    number = 0
    for character in run.removeprefix("run_"):
        number = number * 32 + ALPHABET.index(character)
    assert driver.api("GET", f"runs/{UUID(int=number)}")["id"] == run
    eventually(lambda: driver.api("GET", f"runs/{run}?wait=10")["status"] == "ok", "the run's end")


def test_a_list_refuses_what_it_does_not_read(bench: Bench, driver: Driver) -> None:
    """Left out in silence, each of these would look as if all runs were found by it."""
    model = calm(bench)
    subset = driver.subset(sums(3))
    run = driver.ended(driver.launch(subset, model)["id"])["id"]
    lists = {
        "runs": ("q=x", "name=x", "fields=id", "wait=3", "colour=red"),
        f"runs/{run}/tasks": ("q=x", "name=x", "expand=summary"),
        f"runs/{run}/events": ("sort=seq", "q=x"),
        f"registry/subsets/{subset['id']}/runs": ("filter[status]=failed", "sort=created_at", "status=failed"),
        f"registry/subsets/{subset['id']}/versions": ("filter[version]=1",),
        f"impls/{driver.api('GET', f'runs/{run}')['impl']['id']}/runs": ("filter[status]=failed",),
        f"benchmarks/{subset['benchmark']}/subsets": ("slug=all",),
        "registry/benchmarks": ("expand=subsets", "filter[q]=x"),
        f"impls?subset={subset['id']}": ("name=x",),
        "sweeps": ("sort=created_at", "name=x"),
    }
    for path, queries in lists.items():
        for query in queries:
            answer = driver.send("GET", f"{path}{'&' if '?' in path else '?'}{query}")
            assert (answer.status, answer.json["code"]) == (422, "unknown_filter"), (path, query)
    for limit in ("500", "999999999", "9" * 30):
        assert driver.api("GET", f"runs?filter[subset]={subset['id']}&limit={limit}")["data"][0]["id"] == run, "a huge limit is the largest"
    for limit in ("0", "000", "-1", "1.5", "%D9%A1"):
        assert driver.send("GET", f"runs?limit={limit}").status == 400


def test_events_are_walked_by_token_as_any_list_is(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    run = driver.ended(driver.launch(driver.subset(sums(4)), model)["id"])["id"]
    whole = driver.api("GET", f"runs/{run}/events?limit=500")["data"]
    page = driver.api("GET", f"runs/{run}/events?limit=3")
    walked = page["data"]
    while page["next"]:
        page = driver.api("GET", f"runs/{run}/events?limit=3&page_token={page['next']}")
        walked += page["data"]
    assert walked == whole
    for wrong in ("x", "-1", "1.5", "%D9%A1"):
        answer = driver.send("GET", f"runs/{run}/events?page_token={wrong}")
        assert (answer.status, answer.json["code"]) == (400, "invalid_page_token"), wrong


@pytest.mark.parametrize("said", [">9999-12-31T23:59:59-23:59", "<0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59-01:00", "yesterday", ">", ""])
def test_a_time_that_no_calendar_holds_is_refused(driver: Driver, said: str) -> None:
    for name in ("started_at", "finished_at"):
        answer = driver.send("GET", f"runs?filter[{name}]={said}")
        assert (answer.status, answer.json["code"]) == (422, "invalid_filter"), name


def test_every_field_of_a_run_can_be_chosen(bench: Bench, driver: Driver) -> None:
    model = calm(bench)
    run = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])
    whole = driver.api("GET", f"runs/{run['id']}")
    for name in whole:
        if name != "object":
            assert set(driver.api("GET", f"runs/{run['id']}?fields={name}")) == {"object", "id", name}, name
    assert driver.send("GET", f"runs/{run['id']}?fields=colour").json["code"] == "unknown_fields"


@pytest.mark.parametrize(("value", "said"), [(True, "true"), (False, "false"), (7, "7"), (1.5, "1.5"), ("True", "True"), ("x y", "x%20y")])
def test_metadata_is_found_as_json_writes_it(bench: Bench, driver: Driver, value: Any, said: str) -> None:
    model = calm(bench)
    run = driver.launch(driver.subset(sums(1)), model, metadata={"key": value})
    mine = f"filter[subset]={run['subset_id']}"
    assert [r["id"] for r in driver.api("GET", f"runs?{mine}&filter[metadata.key]={said}")["data"]] == [run["id"]]
    driver.api("PATCH", f"runs/{run['id']}", {"metadata": {"other": value}})
    assert [r["id"] for r in driver.api("GET", f"runs?{mine}&filter[metadata.other]={said}")["data"]] == [run["id"]]
    assert driver.api("GET", f"runs?{mine}&filter[metadata.key]={said}")["data"] == []
