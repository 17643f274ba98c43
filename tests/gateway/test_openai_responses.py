"""The Responses format through a running server: the official `openai` SDK, the bare wire, and what is kept under an answer's id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.fake import FakeProvider, reply, sse, status
from tests.gateway.shape import check_bench
from tests.http import Stream
from tests.live import Bench
from tests.wire.responses_stream import calls_of, legal, text_of, thought_of

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    "strict": True,
}
PATCH: dict[str, Any] = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
KINDS = ["openai", "openai-responses"]


@pytest.fixture
def client(bench: Bench) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0, timeout=60) as made:
        yield made


def served(bench: Bench, kind: str, *answers: Any, name: str = "fast", **more: Any) -> str:
    """A model behind a provider of this kind."""
    alias = bench.model(name, *answers, endpoint=bench.endpoint(f"{kind}-{name}", kind=kind), **more)
    bench.load()
    return alias


def posted(bench: Bench, body: dict[str, Any], key: str | None = None) -> tuple[int, dict[str, Any], dict[str, str]]:
    answer = bench.load().live.send("POST", "/v1/responses", body, key=key)
    return answer.status, answer.json, dict(answer.headers)


def streamed(bench: Bench, body: dict[str, Any]) -> bytes:
    data = json.dumps({**body, "stream": True}).encode()
    with Stream(bench.live.host, bench.live.port, "/v1/responses", data, {"content-type": "application/json"}) as stream:
        return stream.rest()


# ------------------------------------------------------------------ one model, both kinds of provider


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_answer(bench: Bench, client: openai.OpenAI, kind: str) -> None:
    fast = served(bench, kind, reply("hello", usage=(11, 7), reasoning="hm"))
    answer = client.responses.create(model=fast, input="hi", instructions="Be brief.", max_output_tokens=64, temperature=0.5)
    assert answer.output_text == "hello"
    assert (answer.model, answer.status, answer.temperature) == (fast, "completed", 0.5)
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    assert [o.type for o in answer.output] == ["reasoning", "message"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_and_its_helper(bench: Bench, client: openai.OpenAI, kind: str) -> None:
    fast = served(bench, kind, reply(["he", "llo"], reasoning="hm"))
    with client.responses.stream(model=fast, input=[{"role": "user", "content": "hi"}], instructions="Be brief.") as stream:
        kinds = [e.type for e in stream]
        final = stream.get_final_response()
    assert final.output_text == "hello"
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert "response.output_text.delta" in kinds
    assert "response.reasoning_summary_text.delta" in kinds


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_round_trip(bench: Bench, fake: FakeProvider, client: openai.OpenAI, kind: str) -> None:
    calls = [("call_1", "weather", '{"city":"Paris"}'), ("call_2", "weather", '{"city":"Rome"}')]
    fast = served(bench, kind, reply("", tools=calls), reply("sunny"))
    first = client.responses.create(model=fast, input="Weather?", tools=[TOOL], parallel_tool_calls=True, tool_choice="auto")  # type: ignore[list-item]
    asked = [o for o in first.output if o.type == "function_call"]
    assert [(c.call_id, json.loads(c.arguments)["city"]) for c in asked] == [("call_1", "Paris"), ("call_2", "Rome")]
    results: Any = [{"type": "function_call_output", "call_id": c.call_id, "output": "sunny"} for c in asked]
    second = client.responses.create(model=fast, previous_response_id=first.id, input=results, tools=[TOOL])  # type: ignore[list-item]
    assert second.output_text == "sunny"
    sent = fake.call(fast, 1).json
    assert "previous_response_id" not in sent
    if kind == "openai":
        assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "tool", "tool"]
        assert [c["id"] for c in sent["messages"][1]["tool_calls"]] == ["call_1", "call_2"]
    else:
        assert [i.get("type", "message") for i in sent["input"]] == ["message", *["function_call"] * 2, *["function_call_output"] * 2]


@pytest.mark.parametrize("kind", KINDS)
def test_streamed_tools_and_thoughts_on_the_wire(bench: Bench, kind: str) -> None:
    fast = served(bench, kind, reply("So.", reasoning="hm", tools=[("c1", "weather", '{"city":"Rome"}'), ("c2", "weather", "{}")]))
    events = legal(streamed(bench, {"model": fast, "input": "hi", "tools": [TOOL]}))
    assert (text_of(events), thought_of(events)) == ("So.", "hm")
    assert [(c["call_id"], c["arguments"]) for c in calls_of(events)] == [("c1", '{"city":"Rome"}'), ("c2", "{}")]
    assert events[-1]["response"]["usage"]["total_tokens"] == 18
    assert "bench" not in events[-1]


class City(BaseModel):
    city: str


@pytest.mark.parametrize("kind", KINDS)
def test_a_promised_shape_is_promised_to_the_provider(bench: Bench, fake: FakeProvider, client: openai.OpenAI, kind: str) -> None:
    fast = served(bench, kind, reply('{"city":"Turin"}'))
    answer = client.responses.parse(model=fast, input="a city", text_format=City)
    assert answer.output_parsed == City(city="Turin")
    sent = fake.call(fast).json
    form = sent["text"]["format"] if kind == "openai-responses" else sent["response_format"]["json_schema"]
    assert (form["strict"], form["schema"]["required"]) == (True, ["city"])


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_seen(bench: Bench, fake: FakeProvider, kind: str) -> None:
    sighted = served(bench, kind, reply("a cat"), name="sighted", facts={"vision": True})
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "what?"}, image]},
        {"type": "function_call", "call_id": "c1", "name": "shot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "page"}, image]},
    ]
    code, body, _ = posted(bench, {"model": sighted, "input": items})
    assert code == 200, body
    assert json.dumps(fake.call(sighted).json).count("iVBORw0KGgo=") == 2


@pytest.mark.parametrize("stream", [False, True])
def test_custom_tools_and_namespaces_over_a_chat_provider(bench: Bench, fake: FakeProvider, stream: bool) -> None:
    patch, spawn = json.dumps({"input": "*** Begin Patch\n"}), "{}"
    fast = served(bench, "openai", reply("", tools=[("c1", "apply_patch", patch), ("c2", "agents__spawn", spawn)]))
    space = {"type": "namespace", "name": "agents", "description": "x", "tools": [{"type": "function", "name": "spawn", "parameters": {}}]}
    asked: dict[str, Any] = {"model": fast, "input": "go", "tools": [PATCH, space, {"type": "web_search"}], "store": False}
    if stream:
        items = calls_of(legal(streamed(bench, asked)))
    else:
        code, body, headers = posted(bench, asked)
        assert code == 200
        assert "web_search" in headers["x-bench-dropped"]
        items = body["output"]
    assert (items[0]["type"], items[0]["name"], items[0]["input"]) == ("custom_tool_call", "apply_patch", "*** Begin Patch\n")
    assert (items[1]["type"], items[1]["name"], items[1]["namespace"]) == ("function_call", "spawn", "agents")
    assert {t["function"]["name"] for t in fake.call(fast).json["tools"]} == {"apply_patch", "agents__spawn"}


def test_the_same_format_passes_through(bench: Bench, fake: FakeProvider) -> None:
    fast = served(bench, "openai-responses", reply("hello", extra={"service_tier": "flex", "novelty": [1]}))
    asked = {
        "model": fast,
        "input": [{"role": "user", "content": "hi"}],
        "tools": [TOOL, PATCH, {"type": "web_search"}],
        "unknown_field": {"a": 1},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
    }
    _, body, headers = posted(bench, asked)
    assert fake.call(fast).json == asked
    assert (body["service_tier"], body["novelty"], body["model"]) == ("flex", [1], fast)
    assert body["id"] != "resp_fake"
    assert "x-bench-dropped" not in headers


def test_another_dialects_request_reaches_a_responses_provider(bench: Bench, fake: FakeProvider) -> None:
    fast = served(bench, "openai-responses", reply("", tools=[("c1", "weather", "{}")], reasoning="hm"))
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    answer = bench.ask(fast, tools=[tool], max_tokens=50, seed=7).json
    message = answer["choices"][0]["message"]
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert (message["tool_calls"][0]["id"], message["reasoning_content"]) == ("c1", "hm")
    sent = fake.call(fast).json
    assert (sent["max_output_tokens"], sent["store"], sent["tools"][0]["name"]) == (50, False, "weather")
    with bench.stream(fast, tools=[tool]) as stream:
        assert b'"tool_calls"' in stream.rest()


# ------------------------------------------------------------------ panels


@pytest.mark.parametrize("kind", KINDS)
def test_a_panel_and_a_merged_answer(bench: Bench, client: openai.OpenAI, kind: str) -> None:
    one, two = served(bench, kind, reply("alpha"), name="one"), served(bench, kind, reply("beta"), name="two")
    merger = served(bench, kind, reply("both"), name="merger")
    core = bench.collection([one, two], mergers=[merger])
    bench.load()
    answer = client.responses.create(model=core, input="hi")
    assert "alpha" in answer.output_text
    assert [s["text"] for s in check_bench(answer.model_extra["bench"])] == ["alpha", "beta"]  # type: ignore[index]
    told = None
    for event in client.responses.create(model=f"{core}:merged", input="hi", stream=True):
        if event.type == "response.completed":
            told = (event.model_extra or {}).get("bench")
            assert "both" in event.response.output_text
    assert told is not None
    assert told["mode"] == "merged"
    check_bench(told)


def test_a_panels_stream_is_legal_and_an_empty_ones_fails(bench: Bench) -> None:
    core = bench.collection([bench.model("one", reply("alpha")), bench.model("two", reply("beta"))])
    down = bench.collection([bench.model("three", status(500)), bench.model("four", status(500))], name="down")
    bench.load()
    events = legal(streamed(bench, {"model": core, "input": "hi"}))
    assert "alpha" in text_of(events)
    check_bench(events[-1]["bench"])
    events = legal(streamed(bench, {"model": down, "input": "hi"}), failed=True)
    assert [s["model"] for s in events[-1]["response"]["error"]["seats"]] == [f"{bench.tag}-three", f"{bench.tag}-four"]


def test_tools_to_a_panel_are_refused_in_this_format(bench: Bench) -> None:
    core = bench.collection([bench.model("one", reply("alpha"))])
    code, body, _ = posted(bench, {"model": core, "input": "hi", "tools": [TOOL]})
    assert (code, body["error"]["code"], body["error"]["param"]) == (400, "tools_need_route", "tools")


# ------------------------------------------------------------------ errors and silence


def test_errors_become_the_sdks_own(bench: Bench, client: openai.OpenAI) -> None:
    limited = served(bench, "openai-responses", status(429, headers={"retry-after": "7"}))
    with pytest.raises(openai.RateLimitError) as slow:
        client.responses.create(model=limited, input="hi")
    assert slow.value.code == "rate_limit_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="nobody", input="hi")
    with pytest.raises(openai.BadRequestError) as later:
        client.responses.create(model=limited, input="hi", background=True)
    assert later.value.param == "background"
    with pytest.raises(openai.BadRequestError) as unknown:
        client.responses.create(model=limited, input="hi", previous_response_id="resp_01HZX3V5K7M9P1R3T5W7Y9ABCD")
    assert unknown.value.code == "previous_response_not_found"


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_breaks_off_says_so(bench: Bench, kind: str) -> None:
    fast = served(bench, kind, reply(["half", "whole"]).cut(after="half"))
    events = legal(streamed(bench, {"model": fast, "input": "hi"}), failed=True)
    assert text_of(events) == "half"
    assert events[-1]["response"]["error"]["code"] == "upstream_truncated"


def test_an_error_inside_a_stream_before_content_is_an_answer_with_a_status(bench: Bench) -> None:
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}}
    fast = served(bench, "openai-responses", sse({"type": "response.created", "response": {"id": "x"}}, failed, done=False))
    code, body, _ = posted(bench, {"model": fast, "input": "hi", "stream": True})
    assert (code, body["error"]["code"]) == (429, "rate_limit_exceeded")


def test_silence_is_filled_with_events(bench: Bench, fake: FakeProvider) -> None:
    gate = fake.gate()
    fast = served(bench, "openai", reply("late").after(gate))
    data = json.dumps({"model": fast, "input": "hi", "stream": True}).encode()
    with Stream(bench.live.host, bench.live.port, "/v1/responses", data, {"content-type": "application/json"}) as stream:
        stream.until('"sequence_number":3')  # while the provider has said nothing at all
        gate.open()
        events = legal(stream.rest())
    assert text_of(events) == "late"
    assert [e["type"] for e in events].count("response.in_progress") >= 2


# ------------------------------------------------------------------ what is kept


def test_an_answer_is_kept_read_gone_on_from_and_forgotten(bench: Bench, fake: FakeProvider, client: openai.OpenAI) -> None:
    fast = served(bench, "openai", reply("hello Ada"), reply("Ada"))
    first = client.responses.create(model=fast, input="my name is Ada", metadata={"a": "b"})
    again = client.responses.retrieve(first.id)
    assert (again.output_text, again.metadata) == ("hello Ada", {"a": "b"})
    assert [i.type for i in client.responses.input_items.list(first.id)] == ["message"]
    with client.responses.stream(model=fast, input="what is my name?", previous_response_id=first.id) as stream:
        for _ in stream:
            pass
        second = stream.get_final_response()
    assert second.previous_response_id == first.id
    assert [m["content"] for m in fake.call(fast, 1).json["messages"]] == ["my name is Ada", "hello Ada", "what is my name?"]
    third = client.responses.create(model=fast, input="and again?", previous_response_id=second.id)
    assert [m["content"] for m in fake.call(fast, 2).json["messages"]][-2:] == ["Ada", "and again?"]
    client.responses.delete(third.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(third.id)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model=fast, input="x", previous_response_id=third.id)


def test_what_one_key_is_told_no_other_reads(bench: Bench, client: openai.OpenAI) -> None:
    fast = served(bench, "openai", reply("secret"))
    mine = client.responses.create(model=fast, input="hi")
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as other:
        for ask in (
            lambda: other.responses.retrieve(mine.id),
            lambda: other.responses.delete(mine.id),
            lambda: other.responses.create(model=fast, input="x", previous_response_id=mine.id),
        ):
            with pytest.raises((openai.NotFoundError, openai.BadRequestError)):
                ask()
    assert client.responses.retrieve(mine.id).output_text == "secret"
    assert bench.live.send("GET", f"/v1/responses/{mine.id}").status == 404


def test_nothing_is_kept_where_the_caller_says_so(bench: Bench, client: openai.OpenAI) -> None:
    fast = served(bench, "openai", reply("gone"))
    answer = client.responses.create(model=fast, input="hi", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_a_panels_answer_is_kept_too(bench: Bench, client: openai.OpenAI) -> None:
    core = bench.collection([bench.model("one", reply("alpha")), bench.model("two", reply("beta"))])
    bench.load()
    answer = client.responses.create(model=core, input="hi")
    again = client.responses.retrieve(answer.id)
    assert again.output_text == answer.output_text
    check_bench(again.model_extra["bench"])  # type: ignore[index]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_counted_or_estimated(bench: Bench, client: openai.OpenAI, kind: str) -> None:
    fast = served(bench, kind, reply("x"))
    counted = client.responses.input_tokens.count(model=fast, input="How long is this?")
    assert counted.input_tokens > 0


async def test_the_async_client(bench: Bench) -> None:
    fast = served(bench, "openai", reply(["a", "b"]))
    async with openai.AsyncOpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as client:
        stream = await client.responses.create(model=fast, input="hi", stream=True)
        assert "".join([e.delta async for e in stream if e.type == "response.output_text.delta"]) == "ab"


# ------------------------------------------------------------------ route mode


def test_another_formats_signed_thinking_goes_back_to_the_model_that_signed_it(bench: Bench, fake: FakeProvider) -> None:
    """Codex says its reasoning items again: what is in them belongs to the member that thought it, and to no other."""
    thinker = served(bench, "anthropic", reply("", reasoning="hm", tools=[("toolu_1", "weather", '{"city":"Rome"}')]), reply("sunny"), name="thinker")
    core = bench.collection([thinker])
    bench.load()
    asked: dict[str, Any] = {
        "model": f"{core}:route",
        "input": [{"type": "message", "role": "user", "content": "Weather?"}],
        "tools": [TOOL],
        "store": False,
        "reasoning": {"effort": "medium"},
        "include": ["reasoning.encrypted_content"],
    }
    output = legal(streamed(bench, asked))[-1]["response"]["output"]
    assert [i["type"] for i in output] == ["reasoning", "function_call"]
    assert output[0]["encrypted_content"]
    result = {"type": "function_call_output", "call_id": output[1]["call_id"], "output": "sunny"}
    # Codex leaves out the ids of reasoning items.
    again = [{k: v for k, v in i.items() if k != "id"} for i in output]
    code, body, _ = posted(bench, {**asked, "input": [*asked["input"], *again, result]})
    assert (code, body["output"][0]["content"][0]["text"]) == (200, "sunny")
    turn = next(m for m in fake.call(thinker, 1).json["messages"] if m["role"] == "assistant")
    assert turn["content"][0]["type"] == "thinking"
    assert turn["content"][0]["thinking"] == "hm"
    assert turn["content"][0]["signature"]


def test_a_conversation_stays_with_its_member_by_its_answers_id(bench: Bench, fake: FakeProvider, client: openai.OpenAI) -> None:
    one, two = served(bench, "openai", status(500), reply("from one"), name="one"), served(bench, "openai", reply("from two"), name="two")
    core = bench.collection([one, two])
    bench.load()
    first = client.responses.create(model=f"{core}:route", input="hi", instructions="Be brief.")
    assert first.output_text == "from two"
    # Instructions do not carry over, so nothing but the id tells whose conversation this is.
    second = client.responses.create(model=f"{core}:route", input="and now?", previous_response_id=first.id)
    assert second.output_text == "from two"
    assert [m["content"] for m in fake.call(two, 1).json["messages"]] == ["hi", "from two", "and now?"]
