"""Failover: free until the first word and never after it; who rests, what is recorded, what a caller hears when nobody is left."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pytest

from tests.fake import Answer, garbage, hang, html, raw, refusing_address, reply, sse, status, whole
from tests.gateway.shape import is_id
from tests.http import Reply, Stream, content_of, events_of
from tests.live import Bench, eventually

TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
HALF = {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "half"}, "finish_reason": None}]}
OPENING = {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
BOTH = pytest.mark.parametrize("streamed", [False, True])


def member(bench: Bench, name: str, *answers: Any, base_url: str | None = None, **more: Any) -> str:
    """A model behind an endpoint of its own, so that a rest of one is nobody else's."""
    return bench.model(name, *answers, endpoint=bench.endpoint(f"at-{name}", base_url or bench.fake.root), **more)


def ask(bench: Bench, model: str, prompt: str, streamed: bool = False, **more: Any) -> Reply:
    if not streamed:
        return bench.ask(model, prompt, **more)
    with bench.stream(model, prompt, **more) as stream:
        return stream.whole


def text_of(answer: Reply) -> str:
    return content_of(list(events_of(answer.body))) if answer.headers["content-type"].startswith("text/event-stream") else answer.content


def rests(bench: Bench) -> dict[str, dict[str, Any]]:
    """Who of this test rests, by what stands behind the tag."""
    found = bench.live.rows("health.Rest", scope__contains=f":{bench.tag}-")
    return {row["scope"].replace(f"{bench.tag}-", ""): row for row in found}


# ------------------------------------------------------------------ classes of errors

# What the first member answers, whether the next one is asked, who rests and for how many seconds.
CLASSES: dict[str, tuple[Answer, bool, str, float]] = {
    "401": (status(401), True, "endpoint:at-first", 120),
    "402": (status(402), True, "endpoint:at-first", 120),
    "403": (status(403), True, "endpoint:at-first", 120),
    "429 that says when": (status(429, headers={"retry-after": "300"}), True, "endpoint:at-first", 300),
    "429 that says it in words": (status(429, "Please retry in 59.4s"), True, "endpoint:at-first", 60),
    "429 that says nothing": (status(429), True, "endpoint:at-first", 120),
    "no credit in a 400": (status(400, "Your credit balance is too low"), True, "endpoint:at-first", 120),
    "503": (status(503), True, "model:first", 30),
    "529": (status(529), True, "model:first", 30),
    "closed without a word": (raw("close"), True, "model:first", 30),
    "500": (status(500), True, "", 0),
    "502": (html(502), True, "", 0),
    "504": (status(504), True, "", 0),
    "a 500 that is about the length": (status(500, "prompt is too long: 9000 tokens > 8192 maximum"), True, "", 0),
    "404": (status(404), True, "", 0),
    "413": (status(413), True, "", 0),
    "400 for the length": (status(400, "maximum context length is 8192 tokens"), True, "", 0),
    "garbage": (garbage(), True, "", 0),
    "an empty answer": (reply(""), True, "", 0),
    "an error inside a 200": (whole({"error": {"message": "boom"}}), True, "", 0),
    "a limit inside a 200": (whole({"error": {"message": "slow down", "code": 429}}), True, "endpoint:at-first", 120),
    "a stream that opens with an error": (sse(OPENING, {"error": {"message": "overloaded", "code": 503}}, done=False), True, "model:first", 30),
    "a stream without a byte": (sse(done=False), True, "", 0),
    "a stream that opens and ends": (sse(OPENING, done=False), True, "", 0),
    "400": (status(400, "temperature is too high"), False, "", 0),
    "422": (status(422, "temperature is too high"), False, "", 0),
    "403 for a policy": (status(403, "This violates our content policy"), False, "", 0),
}


