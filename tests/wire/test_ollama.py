"""Ollama's format: whatever comes, from a caller or a provider, is read or refused; whatever goes out is legal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.mutations import JUNK, bent
from wire import dialects
from wire.conversation import (
    Chunk,
    File,
    Format,
    Image,
    Message,
    Reasoning,
    Refusal,
    Reply,
    Request,
    Role,
    Sampling,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolPiece,
    ToolResult,
    Usage,
)
from wire.dialects import Answer, Inbound
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_body

OLLAMA = dialects.get("ollama")
CHAT, GENERATE = "/api/chat", "/api/generate"
PNG = "iVBORw0KGgo="
LOOK = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
REQUEST: dict[str, Any] = {
    "model": "fast",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": [PNG]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "look", "arguments": {"at": "sky"}}}, {"id": "c9", "function": {"index": 1, "name": "look", "arguments": {}}}],
        },
        {"role": "tool", "tool_name": "look", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c9", "content": "a dog"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": [LOOK],
    "format": {"type": "object", "properties": {"a": {"type": "string"}}},
    "options": {"temperature": 0.5, "top_p": 1, "top_k": 40, "seed": 7, "num_predict": 100, "stop": ["x"], "num_ctx": 8192, "min_p": 0.1},
    "think": "high",
    "keep_alive": "5m",
    "unknown_field": {"kept": [1, 2]},
}
GENERATION: dict[str, Any] = {"model": "fast", "prompt": "hi", "system": "Be brief.", "images": [PNG], "options": {"num_ctx": 8192}, "keep_alive": 0}
LINES: list[dict[str, Any]] = [
    {"model": "served", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
    {"model": "served", "created_at": "2026-01-01T00:00:01Z", "message": {"role": "assistant", "content": "naïve "}, "done": False},
    {"model": "served", "created_at": "2026-01-01T00:00:02Z", "message": {"role": "assistant", "content": "🙂"}, "logprobs": [1], "done": False},
    {
        "model": "served",
        "created_at": "2026-01-01T00:00:03Z",
        "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": "sky"}}}]},
        "done": False,
    },
    {
        "model": "served",
        "created_at": "2026-01-01T00:00:04Z",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 11,
        "eval_count": 7,
        "total_duration": 5,
    },
]
REPLY = {**LINES[-1], "message": {"role": "assistant", "content": "hello", "thinking": "hm", "tool_calls": LINES[3]["message"]["tool_calls"]}}


def read(body: Any, path: str = CHAT) -> Request:
    return OLLAMA.read_request(Inbound(path, "", {}, body))


def a_request(path: str = CHAT, **more: Any) -> Request:
    base = {"model": "fast", "prompt": "hi"} if path == GENERATE else {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
    return read({**base, **more}, path)


def foreign(*messages: Message, **more: Any) -> Request:
    return Request(dialect="another", model="fast", messages=messages or (Message(Role.USER, (Text("hi"),)),), **more)


def written(request: Request, **quirks: Any) -> dict[str, Any]:
    return OLLAMA.write_request(request, "served", quirks).body


# ------------------------------------------------------------------ requests in


def test_a_request_is_understood_whole() -> None:
    request = read(REQUEST)
    assert [m.role for m in request.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER]
    assert request.messages[1].parts == (Text("What is this?"), Image(media_type="image/png", data=PNG))
    thought, first, second = request.messages[2].parts
    assert thought == Thinking("hm")
    assert first == ToolCall("call_0", "look", '{"at":"sky"}')
    assert second == ToolCall("c9", "look", "{}")
    assert request.messages[3].parts == (ToolResult("call_0", (Text("a cat"),), name="look"),)
    assert request.messages[4].parts == (ToolResult("c9", (Text("a dog"),), name="look"),)
    assert request.stream
    assert request.output_limit == 100
    assert request.sampling == Sampling(temperature=0.5, top_p=1, top_k=40, stop=("x",), seed=7)
    assert request.format == Format("schema", REQUEST["format"], "answer")
    assert request.reasoning == Reasoning(effort="high", enabled=True)
    assert request.tools[0].name == "look"
    assert request.unread == ("keep_alive", "unknown_field", "options.num_ctx", "options.min_p")


def test_a_stream_is_what_a_client_gets_that_says_nothing() -> None:
    assert a_request().stream
    assert a_request(stream=None).stream
    assert not a_request(stream=False).stream
    assert a_request(GENERATE).stream


def test_a_generation_is_a_turn_of_its_own() -> None:
    request = read(GENERATION, GENERATE)
    assert [(m.role, m.text) for m in request.messages] == [(Role.SYSTEM, "Be brief."), (Role.USER, "hi")]
    assert request.has_images
    assert OLLAMA.with_user_turn(request, "more").messages[-1].text == "more"


@pytest.mark.parametrize(
    ("calls", "results", "ids"),
    [
        (["a", "b"], [{"tool_name": "b"}, {"tool_name": "a"}], ["call_1", "call_0"]),
        (["a", "a"], [{"tool_name": "a"}, {"tool_name": "a"}], ["call_0", "call_1"]),
        (["a", "b"], [{}, {}], ["call_0", "call_1"]),
        (["a"], [{"tool_name": "renamed"}], ["call_0"]),
        ([], [{"tool_name": "a"}, {}], ["call_0", "call_1"]),
        (["a"], [{"tool_call_id": "given"}], ["given"]),
        (["a", "b"], [{"name": "b"}], ["call_1"]),
    ],
)
def test_results_without_ids_find_their_calls(calls: list[str], results: list[dict[str, Any]], ids: list[str]) -> None:
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in calls]},
        *[{"role": "tool", "content": "x", **r} for r in results],
    ]
    found = [p.call_id for m in a_request(messages=history).messages for p in m.parts if isinstance(p, ToolResult)]
    assert found == ids


@pytest.mark.parametrize(
    ("data", "media"),
    [("/9j/4AAQ", "image/jpeg"), (PNG, "image/png"), ("R0lGODlh", "image/gif"), ("UklGRhIA", "image/webp"), ("QUJD", "image/png")],
)
def test_images_are_known_by_their_first_bytes(data: str, media: str) -> None:
    assert a_request(messages=[{"role": "user", "images": [data]}]).messages[0].parts == (Image(media_type=media, data=data),)
    assert a_request(messages=[{"role": "user", "images": [f"data:{media};base64,{data}"]}]).messages[0].parts == (Image(media_type=media, data=data),)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (CHAT, {"model": "fast"}, "messages"),
        (CHAT, {"model": "fast", "messages": []}, "messages"),
        (CHAT, {"model": "fast", "messages": [{"content": "hi"}]}, "messages[0].role"),
        (CHAT, {"model": "fast", "messages": [{"role": "judge", "content": "hi"}]}, "messages[0].role"),
        (CHAT, {"model": "fast", "messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
        (CHAT, {"model": "fast", "messages": [{"role": "user", "images": ["https://example.org/x.png"]}]}, "messages[0].images[0]"),
        (CHAT, {"messages": [{"role": "user", "content": "hi"}]}, "model"),
        (CHAT, {**REQUEST, "format": "yaml"}, "format"),
        (CHAT, {**REQUEST, "think": 5}, "think"),
        (CHAT, {**REQUEST, "options": {"temperature": "hot"}}, "options.temperature"),
        (CHAT, {**REQUEST, "tools": [{"type": "function"}]}, "tools[0].function"),
        (GENERATE, {"model": "fast"}, "prompt"),
        (GENERATE, {"model": "fast", "prompt": ""}, "prompt"),
        (GENERATE, {"model": "fast", "prompt": "x", "suffix": "y"}, "suffix"),
        (GENERATE, {"model": "fast", "prompt": "x", "context": [1]}, "context"),
        (GENERATE, {"model": "fast", "prompt": "x", "template": "{{ .Prompt }}"}, "template"),
        (GENERATE, {"model": "fast", "prompt": "x", "raw": True}, "raw"),
    ],
)
def test_what_is_wrong_is_named(path: str, body: Any, field: str) -> None:
    with pytest.raises(CallerError) as caught:
        read(body, path)
    assert caught.value.field == field
    assert field in caught.value.message


@given(bent(REQUEST) | JUNK, bent(GENERATION) | JUNK)
def test_any_json_is_a_request_or_an_error_of_the_caller(chat: Any, generation: Any) -> None:
    for path, value in ((CHAT, chat), (GENERATE, generation)):
        try:
            body = parse_body(orjson.dumps(value))
        except TypeError:  # an integer beyond what orjson writes
            body = parse_body(json.dumps(value).encode())
        except CallerError:
            continue
        try:
            request = read(body, path)
            sent = OLLAMA.write_request(request, "served", {}).body
            OLLAMA.write_request(replace(request, dialect="another"), "served", {})
        except CallerError as error:
            assert error.status == 400  # noqa: PT017
            continue
        assert sent["model"] == "served"
        assert isinstance(sent["stream"], bool)
        assert OLLAMA.with_user_turn(request, "more").messages[-1].text == "more"


# ------------------------------------------------------------------ requests out


def test_the_same_format_passes_with_nothing_lost() -> None:
    assert written(read(REQUEST)) == {**REQUEST, "model": "served", "stream": True}


def test_a_generation_goes_out_as_a_chat_with_all_that_it_brought() -> None:
    sent = written(read(GENERATION, GENERATE))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi", "images": [PNG]}]
    assert sent == {"model": "served", "stream": True, "messages": messages, "options": {"num_ctx": 8192}, "keep_alive": 0}


def test_another_formats_request_is_written_from_what_was_understood() -> None:
    request = foreign(
        Message(Role.SYSTEM, (Text("Be brief."), Text("Be kind."))),
        Message(Role.USER, (Text("Look"), Image("image/png", PNG), Text("here"))),
        Message(Role.ASSISTANT, (Thinking("hm", signature="s"), Text("ok"), ToolCall("c1", "look", '{"at":"sky"}'), ToolCall("c2", "look", ""))),
        Message(Role.TOOL, (ToolResult("c2", (Text("a dog"), Image("image/png", PNG))), ToolResult("c1", (Text("a cat"),), name="look"))),
        Message(Role.USER, (ToolResult("c3", (Text("late"),)), Text("so?"))),
        output_limit=50,
        stream=True,
        sampling=Sampling(0.1, 0.2, 3, ("x", "y"), 4, 0.5, 0.6),
        format=Format("json"),
        tools=(Tool("look", "looks"), Tool("hear", kind="custom")),
        reasoning=Reasoning(effort="minimal"),
    )
    assert written(request) == {
        "model": "served",
        "stream": True,
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "Look\n\nhere", "images": [PNG]},
            {
                "role": "assistant",
                "content": "ok",
                "thinking": "hm",
                "tool_calls": [
                    {"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"at": "sky"}}},
                    {"id": "c2", "function": {"index": 1, "name": "look", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "a dog", "tool_name": "look", "tool_call_id": "c2", "images": [PNG]},
            {"role": "tool", "content": "a cat", "tool_name": "look", "tool_call_id": "c1"},
            {"role": "tool", "content": "late", "tool_call_id": "c3"},
            {"role": "user", "content": "so?"},
        ],
        "options": {
            "temperature": 0.1,
            "top_p": 0.2,
            "top_k": 3,
            "seed": 4,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.6,
            "num_predict": 50,
            "stop": ["x", "y"],
        },
        "format": "json",
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {}}}},
            {
                "type": "function",
                "function": {
                    "name": "hear",
                    "description": "",
                    "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
                },
            },
        ],
        "think": "low",
    }


@pytest.mark.parametrize(
    ("choice", "offered", "dropped"),
    [
        (None, ["a", "b"], ()),
        (ToolChoice("auto"), ["a", "b"], ()),
        (ToolChoice("none"), None, ()),
        (ToolChoice("required"), ["a", "b"], ("tool_choice",)),
        (ToolChoice("tool", "b"), ["b"], ("tool_choice",)),
        (ToolChoice("auto", allowed=("a",)), ["a"], ()),
        (ToolChoice("required", allowed=("a",)), ["a"], ("tool_choice",)),
    ],
)
def test_a_choice_of_tools_is_kept_by_what_is_offered(choice: ToolChoice | None, offered: list[str] | None, dropped: tuple[str, ...]) -> None:
    outbound = OLLAMA.write_request(foreign(tools=(Tool("a"), Tool("b")), tool_choice=choice), "served", {})
    assert ([t["function"]["name"] for t in outbound.body["tools"]] if offered else outbound.body.get("tools")) == offered
    assert outbound.dropped == dropped


def test_parallel_calls_cannot_be_forbidden_here_and_that_is_said() -> None:
    assert OLLAMA.write_request(foreign(tools=(Tool("a"),), parallel_tool_calls=False), "served", {}).dropped == ("parallel_tool_calls",)
    assert OLLAMA.write_request(foreign(tools=(Tool("a"),), parallel_tool_calls=True), "served", {}).dropped == ()


@pytest.mark.parametrize(
    ("wish", "think"),
    [
        (Reasoning(enabled=True), True),
        (Reasoning(enabled=False), False),
        (Reasoning(effort="none"), False),
        (Reasoning(budget=0), False),
        (Reasoning(budget=2048), True),
        (Reasoning(effort="low"), "low"),
        (Reasoning(effort="max"), "high"),
        (Reasoning(effort="hardest"), True),
        (Reasoning(summary="auto"), None),
        (None, None),
    ],
)
def test_how_hard_to_think(wish: Reasoning | None, think: Any) -> None:
    assert written(foreign(reasoning=wish)).get("think") == think
    outbound = OLLAMA.write_request(foreign(reasoning=wish), "served", {"thinking": "none"})
    assert "think" not in outbound.body
    assert outbound.dropped == (("think",) if wish else ())


@pytest.mark.parametrize(
    "request_",
    [
        foreign(Message(Role.USER, (Image(url="https://example.org/x.png"),))),
        foreign(Message(Role.USER, (File("audio", "audio/wav", "QUJD"),))),
        foreign(Message(Role.USER, (File("file", "application/pdf", "QUJD"),))),
        foreign(Message(Role.TOOL, (ToolResult("c", (File("file", "application/pdf", "QUJD"),)),))),
        foreign(choices=2),
        foreign(tools=(Tool("web_search", kind="web_search"),)),
    ],
)
def test_what_cannot_be_said_and_changes_the_answer_is_refused(request_: Request) -> None:
    with pytest.raises(CallerError) as caught:
        written(request_)
    assert caught.value.status == 400
    assert caught.value.field


def test_defaults_are_added_where_the_caller_did_not_say() -> None:
    assert written(a_request(), defaults={"keep_alive": -1})["keep_alive"] == -1
    assert written(a_request(keep_alive="1m"), defaults={"keep_alive": -1})["keep_alive"] == "1m"


def test_thinking_that_is_another_models_can_be_cut_out() -> None:
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "thinking": "theirs"}, {"role": "user", "content": "c"}]
    request = a_request(messages=history, keep_alive=1)
    sent = written(OLLAMA.without_thinking(request, lambda part: part.text == "theirs"))
    assert sent["messages"] == [history[0], {"role": "assistant", "content": "b"}, history[2]]
    assert sent["keep_alive"] == 1
    assert OLLAMA.without_thinking(request, lambda part: False) is request


# ------------------------------------------------------------------ replies


def answer(reply: Reply, request: Request, **more: Any) -> dict[str, Any]:
    return OLLAMA.write_reply(Answer("oll_1", request.model, 5, reply, reply.usage or Usage(1, 2), request=request, **more))


def test_the_same_formats_reply_passes_with_nothing_lost() -> None:
    request = a_request()
    reply = OLLAMA.read_reply(REPLY, request)
    assert answer(reply, request) == {**REPLY, "model": "fast"}
    assert reply.stop is Stop.TOOLS
    assert reply.usage == Usage(11, 7)


def test_another_formats_reply_has_all_that_clients_look_for() -> None:
    reply = Reply((Thinking("hm"), Text("hi"), ToolCall("c1", "look", '{"at": "sky"}')), Stop.TOOLS, usage=Usage(11, 7, cache_read=3))
    assert answer(reply, a_request(), bench={"panel": "pan_1"}) == {
        "model": "fast",
        "created_at": "1970-01-01T00:00:05Z",
        "message": {
            "role": "assistant",
            "content": "hi",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"at": "sky"}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 11,
        "eval_count": 7,
        "bench": {"panel": "pan_1"},
    }


def test_a_generation_is_answered_in_its_own_shape() -> None:
    request = read(GENERATION, GENERATE)
    out = answer(OLLAMA.read_reply(REPLY, request), request)
    assert (out["response"], out["thinking"], out["done"]) == ("hello", "hm", True)
    assert "message" not in out


@pytest.mark.parametrize(("arguments", "out"), [("", {}), ("{}", {}), ("nonsense", {"input": "nonsense"}), ("[1]", {"input": [1]})])
def test_arguments_are_an_object_whatever_the_model_wrote(arguments: str, out: Any) -> None:
    calls = answer(Reply((ToolCall("c1", "look", arguments),), Stop.TOOLS), a_request())["message"]["tool_calls"]
    assert calls[0]["function"]["arguments"] == out


def test_calls_without_ids_get_distinct_ones() -> None:
    body = {"message": {"tool_calls": [{"function": {"name": "look", "arguments": {}}}] * 3}, "done": True}
    parts = OLLAMA.read_reply(body, foreign()).parts
    ids = {p.id for p in parts if isinstance(p, ToolCall)}
    assert len(ids) == 3
    assert all(len(i) > 20 for i in ids)
    assert [p.arguments for p in parts if isinstance(p, ToolCall)] == ["{}"] * 3


def test_a_free_form_tools_input_comes_back_as_it_is() -> None:
    request = foreign(tools=(Tool("patch", kind="custom"),))
    body = {"message": {"tool_calls": [{"id": "c1", "function": {"name": "patch", "arguments": {"input": "*** Begin"}}}]}, "done": True}
    assert OLLAMA.read_reply(body, request).parts == (ToolCall("c1", "patch", "*** Begin", kind="custom"),)


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        ([], Garbage, "upstream_garbage"),
        ({}, Garbage, "upstream_garbage"),
        ({"choices": []}, Garbage, "upstream_garbage"),
        ({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"}, Empty, "empty_response"),
        ({"error": "boom"}, UpstreamError, "upstream_error"),
        ({"error": {"message": "slow down"}, "status_code": 429}, UpstreamError, "rate_limit_exceeded"),
        ({"error": "server busy, please try again. maximum pending requests exceeded", "code": 503}, UpstreamError, "upstream_overloaded"),
    ],
)
def test_a_body_that_is_no_answer_says_what_it_is(body: Any, error: type[UpstreamError], code: str) -> None:
    with pytest.raises(error) as caught:
        OLLAMA.read_reply(body, a_request())
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("counts", "understood"),
    [
        ({}, None),
        ({"prompt_eval_count": 5, "eval_count": 2}, Usage(5, 2)),
        ({"eval_count": 2}, Usage(0, 2)),  # a cached prompt is not counted by older servers
        ({"prompt_eval_count": -5, "eval_count": "2"}, None),
        ({"prompt_eval_count": True, "eval_count": 2}, Usage(0, 2)),
    ],
)
def test_usage_is_believed_as_far_as_it_makes_sense(counts: Any, understood: Usage | None) -> None:
    body = {k: v for k, v in REPLY.items() if not k.endswith("_count")} | counts
    assert OLLAMA.read_reply(body, a_request()).usage == understood
    assert OLLAMA.read_usage(body) == understood


@given(bent(REPLY) | JUNK)
def test_any_json_is_a_reply_or_an_upstream_error(body: Any) -> None:
    for request in (a_request(), a_request(GENERATE), foreign()):
        try:
            reply = OLLAMA.read_reply(body, request)
        except UpstreamError as error:
            assert error.code  # noqa: PT017
            continue
        out = answer(reply, request if request.dialect == "ollama" else a_request())
        assert out["done"] is True
        assert out["model"] == "fast"


def test_errors_have_the_shape_that_clients_read() -> None:
    error = CallerError("context_too_small", "No seat can take it.", field="messages", seats=[{"model": "a"}])
    assert OLLAMA.write_error(error) == {"error": "No seat can take it.", "code": "context_too_small", "seats": [{"model": "a"}]}


# ------------------------------------------------------------------ streams


def stream_of(lines: list[Any], line_end: bytes = b"\n") -> bytes:
    return b"".join(orjson.dumps(line) + line_end for line in lines)


def relayed(*pieces: bytes, request: Request | None = None, path: str = CHAT) -> tuple[bytes, UpstreamError | None]:
    """What a caller gets of a provider's stream that comes in these pieces and then ends."""
    asked = a_request(path)
    reader, writer = OLLAMA.stream_reader(request or asked), OLLAMA.stream_writer(asked, "oll_1", 5)
    out, usage = writer.keepalive() + writer.start(), Usage()
    try:
        for piece in (*pieces, None):
            for chunk in reader.close() if piece is None else reader.feed(piece):
                usage = chunk.usage or usage
                out += writer.chunk(chunk) + writer.keepalive()
    except UpstreamError as error:
        return out + writer.error(CallerError(error.code, "It broke off.", status=502)), error
    return out + writer.finish(usage), None


