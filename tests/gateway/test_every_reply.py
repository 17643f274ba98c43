"""Headers that every reply of the gateway carries, whatever became of the request; and what a request lost on its way."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.fake import reply, status
from tests.gateway.shape import is_id
from tests.gateway.speakers import ARRAY, CHAT, EVERY, GEMINI, GENERATE, MESSAGES, RESPONSES, Speaker
from tests.http import Reply
from tests.live import Bench

pytestmark = pytest.mark.formats

SPEAKERS = pytest.mark.parametrize("speaker", EVERY, ids=lambda s: s.name)


def checked(answer: Reply, *, panel: bool | None = None) -> Reply:
    """Every reply has an id and says its own time once; those of a panel name it."""
    assert answer.headers["x-request-id"]
    assert re.fullmatch(r"\d+\.\d\d", answer.headers["x-bench-overhead-ms"]), answer.headers
    if panel is not None:
        assert is_id("pan", answer.headers.get("x-bench-panel", "")) == panel, answer.headers
    return answer


@SPEAKERS
def test_every_answer_and_every_error_tells_its_request_its_panel_and_its_own_time(bench: Bench, speaker: Speaker) -> None:
    fast, bad = bench.model("fast", reply("alpha")), bench.model("bad", status(500))
    core, failing = bench.collection([fast]), bench.collection([bad], "failing")
    for model in (core, f"{core}:merged", f"{core}:route", fast):
        assert checked(speaker.ask(bench, model), panel=True).status == 200
        with speaker.stream(bench, model) as stream:
            assert stream.headers["cache-control"] == "no-cache"
            assert stream.headers["x-accel-buffering"] == "no"
            assert checked(stream.whole, panel=True).status == 200
    for model in (failing, f"{failing}:merged", f"{failing}:route", bad):
        assert checked(speaker.ask(bench, model), panel=True).status == 502
    assert checked(speaker.ask(bench, "nobody"), panel=False).status == 404
    if speaker.takes_tools:
        assert checked(speaker.ask(bench, core, **speaker.tools), panel=False).status == 400
    assert checked(speaker.ask(bench, fast, key="bw_live_nothing"), panel=False).status == 401


@pytest.mark.parametrize(
    ("method", "path", "body", "status_code"),
    [
        ("GET", "/v1/models", None, 200),
        ("HEAD", "/v1/models", None, 200),
        ("GET", "/v1/models/nobody", None, 404),
        ("GET", "/v1beta/models", None, 200),
        ("GET", "/api/tags", None, 200),
        ("GET", "/api/version", None, 200),
        ("POST", "/api/show", {"model": "nobody"}, 404),
        ("POST", "/v1/messages/count_tokens", {"model": "$FAST", "messages": [{"role": "user", "content": "hi"}]}, 200),
        ("POST", "/v1beta/models/$FAST:countTokens", {"contents": [{"parts": [{"text": "hi"}]}]}, 200),
        ("GET", "/v1/responses/resp_nothing", None, 404),
        ("DELETE", "/v1/responses/resp_nothing", None, 404),
        ("PUT", "/v1/chat/completions", {}, 405),
        ("OPTIONS", "/v1/chat/completions", None, 204),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, 200),
        ("POST", "/mcp", b"[", 400),
        ("GET", "/mcp", None, 405),
    ],
)
def test_so_do_lists_counts_and_refusals(bench: Bench, method: str, path: str, body: Any, status_code: int) -> None:
    fast = bench.model("fast")
    filled = {k: fast if v == "$FAST" else v for k, v in body.items()} if isinstance(body, dict) else body
    answer = bench.load().live.send(method, path.replace("$FAST", fast), filled)
    assert answer.status == status_code, answer.body[:300]
    checked(answer)


def test_a_head_request_has_the_headers_of_its_get_and_no_body(bench: Bench) -> None:
    bench.load()
    for path in ("/v1/models", "/v1beta/models", "/api/tags", "/api/version"):
        whole, head = bench.live.send("GET", path), bench.live.send("HEAD", path)
        assert head.status == whole.status == 200
        assert head.body == b""
        assert head.headers["content-type"] == whole.headers["content-type"]
    assert bench.live.send("HEAD", "/v1/models/nobody").status == 404


@pytest.mark.parametrize(
    ("speaker", "more", "lost"),
    [
        (CHAT, {"seed": 3, "logit_bias": {"5": 1}}, {"seed", "logit_bias"}),
        (RESPONSES, {"truncation": "auto"}, {"truncation"}),
        (MESSAGES, {"top_k": 5, "context_management": {}}, {"context_management"}),
        (GEMINI, {"safetySettings": []}, {"safetySettings"}),
        (ARRAY, {"safetySettings": []}, {"safetySettings"}),
        (GENERATE, {"keep_alive": "5m"}, {"keep_alive"}),
    ],
    ids=lambda v: v.name if isinstance(v, Speaker) else "",
)
@pytest.mark.parametrize("mode", ["", ":merged"])
def test_a_panel_names_what_its_seats_were_not_sent(bench: Bench, speaker: Speaker, more: dict[str, Any], lost: set[str], mode: str) -> None:
    foreign = "openai" if speaker.name == "anthropic-messages" else "anthropic"
    other = bench.model("other", reply("alpha"), endpoint=bench.endpoint("other", bench.fake.root, kind=foreign))
    core = bench.collection([other, bench.model("plain", reply("beta"))])
    answer = speaker.ask(bench, core + mode, **more)
    assert answer.status == 200, answer.body[:500]
    told = answer.headers.get("x-bench-dropped", "").split(", ")
    assert lost <= set(told), told
    assert len(told) == len(set(told))
