"""Streams of Anthropic's Messages format: legal wherever they are cut, whoever made them, and never more finished than what came."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.messages_grammar import calls_of, events_of, legal, text_of
from tests.wire.mutations import JUNK, bent
from wire import dialects, sse
from wire.conversation import Chunk, Request, Stop, ToolPiece, Usage
from wire.dialects import Inbound, StreamWriter
from wire.errors import CallerError, Empty, Truncated, UpstreamError

MESSAGES, CHAT = dialects.get("anthropic-messages"), dialects.get("openai-chat")
EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_up",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1, "service_tier": "standard"},
            "container": None,
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln+/=="}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "naïve "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "🙂"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"at": '}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"sky"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "wait", "input": {}}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 7, "input_tokens": 0}},
    {"type": "message_stop"},
]
USAGE = Usage(input=11, output=7, cache_read=5, cache_write=3)


def stream_of(events: list[Any], end: bytes = b"") -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e.get("type", "x") if isinstance(e, dict) else "x").encode(), orjson.dumps(e)) for e in events) + end


def a_request(**more: Any) -> Request:
    return MESSAGES.read_request(
        Inbound("/v1/messages", "", {}, {"model": "fast", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True, **more})
    )


def a_chat(**more: Any) -> Request:
    body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}], "stream": True, **more}
    return CHAT.read_request(Inbound("/v1/chat/completions", "", {}, body))


def relayed(request: Request, provider: dialects.Dialect, *pieces: bytes, begun: bool = True) -> tuple[bytes, UpstreamError | None, Usage]:
    """What a caller gets of a provider's stream that comes in these pieces and then ends; keepalives after every step."""
    caller = dialects.get(request.dialect)
    reader, writer = provider.stream_reader(request), caller.stream_writer(request, "msg_ours", 5)
    out, usage = writer.keepalive() + (writer.start() if begun else b""), Usage(2, 1, estimated=True)
    try:
        for piece in (*pieces, None):
            for chunk in reader.close() if piece is None else reader.feed(piece):
                usage = chunk.usage or usage
                out += writer.chunk(chunk) + writer.keepalive()
    except UpstreamError as error:
        return out + writer.error(CallerError(error.code, "It broke off.", status=502)), error, usage
    return out + writer.finish(usage), None, usage


def passed(*pieces: bytes, begun: bool = False) -> tuple[dict[str, Any], UpstreamError | None]:
    """Messages on both sides."""
    out, error, _ = relayed(a_request(), MESSAGES, *pieces, begun=begun)
    return legal(out, error is not None), error


# ------------------------------------------------------------------ the same format on both sides


def test_a_stream_passes_event_by_event() -> None:
    out, error, usage = relayed(a_request(), MESSAGES, stream_of(EVENTS), begun=False)
    assert error is None
    assert usage == USAGE
    got = [e for e in events_of(out) if e["type"] != "ping"]
    wanted = [e for e in EVENTS if e["type"] != "ping"]
    assert got[1:-2] == wanted[1:-2], "blocks are untouched"
    assert got[0]["message"] == {**wanted[0]["message"], "model": "fast"}
    assert got[-2] == {
        **wanted[-2],
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 7},
    }
    assert legal(out)["id"] == "msg_up"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_in_two_packets_is_the_same_wherever_it_is_cut(line_end: bytes) -> None:
    stream = stream_of(EVENTS).replace(b"\n", line_end)
    whole = passed(stream)
    assert whole[1] is None
    for at in range(len(stream)):
        assert passed(stream[:at], stream[at:]) == whole


@pytest.mark.parametrize("begun", [True, False])
def test_a_stream_that_breaks_off_anywhere_is_legal_and_never_claims_to_be_whole(begun: bool) -> None:
    stream = stream_of(EVENTS)
    finish = stream.index(b'"stop_reason":"tool_use"')
    for at in range(len(stream)):
        message, error = passed(stream[:at], begun=begun)
        assert "naïve 🙂".startswith(text_of(message))
        if at < finish:
            assert isinstance(error, Truncated if message["content"] and text_of(message) else Truncated | Empty)


