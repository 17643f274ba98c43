"""Personal tokens through the public door: made in a browser, used by programs, gone with their owner's rights; test tokens ask nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.fake import reply
from tests.gateway.asking import Browser, signed_in
from tests.live import Bench
from tests.suite.driving import Driver, sums

ANSWER = reply("ANSWER: 4", usage=(20, 8))
RUNS = ["runs:read", "runs:write", "registry:read", "registry:publish"]


@pytest.fixture
def person(bench: Bench) -> Browser:
    return signed_in(bench.live, factories.tag("ada-"), "operator")


def made(person: Browser, scopes: list[str], **more: Any) -> dict[str, Any]:
    answer = person.post("/v1/tokens", {"name": factories.tag("laptop-"), "scopes": scopes, **more})
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json
    return found


def test_a_token_is_shown_once_and_does_what_was_ticked(bench: Bench, person: Browser) -> None:
    token = made(person, ["runs:read"])
    assert token["token"].startswith("bw_live_pat_")
    assert token["hint"] == f"bw_live_pat_…{token['token'][-4:]}"
    listed = person.send("GET", "/v1/tokens").json["data"]
    assert [t["id"] for t in listed] == [token["id"]]
    assert "token" not in listed[0]
    mine = Driver(bench, token["token"])
    assert isinstance(mine.api("GET", "runs")["data"], list)  # what other tests made public is there as well
    refused = mine.send("POST", "runs", {"benchmark": "x"})
    assert (refused.status, refused.json["required_scope"], refused.json["granted"]) == (403, "runs:write", ["runs:read"])
    me = mine.api("GET", "me")
    assert (me["token"], me["role"]) == ({"id": token["id"], "name": f"{me['user']['name']}/{token['name']}", "kind": "live"}, "operator")
    assert person.send("GET", f"/v1/tokens/{token['id']}").json["last_used_at"] is not None


MANAGING = [("POST", "", {"name": "n", "scopes": ["runs:read"]}), ("POST", "/rotate", {}), ("DELETE", "", None)]


@pytest.mark.parametrize(("method", "path", "body"), MANAGING)
def test_no_token_and_no_key_manages_tokens(bench: Bench, method: str, path: str, body: Any) -> None:
    admin = signed_in(bench.live, factories.tag("root-"), "admin")
    token = made(admin, ["admin", "runs:read"])
    where = f"tokens{'' if 'name' in (body or {}) else '/' + token['id']}{path}"
    for key in (token["token"], bench.live.operator_key):
        answer = Driver(bench, key).send(method, where, body)
        assert (answer.status, answer.json["code"]) == (403, "pat_cannot_manage_tokens")
    assert Driver(bench, token["token"]).send("GET", "me").status == 200
    assert bench.live.send("GET", "/v1/tokens").status == 401, "nobody in particular has no tokens"


def test_the_keys_paths_are_no_way_round(bench: Bench) -> None:
    admin = signed_in(bench.live, factories.tag("root-"), "admin")
    token = made(admin, ["admin", "read"])
    name = bench.live.send("GET", "/v1/me", key=token["token"]).json["token"]["name"]
    listed = next(k for k in bench.live.listed("keys") if k["name"] == name)
    assert (listed["kind"], "owner" in listed) == ("token", True)
    made_by_token = bench.live.send("POST", "/bench/keys", {"name": factories.tag("k-")}, key=token["token"])
    assert (made_by_token.status, made_by_token.json["code"]) == (403, "pat_cannot_manage_tokens")
    revoked = bench.live.send("DELETE", f"/bench/keys/{name}", key=bench.live.operator_key)
    assert (revoked.status, revoked.json["code"]) == (403, "pat_cannot_manage_tokens")
    moved = admin.send("PATCH", f"/bench/keys/{name}", {"owner": "somebody"})
    assert moved.status == 400
    assert admin.send("DELETE", f"/bench/keys/{name}").status == 204, "an admin in a browser may"
    assert bench.live.send("GET", "/v1/me", key=token["token"]).status == 401


def test_a_renewed_token_keeps_its_id_and_its_old_secret_ends(bench: Bench, person: Browser) -> None:
    token = made(person, ["runs:read"])
    other = person.post(f"/v1/tokens/{token['id']}/rotate", {}).json
    assert (other["id"], other["scopes"]) == (token["id"], token["scopes"])
    assert other["token"] != token["token"]
    assert Driver(bench, token["token"]).send("GET", "runs").json["code"] == "invalid_key"
    assert Driver(bench, other["token"]).send("GET", "runs").status == 200
    assert person.send("DELETE", f"/v1/tokens/{token['id']}").status == 204
    assert Driver(bench, other["token"]).send("GET", "runs").status == 401
    assert person.send("DELETE", f"/v1/tokens/{token['id']}").status == 404


def test_somebody_elses_token_is_as_if_it_were_not_there(bench: Bench, person: Browser) -> None:
    token = made(person, ["runs:read"])
    other = signed_in(bench.live, factories.tag("eve-"), "operator")
    assert other.send("GET", "/v1/tokens").json["data"] == []
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        assert other.send(method, f"/v1/tokens/{token['id']}{path}", {} if method == "POST" else None).status == 404
    assert Driver(bench, token["token"]).send("GET", "runs").status == 200


REFUSED = [
    ({"scopes": ["runs:read"]}, "/name"),
    ({"name": "", "scopes": ["runs:read"]}, "/name"),
    ({"name": "x" * 49, "scopes": ["runs:read"]}, "/name"),
    ({"name": "a\u0000b", "scopes": ["runs:read"]}, "/name"),
    ({"name": "n"}, "/scopes"),
    ({"name": "n", "scopes": []}, "/scopes"),
    ({"name": "n", "scopes": ["fly"]}, "/scopes"),
    ({"name": "n", "scopes": ["admin"]}, "/scopes"),
    ({"name": "n", "scopes": ["billing:write"]}, "/scopes"),
    ({"name": "n", "scopes": ["judge"], "test": True}, "/scopes"),
    ({"name": "n", "scopes": ["runs:read"], "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
    ({"name": "n", "scopes": ["runs:read"], "expires_at": "tomorrow"}, "/expires_at"),
    ({"name": "n", "scopes": ["runs:read"], "test": "yes"}, "/test"),
    ({"name": "n", "scopes": ["runs:read"], "secret": "bw_live_pat_x"}, "/secret"),
]


@pytest.mark.parametrize(("body", "pointer"), REFUSED)
def test_a_token_that_cannot_be_is_refused_by_field(person: Browser, body: Any, pointer: str) -> None:
    answer = person.post("/v1/tokens", body)
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, pointer)
    assert answer.headers["content-type"].startswith("application/problem+json")


def test_a_token_loses_what_its_owner_loses_in_every_process(bench: Bench) -> None:
    name = factories.tag("ada-")
    person = signed_in(bench.live, name, "operator")
    model = bench.model("calm", ANSWER)
    bench.load()
    token = made(person, [*RUNS, "ask"])["token"]
    mine = Driver(bench, token)
    assert bench.live.ask(model, key=token).status == 200
    bench.live.order({"update": "access.User", "where": {"username": name}, "to": {"role": "viewer"}})
    assert mine.send("POST", "benchmarks", {"name": "b"}).status == 403
    assert mine.send("GET", "runs").status == 200
    assert [bench.live.ask(model, key=token).status for _ in range(4)] == [403] * 4, "whichever process answers"
    bench.live.order({"update": "access.User", "where": {"username": name}, "to": {"is_active": False}})
    assert mine.send("GET", "runs").status == 401
    assert [bench.live.ask(model, key=token).status for _ in range(4)] == [401] * 4


# ------------------------------------------------------------------ test tokens


def test_a_test_token_asks_no_model_and_leaves_nothing_of_it(bench: Bench, person: Browser) -> None:
    model = bench.model("dear", ANSWER, facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    other = bench.model("other", ANSWER)
    core = bench.collection([model, other], mergers=[model])
    bench.load()
    token = made(person, ["ask", *RUNS], test=True)["token"]
    assert token.startswith("bw_test_pat_")
    for name in (model, f"{core}:route", core, f"{core}:merged"):
        answer = bench.live.ask(name, key=token)
        assert answer.status == 200, answer.body
        assert "dry run" in answer.content
    with bench.live.stream(model, key=token) as stream:
        assert b"dry run" in stream.rest()
    driver = Driver(bench, token)
    run = driver.launch(driver.subset(sums(3)), model)
    found = driver.ended(run["id"])
    assert (found["source"], found["summary"]["passed"], found["cost"]["metered_usd"]) == ("dry", 0, "0")
    assert bench.fake.calls_to(model) == bench.fake.calls_to(other) == []
    rows = bench.live.rows("health.Attempt", model=f"dry:{model}")
    assert {(row["endpoint"], row["purpose"], row["cost_pusd"]) for row in rows} == {("dry", "dry", 0)}
    assert bench.live.rows("health.Attempt", model=model) == []
    assert not bench.live.api("GET", f"panels?collection={core.removeprefix('bench/')}")["data"], "nobody's panel, and nothing to judge"


def test_a_key_of_idempotency_that_a_test_token_used_is_new_to_a_real_one(bench: Bench, person: Browser) -> None:
    """Trying a command dry and then meaning it must not follow the run that asked nobody."""
    model = bench.model("calm", ANSWER)
    bench.load()
    dry, real = (Driver(bench, made(person, RUNS, test=test)["token"]) for test in (True, False))
    subset = real.subset(sums(1))
    body = {"benchmark": subset["benchmark"], "sut": model}
    first = dry.api("POST", "runs", body, 201, Idempotency_Key="ci-7")
    second = real.api("POST", "runs", body, 201, Idempotency_Key="ci-7")
    assert (first["source"], second["source"], second["id"] != first["id"]) == ("dry", "manual", True)
    assert [who.api("POST", "runs", body, 201, Idempotency_Key="ci-7")["id"] for who in (dry, real)] == [first["id"], second["id"]]


def test_a_dry_run_stands_on_no_board_and_is_not_published(bench: Bench, person: Browser) -> None:
    model = bench.model("calm", ANSWER)
    bench.load()
    live, dry = Driver(bench, made(person, RUNS)["token"]), Driver(bench, made(person, RUNS, test=True)["token"])
    subset = live.subset(sums(3))
    rehearsed, real = dry.launch(subset, model), live.launch(subset, model)
    dry.ended(rehearsed["id"])
    assert live.ended(real["id"])["fingerprint"] != rehearsed["fingerprint"]
    (board,) = live.api("GET", f"registry/subsets/{subset['id']}/leaderboard")["data"]
    assert [row["run"] for row in board["rows"]] == [real["id"]]
    assert (
        live.send("POST", f"runs/{rehearsed['id']}/publish", {}, If_Match=live.send("GET", f"runs/{rehearsed['id']}").headers["etag"]).json["code"] == "dry_run"
    )
    for path, body in ((f"runs/{real['id']}/requeue", {}), (f"runs/{real['id']}/rescore", {}), (f"runs/{real['id']}/halt", {})):
        assert dry.send("POST", path, body).status == 404, "a test token changes nothing that is real"
    assert dry.send("GET", f"runs/{real['id']}").status == 200
    again = live.ended(live.api("POST", "runs", {"replay": {"from_run": rehearsed["id"]}}, 201)["id"])
    assert (again["source"], again["summary"]["passed"]) == ("manual", 3)
