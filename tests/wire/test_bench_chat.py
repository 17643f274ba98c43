"""The pages' own form of a chat: what it reads, what it takes from an earlier panel, and its events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire import transcript
from wire.bench_chat import BENCH, Earlier, Wishes, chat_messages, read_wishes, said
from wire.conversation import Text, Usage
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.sse import Parser

CHAT: dict[str, Any] = {"model": "bench/core", "messages": [{"role": "user", "content": "hi"}]}


def read(body: Any, earlier: Earlier | None = None) -> Any:
    return BENCH.read_request(Inbound("/bench/ask", "", {}, body, earlier))


def test_a_body_is_a_chat_body_with_wishes_that_no_provider_sees() -> None:
    request = read({**CHAT, "bench": {"with": ["a"]}, "stream": False, "temperature": 0.5})
    assert (request.dialect, request.model, request.stream, request.sampling.temperature) == ("openai-chat", "bench/core", True, 0.5)
    assert "bench" not in request.raw
    assert request.unread == ()


def test_wishes_are_read() -> None:
    assert read_wishes({**CHAT}) == Wishes()
    assert read_wishes({"bench": None}) == Wishes()
    assert read_wishes({"bench": {"seats": ["a", "a"], "with": ["b", "b"], "again": "pan_1", "reseat": True}}) == Wishes(("a", "a"), ("b",), "pan_1", True)
    assert read_wishes({"bench": {"seats": None}}).seats is None


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ("x", "bench"),
        ({"seats": "a"}, "bench.seats"),
        ({"seats": []}, "bench.seats"),
        ({"seats": [1]}, "bench.seats[0]"),
        ({"seats": ["a"] * 41}, "bench.seats"),
        ({"with": ["a"] * 21}, "bench.with"),
        ({"again": 7}, "bench.again"),
        ({"reseat": "yes"}, "bench.reseat"),
        ({"explorers": 2}, "bench.explorers"),
    ],
)
def test_wishes_that_are_none_name_their_field(wishes: Any, field: str) -> None:
    with pytest.raises(CallerError) as caught:
        read_wishes({**CHAT, "bench": wishes})
    assert caught.value.field == field


@pytest.mark.parametrize("body", [None, [], "x", 7])
def test_a_body_is_an_object(body: Any) -> None:
    with pytest.raises(CallerError):
        read_wishes(body)


def test_what_is_not_said_is_taken_from_the_earlier_panel() -> None:
    earlier = Earlier([{"role": "user", "content": "then"}], "bench/old:merged")
    assert (read({}, earlier).model, read({}, earlier).messages[0].text) == ("bench/old:merged", "then")
    assert read({"model": "bench/new"}, earlier).model == "bench/new"
    assert read({"messages": CHAT["messages"]}, earlier).messages[0].text == "hi"
    with pytest.raises(CallerError) as caught:
        read({"messages": CHAT["messages"]})
    assert caught.value.field == "model"


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
            {"type": "file", "file": {"file_data": "CCCC", "filename": "a.pdf"}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "t1", "content": "42"},
    {"role": "assistant", "content": "It is 42."},
    {"role": "user", "content": "And now?"},
]


def test_a_kept_conversation_comes_back_as_it_was_asked() -> None:
    asked = read({"model": "m", "messages": MESSAGES})
    kept = json.loads(json.dumps(transcript.dump(asked.messages)))
    again = read({"model": "m", "messages": chat_messages(kept)})
    assert transcript.dump(again.messages) == kept
    assert chat_messages(kept) == MESSAGES


def test_another_models_thinking_is_not_sent_again() -> None:
    kept = [{"role": "assistant", "content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Yes."}]}]
    assert chat_messages(kept) == [{"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}]


def test_a_conversation_ends_with_a_user_turn_in_the_body_too() -> None:
    request = BENCH.with_user_turn(read(CHAT), "Please go on.")
    assert request.messages[-1].parts == (Text("Please go on."),)
    assert request.raw is not None
    assert request.raw["messages"][-1] == {"role": "user", "content": "Please go on."}


def test_each_event_is_one_line_whatever_a_model_writes() -> None:
    text = 'a\nb\r\nc\u2028d\x00e"f'
    [event] = Parser().feed(said("delta", {"call": "c", "text": text}))
    assert event.event == "delta"
    assert json.loads(event.data) == {"call": "c", "text": text}


def test_the_end_and_the_error() -> None:
    writer = BENCH.stream_writer(read(CHAT), "id", 0)
    [done] = Parser().feed(writer.finish(Usage(), {"panel": "pan_1"}))
    assert (done.event, json.loads(done.data)) == ("done", {"panel": "pan_1"})
    error = CallerError("rate_limit_exceeded", "Key sk-0123456789abcdef is at its limit.", status=429, retry_after_s=7.0, seats=[{"call": "c"}])
    [failed] = Parser().feed(writer.error(error))
    assert json.loads(failed.data) == {
        "code": "rate_limit_exceeded",
        "message": "Key [key] is at its limit.",
        "status": 429,
        "seats": [{"call": "c"}],
        "retry_after_s": 7.0,
    }
    assert writer.keepalive().startswith(b":")
    assert BENCH.write_error(error)["code"] == "rate_limit_exceeded"