@pytest.mark.parametrize(
    "noise",
    [
        b": ping\n\n",
        b"data: \n\n",
        b"event: ping\ndata: {}\n\n",
        b'event: ping\ndata: {"type":"ping"}\n\n',
        b"\n\n\n",
        b"retry: 1\n\n",
        b"data: [PING]\n\n",
        b'data: {"type":"message_note"}\n\n',
    ],
)
def test_heartbeats_and_new_events_are_no_faults(noise: bytes) -> None:
    request = a_chat()
    out, error, _ = relayed(request, MESSAGES, noise + noise.join(stream_of([e]) for e in EVENTS) + noise)
    assert error is None
    assert b"na\xc3\xafve" in out


def test_events_of_a_kind_that_is_new_reach_those_who_speak_it() -> None:
    new = [{"type": "content_block_fallback", "x": 1}, {"type": "content_block_delta", "index": 1, "delta": {"type": "sound_delta", "data": "aa"}}]
    out, _, _ = relayed(a_request(), MESSAGES, stream_of([*EVENTS[:8], *new, *EVENTS[8:]]))
    got = events_of(out)
    assert all(e in got for e in new)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (EVENTS[6:], "naïve 🙂"),  # no message_start
        (EVENTS[:6] + EVENTS[7:], "naïve 🙂"),  # a block that never began
        ([e for e in EVENTS if e["type"] != "content_block_stop"], "naïve 🙂"),
        (EVENTS[:-1], "naïve 🙂"),  # no message_stop
        ([EVENTS[0], *EVENTS], "naïve 🙂"),
        ([*EVENTS[:-2], EVENTS[-2], EVENTS[-2], EVENTS[-1]], "naïve 🙂"),
        ([{**e, "index": 0} if "index" in e else e for e in EVENTS], "naïve 🙂"),
        ([{k: v for k, v in e.items() if k != "index"} for e in EVENTS], "naïve 🙂"),
    ],
)
def test_what_compatible_servers_leave_out_is_put_in(events: list[Any], text: str) -> None:
    message, error = passed(stream_of(events))
    assert error is None
    assert text_of(message) == text
    assert message["stop_reason"] == "tool_use"


def test_a_late_usage_never_takes_back_what_was_known() -> None:
    events = [*EVENTS[:-2], {**EVENTS[-2], "usage": {"input_tokens": 30, "output_tokens": 9, "cache_read_input_tokens": None}}, EVENTS[-1]]
    _, _, usage = relayed(a_request(), MESSAGES, stream_of(events))
    assert usage == Usage(input=38, output=9, cache_read=5, cache_write=3)


def test_a_provider_without_usage_still_gives_clients_some() -> None:
    events = [{**EVENTS[0], "message": {"id": "m", "content": []}}, *EVENTS[6:-2], {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, EVENTS[-1]]
    message, _ = passed(stream_of(events))
    assert message["start_usage"]["input_tokens"] > 0
    assert message["usage"]["output_tokens"] > 0


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "upstream_overloaded"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limit_exceeded"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}, "context_too_small"),
        ({"error": {"message": "boom"}}, "upstream_error"),
    ],
)
def test_an_error_inside_a_stream_ends_it_and_takes_nothing_back(event: Any, code: str) -> None:
    for before in (EVENTS[:1], EVENTS[:9]):
        stream = stream_of([*before, event])
        for pieces in ((stream,), tuple(stream[i : i + 1] for i in range(len(stream)))):
            message, error = passed(*pieces)
            assert error is not None
            assert error.code == code
            assert text_of(message) == ("naïve 🙂" if len(before) > 1 else "")
            assert message["error"]["code"] == code


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([], Empty),
        (EVENTS[:1], Empty),
        ([EVENTS[0], EVENTS[6], EVENTS[9]], Empty),
        ([EVENTS[0], {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, EVENTS[-1]], Empty),
        ([EVENTS[0], {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, EVENTS[-1]], None),
        ([EVENTS[0], {"type": "message_delta", "delta": {"stop_reason": "refusal"}}, EVENTS[-1]], None),
    ],
)
def test_a_stream_that_says_nothing_is_empty_unless_it_says_why(events: list[Any], kind: Any) -> None:
    _, error = passed(stream_of(events))
    assert (error is None) if kind is None else isinstance(error, kind)


