"""A ChatGPT plan behind the gateway's doors: its backend streams always, and takes only bodies of its own kind; callers notice nothing of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.fake import FakeProvider, reply, sse, status
from tests.http import Stream, events_of
from tests.live import Bench
from tests.wire.responses_stream import calls_of, legal, text_of

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CHAT_TOOL, TOOL = {"type": "function", "function": FUNCTION}, {"type": "function", **FUNCTION}
SPENT = {
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-after-seconds": "7200",
    "x-codex-secondary-used-percent": "40",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-after-seconds": "380613",
}


def token() -> str:
    inner = base64.urlsafe_b64encode(json.dumps({"https://api.openai.com/auth": {"chatgpt_account_id": "acct-42"}}).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJub25lIn0.{inner}.c2ln"


def served(bench: Bench, *answers: Any, name: str = "plan", **more: Any) -> str:
    endpoint = bench.endpoint(f"chatgpt-{name}", kind="chatgpt", **more)
    return bench.model(name, *answers, endpoint=endpoint)


def posted(bench: Bench, path: str, body: dict[str, Any]) -> Any:
    return bench.load().live.send("POST", path, body)


def streamed(bench: Bench, path: str, body: dict[str, Any]) -> bytes:
    live, data = bench.load().live, json.dumps({**body, "stream": True}).encode()
    with Stream(live.host, live.port, path, data, {"content-type": "application/json"}) as stream:
        return stream.rest()


def taken(body: dict[str, Any]) -> dict[str, Any]:
    """Holds what the backend checks of every body."""
    assert body["stream"] is True
    assert body["store"] is False
    assert body["instructions"]
    assert isinstance(body["input"], list)
    refused = {"max_output_tokens", "max_completion_tokens", "max_tokens", "temperature", "top_p", "user", "metadata", "truncation", "stream_options"}
    assert not refused & set(body)
    return body


# ------------------------------------------------------------------ whole and streamed


def test_who_asked_for_one_piece_gets_one_piece(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply(["he", "llo"], usage=(11, 7)))
    answer = bench.ask(plan, max_tokens=64, temperature=0.2, top_p=0.9, user="u-1")
    assert answer.json["choices"][0]["message"]["content"] == "hello"
    assert answer.json["usage"]["total_tokens"] == 18
    assert set(answer.headers["x-bench-dropped"].replace(" ", "").split(",")) == {"max_tokens", "temperature", "top_p"}
    call = fake.call(plan)
    taken(call.json)
    assert call.path.endswith("/responses")
    assert call.headers["accept"] == "text/event-stream"


def test_and_so_in_its_own_format(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("hello", reasoning="hm"))
    body = {"model": plan, "input": "hi", "store": True, "max_output_tokens": 64, "metadata": {"a": "b"}, "instructions": "Be brief."}
    answer = posted(bench, RESPONSES, body)
    assert [item["type"] for item in answer.json["output"]] == ["reasoning", "message"]
    assert answer.json["status"] == "completed"
    assert answer.headers["x-bench-dropped"] == "max_output_tokens"
    assert taken(fake.call(plan).json)["instructions"] == "Be brief."


def test_a_thought_is_proven_once_though_the_end_repeats_it(bench: Bench) -> None:
    plan = served(bench, reply("hello", reasoning="hm"))
    asked = {"model": plan, "max_tokens": 2000, "messages": [{"role": "user", "content": "hi"}], "thinking": {"type": "enabled", "budget_tokens": 1024}}
    whole = posted(bench, "/v1/messages", asked).json["content"]
    assert [one["type"] for one in whole] == ["thinking", "text"]
    events = [e for e in events_of(streamed(bench, "/v1/messages", asked)) if isinstance(e, dict)]
    assert [e["content_block"]["type"] for e in events if e["type"] == "content_block_start"] == ["thinking", "text"]
    assert sum(e["delta"]["type"] == "signature_delta" for e in events if e["type"] == "content_block_delta") == 1


def test_a_stream_goes_through(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply(["he", "llo"]))
    events = events_of(streamed(bench, CHAT, {"model": plan, "messages": [{"role": "user", "content": "hi"}]}))
    said = [e["choices"][0]["delta"].get("content") for e in events if isinstance(e, dict)]
    assert "".join(one or "" for one in said) == "hello"
    assert text_of(legal(streamed(bench, RESPONSES, {"model": plan, "input": "hi"}))) == "hello"
    for n in (0, 1):
        taken(fake.call(plan, n).json)


@pytest.mark.parametrize("wants_stream", [False, True])
def test_an_end_that_repeats_nothing_of_the_answer_loses_nothing(bench: Bench, wants_stream: bool) -> None:
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hello", "annotations": []}],
    }
    events = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {"id": "resp_1", "status": "completed", "output": [], "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}},
        },
    ]
    plan = served(bench, sse(*events), reply("again"))
    body = {"model": plan, "input": "hi"}
    if wants_stream:
        found = legal(streamed(bench, RESPONSES, body))
        assert text_of(found) == "hello"
        whole = found[-1]["response"]
    else:
        whole = posted(bench, RESPONSES, body).json
    assert [part["text"] for one in whole["output"] for part in one["content"]] == ["hello"]
    posted(bench, RESPONSES, {"model": plan, "previous_response_id": whole["id"], "input": "more"})
    sent = taken(bench.fake.call(plan, 1).json)["input"]
    assert [one["content"][0]["text"] for one in sent] == ["hi", "hello", "more"]


# ------------------------------------------------------------------ what it is asked with


def test_instructions_are_the_callers_where_there_are_any(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("hi"))
    bench.ask(plan, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])
    bench.ask(plan, [{"role": "user", "content": "hi"}, {"role": "system", "content": "Now rhyme."}])
    assert taken(fake.call(plan, 0).json)["instructions"] == "Be brief."
    later = taken(fake.call(plan, 1).json)
    assert later["instructions"] == "You are a helpful assistant."
    assert [one["role"] for one in later["input"]] == ["user", "developer"]


def test_a_tool_round_trip(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("", tools=[("call_1", "weather", '{"city":"Rome"}')]), reply("sunny"))
    first = bench.ask(plan, "Weather?", tools=[CHAT_TOOL]).json["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    turns = [{"role": "user", "content": "Weather?"}, first["message"], {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}]
    assert bench.ask(plan, turns, tools=[CHAT_TOOL]).json["choices"][0]["message"]["content"] == "sunny"
    sent = taken(fake.call(plan, 1).json)
    assert [one["type"] for one in sent["input"]] == ["message", "function_call", "function_call_output"]
    assert [one["name"] for one in sent["tools"]] == ["weather"]


def test_streamed_tools(bench: Bench) -> None:
    plan = served(bench, reply("", tools=[("c1", "weather", '{"city":"Rome"}')]))
    events = legal(streamed(bench, RESPONSES, {"model": plan, "input": "hi", "tools": [TOOL]}))
    assert [(one["call_id"], one["arguments"]) for one in calls_of(events)] == [("c1", '{"city":"Rome"}')]


def test_a_thought_that_only_its_id_proves_is_not_sent(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("hi"))
    items = [{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAAA"}]
    posted(bench, RESPONSES, {"model": plan, "input": [{"role": "user", "content": "a"}, *items, {"role": "user", "content": "b"}]})
    assert [one.get("id") for one in taken(fake.call(plan).json)["input"]] == [None, "rs_2", None]


def test_an_endpoints_own_quirk_overrules_a_demand(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("hi"), quirks={"always_stream": False, "refuses": "top_p", "instructions": "Hello."})
    answer = bench.ask(plan, max_tokens=64, top_p=0.5)
    assert answer.json["choices"][0]["message"]["content"] == "hi"
    sent = fake.call(plan).json
    assert (sent.get("stream"), sent["max_output_tokens"], sent["instructions"], "top_p" in sent) == (None, 64, "Hello.", False)


def test_another_kind_of_endpoint_is_asked_as_ever(bench: Bench, fake: FakeProvider) -> None:
    other = bench.model("other", reply("hi"), endpoint=bench.endpoint("responses", kind="openai-responses"))
    posted(bench, RESPONSES, {"model": other, "input": "hi", "max_output_tokens": 64})
    assert fake.call(other).json == {"model": fake.call(other).model, "input": "hi", "max_output_tokens": 64}


# ------------------------------------------------------------------ its account, its limits


def test_the_account_goes_along_with_the_token(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, reply("hi"), name="signed")
    name = f"{bench.tag}-chatgpt-signed"
    bench.load().live.api("PATCH", f"endpoints/{name}", {"key": token()})
    bench.ask(plan)
    assert fake.call(plan).headers["chatgpt-account-id"] == "acct-42"


def test_a_spent_plan_is_left_alone_until_it_is_good_again(bench: Bench, fake: FakeProvider) -> None:
    plan = served(bench, status(429, headers=SPENT, body={"error": {"type": "usage_limit_reached", "message": "You've hit your usage limit."}}))
    answer = bench.ask(plan)
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
    assert 7000 < float(answer.headers["retry-after"]) <= 7200
    assert bench.ask(plan).status == 429
    assert len(fake.calls_to(plan)) == 1
