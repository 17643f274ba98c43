"""OpenAI's chat format: whatever comes, from a caller or a provider, is read or refused; whatever goes out is legal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.mutations import JUNK, bent
from wire import dialects, sse
from wire.conversation import Chunk, Image, Message, Reply, Request, Role, Stop, Text, Thinking, ToolCall, ToolPiece, ToolResult, Usage
from wire.dialects import Answer, Inbound
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_body

CHAT = dialects.get("openai-chat")
PATH = "/v1/chat/completions"
REQUEST: dict[str, Any] = {
    "model": "fast",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "user", "content": "And now?", "name": "ann"},
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 100,
    "temperature": 0.5,
    "top_p": 1,
    "stop": ["x"],
    "seed": 7,
    "n": 1,
    "tools": [{"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {}}, "strict": True}}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}},
    "logit_bias": {"50256": -100},
    "unknown_field": {"kept": [1, 2]},
}
REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "served",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "a cat",
                "reasoning_content": "hm",
                "refusal": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}
CHUNKS: list[Any] = [
    {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "served", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"id": "x", "choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]},
    {"id": "x", "choices": [{"index": 0, "delta": {"content": "naïve "}, "finish_reason": None}]},
    {"id": "x", "choices": [{"index": 0, "delta": {"content": "🙂"}, "finish_reason": None}]},
    {
        "id": "x",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}]}}],
    },
    {"id": "x", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}}]},
    {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"id": "x", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}},
]
CALLER_CODES = {"invalid_request", "tools_need_route"}


def a_request(**more: Any) -> Request:
    return CHAT.read_request(Inbound(PATH, "", {}, {"model": "fast", "messages": [{"role": "user", "content": "hi"}], **more}))


def written(answer: Reply, **more: Any) -> dict[str, Any]:
    body = CHAT.write_reply(Answer("chatcmpl-2", "bench/core", 5, answer, Usage(1, 2), **more))
    return dict(orjson.loads(orjson.dumps(body)))


# ------------------------------------------------------------------ requests in


def test_a_request_is_understood() -> None:
    request = CHAT.read_request(Inbound(PATH, "", {}, REQUEST))
    assert (request.model, request.stream, request.output_limit, request.usage_wanted, request.choices) == ("fast", True, 100, True, 1)
    assert [m.role for m in request.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert request.messages[1].parts == (Text("What is this?"), Image(media_type="image/png", data="QUJD", detail="low"))
    assert Thinking("hm") in request.messages[2].parts
    assert any(isinstance(p, ToolCall) and (p.id, p.name, p.arguments) == ("c1", "look", "{}") for p in request.messages[2].parts)
    assert isinstance(result := request.messages[3].parts[0], ToolResult)
    assert (result.call_id, result.parts) == ("c1", (Text("a cat"),))
    assert request.sampling.temperature == 0.5
    assert request.sampling.stop == ("x",)
    assert [t.name for t in request.tools] == ["look"]
    assert request.format is not None
    assert request.format.strict is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", None),
        ("model", ""),
        ("model", 7),
        ("model", "a\nb"),
        ("model", "x" * 201),
        ("messages", None),
        ("messages", {}),
        ("messages", []),
        ("messages", "hi"),
        ("messages[0]", "hi"),
        ("messages[0].role", "wizard"),
        ("messages[0].role", 3),
        ("messages[0].content", 3),
        ("messages[0].content", {"type": "text"}),
        ("messages[0].content[0]", 5),
        ("messages[0].content[0].text", 5),
        ("messages[0].content[0].image_url", 5),
        ("messages[0].content[0].image_url.url", {}),
        ("stream", "yes"),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_p", [1]),
        ("max_tokens", 0),
        ("max_tokens", -5),
        ("max_tokens", 1.5),
        ("max_tokens", "100"),
        ("max_completion_tokens", 0),
        ("max_tokens", 10**40),
        ("n", 0),
        ("n", "2"),
        ("stop", 5),
        ("stop[0]", 5),
        ("seed", "a"),
        ("tools", {}),
        ("tools[0]", "look"),
        ("tools[0].function", None),
        ("tools[0].function.name", 5),
        ("tools[0].function.parameters", []),
        ("response_format", "json"),
        ("response_format.type", 5),
        ("response_format.json_schema", None),
        ("stream_options", "yes"),
        ("stream_options.include_usage", 5),
        ("parallel_tool_calls", "yes"),
    ],
)
def test_a_wrong_type_is_refused_by_its_fields_name(field: str, value: Any) -> None:
    base: dict[str, Any] = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
    if field.startswith("messages[0].content[0]"):
        kind = "image_url" if "image_url" in field else "text"
        base["messages"][0]["content"] = [{"type": kind, kind: {"url": "x"} if kind == "image_url" else "x"}]
    if field.startswith("tools["):
        base["tools"] = [{"type": "function", "function": {"name": "look"}}]
    if field == "stop[0]":
        base["stop"] = ["x"]
    if field.startswith("response_format."):
        base["response_format"] = {"type": "json_schema", "json_schema": {}}
    if field.startswith("stream_options."):
        base["stream_options"] = {}
    target: Any = base
    keys: list[Any] = [int(k) if k.isdigit() else k for k in field.replace("[", ".").replace("]", "").split(".")]
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    with pytest.raises(CallerError) as caught:
        CHAT.read_request(Inbound(PATH, "", {}, base))
    assert (caught.value.status, caught.value.code) == (400, "invalid_request")
    assert caught.value.field == field
    assert field in caught.value.message


@pytest.mark.parametrize("body", [None, 1, "x", [], [{}], True])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    with pytest.raises(CallerError):
        CHAT.read_request(Inbound(PATH, "", {}, body))


def test_unknown_fields_never_break_a_request() -> None:
    assert a_request(store=False, metadata={"a": "b"}, some_beta=[1], user=None, functions=None).model == "fast"


def test_the_older_and_newer_names_of_the_output_limit_both_count() -> None:
    assert a_request(max_tokens=5).output_limit == 5
    assert a_request(max_completion_tokens=6).output_limit == 6
    assert a_request(max_completion_tokens=6, max_tokens=5).output_limit == 6
    assert a_request(max_tokens=None).output_limit is None
    assert a_request(max_tokens=5.0).output_limit == 5


@pytest.mark.parametrize(
    ("url", "media_type"),
    [
        ("data:image/jpg;base64,/9j/4AAQ", "image/jpeg"),
        ("data:image/jpg;name=x.jpg;base64,/9j/4AAQ", "image/jpeg"),
        ("data:IMAGE/PNG;charset=utf-8;base64,/9j/4AAQ", "image/png"),
    ],
)
def test_near_miss_image_types_are_put_right(url: str, media_type: str) -> None:
    request = a_request(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])
    assert request.messages[0].parts == (Image(media_type=media_type, data="/9j/4AAQ"),)


@given(bent(REQUEST) | JUNK | st.dictionaries(st.sampled_from([*REQUEST, "x"]), JUNK))
def test_any_json_is_a_request_or_a_callers_error(body: Any) -> None:
    try:
        request = CHAT.read_request(Inbound(PATH, "", {}, body))
    except CallerError as error:
        assert error.status == 400  # noqa: PT017
        assert error.code in CALLER_CODES  # noqa: PT017
        assert orjson.dumps(CHAT.write_error(error))  # noqa: PT017
        return
    for quirks in ({}, {"token_param": "max_completion_tokens", "system_role": "developer", "stream_options": False}):
        out = CHAT.write_request(request, "served", quirks).body
        assert out["model"] == "served"
        orjson.dumps(out)


@given(st.binary(max_size=40) | bent(REQUEST).map(lambda v: orjson.dumps(v, default=str, option=orjson.OPT_NON_STR_KEYS) if fits(v) else b"{}"))
def test_any_bytes_are_a_request_or_a_callers_error(data: bytes) -> None:
    try:
        request = CHAT.read_request(Inbound(PATH, "", {}, parse_body(data)))
    except CallerError:
        return
    orjson.dumps(CHAT.write_request(request, "served", {}).body)


def fits(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


# ------------------------------------------------------------------ requests out


def test_the_body_passes_through_with_only_the_name_changed() -> None:
    out = CHAT.write_request(CHAT.read_request(Inbound(PATH, "", {}, REQUEST)), "vendor/served", {}).body
    assert out == {**REQUEST, "model": "vendor/served"}


def test_usage_is_asked_for_in_streams_unless_the_server_knows_no_such_option() -> None:
    assert CHAT.write_request(a_request(stream=True), "s", {}).body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in CHAT.write_request(a_request(stream=True), "s", {"stream_options": False}).body
    assert "stream_options" not in CHAT.write_request(a_request(), "s", {}).body


def test_the_output_limit_takes_the_name_that_the_server_knows() -> None:
    for given_name in ("max_tokens", "max_completion_tokens"):
        out = CHAT.write_request(a_request(**{given_name: 9}), "s", {"token_param": "max_completion_tokens"}).body
        assert out["max_completion_tokens"] == 9
        assert "max_tokens" not in out


def test_the_system_role_takes_the_name_that_the_server_knows() -> None:
    request = a_request(messages=[{"role": "system", "content": "x"}, {"role": "user", "content": "y"}])
    assert [m["role"] for m in CHAT.write_request(request, "s", {"system_role": "developer"}).body["messages"]] == ["developer", "user"]


def test_an_empty_tool_list_is_no_tools() -> None:
    out = CHAT.write_request(a_request(tools=[], tool_choice="auto", parallel_tool_calls=True), "s", {}).body
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & out.keys()


def test_a_request_of_our_own_becomes_a_body() -> None:
    made = Request(
        "ours", "fast", (Message(Role.SYSTEM, (Text("be brief"),)), Message(Role.USER, (Text("hi"), Image(url="https://example.org/a.png")))), output_limit=5
    )
    out = CHAT.write_request(made, "s", {}).body
    assert out["messages"][0] == {"role": "system", "content": "be brief"}
    assert out["messages"][1]["content"][1] == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert CHAT.read_request(Inbound(PATH, "", {}, out)).messages == made.messages


# ------------------------------------------------------------------ replies


def test_a_reply_is_understood() -> None:
    reply = CHAT.read_reply(REPLY, a_request())
    assert (reply.text, reply.stop, reply.finish) == ("a cat", Stop.END, "stop")
    assert reply.usage == Usage(input=11, output=7, cache_read=3, reasoning=2)
    assert written(reply)["model"] == "bench/core"


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        ([], Garbage, "upstream_garbage"),
        ("x", Garbage, "upstream_garbage"),
        ({}, Garbage, "upstream_garbage"),
        ({"choices": "x"}, Garbage, "upstream_garbage"),
        ({"choices": []}, Empty, "empty_response"),
        ({"choices": [None]}, Empty, "empty_response"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}, Empty, "empty_response"),
        ({"choices": [{"message": {"content": None}}]}, Empty, "empty_response"),
        ({"choices": [{}]}, Empty, "empty_response"),
        ({"error": {"message": "quota", "code": 429}}, UpstreamError, "rate_limit_exceeded"),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, UpstreamError, "rate_limit_exceeded"),
        ({"error": "broken"}, UpstreamError, "upstream_error"),
        ({"error": {"message": "overloaded", "type": "overloaded_error"}}, UpstreamError, "upstream_overloaded"),
        ({"choices": None, "error_message": "prompt is 9000 tokens, limit 8192", "code": 400}, UpstreamError, "context_too_small"),
        ({"object": "error", "message": "no such model", "code": 404}, UpstreamError, "upstream_error"),
    ],
)
def test_a_body_that_is_no_answer_says_what_it_is(body: Any, error: type[UpstreamError], code: str) -> None:
    with pytest.raises(error) as caught:
        CHAT.read_reply(body, a_request())
    assert caught.value.code == code


def test_a_filtered_or_cut_answer_may_be_empty() -> None:
    for finish, stop in (("content_filter", Stop.FILTER), ("length", Stop.LENGTH)):
        reply = CHAT.read_reply({"choices": [{"message": {"content": ""}, "finish_reason": finish}]}, a_request())
        assert (reply.text, reply.stop) == ("", stop)


@pytest.mark.parametrize(
    ("usage", "understood"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
        ({"prompt_tokens": -5, "completion_tokens": "2"}, Usage(0, 0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(10, 2, 4)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 99}}, Usage(10, 2, 10)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None, "completion_tokens_details": []}, Usage(10, 2)),
    ],
)
def test_usage_is_believed_as_far_as_it_makes_sense(usage: Any, understood: Usage | None) -> None:
    assert CHAT.read_reply({**REPLY, "usage": usage}, a_request()).usage == understood


@given(bent(REPLY) | JUNK)
def test_any_json_is_a_reply_or_an_upstream_error(body: Any) -> None:
    try:
        reply = CHAT.read_reply(body, a_request())
    except UpstreamError as error:
        assert error.code  # noqa: PT017
        return
    if fits(body):
        out = written(reply)
        assert out["object"] == "chat.completion"
        assert isinstance(out["id"], str)


def test_an_answer_of_ours_has_all_that_clients_look_for() -> None:
    out = written(Reply((Text("hi"),), Stop.LENGTH), bench={"panel": "pan_1", "cost_usd": str(Decimal("0.1"))})
    assert (out["id"], out["object"], out["created"], out["model"]) == ("chatcmpl-2", "chat.completion", 5, "bench/core")
    assert out["choices"] == [{"index": 0, "message": {"role": "assistant", "content": "hi", "refusal": None}, "logprobs": None, "finish_reason": "length"}]
    assert out["usage"]["total_tokens"] == 3
    assert out["bench"]["panel"] == "pan_1"


def test_errors_have_the_shape_that_clients_read() -> None:
    error = CallerError("context_too_small", "No seat can take it.", field="messages", seats=[{"model": "a"}])
    assert CHAT.write_error(error) == {
        "error": {
            "message": "No seat can take it.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_too_small",
            "seats": [{"model": "a"}],
        }
    }


# ------------------------------------------------------------------ streams


def stream_of(chunks: list[Any], end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"data: " + orjson.dumps(c) + b"\n\n" for c in chunks) + end


def relayed(*pieces: bytes, usage_wanted: bool = True) -> tuple[bytes, UpstreamError | None]:
    """What a caller gets of a provider's stream that comes in these pieces and then ends."""
    request = a_request(stream=True, stream_options={"include_usage": usage_wanted})
    reader, writer = CHAT.stream_reader(request), CHAT.stream_writer(request, "chatcmpl-2", 5)
    out, usage = writer.start(), Usage()
    try:
        for piece in (*pieces, None):
            for chunk in reader.close() if piece is None else reader.feed(piece):
                usage = chunk.usage or usage
                out += writer.chunk(chunk) + writer.keepalive()
    except UpstreamError as error:
        return out + writer.error(CallerError(error.code, "It broke off.", status=502)), error
    return out + writer.finish(usage), None