def legal(out: bytes, error: UpstreamError | None, field: str = "message") -> list[Any]:
    """The lines of a stream, once they are what a client of this format bears."""
    assert out.endswith(b"\n")
    read = [orjson.loads(line) for line in out[:-1].split(b"\n")]
    lines = read if error is None else read[:-1]
    assert all(line["model"] == "fast" and line["created_at"] and field in line for line in lines)
    assert [line["done"] for line in lines] == [False] * len(lines) if error else [*[False] * (len(lines) - 1), True]
    assert all("done_reason" not in line for line in lines[: -1 if error is None else None])
    if error is not None:
        assert read[-1] == {"error": "It broke off.", "code": error.code}
    return read


def text_of(lines: list[Any]) -> str:
    return "".join(line["message"]["content"] for line in lines if "message" in line)


def calls_of(lines: list[Any]) -> list[Any]:
    return [c["function"] for line in lines if "message" in line for c in line["message"].get("tool_calls") or []]


def test_a_stream_arrives_whole_and_with_nothing_lost() -> None:
    lines = legal(*relayed(stream_of(LINES)))
    assert lines == [{**line, "model": "fast"} for line in LINES]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\n\n", b" \n"])
def test_a_stream_in_two_packets_is_the_same_wherever_it_is_cut(line_end: bytes) -> None:
    stream = stream_of(LINES, line_end)
    whole = legal(*relayed(stream))
    assert text_of(whole) == "naïve 🙂"
    for at in range(len(stream)):
        assert legal(*relayed(stream[:at], stream[at:])) == whole


