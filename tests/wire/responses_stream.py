"""A provider's Responses streams for tests, and what makes one legal to a caller: order, numbering, balance, one beginning, one end."""

from __future__ import annotations

from typing import Any

import orjson

from wire import sse

ENDS = ("response.completed", "response.incomplete", "response.failed")
PART_ADDED = {"response.content_part.added": "content_index", "response.reasoning_summary_part.added": "summary_index"}
PART_DONE = {"response.content_part.done": "content_index", "response.reasoning_summary_part.done": "summary_index"}
# Delta and done by what they fill: the number's field ("" for a call's arguments) and the done event's field.
TEXTS = {
    "response.output_text": ("content_index", "text"),
    "response.refusal": ("content_index", "refusal"),
    "response.reasoning_text": ("content_index", "text"),
    "response.reasoning_summary_text": ("summary_index", "text"),
    "response.function_call_arguments": ("", "arguments"),
    "response.custom_tool_call_input": ("", "input"),
}


def event(kind: str, **fields: Any) -> bytes:
    return sse.event(orjson.dumps({"type": kind, **fields}), kind)


def events_of(out: bytes) -> list[dict[str, Any]]:
    parser = sse.Parser()
    found = []
    for item in parser.feed(out):
        body = orjson.loads(item.data)
        assert item.event == body["type"]
        found.append(body)
    assert not parser.close(), "the stream ends inside an event"
    return found


def legal(out: bytes, failed: bool = False) -> list[dict[str, Any]]:
    """The events of a stream, once every client of this format can bear them."""
    events = events_of(out)
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert sum(e["type"] == "response.created" for e in events) == 1
    assert [e["type"] for e in events if e["type"] in ENDS] == [events[-1]["type"]]
    assert (events[-1]["type"] == "response.failed") == failed
    assert len({e["response"]["id"] for e in events if "response" in e}) == 1
    items: dict[int, dict[str, Any]] = {}
    closed: dict[int, dict[str, Any]] = {}
    open_parts: dict[tuple[int, str, int], str] = {}
    said: dict[tuple[int, str, int], str] = {}
    told: set[tuple[int, str, int]] = set()
    for e in events:
        kind = e["type"]
        if kind == "response.output_item.added":
            assert e["output_index"] == len(items)
            assert e["item"]["id"]
            items[e["output_index"]] = e["item"]
        elif kind == "response.output_item.done":
            index = e["output_index"]
            assert index in items
            assert index not in closed
            assert e["item"]["id"] == items[index]["id"]
            assert e["item"]["type"] == items[index]["type"]
            assert not [p for p in open_parts if p[0] == index], "an item ended with a part open"
            assert e["item"].get("status") == "incomplete" or all(place in told for place in said if place[0] == index)
            closed[index] = e["item"]
        elif kind in PART_ADDED or kind in PART_DONE:
            field = PART_ADDED.get(kind) or PART_DONE[kind]
            place = (e["output_index"], field, e[field])
            assert items[place[0]]["id"] == e["item_id"]
            assert place[0] not in closed
            if kind in PART_ADDED:
                assert place not in open_parts
                assert place not in told
                open_parts[place] = e["part"]["type"]
            else:
                assert open_parts.pop(place) == e["part"]["type"]
                assert place in told
        elif (base := kind.rpartition(".")[0]) in TEXTS:
            field, value = TEXTS[base]
            place = (e["output_index"], field, e[field] if field else 0)
            assert items[place[0]]["id"] == e["item_id"]
            assert place[0] not in closed
            assert place not in told
            assert not field or place in open_parts
            if kind.endswith(".delta"):
                assert e["delta"]
                said[place] = said.get(place, "") + e["delta"]
            else:
                assert e[value] == said.get(place, "")
                told.add(place)
    last = events[-1]["response"]
    if failed:
        assert last["status"] == "failed"
        assert set(last["error"]) >= {"code", "message"}
        return events
    assert set(closed) == set(items), "an item was never closed"
    assert last["output"] == [closed[i] for i in sorted(closed)]
    assert last["usage"]["total_tokens"] == last["usage"]["input_tokens"] + last["usage"]["output_tokens"]
    assert (last["status"] == "incomplete") == (events[-1]["type"] == "response.incomplete")
    return events


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")


def thought_of(events: list[dict[str, Any]]) -> str:
    return "".join(e["delta"] for e in events if e["type"] in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"))


def calls_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e["item"] for e in events if e["type"] == "response.output_item.done" and e["item"]["type"].endswith("_call")]


# ------------------------------------------------------------------ what a provider sends

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}
THOUGHT = {"type": "reasoning", "id": "rs_up", "summary": [{"type": "summary_text", "text": "hmm well"}], "encrypted_content": "gAAAA=="}
SAID = {
    "type": "message",
    "id": "msg_up",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "naïve 🙂", "annotations": [{"type": "url_citation", "url": "https://example.org"}], "logprobs": []}],
}
CALL = {"type": "function_call", "id": "fc_up", "call_id": "c1", "name": "look", "arguments": '{"at":"it"}', "status": "completed"}
RESPONSE: dict[str, Any] = {
    "id": "resp_up",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "served",
    "output": [THOUGHT, SAID, CALL],
    "error": None,
    "incomplete_details": None,
    "service_tier": "flex",
    "usage": USAGE,
}


def upstream(**more: Any) -> list[dict[str, Any]]:
    """A whole stream as OpenAI sends it: a thought, a text, a call."""
    text, thought = {"item_id": "msg_up", "output_index": 1, "content_index": 0}, {"item_id": "rs_up", "output_index": 0, "summary_index": 0}
    part = SAID["content"][0]
    call = {"item_id": "fc_up", "output_index": 2}
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    plain: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**THOUGHT, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **thought, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "hmm "},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "well"},
        {"type": "response.reasoning_summary_text.done", **thought, "text": "hmm well"},
        {"type": "response.reasoning_summary_part.done", **thought, "part": THOUGHT["summary"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
        {"type": "response.output_item.added", "output_index": 1, "item": {**SAID, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **text, "part": {"type": "output_text", "text": "", "annotations": []}},
        {"type": "response.output_text.delta", **text, "delta": "naïve ", "logprobs": [], "obfuscation": "xx"},
        {"type": "response.output_text.delta", **text, "delta": "🙂", "logprobs": []},
        {"type": "response.output_text.annotation.added", **text, "annotation_index": 0, "annotation": part["annotations"][0]},
        {"type": "response.output_text.done", **text, "text": "naïve 🙂", "logprobs": []},
        {"type": "response.content_part.done", **text, "part": part},
        {"type": "response.output_item.done", "output_index": 1, "item": SAID},
        {"type": "response.output_item.added", "output_index": 2, "item": {**CALL, "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", **call, "delta": '{"at":'},
        {"type": "response.function_call_arguments.delta", **call, "delta": '"it"}'},
        {"type": "response.function_call_arguments.done", **call, "arguments": '{"at":"it"}'},
        {"type": "response.output_item.done", "output_index": 2, "item": CALL},
        {"type": "response.completed", "response": {**RESPONSE, **more}},
    ]
    return [{**e, "sequence_number": n} for n, e in enumerate(plain)]


def stream_of(events: list[Any], end: bytes = b"") -> bytes:
    return b"".join(sse.event(orjson.dumps(e), e["type"] if isinstance(e, dict) and isinstance(e.get("type"), str) else "") for e in events) + end
