"""The official `anthropic` SDK, unmodified, with the server's address as its base URL; providers of both formats behind it, and of this one behind chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.fake import reply, sse, status
from tests.fake.dialects.anthropic_messages import SIGNATURE
from tests.gateway.shape import check_bench
from tests.http import Reply, Stream
from tests.live import Bench
from tests.wire.messages_grammar import calls_of, legal, text_of

pytestmark = pytest.mark.formats

HI: list[Any] = [{"role": "user", "content": "hi"}]
LOOK: Any = {"name": "look", "description": "looks", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.fixture
def client(bench: Bench) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=bench.live.url, api_key=bench.key(), max_retries=0, timeout=60) as made:
        yield made


def claude(bench: Bench, name: str = "claude", *answers: Any, **more: Any) -> str:
    """A model behind a provider of this format."""
    endpoint = f"{bench.tag}-claudes"
    if endpoint not in bench.endpoints:
        bench.endpoint("claudes", kind="anthropic", base_url=bench.fake.root)
    return bench.model(name, *answers, endpoint=endpoint, **more)


def either(bench: Bench, kind: str, name: str, *answers: Any, **more: Any) -> str:
    return claude(bench, name, *answers, **more) if kind == "anthropic" else bench.model(name, *answers, **more)


BOTH = pytest.mark.parametrize("kind", ["anthropic", "openai"])


# ------------------------------------------------------------------ one model


@BOTH
def test_a_whole_answer(bench: Bench, client: anthropic.Anthropic, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("hello", usage=(11, 7)))
    bench.load()
    answer = client.messages.create(
        model=fast, max_tokens=64, messages=HI, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    )
    assert (answer.content[0].text, answer.stop_reason, answer.model) == ("hello", "end_turn", fast)  # type: ignore[union-attr]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (11, 7)
    sent = bench.fake.call(fast).json
    if kind == "anthropic":
        assert sent["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    else:
        assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
        assert sent["max_tokens"] == 64


@BOTH
def test_a_stream_and_its_helper(bench: Bench, client: anthropic.Anthropic, kind: str) -> None:
    fast = either(bench, kind, "fast", reply(["hel", "lo"], reasoning="hm", usage=(11, 7)))
    bench.load()
    with client.messages.stream(model=fast, max_tokens=64, messages=HI) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "hello"
    assert [b.type for b in final.content] == ["thinking", "text"]
    assert final.content[0].signature == (SIGNATURE if kind == "anthropic" else "")  # type: ignore[union-attr]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("end_turn", 11, 7)


@BOTH
@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_with_tools_and_its_results(bench: Bench, client: anthropic.Anthropic, kind: str, streamed: bool) -> None:
    calls = [("call_a", "look", '{"at": "sky"}'), ("call_b", "look", "{}")]
    fast = either(bench, kind, "fast", reply("", tools=calls), reply("a cat"), facts={"vision": True})
    bench.load()

    def ask(messages: list[Any]) -> Any:
        if not streamed:
            return client.messages.create(model=fast, max_tokens=64, messages=messages, tools=[LOOK])
        with client.messages.stream(model=fast, max_tokens=64, messages=messages, tools=[LOOK]) as stream:
            return stream.get_final_message()

    first = ask(HI)
    assert first.stop_reason == "tool_use"
    assert [(b.id, b.name, b.input) for b in first.content] == [("call_a", "look", {"at": "sky"}), ("call_b", "look", {})]
    results = [
        {"type": "tool_result", "tool_use_id": "call_a", "content": [PICTURE]},
        {"type": "tool_result", "tool_use_id": "call_b", "content": "nothing", "is_error": True},
    ]
    second = ask([*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}])
    assert second.content[0].text == "a cat"
    sent = bench.fake.call(fast, 1).json["messages"]
    if kind == "anthropic":
        assert sent[2]["content"] == results
    else:
        assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "user"]
        assert sent[4]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


def test_a_body_of_the_same_format_passes_whole(bench: Bench) -> None:
    fast = claude(bench, "fast", reply("hello"), served_name=f"{bench.tag}/served")
    body = {
        "model": fast,
        "max_tokens": 2048,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
            {"role": "system", "content": "in French"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "é🙂", "signature": "EqRk+/=="}, {"type": "text", "text": "a"}]},
            {"role": "user", "content": "more"},
        ],
        "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cc_entrypoint=cli;"}, {"type": "text", "text": "Be brief."}],
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "high"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "tools": [{**LOOK, "defer_loading": False, "input_examples": [{}], "cache_control": {"type": "ephemeral"}}],
        "metadata": {"user_id": "u"},
        "an_unknown_field": {"kept": [1, None]},
    }
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "one-2025,two-2026"}
    answer = post(bench, body, headers)
    assert answer.status == 200
    assert "x-bench-dropped" not in answer.headers
    call = bench.fake.call(f"{bench.tag}/served")
    assert call.json == {**body, "model": f"{bench.tag}/served"}
    assert (call.headers["anthropic-beta"], call.headers["anthropic-version"]) == ("one-2025,two-2026", "2023-06-01")
    assert call.path == "/v1/messages"


def test_what_only_this_format_knows_stops_before_another_and_is_named(bench: Bench) -> None:
    fast = bench.model("fast", reply("hello"))
    tools = [
        {**LOOK, "input_examples": [{}], "defer_loading": True},
        {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}, "defer_loading": True},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    system = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cc_entrypoint=cli;"}, {"type": "text", "text": "Be brief."}]
    turns = [*HI, {"role": "system", "content": "in French"}]
    body = {"model": fast, "max_tokens": 9, "messages": turns, "system": system, "tools": tools, "context_management": {"edits": []}, "top_k": 4}
    answer = post(bench, body, {"anthropic-beta": "one-2025"})
    assert answer.status == 200
    dropped = set(answer.headers["x-bench-dropped"].split(", "))
    assert dropped == {"anthropic-beta", "context_management", "tools.input_examples", "tools.defer_loading", "top_k", "tools: web_search_20250305"}
    call = bench.fake.call(fast)
    assert call.json["messages"] == [{"role": "system", "content": "Be brief."}, *HI, {"role": "system", "content": "in French"}]
    assert call.json["tools"] == [{"type": "function", "function": {"name": "look", "description": "looks", "parameters": LOOK["input_schema"]}}]
    assert "anthropic-beta" not in call.headers
    alone = post(bench, {**body, "tools": tools[2:]})
    assert alone.status == 400
    assert "web_search" in alone.json["error"]["message"]


def test_an_image_needs_a_model_that_sees(bench: Bench, client: anthropic.Anthropic) -> None:
    blind, sighted = bench.model("blind"), bench.model("sighted", reply("a cat"), facts={"vision": True})
    bench.load()
    turns: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "what?"}, PICTURE]}]
    assert client.messages.create(model=sighted, max_tokens=9, messages=turns).content[0].text == "a cat"  # type: ignore[union-attr]
    assert bench.fake.call(sighted).json["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    with pytest.raises(anthropic.BadRequestError, match="cannot see images"):
        client.messages.create(model=blind, max_tokens=9, messages=turns)


def test_usage_with_a_cache_is_this_formats_own(bench: Bench, client: anthropic.Anthropic) -> None:
    told = {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 4, "output_tokens": 2}
    fast = claude(bench, "fast", reply(usage=told))
    bench.load()
    usage = client.messages.create(model=fast, max_tokens=9, messages=HI).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens) == (3, 5, 4, 2)
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["input_tokens"], row["cache_read_tokens"], row["cache_write_tokens"], row["output_tokens"]) == (12, 5, 4, 2)


def test_counting_asks_the_provider_and_else_estimates_high(bench: Bench, client: anthropic.Anthropic) -> None:
    fast, slow = bench.model("fast"), claude(bench, "slow")
    bench.load()
    assert client.messages.count_tokens(model=fast, messages=HI).input_tokens > 0
    assert client.messages.count_tokens(model=slow, messages=HI, tools=[LOOK]).input_tokens > 0
    (asked,) = [c for c in bench.fake.others if c.path == "/v1/messages/count_tokens"]
    assert asked.json == {"model": slow, "messages": HI, "tools": [LOOK]}
    assert bench.live.rows("health.Attempt", model=slow) == []
    answer = bench.live.send("POST", "/v1/messages/count_tokens?beta=true", {"model": fast, "messages": HI})
    assert answer.status == 200


# ------------------------------------------------------------------ panels


@BOTH
def test_a_panel_with_its_bench_field(bench: Bench, client: anthropic.Anthropic, kind: str) -> None:
    core = bench.collection([either(bench, kind, "one", reply("alpha")), bench.model("two", reply("beta"))])
    bench.load()
    answer = client.messages.create(model=core, max_tokens=64, messages=HI)
    told = answer.model_extra["bench"]  # type: ignore[index]
    assert [s["text"] for s in check_bench(told)] == ["alpha", "beta"]
    assert "alpha" in answer.content[0].text  # type: ignore[union-attr]


def test_a_streamed_panel_is_legal_and_tells_its_bench_field_last(bench: Bench, client: anthropic.Anthropic) -> None:
    core = bench.collection([claude(bench, "one", reply(["al", "pha"])), bench.model("two", reply("beta"))])
    bench.load()
    with stream(bench, {"model": core, "max_tokens": 64, "messages": HI}) as got:
        message = legal(got.rest())
    assert "alpha" in text_of(message)
    assert "beta" in text_of(message)
    assert [s["text"] for s in check_bench(message["bench"])] == ["alpha", "beta"]
    with client.messages.stream(model=core, max_tokens=64, messages=HI) as helped:
        final = helped.get_final_message()
    assert "beta" in final.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_merged_answer(bench: Bench, client: anthropic.Anthropic, streamed: bool) -> None:
    seats = [claude(bench, "one", reply("alpha")), bench.model("two", reply("beta"))]
    core = bench.collection(seats, mergers=[claude(bench, "pen", reply(["both ", "agree"]))])
    bench.load()
    if streamed:
        with client.messages.stream(model=f"{core}:merged", max_tokens=64, messages=HI) as helped:
            answer = helped.get_final_message()
    else:
        answer = client.messages.create(model=f"{core}:merged", max_tokens=64, messages=HI)  # type: ignore[assignment]
    assert "both agree" in answer.content[0].text  # type: ignore[union-attr]


def test_a_panel_takes_no_tools_and_says_so_in_this_shape(bench: Bench, client: anthropic.Anthropic) -> None:
    core = bench.collection([bench.model("one")])
    bench.load()
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(model=core, max_tokens=64, messages=HI, tools=[LOOK])
    assert refused.value.body["error"]["code"] == "tools_need_route"  # type: ignore[index]


def test_a_history_that_ends_with_the_assistant_still_ends_with_a_user_for_the_seats(bench: Bench) -> None:
    one = claude(bench, "one", reply("alpha"))
    core = bench.collection([one])
    turns = [*HI, {"role": "assistant", "content": "hello"}]
    assert post(bench, {"model": core, "max_tokens": 9, "messages": turns}).status == 200
    assert bench.fake.call(one).json["messages"][-1]["role"] == "user"


# ------------------------------------------------------------------ errors and waiting


def test_errors_become_the_sdks_own(bench: Bench, client: anthropic.Anthropic) -> None:
    limited, busy = claude(bench, "limited", status(429, headers={"retry-after": "7"})), bench.model("busy", status(503))
    bench.load()
    with pytest.raises(anthropic.NotFoundError) as unknown:
        client.messages.create(model="nobody", max_tokens=9, messages=HI)
    assert unknown.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    with pytest.raises(anthropic.RateLimitError) as slow:
        client.messages.create(model=limited, max_tokens=9, messages=HI)
    assert int(slow.value.response.headers["retry-after"]) >= 1
    with pytest.raises(anthropic.APIStatusError) as crowded:
        client.messages.create(model=busy, max_tokens=9, messages=HI)
    assert (crowded.value.status_code, crowded.value.body["error"]["type"]) == (529, "overloaded_error")  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=limited, max_tokens=9, messages=[])
    with (
        anthropic.Anthropic(base_url=bench.live.url, api_key="bw_live_wrong0123456789", max_retries=0) as stranger,
        pytest.raises(anthropic.AuthenticationError),
    ):
        stranger.messages.create(model=busy, max_tokens=9, messages=HI)


@BOTH
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_stream_that_breaks_off_ends_in_an_error_event(bench: Bench, client: anthropic.Anthropic, kind: str, how: str) -> None:
    fast = either(bench, kind, "fast", reply(["half", "whole"]).cut(after="half", how=how))
    bench.load()
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI}) as got:
        message = legal(got.rest(), failed=True)
    assert text_of(message) == "half"
    assert message["error"]["code"] == "upstream_truncated"
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(model=fast, max_tokens=9, messages=HI) as helped:
        helped.get_final_message()


@BOTH
def test_a_call_that_was_cut_is_never_a_finished_one(bench: Bench, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("", tools=[("c", "look", '{"at": "the sky"}')]).cut(after='look"'))
    bench.load()
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI, "tools": [LOOK]}) as got:
        message = legal(got.rest(), failed=True)
    assert message["stop_reason"] is None


def test_an_error_before_any_content_has_a_status_of_its_own(bench: Bench) -> None:
    start = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 1}}}
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    fast = claude(bench, "fast", sse(start, error, done=False))
    bench.load()
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI}) as got:
        assert (got.status, got.whole.json["error"]["type"]) == (429, "rate_limit_error")


def test_a_stream_that_waits_is_kept_alive_legally(bench: Bench) -> None:
    first, second = bench.fake.gate(), bench.fake.gate()
    fast = claude(bench, "fast", reply(["early", "late"]).holding(second, after="early").after(first))
    bench.load()
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI}) as got:
        got.until(": keep-alive")
        assert b"event" not in got.got, "nothing that a client takes for an answer before the first content"
        first.open()
        got.until("early")
        got.until("event: ping")
        second.open()
        assert text_of(legal(got.rest())) == "earlylate"


# ------------------------------------------------------------------ from other formats


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_client_is_answered_by_a_provider_of_this_format(bench: Bench, streamed: bool) -> None:
    fast = claude(bench, "fast", reply("hello", reasoning="hm", tools=[("toolu_1", "look", '{"at": "sky"}')], usage=(11, 7)))
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": True}}
    more: dict[str, Any] = {"tools": [tool], "temperature": 0.5, "seed": 3, "max_tokens": 64}
    if streamed:
        with bench.stream(fast, "hi", stream_options={"include_usage": True}, **more) as got:
            events = [e for e in got.events() if isinstance(e, dict)]
            headers = got.headers
        deltas = [c["delta"] for e in events for c in e["choices"]]
        text = "".join(d.get("content") or "" for d in deltas)
        arguments = "".join(p["function"].get("arguments") or "" for d in deltas for p in d.get("tool_calls") or [])
        usage, finish = events[-1]["usage"], [c["finish_reason"] for e in events for c in e["choices"] if c.get("finish_reason")]
    else:
        answer = bench.ask(fast, "hi", **more)
        message, headers = answer.json["choices"][0]["message"], answer.headers
        text, arguments = message["content"], message["tool_calls"][0]["function"]["arguments"]
        usage, finish = answer.json["usage"], [answer.json["choices"][0]["finish_reason"]]
    assert (text, json.loads(arguments), finish) == ("hello", {"at": "sky"}, ["tool_calls"])
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (11, 7)
    assert headers["x-bench-dropped"] == "seed"
    call = bench.fake.call(fast)
    assert call.json["tools"][0]["strict"] is True
    assert call.json["temperature"] == 0.5
    assert call.headers["anthropic-version"]


def test_the_key_goes_in_this_apis_header_and_a_base_url_may_say_its_version(bench: Bench) -> None:
    bench.endpoint("keyed", kind="anthropic", base_url=bench.fake.url, key_env="BENCHWARMERS_KEY_CANARY")
    fast = bench.model("fast", endpoint=f"{bench.tag}-keyed")
    assert bench.ask(fast).status == 200
    call = bench.fake.call(fast)
    assert call.path == "/v1/messages"
    assert call.headers["x-api-key"]
    assert "authorization" not in call.headers


def test_a_models_output_limit_stands_in_where_the_caller_named_none(bench: Bench) -> None:
    fast = claude(bench, "fast", facts={"output_limit": 777})
    assert bench.ask(fast).status == 200
    assert bench.fake.call(fast).json["max_tokens"] == 777


def test_thinking_kept_here_goes_back_before_its_call(bench: Bench) -> None:
    fast = claude(bench, "fast", reply("", reasoning="hm", tools=[("toolu_1", "look", "{}")]), reply("done"))
    core = bench.collection([fast])
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    first = bench.ask(f"{core}:route", "hi", tools=tools).json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "r"}
    said = {"role": "assistant", "content": first["content"], "tool_calls": first["tool_calls"]}
    assert bench.ask(f"{core}:route", [*HI, said, result], tools=tools).status == 200
    blocks = bench.fake.call(fast, 1).json["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    assert blocks[1]["type"] == "tool_use"


# ------------------------------------------------------------------ lists


def test_models_are_listed_and_told(bench: Bench, client: anthropic.Anthropic) -> None:
    fast = bench.model("vendor/fast:free")
    core = bench.collection([fast])
    bench.load()
    assert {fast, core} <= {m.id for m in client.models.list(limit=1000)}
    assert client.models.retrieve(core).id == core


async def test_the_async_client(bench: Bench) -> None:
    fast = claude(bench, "fast", reply(["a", "b"]))
    bench.load()
    async with (
        anthropic.AsyncAnthropic(base_url=bench.live.url, api_key=bench.key(), max_retries=0) as client,
        client.messages.stream(model=fast, max_tokens=9, messages=HI) as helped,
    ):
        assert "".join([t async for t in helped.text_stream]) == "ab"


def test_the_beta_client_and_its_tool_runner(bench: Bench, client: anthropic.Anthropic) -> None:
    fast = bench.model("fast", reply("", tools=[("c", "look", '{"at": "sky"}')]), reply("a cat"))
    bench.load()

    @anthropic.beta_tool
    def look(at: str) -> str:
        """Looks.

        Args:
            at: where
        """
        return f"seen {at}"

    final = client.beta.messages.tool_runner(model=fast, max_tokens=64, messages=HI, tools=[look], betas=["context-management-2025-06-27"]).until_done()
    assert final.content[0].text == "a cat"  # type: ignore[union-attr]
    assert bench.fake.call(fast, 1).json["messages"][-1]["content"] == "seen sky"


# ------------------------------------------------------------------ plain calls


def post(bench: Bench, body: Any, headers: dict[str, str] | None = None) -> Reply:
    return bench.load().live.send("POST", "/v1/messages", body, headers=headers)


def stream(bench: Bench, body: dict[str, Any]) -> Stream:
    live = bench.load().live
    data = json.dumps({**body, "stream": True}).encode()
    return Stream(live.host, live.port, "/v1/messages", data, {"content-type": "application/json"})


def test_calls_of_a_streamed_answer_have_whole_arguments(bench: Bench) -> None:
    fast = bench.model("fast", reply("", tools=[("a", "look", '{"at": "sky"}'), ("b", "look", "{}")]))
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI, "tools": [LOOK]}) as got:
        assert calls_of(legal(got.rest())) == [("look", {"at": "sky"}), ("look", {})]


def test_a_stream_that_broke_off_is_billed_for_what_came(bench: Bench) -> None:
    fast = claude(bench, "fast", reply(["word " * 40, "more"], usage=(15, 90)).cut(after="word word"))
    with stream(bench, {"model": fast, "max_tokens": 9, "messages": HI}) as got:
        legal(got.rest(), failed=True)
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["status"], row["input_tokens"], row["estimated"]) == ("partial", 15, True)
    assert row["output_tokens"] > 20