@pytest.mark.parametrize("same", [True, False])
def test_a_stream_that_breaks_off_anywhere_is_legal_and_never_claims_to_be_whole(same: bool) -> None:
    stream = stream_of(LINES)
    end = stream.rindex(b"}") + 1
    for at in range(len(stream)):
        out, error = relayed(stream[:at], request=None if same else foreign())
        lines = legal(out, error)
        assert "naïve 🙂".startswith(text_of(lines))
        assert (error is None) == (at >= end)
        assert len(calls_of(lines)) == (1 if error is None or (same and at >= stream.rindex(b'{"model"')) else 0)
        if at < end:
            assert isinstance(error, Truncated | Empty)


def test_a_stream_for_a_generation_has_its_own_shape() -> None:
    lines = legal(*relayed(stream_of(LINES), path=GENERATE), field="response")
    assert "".join(line["response"] for line in lines) == "naïve 🙂"
    assert "".join(line.get("thinking", "") for line in lines) == "hm"
    assert all("message" not in line for line in lines)


def test_a_call_that_came_lines_before_the_end_is_still_why_it_ended() -> None:
    reader = OLLAMA.stream_reader(foreign())
    chunks = [*reader.feed(stream_of(LINES)), *reader.close()]
    assert [c.stop for c in chunks if c.stop] == [Stop.TOOLS]
    assert [(p.index, p.name, p.arguments) for c in chunks for p in c.tools] == [(0, "look", '{"at":"sky"}')]
    assert chunks[-1].usage == Usage(11, 7)
    assert all(c.raw is None for c in chunks)
    assert reader.done