def legal(out: bytes, error: UpstreamError | None) -> list[Any]:
    """The events of a stream, once they are what a client of this format bears."""
    parser = sse.Parser()
    events = [e.data for e in parser.feed(out)]
    assert not parser.close(), "the last event is whole"
    read = [orjson.loads(e) for e in events if e != b"[DONE]"]
    assert (events[-1] == b"[DONE]") == (error is None)
    assert events.count(b"[DONE]") == (error is None)
    chunks = [e for e in read if "error" not in e]
    assert len(read) - len(chunks) == (error is not None)
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in chunks} == {("chatcmpl-2", "chat.completion.chunk", 5, "fast")}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    finishes = [c["finish_reason"] for e in chunks for c in e["choices"] if c.get("finish_reason")]
    if error is None:
        assert finishes, "a whole stream says why it ended"
    else:
        assert not finishes, "a stream that broke off never claims to have ended"
        assert read[-1]["error"]["code"] == error.code
    return read


def text_of(events: list[Any]) -> str:
    return "".join(c["delta"].get("content") or "" for e in events for c in e.get("choices") or [])


def test_a_stream_arrives_whole() -> None:
    out, error = relayed(stream_of(CHUNKS))
    events = legal(out, error)
    assert text_of(events) == "naïve 🙂"
    assert events[-1]["usage"]["total_tokens"] == 18
    assert events[-1]["choices"] == []
    assert [c["finish_reason"] for e in events for c in e["choices"] if c.get("finish_reason")] == ["tool_calls"]