@given(st.lists(st.sampled_from(EVENTS).flatmap(bent) | st.sampled_from(EVENTS) | JUNK, max_size=8), st.binary(max_size=20), st.integers(0, 400))
def test_any_stream_is_relayed_legally_or_ends_in_an_error(events: list[Any], noise: bytes, cut: int) -> None:
    try:
        stream = stream_of(events, noise)
    except (TypeError, UnicodeEncodeError):
        return
    if b"\n" in b"".join(str(e.get("type", "")).encode() for e in events if isinstance(e, dict)):
        return
    for request in (a_request(), a_chat()):
        out, error, _ = relayed(request, MESSAGES, stream[:cut], stream[cut:])
        if request.dialect == MESSAGES.name:
            known = {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error"}
            assert_balanced([e for e in events_of(out) if e["type"] in known], error)


def assert_balanced(events: list[dict[str, Any]], error: UpstreamError | None) -> None:
    """Order and balance alone: what stands inside junk is the provider's own affair."""
    kinds = [e["type"] for e in events if e["type"] != "ping"]
    assert kinds.count("message_start") == (1 if "message_start" in kinds else 0)
    assert kinds[-1] == ("message_stop" if error is None else "error")
    open_at: int | None = None
    count = 0
    for event in events:
        if event["type"] == "content_block_start":
            assert open_at is None
            assert event["index"] == count
            open_at, count = count, count + 1
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_at
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_at
            open_at = None
    if error is None:
        assert open_at is None
        assert kinds.count("message_delta") == 1


# ------------------------------------------------------------------ from chat to Messages


def chat_of(*deltas: Any, finish: str | None = "stop", usage: Any = None, end: bytes = b"data: [DONE]\n\n") -> bytes:
    chunks: list[Any] = [{"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    if finish:
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        chunks.append({"id": "c", "choices": [], "usage": usage})
    return b"".join(b"data: " + orjson.dumps(c) + b"\n\n" for c in chunks) + end


def call(index: int, arguments: str = "", id: str = "", name: str = "") -> dict[str, Any]:
    first = {"id": id, "type": "function"} if id else {}
    return {"tool_calls": [{"index": index, **first, "function": {"name": name, "arguments": arguments} if name else {"arguments": arguments}}]}


def translated(stream: bytes, *, begun: bool = False, **more: Any) -> tuple[dict[str, Any], UpstreamError | None]:
    out, error, _ = relayed(a_request(**more), CHAT, stream, begun=begun)
    return legal(out, error is not None), error


CHAT_STREAM = chat_of(
    {"role": "assistant", "content": "", "tool_calls": []},
    {"reasoning_content": "hm"},
    {"content": "naïve ", "tool_calls": []},
    {"content": "🙂"},
    call(0, id="c1", name="look"),
    call(0, '{"at": '),
    call(1, '{"q"', id="c2", name="look"),
    call(0, '"sky"}'),
    call(1, ": 2}"),
    call(3, id="c3", name="wait"),
    finish="tool_calls",
    usage={"prompt_tokens": 20, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}},
)


def test_a_chat_stream_becomes_blocks_that_never_overlap() -> None:
    message, error = translated(CHAT_STREAM)
    assert error is None
    assert [b["type"] for b in message["content"]] == ["thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert text_of(message) == "naïve 🙂"
    assert calls_of(message) == [("look", {"at": "sky"}), ("look", {"q": 2}), ("wait", {})]
    assert message["content"][4]["said"] == "{}"
    assert message["stop_reason"] == "tool_use"
    assert message["start_usage"]["input_tokens"] > 0
    assert message["usage"] == {
        "input_tokens": 15,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    assert message["id"] == "msg_ours"


def test_a_chat_stream_in_two_packets_or_broken_off_is_legal_wherever_it_is_cut() -> None:
    whole = translated(CHAT_STREAM)
    finish = CHAT_STREAM.index(b'"finish_reason":"tool_calls"')
    for at in range(len(CHAT_STREAM)):
        out, error, _ = relayed(a_request(), CHAT, CHAT_STREAM[:at], CHAT_STREAM[at:], begun=False)
        assert (legal(out), error) == whole
        message, error = translated(CHAT_STREAM[:at])
        assert "naïve 🙂".startswith(text_of(message))
        if at < finish:
            assert error is not None


def test_three_calls_all_called_the_first_are_three() -> None:
    stream = chat_of(*[call(0, f'{{"n": {n}}}', id=f"c{n}", name="look") for n in range(3)], finish="tool_calls")
    message, _ = translated(stream)
    assert calls_of(message) == [("look", {"n": n}) for n in range(3)]
    assert len({b["id"] for b in message["content"]}) == 3


def test_a_call_that_a_small_model_ends_with_stop_is_waited_for() -> None:
    message, _ = translated(chat_of(call(0, "{}", id="c", name="look"), finish="stop"))
    assert message["stop_reason"] == "tool_use"


def test_text_behind_a_call_stands_behind_it() -> None:
    message, _ = translated(chat_of(call(0, '{"a"', id="c", name="look"), {"content": "by the "}, call(0, ": 1}"), {"content": "way"}, finish="tool_calls"))
    assert [b["type"] for b in message["content"]] == ["tool_use", "text"]
    assert calls_of(message) == [("look", {"a": 1})]
    assert text_of(message) == "by the way"


def test_a_call_that_the_output_limit_cut_is_no_finished_call() -> None:
    message, _ = translated(chat_of(call(0, '{"a"', id="c", name="look"), call(1, '{"b"', id="d", name="look"), finish="length"))
    assert message["stop_reason"] == "max_tokens"
    assert len(message["content"]) == 1


def test_a_refusal_is_text_and_a_stop_reason() -> None:
    message, _ = translated(chat_of({"refusal": "I can't"}, {"refusal": " do that."}))
    assert (text_of(message), message["stop_reason"]) == ("I can't do that.", "refusal")
    message, _ = translated(chat_of({"content": "x"}, finish="content_filter"))
    assert message["stop_reason"] == "refusal"


def test_tool_names_come_back_as_the_caller_wrote_them() -> None:
    name = "mcp__" + "x" * 80
    request = a_request(tools=[{"name": name, "input_schema": {"type": "object"}}])
    short = CHAT.write_request(request, "s", {}).body["tools"][0]["function"]["name"]
    assert len(short) <= 64
    out, _, _ = relayed(request, CHAT, chat_of(call(0, "{}", id="c", name=short), finish="tool_calls"))
    assert calls_of(legal(out)) == [(name, {})]


# ------------------------------------------------------------------ from Messages to chat


def as_chat(stream: bytes, **more: Any) -> tuple[list[Any], UpstreamError | None]:
    out, error, _ = relayed(a_chat(**more), MESSAGES, stream)
    return [orjson.loads(e.data) for e in sse.Parser().feed(out) if e.data != b"[DONE]"], error


def test_a_messages_stream_becomes_a_chat() -> None:
    events, error = as_chat(stream_of(EVENTS))
    assert error is None
    deltas = [c["delta"] for e in events for c in e["choices"]]
    assert "".join(d.get("content") or "" for d in deltas) == "naïve 🙂"
    assert "".join(d.get("reasoning_content") or "" for d in deltas) == "hm"
    calls: dict[int, str] = {}
    for piece in (p for d in deltas for p in d.get("tool_calls") or []):
        calls[piece["index"]] = calls.get(piece["index"], "") + (piece["function"].get("arguments") or "")
    assert {k: orjson.loads(v) for k, v in calls.items()} == {0: {"at": "sky"}, 1: {}}
    assert [c["finish_reason"] for e in events for c in e["choices"] if c["finish_reason"]] == ["tool_calls"]


def test_arguments_that_come_with_the_start_of_a_call_are_not_lost() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "", "name": "look", "input": {"at": "sky"}}}
    for events in ([start, EVENTS[-2], EVENTS[-1]], [start, {"type": "content_block_stop", "index": 0}, *EVENTS[-2:]]):
        reader = MESSAGES.stream_reader(a_chat())
        pieces = [p for c in [*reader.feed(stream_of(events)), *reader.close()] for p in c.tools]
        assert "".join(p.arguments for p in pieces) == '{"at":"sky"}'
        assert pieces[0].id.startswith("toolu_")


def test_a_free_form_tools_input_comes_raw() -> None:
    request = a_chat(tools=[{"type": "custom", "custom": {"name": "patch"}}])
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "patch", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"input": "*** Be'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": 'gin"}'}},
        {"type": "content_block_stop", "index": 0},
        *EVENTS[-2:],
    ]
    reader = MESSAGES.stream_reader(request)
    pieces = [p for c in [*reader.feed(stream_of(events)), *reader.close()] for p in c.tools]
    assert {p.kind for p in pieces} == {"custom"}
    assert "".join(p.arguments for p in pieces) == "*** Begin"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("refusal", "content_filter"), ("model_context_window_exceeded", "length"), ("pause_turn", "tool_calls"), ("stop_sequence", "tool_calls")],
)
def test_new_stop_reasons_keep_the_call_that_was_made(reason: str, finish: str) -> None:
    events = [EVENTS[0], *EVENTS[10:15], {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}, EVENTS[-1]]
    told, _ = as_chat(stream_of([{**e, "index": 0} if "index" in e else e for e in events]))
    assert [c["finish_reason"] for e in told for c in e["choices"] if c["finish_reason"]] == [finish]
    assert any(c["delta"].get("tool_calls") for e in told for c in e["choices"])