def test_words_on_the_last_line_are_not_lost() -> None:
    last = {**LINES[-1], "message": {"role": "assistant", "content": "all"}, "done_reason": "length"}
    for request in (a_request(), foreign()):
        lines = legal(*relayed(stream_of([last]), request=request))
        assert text_of(lines) == "all"
        assert lines[-1]["done_reason"] == "length"
        assert lines[-1]["eval_count"] == 7


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ({"error": "boom"}, "upstream_error"),
        ({"error": "prompt is too long: 9000 tokens > 8192 maximum context length", "status_code": 400}, "context_too_small"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limit_exceeded"),
    ],
)
def test_an_error_inside_a_stream_ends_it_and_takes_nothing_back(line: Any, code: str) -> None:
    for before in ([], LINES[:3]):
        stream = stream_of([*before, line])
        for pieces in ((stream,), tuple(stream[i : i + 1] for i in range(len(stream)))):
            out, error = relayed(*pieces)
            assert error is not None
            assert error.code == code
            assert text_of(legal(out, error)) == ("naïve 🙂" if before else "")


@pytest.mark.parametrize("noise", [b"\n", b"   \n", b"\r\n", b"[]\n", b"null\n", b'{"model":"served","done":false}\n', b'{"status":"loading"}\n'])
def test_lines_that_say_nothing_are_no_faults(noise: bytes) -> None:
    lines = [orjson.dumps(line) + b"\n" for line in LINES]
    out, error = relayed(noise + noise.join(lines) + noise, request=foreign())
    assert text_of(legal(out, error)) == "naïve 🙂"


