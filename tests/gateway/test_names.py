"""What can be asked for: lists in each client's shape, and clear answers for what cannot be asked yet."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Bench


def listed(bench: Bench) -> tuple[str, str]:
    fast = bench.model("vendor/fast:free", facts={"context_window": 4096, "output_limit": 512})
    core = bench.collection([fast])
    bench.load()
    return fast, core


def test_models_are_listed_in_the_openai_shape(bench: Bench) -> None:
    fast, core = listed(bench)
    body = bench.live.send("GET", "/v1/models").json
    assert body["object"] == "list"
    by_id = {m["id"]: m for m in body["data"]}
    assert {fast, core} <= by_id.keys()
    assert by_id[fast]["object"] == "model"
    assert isinstance(by_id[fast]["created"], int)
    assert isinstance(by_id[fast]["owned_by"], str)


def test_models_are_listed_in_the_anthropic_shape(bench: Bench) -> None:
    fast, core = listed(bench)
    body = bench.live.send("GET", "/v1/models?limit=1000", headers={"anthropic-version": "2023-06-01"}).json
    assert {"data", "has_more", "first_id", "last_id"} <= body.keys()
    by_id = {m["id"]: m for m in body["data"]}
    assert {fast, core} <= by_id.keys()
    assert by_id[core]["type"] == "model"
    assert by_id[core]["display_name"]
    assert by_id[core]["created_at"]


def test_models_are_listed_in_the_gemini_shape(bench: Bench) -> None:
    fast, core = listed(bench)
    key = bench.key()
    for path, headers in (
        ("/v1/models?pageSize=1000", {"x-goog-api-key": key}),
        (f"/v1beta/models?pageSize=1000&key={key}", {}),
        ("/v1beta/models?pageSize=1000", {}),
    ):
        body = bench.live.send("GET", path, headers=headers).json
        names = {m["name"]: m for m in body["models"]}
        assert {f"models/{fast}", f"models/{core}"} <= names.keys()
        assert "generateContent" in names[f"models/{core}"]["supportedGenerationMethods"]


def test_models_are_listed_for_ollama_clients(bench: Bench) -> None:
    fast, core = listed(bench)
    names = {m["name"] for m in bench.live.send("GET", "/api/tags").json["models"]}
    assert {fast, core} <= names
    assert bench.live.send("GET", "/api/version").json["version"]
    assert bench.live.send("POST", "/api/show", {"model": core}).status == 200
    assert bench.live.send("POST", "/api/show", {"model": "nobody"}).status == 404


@pytest.mark.parametrize("encoded", [True, False])
def test_one_model_is_told_by_its_name(bench: Bench, encoded: bool) -> None:
    for name in listed(bench):
        answer = bench.live.send("GET", f"/v1/models/{quote(name, safe='') if encoded else name}")
        assert answer.status == 200
        assert answer.json["id"] == name
    unknown = bench.live.send("GET", "/v1/models/nobody")
    assert (unknown.status, unknown.code) == (404, "model_not_found")


@pytest.mark.parametrize("name", ["nobody", "bench/nobody", "bench/", "bench/nobody:merged", "bench/nobody:route", "gpt-4o", "groq/nobody", "../etc/passwd"])
def test_an_unknown_name_is_refused_and_never_billed_to_something_else(bench: Bench, name: str) -> None:
    fast = bench.model("fast")
    answer = bench.ask(name)
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert name in answer.message
    assert not bench.fake.calls_to(fast)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"model": "$CORE", "input": "hi"}),
        ("/v1/messages", {"model": "$CORE", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/messages/count_tokens", {"model": "$CORE", "messages": [{"role": "user", "content": "hi"}]}),
        ("/v1beta/models/$CORE:generateContent", {"contents": [{"parts": [{"text": "hi"}]}]}),
        ("/v1beta/models/$CORE:streamGenerateContent?alt=sse", {"contents": [{"parts": [{"text": "hi"}]}]}),
        ("/api/chat", {"model": "$CORE", "messages": [{"role": "user", "content": "hi"}]}),
        ("/api/generate", {"model": "$CORE", "prompt": "hi"}),
        ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("/v1/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ],
)
def test_every_clients_path_answers(bench: Bench, path: str, body: dict[str, Any]) -> None:
    _, core = listed(bench)
    answer = bench.live.send("POST", path.replace("$CORE", core), {k: core if v == "$CORE" else v for k, v in body.items()})
    assert answer.status == 200, answer.body[:500]


def test_route_mode_is_one_members_answer_and_says_whose(bench: Bench) -> None:
    fast, core = listed(bench)
    answer = bench.ask(core + ":route")
    assert answer.status == 200
    assert answer.headers["x-bench-model"] == quote(fast, safe="")
    assert "bench" not in answer.json
    assert len(bench.fake.calls_to(fast)) == 1


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/chat/completions"), ("DELETE", "/v1/models"), ("PUT", "/v1/chat/completions")])
def test_a_wrong_method_says_which_is_right(bench: Bench, method: str, path: str) -> None:
    answer = bench.load().live.send(method, path)
    assert answer.status == 405
    assert answer.headers["allow"]


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/", "/v2/chat/completions", "/v1/chat/completions/x", "/nothing"])
def test_an_unknown_path_is_not_found(bench: Bench, path: str) -> None:
    assert bench.load().live.send("POST", path, {}).status == 404


def test_a_head_request_gets_no_body(bench: Bench) -> None:
    answer = bench.load().live.send("HEAD", "/v1/models")
    assert answer.status == 200
    assert answer.body == b""