# ------------------------------------------------------------------ streams of ours


PIECES = st.lists(
    st.builds(Chunk, text=st.sampled_from(["", "a", "\n\n"]))
    | st.builds(Chunk, thinking=st.just("hm"))
    | st.builds(Chunk, thinking=st.sampled_from(["", "hm"]), signature=st.just("sig"))
    | st.just(Chunk(redacted="r"))
    | st.just(Chunk(refusal="no"))
    | st.just(Chunk(usage=Usage(3, 2)))
    | st.builds(
        lambda i, a, n: Chunk(tools=(ToolPiece(i, f"c{i}" if n else "", "look" if n else "", a),)),
        st.integers(0, 3),
        st.sampled_from(["", "{}", '{"a"', ": 1}"]),
        st.booleans(),
    )
    | st.just(Chunk(raw={"object": "chat.completion.chunk"}))
    | st.builds(Chunk, stop=st.sampled_from(list(Stop)))
)


def stream_by(writer: StreamWriter, chunks: list[Chunk]) -> bytes:
    return writer.keepalive() + b"".join(writer.chunk(c) + writer.keepalive() for c in chunks)


@given(PIECES, st.booleans())
def test_whatever_is_said_in_whatever_order_makes_a_legal_stream(chunks: list[Chunk], fails: bool) -> None:
    writer = MESSAGES.stream_writer(a_request(), "msg_ours", 5)
    out = stream_by(writer, chunks)
    if fails:
        out += writer.error(CallerError("upstream_truncated", "It broke off.", status=502))
        assert_balanced(events_of(out), Truncated("x"))
    else:
        out += writer.finish(Usage(1, 1))
        assert_balanced(events_of(out), None)
        texts = "".join(c.text + c.refusal for c in chunks)
        deltas = [e["delta"] for e in events_of(out) if e["type"] == "content_block_delta"]
        assert "".join(d["text"] for d in deltas if d["type"] == "text_delta") == texts