@pytest.mark.parametrize("name", CLASSES)
@BOTH
def test_each_class_of_error_goes_its_own_way(bench: Bench, name: str, streamed: bool) -> None:
    answer, goes_on, scope, wait_s = CLASSES[name]
    # A pooled connection may have been closed before it was used, and is replaced once.
    most = 2 if "without a word" in name else 1
    first, second = member(bench, "first", *[answer] * most, reply("from first")), member(bench, "second", reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    got = ask(bench, model, "one", streamed)
    asked_at = datetime.now(UTC)
    assert 1 <= len(bench.fake.calls_to(first)) <= most
    if goes_on:
        assert (got.status, text_of(got)) == (200, "from second")
        assert unquote(got.headers["x-bench-model"]) == second
        assert got.headers["x-bench-attempts"] == "2"
        rows = bench.live.attempts(2, panel=got.headers["x-bench-panel"])
        assert {r["call"] for r in rows} == {got.headers["x-bench-call"]}
        assert {r["model"]: r["status"] != "ok" for r in rows} == {first: True, second: False}
    else:
        assert got.status in (400, 403)
        assert got.code == ("not_allowed" if got.status == 403 else "invalid_request")
        assert ("policy" if got.status == 403 else "temperature is too high") in got.message
        assert not bench.fake.calls_to(second)
    found = rests(bench)
    assert set(found) == ({scope} if scope else set())
    for row in found.values():
        assert (datetime.fromisoformat(row["until"]) - asked_at).total_seconds() == pytest.approx(wait_s, abs=5)
    again = ask(bench, model, "two", streamed)
    assert text_of(again) == ("from second" if scope else "from first")
    assert again.headers["x-bench-attempts"] == "1"


@BOTH
def test_nobody_there_rests_the_model(bench: Bench, streamed: bool) -> None:
    with refusing_address() as address:
        first, second = member(bench, "first", base_url=address), member(bench, "second", reply("from second"))
        got = ask(bench, f"{bench.collection([first, second])}:route", "one", streamed)
    assert (text_of(got), got.headers["x-bench-attempts"]) == ("from second", "2")
    assert set(rests(bench)) == {"model:first"}


def test_a_key_that_failed_is_not_tried_for_the_next_model_behind_it(bench: Bench) -> None:
    shared = bench.endpoint("shared")
    first, same = bench.model("first", status(429, headers={"retry-after": "300"}), endpoint=shared), bench.model("same", endpoint=shared)
    other = member(bench, "other", reply("from other"))
    got = bench.ask(f"{bench.collection([first, same, other])}:route")
    assert (got.content, got.headers["x-bench-attempts"]) == ("from other", "2")
    assert not bench.fake.calls_to(same)
    alone = bench.ask(f"{bench.collection([same, first], 'alone')}:route")
    assert (alone.status, alone.code) == (429, "rate_limit_exceeded")
    assert 280 <= int(alone.headers["retry-after"]) <= 300


def test_a_call_that_goes_through_ends_a_rest(bench: Bench) -> None:
    first = member(bench, "first", status(503, headers={"retry-after": "300"}), reply("well again"))
    model = f"{bench.collection([first])}:route"
    assert bench.ask(model, "one").status == 503
    eventually(lambda: rests(bench), "a rest on record")
    assert bench.ask(first, "directly").content == "well again"  # a direct call waits for no rest but a limit's
    eventually(lambda: not rests(bench), "the end of the rest")
    # In the other process too, which had learned of the rest by itself.
    eventually(lambda: all(bench.ask(model, f"again {n}").status == 200 for n in range(6)), "six turns taken again")


def test_own_limits_send_a_turn_on_at_once(bench: Bench) -> None:
    first = member(bench, "first", reply("from first"), limits={"requests": {"minute": 1}})
    second = member(bench, "second", reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    assert bench.ask(model, "one").content == "from first"
    began = time.monotonic()
    got = bench.ask(model, "two")
    assert (got.content, got.headers["x-bench-attempts"]) == ("from second", "1")
    assert time.monotonic() - began < 20
    assert not rests(bench)


def test_a_silent_member_leaves_time_for_the_next(bench: Bench) -> None:
    first, second = member(bench, "first", hang()), member(bench, "second", reply("from second"))
    core = bench.collection([first, second], timeout_s=4, first_token_timeout_s=1)
    for streamed in (False, True):
        got = ask(bench, f"{core}:route", f"streamed {streamed}", streamed)
        assert (got.status, text_of(got)) == (200, "from second")
        bench.fake.closed(first, int(streamed))
    assert not rests(bench)


def test_nothing_is_sent_twice_to_the_same_model(bench: Bench) -> None:
    first, second = member(bench, "first", status(500)), member(bench, "second", status(500))
    got = bench.ask(f"{bench.collection([first, second, first])}:route")
    assert got.status == 502
    assert [len(bench.fake.calls_to(m)) for m in (first, second)] == [1, 1]
    assert len(bench.live.attempts(2, request=got.headers["x-request-id"])) == 2


def test_a_refusal_goes_on_only_where_the_collection_says_so(bench: Bench) -> None:
    policy = status(403, "This violates our content policy")
    filtered = reply("", finish="content_filter")
    for n, answer in enumerate((policy, filtered)):
        first, second = member(bench, f"first{n}", answer), member(bench, f"second{n}", reply("from second"))
        for streamed in (False, True):
            on = bench.collection([first, second], f"on{n}", failover_on_refusal=True)
            got = ask(bench, f"{on}:route", f"on {streamed}", streamed)
            assert (text_of(got), got.headers["x-bench-attempts"]) == ("from second", "2")
            off = bench.collection([first, second], f"off{n}")
            got = ask(bench, f"{off}:route", f"off {streamed}", streamed)
            assert got.status == (403 if answer is policy else 200)
            if got.status == 200:
                assert "content_filter" in got.text
                assert unquote(got.headers["x-bench-model"]) == first
    assert not rests(bench)


# ------------------------------------------------------------------ when nobody is left

LIMITED, BUSY = status(429, headers={"retry-after": "30"}), status(503, headers={"retry-after": "40"})
ENDINGS: dict[str, tuple[tuple[Answer, Answer], int, str, int | None]] = {
    "all limited": ((status(429, headers={"retry-after": "300"}), LIMITED), 429, "rate_limit_exceeded", 30),
    "all overloaded": ((BUSY, status(529)), 503, "upstream_overloaded", None),
    "all too slow": ((status(504), status(504)), 504, "upstream_timeout", None),
    "all too small": ((status(400, "maximum context length is 10 tokens"), status(413, "prompt is too long")), 400, "context_too_small", None),
    "all too large": ((status(413), status(413)), 413, "body_too_large", None),
    "mixed, one of them with a wait": ((LIMITED, status(500)), 503, "upstream_overloaded", 30),
    "mixed without a wait": ((status(500), status(404)), 502, "upstream_error", None),
    "all broken": ((status(500), status(500)), 502, "upstream_error", None),
    "all empty": ((reply(""), reply("")), 502, "empty_response", None),
    "all garbage": ((garbage(), garbage()), 502, "upstream_garbage", None),
    "all keys refused": ((status(401), status(401)), 502, "upstream_error", None),
}


@pytest.mark.parametrize("name", ENDINGS)
@BOTH
def test_when_nobody_is_left_the_error_says_why_for_each(bench: Bench, name: str, streamed: bool) -> None:
    answers, http_status, code, wait_s = ENDINGS[name]
    first, second = member(bench, "first", answers[0]), member(bench, "second", answers[1])
    core = bench.collection([first, second])
    got = ask(bench, f"{core}:route", "one", streamed)
    assert (got.status, got.code) == (http_status, code), got.text
    assert first in got.message
    assert second in got.message
    assert [s["model"] for s in got.json["error"]["seats"]] == [first, second] or http_status == 400
    if wait_s is not None:
        assert int(got.headers["retry-after"]) == pytest.approx(wait_s, abs=2)
    assert ("retry-after" in got.headers) == (http_status in (429, 503))
    assert "data:" not in got.text
    body = {"model": f"{core}:route", "max_tokens": 9, "messages": [{"role": "user", "content": "again"}], "stream": streamed}
    if name == "all overloaded":
        other = bench.live.send("POST", "/v1/messages", body)
        assert (other.status, other.json["error"]["type"]) == (529, "overloaded_error")


def test_members_that_rest_on_a_limit_are_a_limit(bench: Bench) -> None:
    first, second = member(bench, "first", status(429, headers={"retry-after": "300"})), member(bench, "second", status(429, headers={"retry-after": "200"}))
    model = f"{bench.collection([first, second])}:route"
    assert bench.ask(model, "one").status == 429
    got = bench.ask(model, "two")
    assert (got.status, got.code) == (429, "rate_limit_exceeded")
    assert 190 <= int(got.headers["retry-after"]) <= 200
    assert len(bench.fake.calls_to(first)) == 1


# ------------------------------------------------------------------ after the first word


def post(bench: Bench, path: str, body: Any) -> Stream:
    return Stream(bench.load().live.host, bench.live.port, path, json.dumps(body).encode(), {"content-type": "application/json"})


CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "stream": True, "tools": [TOOL]}),
    "openai-responses": ("/v1/responses", {"input": "hi", "stream": True, "tools": [{"type": "function", "name": "look", "parameters": {}}]}),
    "anthropic-messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "stream": True, "tools": [{"name": "look", "input_schema": {"type": "object"}}]},
    ),
    "gemini": (
        "/v1beta/models/$MODEL:streamGenerateContent?alt=sse",
        {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [{"name": "look"}]}]},
    ),
    "ollama": ("/api/chat", {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}),
}
# What no stream may say that broke off.
ENDS = ("[DONE]", '"finish_reason":"', '"stop_reason":"', "response.completed", '"finishReason"', '"done":true', "message_stop")


