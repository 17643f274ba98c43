"""Who one is, what is ready, what a team has set, and doors that are not open yet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests import factories
from tests.fake import hang, reply
from tests.live import Bench, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


@pytest.fixture
def team(bench: Bench) -> Driver:
    """An operator of a team of its own."""
    name = factories.tag("team-")
    return Driver(bench, bench.key(owner=f"{name}-lead", team=name, scopes=["admin"]))


def test_me_tells_whose_key_it_is_and_what_is_left(bench: Bench) -> None:
    name = factories.tag("team-")
    bench.live.api("POST", "budgets", {"kind": "team", "name": name, "budget_usd": "5"}, status=201)
    key = bench.key(owner="kim", team=name, scopes=["runs:read"], budget_usd="2.5")
    me = Driver(bench, key).api("GET", "me")
    assert (me["user"]["name"], me["team"], me["role"], me["scopes"], me["default_compute"]) == ("kim", name, None, ["runs:read"], "local-bwrap")
    assert {(b["kind"], b["budget_usd"], b["left_usd"]) for b in me["budgets"]} == {("team", "5", "5"), ("key", "2.5", "2.5")}
    assert bench.live.send("GET", "/v1/me").status == 401, "without a key nobody is anybody"


def test_the_doctor_says_what_is_missing_and_names_no_secret(bench: Bench) -> None:
    bench.model("calm", ANSWER)
    bench.load()
    found = Driver(bench).api("GET", "doctor")
    checks = {c["name"]: c for c in found["checks"]}
    assert set(checks) == {"token", "scopes", "database", "provider_secret", "models", "sandbox", "queue", "budget"}
    assert all(set(c) == {"name", "ok", "hint"} for c in found["checks"])
    assert checks["queue"]["ok"]
    assert found["ok"] is all(c["ok"] for c in found["checks"])
    poor = Driver(bench, bench.key(scopes=["runs:read"])).api("GET", "doctor")
    scopes = next(c for c in poor["checks"] if c["name"] == "scopes")
    assert not scopes["ok"]
    assert "runs:write" in scopes["hint"]
    assert not poor["ok"]


def test_harnesses_and_backends_say_what_is_there(driver: Driver) -> None:
    harnesses = {h["name"]: h for h in driver.api("GET", "harnesses")["data"]}
    assert [name for name, h in harnesses.items() if h["installed"]] == ["benchwright"]
    assert set(harnesses) == {"benchwright", "inspect", "lmeval", "lighteval", "harbor"}
    backends = {b["name"]: b for b in driver.api("GET", "backends")["data"]}
    assert backends["local-bwrap"]["is_default"]


# ------------------------------------------------------------------ settings


def test_settings_are_listed_with_their_schema_and_reset(team: Driver) -> None:
    schema = team.api("GET", "settings/schema")
    listed = team.api("GET", "settings")["data"]
    assert {s["key"] for s in listed} == set(schema["properties"])
    assert not any(s["is_set"] for s in listed)
    changed = team.api("PUT", "settings/default_trials", {"value": 3})
    assert (changed["value"], changed["default"], changed["is_set"]) == (3, 1, True)
    assert team.send("DELETE", "settings/default_trials").status == 204
    assert team.api("GET", "settings/default_trials")["value"] == 1


BAD_SETTINGS = [
    ("no_such_thing", {"value": 1}, "unknown_setting"),
    ("default_trials", {"value": 0}, "invalid_request"),
    ("default_trials", {"value": "3"}, "invalid_request"),
    ("default_trials", {"value": True}, "invalid_request"),
    ("default_trials", {"value": None}, "invalid_request"),
    ("default_trials", {}, "invalid_request"),
    ("default_trials", {"value": 1, "note": "x"}, "unknown_field"),
    ("default_compute", {"value": "moon"}, "invalid_request"),
    ("default_compute", {"value": "sk-proj-0123456789abcdef"}, "looks_like_secret"),
    ("default_visibility", {"value": "bw_live_pat_0123456789abcdef"}, "looks_like_secret"),
    ("default_visibility", {"value": "public"}, "invalid_request"),
    ("default_gate_confidence", {"value": 1.5}, "invalid_request"),
    ("gate_min_coverage", {"value": -0.1}, "invalid_request"),
    ("retention_days", {"value": 1.5}, "invalid_request"),
]


@pytest.mark.parametrize(("key", "body", "code"), BAD_SETTINGS)
def test_a_setting_that_cannot_be_is_refused(team: Driver, key: str, body: Any, code: str) -> None:
    answer = team.send("PUT", f"settings/{key}", body)
    assert (answer.status, answer.json["code"]) == (422, code)


def test_settings_are_a_teams_own(bench: Bench, team: Driver) -> None:
    team.api("PUT", "settings/default_trials", {"value": 2})
    name = team.api("GET", "me")["team"]
    other = Driver(bench, bench.key(team=factories.tag("team-"), scopes=["settings:read", "settings:write"]))
    assert other.api("GET", "settings/default_trials")["value"] == 1
    assert other.send("GET", f"settings/default_trials?team={name}").status == 404
    reader = Driver(bench, bench.key(team=name, scopes=["settings:read"]))
    assert reader.api("GET", "settings/default_trials")["value"] == 2
    assert reader.send("PUT", "settings/default_trials", {"value": 1}).json["required_scope"] == "settings:write"


def test_a_teams_settings_hold_for_its_launches(bench: Bench, team: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    for key, value in (("default_trials", 2), ("default_visibility", "team"), ("default_compute", "local-bwrap")):
        team.api("PUT", f"settings/{key}", {"value": value})
    run = team.launch(team.subset(sums(4)), model)
    assert (run["trials"], run["visibility"], run["backend"]) == (2, "team", "local-bwrap")
    team.ended(run["id"])
    mate = Driver(bench, bench.key(owner="mate", team=team.api("GET", "me")["team"], scopes=["runs:read"]))
    assert mate.send("GET", f"runs/{run['id']}").status == 200
    assert team.launch(team.subset(sums(1)), model, trials=1, visibility="private")["trials"] == 1


def test_a_team_sets_how_many_samples_are_under_way(bench: Bench, team: Driver) -> None:
    model = bench.model("stuck", hang())
    bench.load()
    team.api("PUT", "settings/default_concurrency", {"value": 1})
    run = team.launch(team.subset(sums(8)), model)["id"]
    eventually(lambda: bench.fake.calls_to(model), "a call")
    team.api("POST", f"runs/{run}/halt", {}, 202)
    team.ended(run, "halted")
    assert len(bench.fake.calls_to(model)) == 1


def test_texts_older_than_a_team_keeps_them_go_and_scores_stay(bench: Bench, team: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    subset = team.subset(sums(3, wrong=1))
    old, young = (team.ended(team.launch(subset, model)["id"]) for _ in range(2))
    team.api("PUT", "settings/retention_days", {"value": 30})
    long_ago = (datetime.now(UTC) - timedelta(days=31)).isoformat()
    bench.live.order({"update": "suite.Run", "where": {"id": old["id"]}, "to": {"finished_at": long_ago}})
    team.rung("suite_retention", 3600)
    task = team.api("GET", f"runs/{old['id']}/tasks")["data"][0]
    assert (task["preview"], task["score"]) == ("", 0.0)
    payload = team.api("GET", f"runs/{old['id']}/tasks/{task['id']}/payload")
    assert (payload["output"], payload["samples"][0]["gone"]) == ("", True)
    assert team.api("GET", f"runs/{old['id']}?expand=summary")["summary"]["passed"] == 2
    assert team.send("POST", f"runs/{old['id']}/rescore", {}).json["code"] == "outputs_gone"
    kept = team.api("GET", f"runs/{young['id']}/tasks")["data"][0]
    assert team.api("GET", f"runs/{young['id']}/tasks/{kept['id']}/payload")["output"] == "ANSWER: 4"


def test_gates_are_ruled_by_the_teams_settings(bench: Bench, team: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = team.ended(team.launch(team.subset(sums(20, wrong=2)), model)["id"])
    gate = f"runs/{run['id']}/gate?require=pass_rate=0.9"
    plain = team.api("GET", gate)
    assert (plain["verdict"], plain["confidence"], plain["min_coverage"]) == ("pass", None, 0.98)
    assert plain["rulings"][0]["warning"]
    team.api("PUT", "settings/default_gate_confidence", {"value": 0.95})
    assert team.api("GET", gate)["verdict"] == "inconclusive"
    assert team.api("GET", f"runs/{run['id']}/gate?require=pass_rate=0.2&require=mean=0.2")["verdict"] == "pass"
    assert team.api("GET", f"runs/{run['id']}/gate?require=pass_rate=1.0")["verdict"] == "fail"
    assert team.send("GET", f"runs/{run['id']}/gate").json["code"] == "invalid_gate"
    assert team.send("GET", f"{gate}&require=speed=3").json["code"] == "invalid_gate"
    assert team.send("GET", f"{gate}&confidence=2").status == 422


def test_a_gate_wants_enough_of_the_tasks_scored(bench: Bench, team: Driver) -> None:
    model = bench.model("wordy", reply("let me think about it for", finish="length"), ANSWER)
    bench.load()
    run = team.ended(team.launch(team.subset(sums(5)), model)["id"])
    assert run["summary"]["coverage"] == 0.8
    gate = f"runs/{run['id']}/gate?require=pass_rate=0.9"
    assert team.api("GET", gate)["verdict"] == "fail"
    assert team.api("GET", f"{gate}&min_coverage=0.7")["verdict"] == "pass"
    team.api("PUT", "settings/gate_min_coverage", {"value": 0.8})
    assert team.api("GET", gate)["verdict"] == "pass"


# ------------------------------------------------------------------ doors that are not open yet

DOORS = [
    ("GET", "secrets", "secrets:read"),
    ("POST", "secrets", "secrets:write"),
    ("PATCH", "secrets/sec_1", "secrets:write"),
    ("DELETE", "secrets/sec_1", "secrets:write"),
    ("GET", "host-policy", "host_policy:read"),
    ("POST", "host-policy", "host_policy:write"),
    ("PUT", "host-policy/default", "host_policy:write"),
    ("POST", "host-policy/starter-pack", "host_policy:write"),
    ("GET", "host-policy/blocked-hosts", "host_policy:read"),
    ("DELETE", "host-policy/7", "host_policy:write"),
    ("POST", "webhooks", "hooks:write"),
    ("GET", "webhooks/whk_1", "hooks:read"),
    ("POST", "webhooks/whk_1/rotate-secret", "hooks:write"),
    ("POST", "webhooks/whk_1/test", "hooks:write"),
    ("GET", "webhooks/whk_1/deliveries", "hooks:read"),
    ("POST", "webhooks/whk_1/deliveries/whd_1/retry", "hooks:write"),
]


@pytest.mark.parametrize(("method", "path", "scope"), DOORS)
def test_a_door_asks_for_its_scope_and_names_what_is_not_built(bench: Bench, driver: Driver, method: str, path: str, scope: str) -> None:
    body = {} if method in ("POST", "PATCH", "PUT") else None
    answer = driver.send(method, path, body)
    assert (answer.status, answer.json["code"]) == (501, "not_implemented")
    assert answer.json["feature"] in answer.json["detail"]
    assert not [line for line in bench.live.log_text().splitlines() if f"/v1/{path}" in line and '"level": "error"' in line]
    poor = Driver(bench, bench.key(scopes=["runs:read"])).send(method, path, body)
    assert (poor.status, poor.json["required_scope"]) == (403, scope)


def test_doors_of_a_run_are_its_readers_alone(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    run = driver.launch(driver.subset(sums(1)), model)["id"]
    stranger = Driver(bench, bench.key(owner="stranger", scopes=["runs:read", "runs:write"]))
    for method, path in (("POST", "narrate"), ("GET", "blocked-hosts")):
        body = {} if method == "POST" else None
        assert driver.send(method, f"runs/{run}/{path}", body).json["code"] == "not_implemented"
        assert stranger.send(method, f"runs/{run}/{path}", body).status == 404
    assert driver.send("POST", "runs", {"request": "Compare them"}).json["feature"]
    driver.ended(run)
    assert driver.send("POST", f"runs/{run}/fork", {"description": "be stricter"}).status == 501


def test_what_no_path_stands_for_is_a_problem(driver: Driver) -> None:
    for method, path, status in (("GET", "nothing/here", 404), ("PATCH", "secrets", 405), ("DELETE", "me", 405), ("PUT", "webhooks", 405)):
        answer = driver.send(method, path, {} if method in ("PATCH", "PUT") else None)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.json["request_id"] == answer.headers["x-request-id"]
