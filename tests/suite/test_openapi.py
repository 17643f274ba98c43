"""The description of /v1 is valid, leaves no path out, and says what the server really answers."""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from suite.urls import urlpatterns
from tests import factories
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


@pytest.fixture
def told(driver: Driver) -> dict[str, Any]:
    found: dict[str, Any] = driver.api("GET", "openapi.json")
    return found


def operations(told: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, said) for path, methods in told["paths"].items() for method, said in methods.items()]


def test_it_is_valid_and_holds_together(told: dict[str, Any]) -> None:
    assert told["openapi"].startswith("3.1")
    validate_schema(told)
    for name, schema in told["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert re.fullmatch(r"[A-Za-z]+", name)
    for found in re.findall(r'"\$ref": "#/components/(schemas|responses)/(\w+)"', json.dumps(told)):
        assert found[1] in told["components"][found[0]]
    ids = [said["operationId"] for _, _, said in operations(told)]
    assert len(ids) == len(set(ids))
    for path, method, said in operations(told):
        assert said["summary"], (path, method)
        named = {p["name"] for p in said["parameters"] if p["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), path
        assert len({(p["name"], p["in"]) for p in said["parameters"]}) == len(said["parameters"]), (path, method)


def test_every_path_is_in_it_with_every_method(driver: Driver, told: dict[str, Any]) -> None:
    routes = {"/v1/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern)) for pattern in urlpatterns if str(pattern.pattern)}
    assert set(told["paths"]) == routes
    for path, methods in told["paths"].items():
        sent = re.sub(r"{\w+}", "x", path).removeprefix("/v1/")
        allowed = driver.send("OPTIONS", sent)
        assert {m.lower() for m in allowed.headers["allow"].split(", ")} & METHODS == set(methods), path


def test_doors_say_501_and_paths_their_scopes(told: dict[str, Any]) -> None:
    assert set(told["paths"]["/v1/webhooks"]["post"]["responses"]) == {"501", "4XX"}
    assert told["paths"]["/v1/webhooks"]["post"]["security"][0] == {"token": ["hooks:write"]}
    assert told["paths"]["/v1/runs"]["post"]["security"][0] == {"token": ["runs:write"]}
    headers = {p["name"] for p in told["paths"]["/v1/runs"]["post"]["parameters"] if p["in"] == "header"}
    assert headers == {"Idempotency-Key"}


def test_what_the_server_answers_is_what_it_describes(bench: Bench, told: dict[str, Any]) -> None:
    driver = Driver(bench, bench.key(owner=factories.tag("kim-"), team=factories.tag("team-"), scopes=["admin"]))
    model = bench.model("calm", reply("ANSWER: 4", usage=(20, 8)), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    driver.api("POST", "billing/topups", {"amount_cents": 500}, 201)
    driver.api("PATCH", "billing/controls", {"monthly_cap_cents": 400})
    subset = driver.subset(sums(3, wrong=1))
    run = driver.ended(driver.launch(subset, model)["id"])
    gone, other = (driver.ended(driver.launch(subset, model)["id"])["id"] for _ in range(2))
    assert driver.send("DELETE", f"runs/{gone}?confirm={gone}").status == 204
    task = driver.api("GET", f"runs/{run['id']}/tasks")["data"][0]["id"]
    filled = {
        "run": run["id"],
        "task": task,
        "benchmark": subset["benchmark"],
        "subset": subset["id"],
        "slug": subset["id"],
        "impl": run["impl"]["id"],
        "key": "default_trials",
        "topup_id": driver.api("GET", "billing/topups")["data"][0]["id"],
        "artifact": (driver.api("GET", f"runs/{run['id']}/artifacts")["data"] or [{"id": ""}])[0]["id"],
    }
    more = {
        "/v1/impls": f"?subset={subset['id']}",
        "/v1/compare": f"?runs={run['id']},{other}",
        "/v1/benchmarks/{benchmark}/coverage": "?range=0-2",
        "/v1/runs/{run}/gate": "?require=pass_rate=0.5",
        "/v1/runs/{run}": "?expand=summary,benchmark,subset",
    }
    seen = []
    for path, method, said in operations(told):
        if method != "get" or not set(re.findall(r"{(\w+)}", path)) <= set(filled) or "501" in said["responses"]:
            continue
        if path == "/v1/impls/{impl}/code":
            continue  # a grader of the server's own has none
        answer = driver.send("GET", path.removeprefix("/v1/").format(**filled) + more.get(path, ""))
        assert answer.status == 200, (path, answer.body[:300])
        (media, content), *_ = said["responses"]["200"]["content"].items()
        assert answer.headers["content-type"].startswith(media) or media == "application/octet-stream", path
        if media == "application/json":
            wrong = [e.message for e in Draft202012Validator({**content["schema"], "components": told["components"]}).iter_errors(answer.json)]
            assert not wrong, (path, wrong[:5])
        seen.append(path)
    assert len(seen) > 35
    tombstone = Draft202012Validator({"$ref": "#/components/schemas/Tombstone", "components": told["components"]})
    assert not list(tombstone.iter_errors(driver.api("GET", f"runs/{gone}")))
    problem = Draft202012Validator({"$ref": "#/components/schemas/Problem", "components": told["components"]})
    for method, path, body in (("POST", "runs", {"speed": 1}), ("GET", "runs/x", None), ("PUT", "runs", {}), ("POST", "webhooks", {})):
        assert not list(problem.iter_errors(driver.send(method, path, body).json))


# ------------------------------------------------------------------ what holds for every path


def test_a_deprecated_path_says_since_when_until_when_and_what_instead(driver: Driver, told: dict[str, Any]) -> None:
    answer = driver.send("GET", "schema")
    assert answer.json == told
    assert re.fullmatch(r"@\d+", answer.headers["deprecation"])
    assert parsedate_to_datetime(answer.headers["sunset"]).timestamp() > int(answer.headers["deprecation"][1:])
    assert answer.headers["link"] == '</v1/openapi.json>; rel="successor-version"'
    assert told["paths"]["/v1/schema"]["get"]["deprecated"] is True
    assert "deprecation" not in driver.send("GET", "openapi.json").headers


BAD = [
    ("POST", "runs", b"{", {}, 400),
    ("POST", "runs", b"[]", {}, 400),
    ("POST", "runs", b'{"a": NaN}', {}, 400),
    ("POST", "runs", b"{}", {"content-type": "text/plain"}, 415),
    ("POST", "runs", b"{}", {"idempotency-key": ""}, 400),
    ("POST", "runs", b"{}", {"idempotency-key": "k" * 256}, 400),
    ("GET", "runs?page_token=forged", None, {}, 400),
    ("GET", "runs?limit=x", None, {}, 400),
    ("GET", "runs?colour=red", None, {}, 422),
    ("GET", "runs/run_00000000000000000000000000", None, {}, 404),
    ("GET", "nothing", None, {}, 404),
    ("PUT", "runs", b"{}", {}, 405),
    ("POST", "webhooks", b"{}", {}, 501),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status"), BAD)
def test_every_refusal_is_a_problem(driver: Driver, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int) -> None:
    answer = driver.bench.live.send(method, f"/v1/{path}", body, key=driver.key, headers=headers)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json["status"] == status
    assert answer.json["code"]
    assert answer.json["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(bench: Bench) -> None:
    live = bench.live
    asked = (
        f"POST /v1/runs HTTP/1.1\r\nHost: {live.host}:{live.port}\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n"
    )
    head, _, body = live.exchange(asked.encode()).partition(b"\r\n\r\n")
    assert b" 413 " in head.splitlines()[0]
    assert b"application/problem+json" in head.lower()
    assert json.loads(body)["request_id"].encode() in head


def test_without_a_key_or_with_a_wrong_one_it_is_a_problem_too(bench: Bench) -> None:
    for key, code in ((None, "missing_key"), ("bw_live_wrong", "invalid_key"), ("bw_live_pat_wrong", "invalid_key")):
        answer = bench.live.send("GET", "/v1/runs", key=key)
        assert (answer.status, answer.json["code"], answer.headers["www-authenticate"]) == (401, code, "Bearer")


def test_a_key_of_idempotency_is_its_owners_whatever_token_carries_it(bench: Bench) -> None:
    owner, team = factories.tag("kim-"), factories.tag("team-")
    one, two = (Driver(bench, bench.key(owner=owner, team=team, scopes=["registry:publish", "registry:read"])) for _ in range(2))
    mate = Driver(bench, bench.key(owner=factories.tag("eve-"), team=team, scopes=["registry:publish"]))
    made = one.api("POST", "benchmarks", {"name": "sums"}, 201, Idempotency_Key="k-1")
    again = two.send("POST", "benchmarks", {"name": "sums"}, Idempotency_Key="k-1")
    assert (again.status, again.json["id"], again.headers["idempotent-replayed"]) == (201, made["id"], "true")
    assert again.headers["idempotency-expires"]
    assert one.send("POST", "benchmarks", {"name": "other"}, Idempotency_Key="k-1").json["code"] == "idempotency_key_reused"
    assert mate.api("POST", "benchmarks", {"name": "sums"}, 201, Idempotency_Key="k-1")["id"] != made["id"], "nobody else's answer"
    refused = one.send("POST", "benchmarks", {"name": ""}, Idempotency_Key="k-2")
    kept = one.send("POST", "benchmarks", {"name": ""}, Idempotency_Key="k-2")
    assert (refused.status, kept.status, kept.headers["idempotent-replayed"]) == (422, 422, "true")
    assert kept.headers["content-type"] == "application/problem+json"
