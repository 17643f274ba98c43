"""What a stream of the Messages format may be: one start, blocks that never overlap, one stop reason, one end. Held against every stream in tests."""

from __future__ import annotations

from typing import Any

import orjson

from wire import sse

DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
}


def events_of(out: bytes) -> list[dict[str, Any]]:
    """The events, each under the name that its data bears; the last one whole."""
    parser = sse.Parser()
    found = []
    for event in parser.feed(out):
        data = orjson.loads(event.data)
        assert event.event == data["type"], "an event's name and its type are the same"
        found.append(data)
    assert not parser.close(), "the last event is whole"
    return found


def legal(out: bytes, failed: bool = False) -> dict[str, Any]:
    """Holds a stream against the format, and gives the message that a client makes of it.

    Shape: {"id", "content", "stop_reason", "usage", "start_usage", "bench", "error"}; `failed` where the stream must end in its error event.
    """
    message: dict[str, Any] = {"content": [], "stop_reason": None, "error": None}
    started = over = False
    is_open = False
    texts: list[str] = []
    for event in events_of(out):
        kind = event["type"]
        assert not over, f"{kind} behind the end"
        if kind == "ping":
            assert started, "a ping before the start"
        elif kind == "error":
            assert set(event["error"]) >= {"type", "message", "code"}
            message["error"], over = event["error"], True
        elif kind == "message_start":
            assert not started, "a second start"
            started = True
            begun = event["message"]
            assert (begun["type"], begun["role"], begun["content"], begun["stop_reason"]) == ("message", "assistant", [], None)
            assert begun["id"]
            assert begun["model"]
            usage = begun["usage"]
            assert usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"] > 0
            assert isinstance(usage["output_tokens"], int)
            message.update(id=begun["id"], model=begun["model"], start_usage=usage)
        elif kind == "content_block_start":
            assert started
            assert not is_open, "a block inside another"
            assert message["stop_reason"] is None
            assert event["index"] == len(message["content"])
            is_open, texts = True, []
            message["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            assert is_open
            assert event["index"] == len(message["content"]) - 1
            block, delta = message["content"][-1], event["delta"]
            assert delta["type"] in DELTAS.get(block["type"], {delta["type"]})
            if delta["type"] == "input_json_delta":
                texts.append(delta["partial_json"])
            elif delta["type"] == "signature_delta":
                block["signature"] = delta["signature"]
            else:
                name = {"text_delta": "text", "thinking_delta": "thinking"}.get(delta["type"])
                if name:
                    block[name] += delta[name]
        elif kind == "content_block_stop":
            assert is_open
            assert event["index"] == len(message["content"]) - 1
            is_open = False
            if message["content"][-1]["type"] == "tool_use":
                message["content"][-1]["said"] = "".join(texts)
        elif kind == "message_delta":
            assert started
            assert not is_open, "a block is still open"
            assert message["stop_reason"] is None, "a second stop reason"
            assert event["delta"]["stop_reason"]
            assert set(event["usage"]) >= {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
            message.update(stop_reason=event["delta"]["stop_reason"], usage=event["usage"], bench=event.get("bench"), stop=event["delta"])
        elif kind == "message_stop":
            assert message["stop_reason"], "an end without a reason"
            over = True
        else:
            raise AssertionError(f"{kind} is no event of this format")
    assert over, "the stream has no end"
    if failed:
        assert message["error"] is not None
        assert message["stop_reason"] is None, "a stream that broke off never claims to have ended"
    else:
        assert message["error"] is None
        for block in message["content"]:
            if block["type"] == "tool_use" and message["stop_reason"] == "tool_use":
                assert isinstance(orjson.loads(block["said"] or "{}"), dict), "a whole call has whole arguments"
    return message


def text_of(message: dict[str, Any]) -> str:
    return "".join(b["text"] for b in message["content"] if b["type"] == "text")


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(b["name"], orjson.loads(b["said"] or "{}")) for b in message["content"] if b["type"] == "tool_use"]