def test_a_panels_stream_has_its_bench_field_on_the_last_word() -> None:
    writer = MESSAGES.stream_writer(a_request(), "msg_ours", 5)
    out = writer.keepalive() + writer.start() + stream_by(writer, [Chunk(text="## one"), Chunk(text="\n\n## two")])
    message = legal(out + writer.finish(Usage(30, 20), {"panel": "pan_1"}))
    assert text_of(message) == "## one\n\n## two"
    assert (message["bench"], message["stop_reason"]) == ({"panel": "pan_1"}, "end_turn")
    assert message["usage"]["input_tokens"] == 30
    assert out.startswith(sse.KEEPALIVE)
    assert b"event: ping" in out


def test_thinking_without_words_still_carries_its_signature() -> None:
    writer = MESSAGES.stream_writer(a_request(), "msg_ours", 5)
    message = legal(stream_by(writer, [Chunk(signature="sig"), Chunk(redacted="r"), Chunk(text="a")]) + writer.finish(Usage(1, 1)))
    assert message["content"] == [
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "r"},
        {"type": "text", "text": "a"},
    ]


def test_an_empty_answer_is_a_stream_too() -> None:
    writer = MESSAGES.stream_writer(a_request(), "msg_ours", 5)
    message = legal(writer.chunk(Chunk(stop=Stop.LENGTH)) + writer.finish(Usage(4, 0)))
    assert (message["content"], message["stop_reason"]) == ([], "max_tokens")
