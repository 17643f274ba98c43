"""A model asked by its alias: a paced, recorded pass-through."""

from __future__ import annotations

import re

import pytest

from tests.fake import reply, sse, status
from tests.gateway.shape import is_id
from tests.http import content_of
from tests.live import Bench

USAGE = (812, 240)


def test_an_alias_answers_as_its_model_does(bench: Bench) -> None:
    fast = bench.model("fast", reply("hello there", usage=USAGE))
    answer = bench.ask(fast, "hi")
    assert answer.status == 200
    assert answer.content == "hello there"
    body = answer.json
    assert (body["object"], body["model"], body["choices"][0]["finish_reason"]) == ("chat.completion", fast, "stop")
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == USAGE
    assert "bench" not in body


def test_the_provider_gets_its_own_name_and_everything_else_as_it_was_sent(bench: Bench) -> None:
    fast = bench.model("fast", reply(), served_name=f"{bench.tag}/served:free")
    more = {"temperature": 0.3, "seed": 7, "stop": ["END"], "logit_bias": {"5": 1}, "some_unknown_field": {"kept": [1]}}
    assert bench.ask(fast, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}], max_tokens=9, **more).status == 200
    sent = bench.fake.call(f"{bench.tag}/served:free").json
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert {k: sent[k] for k in more} == more
    assert sent["max_tokens"] == 9


def test_a_reply_says_what_served_it(bench: Bench) -> None:
    fast = bench.model("fast")
    headers = bench.ask(fast).headers
    assert headers["x-bench-model"] == fast
    assert is_id("pan", headers["x-bench-panel"])
    assert is_id("call", headers["x-bench-call"])
    assert headers["x-bench-attempts"] == "1"
    assert headers["x-request-id"]
    assert re.fullmatch(r"\d+(\.\d+)?", headers["x-bench-overhead-ms"])


def test_a_name_of_any_script_works_and_is_percent_encoded_in_headers(bench: Bench) -> None:
    name = bench.model("Лама/α:free v1.5@x")
    answer = bench.ask(name)
    assert answer.status == 200
    from urllib.parse import unquote

    assert answer.headers["x-bench-model"].isascii()
    assert unquote(answer.headers["x-bench-model"]) == name


def test_names_are_matched_with_case(bench: Bench) -> None:
    name = bench.model("Fast")
    assert bench.ask(name).status == 200
    answer = bench.ask(name.lower())
    assert (answer.status, answer.code) == (404, "model_not_found")


def test_a_stream_passes_piece_by_piece(bench: Bench) -> None:
    gate = bench.fake.gate()
    fast = bench.model("fast", reply(["first ", "second"], usage=USAGE).holding(gate, after="first "))
    with bench.stream(fast, stream_options={"include_usage": True}) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "second" not in stream.until("first ")
        gate.open()
        events = stream.events()
    assert events[-1] == "[DONE]"
    assert content_of(events) == "first second"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["prompt_tokens"] == USAGE[0]
    assert {e["object"] for e in events[:-1]} == {"chat.completion.chunk"}
    assert len({e["id"] for e in events[:-1]}) == 1


def test_usage_is_asked_for_upstream_but_not_forced_on_a_client(bench: Bench) -> None:
    fast = bench.model("fast", reply("hi", usage=USAGE))
    with bench.stream(fast) as stream:
        events = stream.events()
    assert bench.fake.call(fast).json["stream_options"] == {"include_usage": True}
    assert not any(isinstance(e, dict) and e.get("usage") for e in events)
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["input_tokens"], row["output_tokens"], row["estimated"]) == (*USAGE, False)


def test_a_stream_that_waits_is_kept_alive(bench: Bench) -> None:
    gate = bench.fake.gate()
    fast = bench.model("fast", reply("late").after(gate))
    with bench.stream(fast) as stream:
        stream.until("\n\n")
        first = stream.got
        while len(stream.got) < len(first) + 2:
            stream.got += stream.response.read1(65536)
        assert all(line.startswith(b":") or not line for line in stream.got.splitlines() if b"data:" not in line)
        gate.open()
        assert content_of(stream.events()) == "late"


