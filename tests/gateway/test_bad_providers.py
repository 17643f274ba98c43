"""What providers get wrong: the right status and code, nothing of their pages or our keys, and a true row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake import Answer, garbage, html, raw, refusing_address, reply, sse, status, whole
from tests.http import content_of
from tests.live import Bench

CHUNK = {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "half"}, "finish_reason": None}]}
SECRETS = ("page-secret-abc123", "<html", "sk-canary")

# name: answer, status for our caller, code, status in the ledger
WHOLE: dict[str, tuple[Answer, int, str | None, str]] = {
    "garbage": (garbage(), 502, "upstream_garbage", "error"),
    "a page": (html(), 502, "upstream_garbage", "error"),
    "a page with a 500": (html(500), 502, "upstream_error", "error"),
    "a page with a 404": (html(404), 502, "upstream_error", "error"),
    "an empty body": (whole(b""), 502, None, "error"),
    "an empty object": (whole({}), 502, None, "error"),
    "a list": (whole([]), 502, "upstream_garbage", "error"),
    "no choices": (whole({"choices": []}), 502, "empty_response", "error"),
    "an empty message": (reply(""), 502, "empty_response", "error"),
    "half a JSON": (whole('{"choices": [{"message": {"role": "assi'), 502, "upstream_garbage", "error"),
    "a body cut off": (reply("hello").cut(after='"choices"'), 502, "upstream_truncated", "error"),
    "a body reset": (reply("hello").cut(after='"choices"', how="reset"), 502, "upstream_truncated", "error"),
    "a body shorter than promised": (whole({"choices": []}).claiming(5000), 502, "upstream_truncated", "error"),
    "closed without a word": (raw("close"), 502, "upstream_error", "error"),
    "reset without a word": (raw("reset"), 502, "upstream_error", "error"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.0\r\n", "close"), 502, None, "error"),
    "deep JSON": (whole(b"[" * 100_000 + b"]" * 100_000), 502, "upstream_garbage", "error"),
    "an error inside a 200": (whole({"error": {"message": "quota used up", "code": 429}}), 429, "rate_limit_exceeded", "rate_limited"),
    "an unknown error inside a 200": (whole({"error": {"message": "boom"}}), 502, "upstream_error", "error"),
    "429": (status(429, "slow down", headers={"retry-after": "7"}), 429, "rate_limit_exceeded", "rate_limited"),
    "401": (status(401, "bad key sk-canary-0123456789abcdef"), 502, "upstream_error", "error"),
    "403": (status(403, "no access"), 502, "upstream_error", "error"),
    "404": (status(404, "no such model"), 502, "upstream_error", "error"),
    "500": (status(500, "boom"), 502, "upstream_error", "error"),
    "503": (status(503, "overloaded"), 503, "upstream_overloaded", "error"),
    "a redirect": (status(302, "elsewhere", headers={"location": "http://127.0.0.1:9/"}), 502, None, "error"),
    "400": (status(400, "temperature is too high"), 400, "invalid_request", "error"),
    "400 for the length": (status(400, "maximum context length is 8192 tokens"), 400, "context_too_small", "error"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_bad_answer_is_told_apart_and_recorded(bench: Bench, name: str) -> None:
    answer, http_status, code, row_status = WHOLE[name]
    fast = bench.model("fast", answer, endpoint=bench.endpoint("keyed", key_env="BENCHWARMERS_KEY_CANARY"))
    got = bench.ask(fast)
    assert got.status == http_status, got.body[:500]
    assert got.code
    if code:
        assert got.code == code
    assert not any(secret in got.text for secret in SECRETS)
    if http_status == 429:
        assert int(got.headers["retry-after"]) >= 1
    (row,) = bench.live.attempts(1, model=fast)
    assert row["status"] == row_status
    assert row["code"]
    assert not any(secret in row["error"] for secret in SECRETS)
    # A pooled connection that closes without a byte may have been closed before: it is replaced, once.
    assert len(bench.fake.calls_to(fast)) <= (2 if "without a word" in name else 1)


@pytest.mark.parametrize("name", WHOLE)
def test_the_same_where_a_stream_was_asked_for(bench: Bench, name: str) -> None:
    answer, http_status, code, row_status = WHOLE[name]
    fast = bench.model("fast", answer)
    with bench.stream(fast) as stream:
        if stream.status == 200:  # its beginning had come, or it took longer than headers wait
            events = stream.events()
            assert "[DONE]" not in events
            assert not any(isinstance(e, dict) and any(c.get("finish_reason") for c in e.get("choices") or []) for e in events)
            said = events[-1]["error"]["code"]
        else:
            assert stream.status == http_status
            said = stream.whole.code
        assert not any(secret.encode() in stream.got for secret in SECRETS)
    if code and name not in ("a body cut off", "a body reset", "an empty message"):
        assert said == code
    (row,) = bench.live.attempts(1, model=fast)
    assert row["status"] in (row_status, "partial")


STREAMS: dict[str, tuple[Answer, str]] = {
    "cut in the middle": (reply(["half", " whole"]).cut(after="half"), "upstream_truncated"),
    "reset in the middle": (reply(["half", " whole"]).cut(after="half", how="reset"), "upstream_truncated"),
    "ended without an end": (sse(CHUNK, done=False), "upstream_truncated"),
    "an error in the middle": (sse(CHUNK, 0.3, {"error": {"message": "boom"}}, done=False), "upstream_truncated"),
    "garbage in the middle": (sse(CHUNK, 0.3, "data: {not json\n\n"), "upstream_truncated"),
    "half an event at the end": (sse(CHUNK, 'data: {"id": "x", "choi', done=False), "upstream_truncated"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_goes_wrong_after_content_ends_in_an_error_event(bench: Bench, name: str) -> None:
    answer, code = STREAMS[name]
    fast = bench.model("fast", answer)
    with bench.stream(fast) as stream:
        assert stream.status == 200
        events = stream.events()
    assert "half" in content_of(events)
    assert events[-1]["error"]["code"] == code
    assert "[DONE]" not in events
    assert not any(c.get("finish_reason") for e in events for c in e.get("choices") or [])
    (row,) = bench.live.attempts(1, model=fast)
    assert row["status"] == "partial"
    assert row["output_tokens"] > 0
    assert row["estimated"] is True


def test_a_tool_call_that_was_cut_off_is_never_shown_as_finished(bench: Bench) -> None:
    fast = bench.model("fast", reply("", tools=[("c1", "look", '{"at": "the whole sky"}')]).cut(after='\\"the'))
    with bench.stream(fast, tools=[{"type": "function", "function": {"name": "look", "parameters": {}}}]) as stream:
        events = stream.events()
    assert not any(c.get("finish_reason") for e in events if isinstance(e, dict) for c in e.get("choices") or [])
    assert events[-1]["error"]["code"] == "upstream_truncated"


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/octet-stream", ""])
def test_a_good_answer_under_a_wrong_content_type_is_a_good_answer(bench: Bench, content_type: str) -> None:
    fast = bench.model("fast", reply("fine", stream=False).with_headers(content_type=content_type))
    assert bench.ask(fast).content == "fine"


def test_a_good_stream_under_a_wrong_content_type_is_a_good_answer(bench: Bench) -> None:
    fast = bench.model("fast", reply(["fi", "ne"], stream=True).with_headers(content_type="text/plain"))
    with bench.stream(fast) as stream:
        assert content_of(stream.events()) == "fine"


def test_an_endpoint_that_refuses_connections_is_unreachable(bench: Bench) -> None:
    with refusing_address() as url:
        fast = bench.model("fast", endpoint=bench.endpoint("gone", url))
        answer = bench.ask(fast)
        assert (answer.status, answer.code) == (502, "upstream_error")
        (row,) = bench.live.attempts(1, model=fast)
    assert (row["status"], row["http_status"]) == ("error", None)


def test_a_host_that_does_not_exist_is_unreachable(bench: Bench) -> None:
    fast = bench.model("fast", endpoint=bench.endpoint("nowhere", "http://nowhere.invalid/v1"))
    answer = bench.ask(fast)
    assert (answer.status, answer.code) == (502, "upstream_error")


def test_one_bad_seat_spoils_no_other(bench: Bench) -> None:
    answers: list[Any] = [garbage(), html(), whole(b""), raw("close"), reply("fine"), status(429)]
    core = bench.collection([bench.model(f"m{n}", a) for n, a in enumerate(answers)])
    told = bench.ask(core).json["bench"]
    assert [s["status"] for s in told["seats"]] == ["error", "error", "error", "error", "ok", "rate_limited"]
    assert len(bench.live.attempts(6, panel=told["panel"])) == 6


def test_an_enormous_answer_is_refused_not_swallowed(bench: Bench) -> None:
    fast = bench.model("fast", whole(b'{"choices": "' + b"x" * 70_000_000 + b'"}'))
    assert bench.ask(fast).status == 502