def test_a_stream_that_says_nothing_and_ends_is_empty() -> None:
    for lines in ([], [LINES[-1]]):
        _, error = relayed(stream_of(lines))
        assert isinstance(error, Empty)


@given(st.lists(st.sampled_from(LINES).flatmap(bent) | JUNK, max_size=6), st.binary(max_size=20), st.integers(0, 400))
def test_any_stream_is_relayed_legally_or_ends_in_an_error(lines: list[Any], noise: bytes, cut: int) -> None:
    stream = b"".join(json.dumps(line).encode() + b"\n" for line in [LINES[1], *lines]) + noise
    for request in (a_request(), foreign()):
        out, error = relayed(stream[:cut], stream[cut:], request=request)
        read = [orjson.loads(line) for line in out[:-1].split(b"\n")]
        assert (read[-1].get("done") is True) == (error is None)
        assert sum(line.get("done") is True for line in read) == (error is None)


def test_a_stream_of_ours_is_legal_and_calls_come_whole() -> None:
    writer = OLLAMA.stream_writer(a_request(), "oll_1", 5)
    steps = [
        Chunk(thinking="hm"),
        Chunk(text="one"),
        Chunk(tools=(ToolPiece(0, "c1", "look", '{"at"'), ToolPiece(1, "c2", "hear", ""))),
        Chunk(tools=(ToolPiece(0, arguments=': "sky"}'),)),
        Chunk(refusal="two"),
        Chunk(text="other", choice=1),
        Chunk(stop=Stop.TOOLS),
    ]
    out = writer.keepalive() + writer.start() + b"".join(writer.chunk(c) + writer.keepalive() for c in steps)
    assert not calls_of([orjson.loads(line) for line in out.strip().split(b"\n")])
    lines = legal(out + writer.finish(Usage(1, 2), {"panel": "pan_1"}), None)
    assert text_of(lines) == "onetwo"
    assert calls_of(lines) == [{"index": 0, "name": "look", "arguments": {"at": "sky"}}, {"index": 1, "name": "hear", "arguments": {}}]
    assert (lines[-1]["done_reason"], lines[-1]["prompt_eval_count"], lines[-1]["eval_count"], lines[-1]["bench"]) == ("stop", 1, 2, {"panel": "pan_1"})


def test_a_cut_call_is_never_presented() -> None:
    writer = OLLAMA.stream_writer(a_request(), "oll_1", 5)
    out = writer.start() + writer.chunk(Chunk(tools=(ToolPiece(0, "c1", "look", '{"at"'),))) + writer.error(CallerError("upstream_truncated", "Cut."))
    assert [orjson.loads(line) for line in out.strip().split(b"\n")] == [{"error": "Cut.", "code": "upstream_truncated"}]


def test_a_refusal_is_text_here() -> None:
    assert answer(Reply((Refusal("no"),), Stop.REFUSAL), a_request())["message"]["content"] == "no"