def test_tools_and_their_calls_pass_both_ways(bench: Bench) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    fast = bench.model("fast", reply("", tools=[("c1", "look", '{"at": "sky"}')]))
    answer = bench.ask(fast, tools=[tool])
    assert answer.json["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
    assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
    assert bench.fake.call(fast).json["tools"] == [tool]
    with bench.stream(fast, tools=[tool]) as stream:
        pieces = [t for e in stream.events() if isinstance(e, dict) for c in e["choices"] for t in c["delta"].get("tool_calls") or []]
    assert "".join(p["function"].get("arguments") or "" for p in pieces) == '{"at": "sky"}'


def test_an_empty_tool_list_is_no_tools(bench: Bench) -> None:
    fast = bench.model("fast")
    assert bench.ask(fast, tools=[]).status == 200
    assert "tools" not in bench.fake.call(fast).json


@pytest.mark.parametrize("bend", ["crlf", "cr", "dripping", "split", "gzipped", "closing"])
def test_packets_line_ends_and_compression_change_nothing(bench: Bench, bend: str) -> None:
    answer = reply(["naïve ", "🙂", " end"], usage=USAGE)
    bent = answer.split("🙂") if bend == "split" else getattr(answer, bend)()
    fast = bench.model("fast", bent)
    with bench.stream(fast) as stream:
        assert content_of(stream.events()) == "naïve 🙂 end"
    if bend in ("dripping", "gzipped", "closing"):
        assert bench.ask(fast).content == "naïve 🙂 end"


def test_a_stream_asked_for_and_json_given_is_streamed_all_the_same(bench: Bench) -> None:
    fast = bench.model("fast", reply("whole", stream=False))
    with bench.stream(fast) as stream:
        events = stream.events()
    assert (content_of(events), events[-1]) == ("whole", "[DONE]")
    slow = bench.model("slow", reply(["par", "ts"], stream=True, usage=(3, 2)))
    answer = bench.ask(slow)
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.content == "parts"


def test_odd_but_harmless_streams_are_borne_with(bench: Bench) -> None:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "late"}, "finish_reason": None}]}
    end = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    fast = bench.model("fast", sse({"id": "", "choices": [], "prompt_filter_results": []}, "data: : keepalive\n\n", chunk, ": note\n\n", end))
    with bench.stream(fast) as stream:
        events = stream.events()
    assert content_of(events) == "late"
    assert [c["finish_reason"] for e in events[:-1] for c in e["choices"] if c.get("finish_reason")] == ["stop"]


def test_a_server_that_needs_things_said_differently_hears_them_so(bench: Bench) -> None:
    here = bench.endpoint("odd", quirks={"token_param": "max_completion_tokens", "system_role": "developer", "stream_options": False})
    fast = bench.model("fast", reply(), endpoint=here)
    with bench.stream(fast, [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}], max_tokens=5) as stream:
        stream.rest()
    sent = bench.fake.call(fast).json
    assert sent["max_completion_tokens"] == 5
    assert not {"max_tokens", "stream_options"} & sent.keys()
    assert sent["messages"][0]["role"] == "developer"


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_a_base_url_is_good_with_and_without_its_version_part(bench: Bench, suffix: str) -> None:
    fast = bench.model("fast", endpoint=bench.endpoint("there", bench.fake.root + suffix))
    assert bench.ask(fast).status == 200
    assert bench.fake.call(fast).path == "/v1/chat/completions"


def test_a_connection_that_lay_idle_and_was_closed_is_replaced(bench: Bench) -> None:
    fast = bench.model("fast")
    for _ in range(3):
        assert bench.ask(fast).status == 200
        bench.fake.drop_connections()
    assert len(bench.fake.calls_to(fast)) == 3


def test_a_refusal_is_not_tried_again(bench: Bench) -> None:
    fast = bench.model("fast", status(500), reply("second"))
    assert bench.ask(fast).status == 502
    assert len(bench.fake.calls_to(fast)) == 1


def test_an_endpoints_key_comes_from_the_environment_and_goes_to_that_endpoint(bench: Bench) -> None:
    """The server of this run has BENCHWARMERS_KEY_CANARY in its environment (see tests/live.py)."""
    fast = bench.model("fast", endpoint=bench.endpoint("keyed", key_env="BENCHWARMERS_KEY_CANARY"))
    other = bench.model("other")
    assert bench.ask(fast, headers={"x-odd": "1", "cookie": "a=b"}).status == 200
    assert bench.ask(other).status == 200
    call = bench.fake.call(fast)
    assert call.headers["authorization"] == f"Bearer {bench.live.environment['BENCHWARMERS_KEY_CANARY']}"
    assert not {"x-odd", "cookie", "x-api-key"} & call.headers.keys()
    assert "authorization" not in bench.fake.call(other).headers