def test_a_client_that_asked_for_no_usage_gets_none() -> None:
    events = legal(*relayed(stream_of(CHUNKS), usage_wanted=False))
    assert all(not e.get("usage") for e in events)
    assert events[-1]["choices"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_in_two_packets_is_the_same_wherever_it_is_cut(line_end: bytes) -> None:
    stream = stream_of(CHUNKS).replace(b"\n", line_end)
    whole = legal(*relayed(stream))
    for at in range(len(stream)):
        assert legal(*relayed(stream[:at], stream[at:])) == whole


def test_a_stream_that_breaks_off_anywhere_is_legal_and_never_claims_to_be_whole() -> None:
    stream = stream_of(CHUNKS)
    finish = stream.index(b'"finish_reason":"tool_calls"')
    for at in range(len(stream)):
        out, error = relayed(stream[:at])
        events = legal(out, error)
        assert "naïve 🙂".startswith(text_of(events))
        if at < finish:
            assert isinstance(error, Truncated if text_of(events) else Truncated | Empty)


@pytest.mark.parametrize(
    "noise",
    [
        b": ping\n\n",
        b"data: : keepalive\n\n",
        b"data: \n\n",
        b"event: ping\ndata: {}\n\n",
        b"\n\n\n",
        b"retry: 1\n\n",
        b'data: {"id":"","choices":[]}\n\n',
        b"data: [PING]\n\n",
    ],
)
def test_heartbeats_in_any_disguise_are_no_faults(noise: bytes) -> None:
    events = [b"data: " + orjson.dumps(c) + b"\n\n" for c in CHUNKS]
    assert text_of(legal(*relayed(noise + noise.join(events) + noise + b"data: [DONE]\n\n"))) == "naïve 🙂"


def test_text_behind_a_finish_reason_still_counts() -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": {"content": "late"}, "finish_reason": None}]},
    ]
    events = legal(*relayed(stream_of(chunks)))
    assert text_of(events) == "late"
    assert [c["finish_reason"] for e in events for c in e["choices"]][-2:] != ["stop", None]


