"""Every ceiling of the matrix: what breaks a task's costs that task alone, what breaks a run's ends the run, and both say exactly which."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake import hang, reply, status
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("2 + 2 makes four.\nANSWER: 4", usage=(20, 8))
PRICES = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}
A_CALL = 0.000036


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def events(driver: Driver, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = driver.api("GET", f"runs/{run}/events?limit=500")["data"]
    assert [e["seq"] for e in found] == list(range(1, len(found) + 1))
    return found


def types(driver: Driver, run: str) -> list[str]:
    return [e["type"] for e in events(driver, run)]


WRONG = [
    {"run": {"cost": 0}},
    {"run": {"cost": -1}},
    {"run": {"cost": True}},
    {"run": {"cost": "5"}},
    {"run": {"cost": 1e999}},
    {"run": {"tasks": 1.5}},
    {"run": {"attempts": 3}},
    {"run": {"model_cost": 1}},
    {"phase": {"tasks": 3}},
    {"task": {"attempts": 0}},
    {"task": {"tokens": -5}},
    {"attempt": {"cost": 1}},
    {"attempt": {"duration": 0}},
    {"session": {"cost": 1}},
    {"run": 5},
    [],
]


@pytest.mark.parametrize("limits", WRONG)
def test_a_limit_that_is_none_is_refused(driver: Driver, limits: Any) -> None:
    answer = driver.send("POST", "runs", {"benchmark": "any", "limits": limits})
    assert answer.status in (400, 422), answer.body
    assert answer.json["code"] in ("invalid_limits", "invalid_request", "invalid_json"), answer.json


def test_of_the_older_constraints_and_limits_the_stricter_holds(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER, facts=PRICES)
    bench.load()
    subset = driver.subset(sums(5))
    run = driver.launch(
        subset, model, limits={"run": {"cost": 9.0, "tasks": 2}}, constraints={"max_cost_cents": 500, "max_duration_ms": 60_000, "max_tasks": 4}
    )
    assert run["limits"] == {"run": {"cost": 5.0, "duration": 60.0, "tasks": 2}}
    assert driver.ended(run["id"])["summary"]["total"] == 2


TASK_LIMITS = [
    ({"task": {"tokens": 27}}, "task.tokens"),
    ({"attempt": {"tokens": 27}}, "attempt.tokens"),
    ({"task": {"output_bytes": 10}}, "task.output_bytes"),
    ({"attempt": {"output_bytes": 10}}, "attempt.output_bytes"),
    ({"task": {"cost": 0.00003}}, "task.cost"),
]


@pytest.mark.parametrize(("limits", "which"), TASK_LIMITS)
def test_a_task_that_breaks_its_ceiling_fails_alone_and_is_not_tried_again(bench: Bench, driver: Driver, limits: dict[str, Any], which: str) -> None:
    model = bench.model("talks", ANSWER, reply("4", usage=(10, 1)), facts=PRICES)
    bench.load()
    run = driver.launch(driver.subset(sums(4)), model, limits=limits)
    found = driver.ended(run["id"])
    assert (found["summary"]["limit"], found["summary"]["passed"], found["summary"]["scored"]) == (1, 3, 4)
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks?outcome=limit")["data"]
    assert task["error_class"] == f"limit_exceeded:{which}"
    assert len(bench.fake.calls_to(model)) == 4


@pytest.mark.parametrize(("limits", "which"), [({"attempt": {"duration": 0.5}}, "attempt.duration"), ({"task": {"duration": 0.5}}, "task.duration")])
def test_one_that_takes_too_long_is_cut_off_and_counts_against_the_model(bench: Bench, driver: Driver, limits: dict[str, Any], which: str) -> None:
    model = bench.model("slow", hang(), ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(3)), model, limits=limits)
    found = driver.ended(run["id"])
    assert (found["summary"]["limit"], found["summary"]["passed"], found["summary"]["scored"]) == (1, 2, 3)
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks?outcome=limit")["data"]
    assert task["error_class"] == f"limit_exceeded:{which}"


def test_what_a_provider_makes_one_wait_for_is_not_the_tasks_time(bench: Bench, driver: Driver) -> None:
    model = bench.model("busy", status(429, "slow down", headers={"retry-after": "1"}), ANSWER)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(1)), model, limits={"task": {"duration": 0.9}})["id"])
    assert found["summary"]["passed"] == 1


MONEY = [({"run": {"cost": 4.5 * A_CALL}}, "run.cost"), ({"phase": {"cost": 4.5 * A_CALL}}, "phase.cost")]


@pytest.mark.parametrize(("limits", "which"), MONEY)
def test_a_ceiling_of_money_ends_the_run_after_a_warning(bench: Bench, driver: Driver, limits: dict[str, Any], which: str) -> None:
    model = bench.model("dear", ANSWER, facts=PRICES)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(40)), model, limits=limits)["id"], "halted")
    assert found["halt_reason"] == f"limit_exceeded:{which}"
    assert 4.5 * A_CALL <= float(found["cost"]["metered_usd"]) <= 5 * A_CALL + 1e-9, "it is overshot by the one call that reached it"
    told = events(driver, found["id"])
    assert [(e["data"]["limit"]) for e in told if e["type"] == "LimitWarning"] == [which]
    assert [e["data"]["halt_reason"] for e in told if e["type"] == "RunHalting"] == [f"limit_exceeded:{which}"]
    assert (told[-1]["type"], told[-1]["data"]["status"]) == ("RunFinished", "halted")


def test_a_connections_ceiling_holds_beside_the_launchs(bench: Bench, driver: Driver) -> None:
    model = bench.model("dear", ANSWER, facts=PRICES, limits={"run": {"model_cost": 2.5 * A_CALL}})
    bench.load()
    subset = driver.subset(sums(40))
    found = driver.ended(driver.launch(subset, model, limits={"run": {"cost": 30 * A_CALL}})["id"], "halted")
    assert found["halt_reason"] == "limit_exceeded:run.model_cost"
    assert float(found["cost"]["metered_usd"]) <= 3 * A_CALL + 1e-9
    lower = driver.ended(driver.launch(subset, model, limits={"run": {"cost": 1.5 * A_CALL}})["id"], "halted")
    assert lower["halt_reason"] == "limit_exceeded:run.cost"


def test_a_member_of_a_collection_has_its_own_connections_ceiling(bench: Bench, driver: Driver) -> None:
    cheap, dear = bench.model("cheap", ANSWER, facts=PRICES), bench.model("dear", ANSWER, facts=PRICES, limits={"run": {"model_cost": 2.5 * A_CALL}})
    core = bench.collection([cheap, dear])
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(20)), core)["id"], "halted")
    assert (found["halt_reason"], found["halt_note"]) == ("limit_exceeded:run.model_cost", f"The ceiling stands on {dear}.")


@pytest.mark.parametrize(
    "limits", [{"run": {"cost": 1}}, {"run": {"model_cost": 0}}, {"run": {"model_cost": -1}}, {"run": {"model_cost": True}}, {"run": {"tasks": 1}}]
)
def test_a_connection_limits_what_a_run_spends_there_and_nothing_else(bench: Bench, limits: dict[str, Any]) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    answer = bench.live.send("PATCH", f"/bench/models/{model}", {"limits": limits}, key=bench.live.operator_key)
    assert (answer.status, answer.json["field"].startswith("limits.run.")) == (422, True), answer.body


def test_a_ceiling_of_money_cannot_be_kept_without_a_price_and_says_so(bench: Bench, driver: Driver) -> None:
    model = bench.model("unpriced", ANSWER)
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(20)), model, limits={"run": {"cost": 5.0}})["id"], "halted")
    assert found["halt_reason"] == "price_unknown"
    assert found["progress"]["done"] == 1


@pytest.mark.parametrize("level", ["run", "phase"])
def test_a_ceiling_of_time_cuts_off_what_is_under_way(bench: Bench, driver: Driver, level: str) -> None:
    model = bench.model("stuck", ANSWER, hang())
    bench.load()
    found = driver.ended(driver.launch(driver.subset(sums(10)), model, limits={level: {"duration": 1.5}})["id"], "halted")
    assert (found["halt_reason"], found["summary"]["passed"]) == (f"limit_exceeded:{level}.duration", 1)


def test_a_run_tells_each_step_of_its_way_once(bench: Bench, driver: Driver) -> None:
    model = bench.model("shaky", ANSWER, status(500), ANSWER, facts=PRICES)
    bench.load()
    run = driver.launch(driver.subset(sums(6)), model)["id"]
    driver.ended(run)
    told = types(driver, run)
    assert (told[0], told[1]) == ("RunQueued", "PhaseStarted")
    assert told[-5:] == ["PhaseCompleted", "PhaseStarted", "PhaseCompleted", "CostUpdated", "RunFinished"]
    assert told.count("MaterializeTaskResult") == 6
    assert told.count("TaskRetried") == 1
    assert told.count("CostUpdated") == 2
    assert "TaskErrored" not in told


def test_a_task_that_was_not_answered_is_told_as_such(bench: Bench, driver: Driver) -> None:
    model = bench.model("broken", ANSWER, *[status(500)] * 2, ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(5)), model, limits={"task": {"attempts": 1}})["id"]
    driver.ended(run)
    errored = [e["data"] for e in events(driver, run) if e["type"] == "TaskErrored"]
    assert [e["outcome"] for e in errored] == ["infrastructure"] * 2
    assert driver.api("GET", f"runs/{run}/events?types=TaskErrored")["data"][0]["data"]["error"]


def test_a_halt_that_somebody_asked_for_is_told_before_its_end(bench: Bench, driver: Driver) -> None:
    model = bench.model("stuck", ANSWER, hang())
    bench.load()
    run = driver.launch(driver.subset(sums(10)), model)["id"]
    eventually(lambda: driver.api("GET", f"runs/{run}")["progress"]["done"] == 1, "one task")
    driver.api("POST", f"runs/{run}/halt", {"reason": "enough"}, 202)
    driver.ended(run, "halted")
    told = types(driver, run)
    assert (told.count("RunHalting"), told[-1]) == (1, "RunFinished")
    assert told.index("RunHalting") < told.index("PhaseCompleted")