@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("how", ["close", "reset", "error"])
def test_after_the_first_word_a_failure_ends_the_stream_with_an_error(bench: Bench, dialect: str, how: str) -> None:
    broken = sse(HALF, {"error": {"message": "boom"}}, done=False) if how == "error" else reply(["half", "whole"]).cut(after="half", how=how)
    first, second = member(bench, "first", broken), member(bench, "second", reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    path, body = CLIENTS[dialect]
    with post(bench, path.replace("$MODEL", model), {"model": model, **body}) as stream:
        said = stream.rest().decode()
    assert stream.status == 200
    assert said.count("half") == 1 or dialect == "openai-responses"
    assert "from second" not in said
    assert "upstream_truncated" in said or dialect in ("anthropic-messages", "gemini")
    assert '"error"' in said
    assert not any(mark in said.replace(": ", ":") for mark in ENDS)
    assert not bench.fake.calls_to(second)
    (row,) = bench.live.attempts(1, panel=stream.headers["x-bench-panel"])
    assert (row["status"], row["code"], row["estimated"]) == ("partial", "upstream_truncated", True)
    assert row["output_tokens"] > 0
    assert not rests(bench)


@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_call_that_was_cut_is_never_presented_as_finished(bench: Bench, dialect: str) -> None:
    broken = reply("", tools=[("call_1234567890", "look", '{"where": "the sky"}')]).cut(after='{\\"where\\"')
    model = f"{bench.collection([member(bench, 'first', broken), member(bench, 'second')])}:route"
    path, body = CLIENTS[dialect]
    with post(bench, path.replace("$MODEL", model), {"model": model, **body}) as stream:
        said = stream.rest().decode()
    assert '"error"' in said
    assert not any(mark in said.replace(": ", ":") for mark in ENDS)
    assert not any(
        mark in said
        for mark in (
            "function_call_arguments.done",
            "output_item.done",
            "content_block_stop",
            '"functionCall"',
            '"tool_calls":[{"id":"call_1234567890","function":{"index"',
        )
    )
    assert "the sky" not in said


def test_headers_wait_for_the_first_word(bench: Bench) -> None:
    """The first member opens its stream and then refuses: nobody has seen its headers, and the second answers as if nothing had been."""
    gate = bench.fake.gate()
    first = member(bench, "first", sse(OPENING, gate, {"error": {"message": "slow down", "code": 429}}, done=False))
    second = member(bench, "second", reply("from second"))
    bench.load()
    model = f"{bench.collection([first, second])}:route"
    bench.load()
    gate.open()
    with bench.stream(model) as stream:
        events = stream.events()
    assert content_of(events) == "from second"
    assert stream.headers["x-bench-attempts"] == "2"


def test_headers_leave_in_time_and_keepalives_follow(bench: Bench) -> None:
    """BENCH_HEADERS_WITHIN_S is 1 s in tests. Who answers is not known then, and a failure afterwards still goes to the next member."""
    gate = bench.fake.gate()
    first = member(bench, "first", status(500).after(gate))
    second = member(bench, "second", reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    with bench.stream(model) as stream:
        assert stream.status == 200
        assert "x-bench-model" not in stream.headers
        assert is_id("pan", stream.headers["x-bench-panel"])
        stream.until("\n\n")
        beats = stream.got.count(b":")
        while stream.got.count(b":") == beats:
            stream.got += stream.response.read1(65536)
        assert b"data:" not in stream.got
        gate.open()
        events = stream.events()
    assert (content_of(events), events[-1]) == ("from second", "[DONE]")


def test_when_nobody_is_left_after_the_headers_the_stream_says_so(bench: Bench) -> None:
    gate = bench.fake.gate()
    first, second = member(bench, "first", status(429, headers={"retry-after": "30"}).after(gate)), member(bench, "second", LIMITED)
    with bench.stream(f"{bench.collection([first, second])}:route") as stream:
        stream.until("\n\n")
        gate.open()
        events = stream.events()
    assert events[-1]["error"]["code"] == "rate_limit_exceeded"
    assert "[DONE]" not in events


# ------------------------------------------------------------------ callers who leave


@BOTH
def test_a_caller_who_leaves_ends_the_call_and_is_on_record(bench: Bench, streamed: bool) -> None:
    gate = bench.fake.gate()
    first = member(bench, "first", reply(["half ", "whole"], usage=(50, 60)).holding(gate, after="half " if streamed else None))
    second = member(bench, "second", reply("no"))
    model = f"{bench.collection([first, second])}:route"
    left_at = time.monotonic()
    if streamed:
        with bench.stream(model) as stream:
            stream.until("half ")
            left_at = time.monotonic()
    else:
        data = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {bench.load().live.host}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        with socket.create_connection((bench.live.host, bench.live.port), timeout=60) as sock:
            sock.sendall(head.encode() + data)
            bench.fake.call(first)
            left_at = time.monotonic()
    call = bench.fake.closed(first)
    assert call.closed_at is not None
    assert call.closed_at - left_at < 20
    (row,) = bench.live.attempts(1, model=first)
    assert (row["status"], row["estimated"]) == ("cancelled", True)
    assert row["input_tokens"] > 0
    assert (row["output_tokens"] > 0) == streamed
    assert not bench.fake.calls_to(second)
    assert not rests(bench)


def test_a_caller_who_leaves_with_the_whole_answer_got_an_answer(bench: Bench) -> None:
    """Many clients hang up at the finish reason and do not wait for what follows."""
    gate = bench.fake.gate()
    end = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    first = member(bench, "first", sse(HALF, end, gate))
    with bench.stream(f"{bench.collection([first])}:route") as stream:
        stream.until("half")
        stream.until(": keep-alive")  # a keepalive: whatever had come by then has been read
    bench.fake.closed(first)
    (row,) = bench.live.attempts(1, model=first)
    assert row["status"] == "ok"
    assert row["finish_reason"] == "stop"