@pytest.mark.parametrize(
    ("chunk", "code"),
    [
        ({"error": {"message": "boom"}}, "upstream_error"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limit_exceeded"),
        ({"choices": None, "error_message": "prompt is 9000 tokens, limit 8192", "code": 400}, "context_too_small"),
    ],
)
def test_an_error_inside_a_stream_ends_it(chunk: Any, code: str) -> None:
    for before in ([], CHUNKS[:4]):
        out, error = relayed(stream_of([*before, chunk]))
        assert error is not None
        assert error.code == code
        legal(out, error)


def test_an_error_takes_back_nothing_that_came_in_the_same_packet() -> None:
    stream = stream_of([*CHUNKS[:4], {"error": {"message": "boom"}}], b"")
    assert text_of(legal(*relayed(*[stream[i : i + 1] for i in range(len(stream))]))) == "naïve 🙂"
    assert text_of(legal(*relayed(stream))) == "naïve 🙂"


def test_a_stream_that_says_nothing_and_ends_is_empty() -> None:
    _, error = relayed(stream_of([CHUNKS[0], {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]))
    assert isinstance(error, Empty)


@given(st.lists(st.sampled_from(CHUNKS).flatmap(bent) | JUNK, max_size=6).filter(fits), st.binary(max_size=20), st.integers(0, 400))
def test_any_stream_is_relayed_legally_or_ends_in_an_error(chunks: list[Any], noise: bytes, cut: int) -> None:
    stream = stream_of([CHUNKS[0], *chunks], noise)
    out, error = relayed(stream[:cut], stream[cut:])
    parser = sse.Parser()
    for event in parser.feed(out):
        if event.data != b"[DONE]":
            orjson.loads(event.data)
    assert out.endswith(b"data: [DONE]\n\n") == (error is None)


def test_a_stream_of_ours_is_legal() -> None:
    request = a_request(stream=True)
    writer = CHAT.stream_writer(request, "chatcmpl-2", 5)
    steps = [
        Chunk(text="one"),
        Chunk(thinking="hm"),
        Chunk(tools=(ToolPiece(0, "c1", "look", ""),)),
        Chunk(tools=(ToolPiece(0, arguments="{}"),)),
        Chunk(text="two", stop=Stop.TOOLS),
    ]
    out = writer.keepalive() + writer.start() + b"".join(writer.chunk(c) for c in steps) + writer.finish(Usage(1, 1), {"panel": "pan_1"})
    events = legal(out, None)
    assert text_of(events) == "onetwo"
    carrying = [e for e in events if "bench" in e]
    assert len(carrying) == 1
    assert carrying[0]["choices"][0]["finish_reason"] == "tool_calls"


def test_an_image_request_keeps_its_parts_in_order() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}, {"type": "text", "text": "b"}]
    request = a_request(messages=[{"role": "user", "content": parts}])
    assert [type(p) for p in request.messages[0].parts] == [Text, Image, Text]
    assert request.has_images
