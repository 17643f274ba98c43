"""A Host that is not the server's: refused in the form that the path's other errors have, and as a page where people look."""

from __future__ import annotations

import pytest

from tests.gateway.speakers import EVERY, Speaker
from tests.live import Bench

pytestmark = pytest.mark.formats

HOSTS = pytest.mark.parametrize("host", ["evil.example", "evil.example:8122", "127.0.0.1.nip.io", "0.0.0.0", "localhost@evil.example", "a b", "[::1", "a_b:x"])
RUN = "run_00000000000000000000000000"


@HOSTS
@pytest.mark.parametrize("speaker", EVERY, ids=lambda s: s.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_format_says_it_in_its_own_words(bench: Bench, speaker: Speaker, host: str, stream: bool) -> None:
    bench.load()
    answer = bench.live.send("POST", speaker.path("fast", stream), speaker.body("fast", stream), headers={"host": host})
    assert (answer.status, answer.headers["content-type"]) == (403, "application/json")
    assert speaker.code(answer.json) == "not_allowed"


@HOSTS
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/runs", None),
        ("POST", "/v1/runs", {}),
        ("DELETE", f"/v1/runs/{RUN}", None),
        ("GET", f"/v1/runs/{RUN}/events", None),
        ("GET", f"/v1/runs/{RUN}/report", None),
        ("GET", "/v1/billing/export?type=runs", None),
        ("GET", "/v1/openapi.json", None),
        ("POST", "/v1/webhooks", {}),
        ("GET", "/v1/nothing", None),
        ("GET", "/bench/models", None),
        ("POST", "/bench/ask", {}),
        ("POST", "/bench/verdict", {}),
        ("POST", "/bench/panels/x/cancel", {}),
        ("GET", "/bench/usage?format=csv", None),
        ("GET", "/bench/nothing", None),
    ],
)
def test_the_servers_own_paths_answer_a_problem(bench: Bench, method: str, path: str, body: object, host: str) -> None:
    answer = bench.live.send(method, path, body, key=bench.live.operator_key, headers={"host": host})
    assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json")
    assert (answer.json["status"], answer.json["code"]) == (403, "not_allowed")
    if path.startswith("/v1/"):
        assert (answer.json["instance"], answer.json["request_id"]) == (path.partition("?")[0], answer.headers["x-request-id"])


@HOSTS
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/fast", "/api/tags", "/livez", "/readyz", "/metrics", "/api/nothing", "/v1beta/nothing", "/nothing"])
def test_what_belongs_to_no_format_answers_the_gateways_json(bench: Bench, path: str, host: str) -> None:
    answer = bench.live.send("GET", path, headers={"host": host})
    assert (answer.status, answer.headers["content-type"], answer.code) == (403, "application/json", "not_allowed")


def test_a_method_that_a_path_does_not_have_is_still_refused_in_its_format(bench: Bench) -> None:
    refused = {"/v1/messages": None, "/api/chat": None, "/v1beta/models/fast:generateContent": None, "/mcp": None}
    for path in refused:
        for host, status in (("evil.example", 403), ("localhost", 405)):
            answer = bench.live.send("PUT", path, {}, headers={"host": host})
            assert answer.status == status, (path, answer.body)
            refused[path] = answer.json
    assert refused["/v1/messages"]["type"] == "error"
    assert isinstance(refused["/api/chat"]["error"], str)
    assert refused["/v1beta/models/fast:generateContent"]["error"]["status"]
    assert refused["/mcp"]["jsonrpc"] == "2.0"


@HOSTS
@pytest.mark.parametrize("path", ["/", "/app/", "/app/suite", "/admin/login/", "/registry", "/signin/x", "/signins/callback/x"])
def test_a_page_stays_a_page(bench: Bench, path: str, host: str) -> None:
    answer = bench.live.send("GET", path, headers={"host": host})
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("text/html")


def test_nobody_is_let_in_by_the_way_it_is_said(bench: Bench) -> None:
    """An allowed Host reaches every one of these; what stands in the path, the query or another header decides nothing."""
    key = bench.live.operator_key
    assert bench.live.send("GET", "/v1/me", key=key, headers={"host": f"localhost:{bench.live.port}"}).status == 200
    for more in ({"x-forwarded-host": "localhost"}, {"origin": "http://localhost"}, {"forwarded": "host=localhost"}):
        assert bench.live.send("GET", "/v1/me", key=key, headers={"host": "evil.example", **more}).status == 403
    assert bench.live.send("GET", "/v1/me?host=localhost", key=key, headers={"host": "evil.example"}).status == 403
