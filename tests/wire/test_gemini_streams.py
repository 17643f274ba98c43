"""Gemini's streams, both ways: read at every cut, and legal for a caller at every moment, as events and as an array."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import gemini_stream as grammar
from tests.wire.mutations import JUNK, bent
from tests.wire.test_gemini import GEMINI, REQUEST, a_request, asked, by_chat
from wire import dialects
from wire.conversation import Chunk, Request, Stop, ToolPiece, Usage
from wire.dialects import StreamWriter
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError

STREAM = "/v1beta/models/fast:streamGenerateContent"
CHUNKS: list[Any] = [
    {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}], "role": "model"}, "index": 0}], "modelVersion": "g", "responseId": "r"},
    {"candidates": [{"content": {"parts": [{"text": "naïve "}], "role": "model"}, "index": 0}], "modelVersion": "g", "responseId": "r"},
    {"candidates": []},
    {
        "candidates": [{"content": {"parts": [{"text": "🙂"}], "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 2, "totalTokenCount": 13},
        "modelVersion": "g",
        "responseId": "r",
    },
    {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2ln"},
                        {"functionCall": {"id": "f2", "name": "look", "args": {}}},
                    ],
                    "role": "model",
                },
                "index": 0,
            }
        ],
        "modelVersion": "g",
        "responseId": "r",
    },
    {
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0, "groundingMetadata": {"x": 1}}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "thoughtsTokenCount": 2, "totalTokenCount": 20, "promptTokensDetails": []},
        "modelVersion": "g",
        "responseId": "r",
    },
]


def as_events(chunks: list[Any], end: str = "\r\n") -> bytes:
    return b"".join(f"data: {json.dumps(c, ensure_ascii=False)}{end}{end}".encode() for c in chunks)


def streamed(same: bool) -> Request:
    return asked(REQUEST, STREAM, "alt=sse") if same else by_chat(stream=True)


def read(data: bytes, request: Request, size: int | None = None) -> list[Chunk]:
    reader = GEMINI.stream_reader(request)
    chunks: list[Chunk] = []
    for at in range(0, len(data), size or len(data) or 1):
        chunks += reader.feed(data[at : at + (size or len(data))])
    return chunks + reader.close()


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [None, 1, 7])
def test_a_stream_is_understood_however_it_is_cut_into_packets(end: str, size: int | None) -> None:
    chunks = read(as_events(CHUNKS, end), streamed(False), size)
    assert "".join(c.text for c in chunks) == "naïve 🙂"
    assert "".join(c.thinking for c in chunks) == "hm"
    pieces = [t for c in chunks for t in c.tools]
    assert [(p.index, p.name, p.arguments, p.signature) for p in pieces] == [(0, "look", '{"at":"it"}', "c2ln"), (1, "look", "{}", "")]
    assert pieces[0].id.startswith("call_")
    assert pieces[1].id == "f2"
    assert [(c.stop, c.finish) for c in chunks if c.stop] == [(Stop.TOOLS, "STOP")]
    assert [c.usage for c in chunks if c.usage][-1] == Usage(11, 9, reasoning=2)
    assert all(c.raw is None for c in chunks)


def test_a_stream_cut_at_any_byte_is_never_taken_for_a_whole_one() -> None:
    data = as_events(CHUNKS)
    last = data.index(b'"finishReason"')
    for at in range(len(data)):
        reader = GEMINI.stream_reader(streamed(False))
        chunks = reader.feed(data[:at])
        try:
            chunks += reader.close()
        except Truncated:
            assert b'"text"' in data[:at]
        except Empty:
            assert not any(c.has_content for c in chunks)
        else:
            assert at > last
            assert any(c.finish for c in chunks)


@pytest.mark.parametrize(
    ("tail", "error", "code"),
    [
        ([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}], UpstreamError, "upstream_overloaded"),
        ([{"error": {"message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}}], UpstreamError, "rate_limit_exceeded"),
        ([{"candidates": [{"content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}], Garbage, "upstream_garbage"),
    ],
)
def test_errors_inside_a_stream_are_raised_after_what_came_before(tail: list[Any], error: type[UpstreamError], code: str) -> None:
    reader = GEMINI.stream_reader(streamed(False))
    assert [c.text for c in reader.feed(as_events([CHUNKS[1], *tail])) if c.text] == ["naïve "]
    with pytest.raises(error) as caught:
        reader.close()
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([], Empty),
        ([{"candidates": []}], Empty),
        ([{"usageMetadata": {"promptTokenCount": 3}}], Empty),
        ([{"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}], Empty),
        ([{"candidates": [{"finishReason": "OTHER"}]}], Empty),
        ([CHUNKS[1]], Truncated),
    ],
)
def test_a_stream_without_an_answer_is_none(chunks: list[Any], error: type[UpstreamError]) -> None:
    for same in (True, False):
        with pytest.raises(error):
            read(as_events(chunks), streamed(same))


def test_a_prompt_that_was_refused_ends_the_stream() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}}
    (chunk,) = read(as_events([body]), streamed(False))
    assert (chunk.stop, chunk.finish, chunk.usage) == (Stop.FILTER, "SAFETY", Usage(3, 0))


@pytest.mark.parametrize(
    "noise", [b": hello\n\n", b"data: [DONE]\n\n", b"data: ping\n\n", b"event: x\ndata: {}\n\n", b"\r\n\r\n", b'data: {"candidates":null}\n\n']
)
def test_noise_between_events_is_borne_with(noise: bytes) -> None:
    data = noise.join(as_events([c]) for c in CHUNKS) + noise
    assert "".join(c.text for c in read(data, streamed(False))) == "naïve 🙂"


def test_media_is_an_answer_for_those_who_read_this_format() -> None:
    body = {"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]}, "finishReason": "STOP"}]}
    assert read(as_events([body]), streamed(True))[0].raw["candidates"][0]["content"]["parts"][0]["inlineData"]["data"] == "QUJD"
    with pytest.raises(Empty):
        read(as_events([body]), streamed(False))


def test_several_answers_stay_apart() -> None:
    body = {"candidates": [{"content": {"parts": [{"text": t}]}, "index": i, "finishReason": "STOP"} for i, t in enumerate("ab")]}
    assert [(c.choice, c.text, len(c.raw["candidates"])) for c in read(as_events([body]), streamed(True))] == [(0, "a", 1), (1, "b", 1)]


@given(st.lists(bent(CHUNKS[3]) | bent(CHUNKS[4]) | bent(CHUNKS[5]) | JUNK, max_size=4))
def test_any_json_in_a_stream_is_chunks_or_an_upstream_error(bodies: list[Any]) -> None:
    for same in (True, False):
        request = streamed(same)
        writer = GEMINI.stream_writer(request, "gem_1", 5)
        try:
            for chunk in read(as_events(bodies), request):
                writer.chunk(chunk)
        except UpstreamError:
            continue
        assert grammar.events(writer.finish(Usage(1, 2)))


# ------------------------------------------------------------------ writing


def writer_for(array: bool, thoughts: bool = True) -> StreamWriter:
    request = asked(REQUEST if thoughts else {"contents": [{"parts": [{"text": "hi"}]}]}, STREAM, "" if array else "alt=sse")
    return GEMINI.stream_writer(request, "gem_1", 5)


MADE = [
    Chunk(thinking="hm"),
    Chunk(text="a "),
    Chunk(text="cat", refusal="!"),
    Chunk(tools=(ToolPiece(0, "c1", "look", '{"a'),)),
    Chunk(tools=(ToolPiece(1, "c2", "see"), ToolPiece(0, arguments='t":1}'))),
    Chunk(stop=Stop.TOOLS, finish="tool_calls"),
]


def test_events_and_an_array_say_the_same() -> None:
    found: dict[bool, list[Any]] = {}
    for array in (False, True):
        writer = writer_for(array)
        assert writer.content_type == ("application/json" if array else "text/event-stream")
        data = writer.start() + b"".join(writer.chunk(c) for c in MADE) + writer.finish(Usage(11, 7, reasoning=2), {"panel": "p"})
        found[array] = grammar.elements(data, whole=True) if array else grammar.events(data)
    assert found[True] == found[False]
    parts = grammar.check(found[True], ended=True)
    assert grammar.said(parts) == "a cat!"
    assert parts[0] == {"text": "hm", "thought": True}
    calls = [p["functionCall"] for p in parts if "functionCall" in p]
    assert calls == [{"id": "c1", "name": "look", "args": {"at": 1}}, {"id": "c2", "name": "see", "args": {}}]
    last = found[True][-1]
    assert last["bench"] == {"panel": "p"}
    assert last["usageMetadata"] == {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 18, "thoughtsTokenCount": 2}


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_a_stream_is_legal_at_every_cut(array: bool, same: bool) -> None:
    """Whatever came by then: keepalives between, an error after, or the end."""
    chunks = read(as_events(CHUNKS), asked(REQUEST, STREAM, "" if array else "alt=sse")) if same else MADE
    for cut in range(len(chunks) + 1):
        for fails in (True, False):
            writer = writer_for(array)
            data = writer.keepalive() + writer.start() + writer.keepalive()
            for chunk in chunks[:cut]:
                data += writer.chunk(chunk) + writer.keepalive()
            if array:
                grammar.check(grammar.elements(data, whole=False), ended=False)
            else:
                grammar.check(grammar.events(data), ended=False)
            if fails:
                data += writer.error(CallerError("upstream_truncated", "It broke off.", status=502))
            else:
                data += writer.finish(Usage(1, 2))
            found = grammar.elements(data, whole=True) if array else grammar.events(data)
            parts = grammar.check(found, ended=not fails, failed=fails)
            if fails:
                assert found[-1]["error"]["details"][0]["reason"] == "upstream_truncated"
                assert same or not any("functionCall" in p for p in parts), "a call that nobody finished"


@pytest.mark.parametrize("array", [False, True])
def test_a_call_that_the_output_limit_cut_off_is_left_out(array: bool) -> None:
    writer = writer_for(array)
    data = (
        writer.chunk(Chunk(text="a")) + writer.chunk(Chunk(tools=(ToolPiece(0, "c1", "look", '{"a'),))) + writer.chunk(Chunk(stop=Stop.LENGTH, finish="length"))
    )
    data += writer.finish(Usage(1, 2))
    found = grammar.elements(data, whole=True) if array else grammar.events(data)
    assert not any("functionCall" in p for p in grammar.check(found, ended=True))
    assert found[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_an_unasked_thought_is_not_shown() -> None:
    writer = writer_for(False, thoughts=False)
    assert writer.chunk(Chunk(thinking="hm")) == b""


def test_a_stream_of_the_same_format_passes_through() -> None:
    writer = writer_for(False)
    data = b"".join(writer.chunk(c) for c in read(as_events(CHUNKS), streamed(True))) + writer.finish(Usage(99, 99), {"panel": "p"})
    found = grammar.events(data)
    grammar.check(found, ended=True)
    wanted = [{**c, "modelVersion": "fast"} for c in CHUNKS if c["candidates"]]
    minted = found[3]["candidates"][0]["content"]["parts"][0]["functionCall"].pop("id")
    assert minted.startswith("call_")
    assert found == [*wanted[:-1], {**wanted[-1], "bench": {"panel": "p"}}]


def test_text_behind_a_finish_reason_goes_before_it() -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}], "role": "model"}}]},
        {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}},
    ]
    writer = writer_for(False)
    data = b"".join(writer.chunk(c) for c in read(as_events(chunks), streamed(True))) + writer.finish(Usage(3, 2))
    found = grammar.events(data)
    assert grammar.said(grammar.check(found, ended=True)) == "ab"
    assert found[-1]["usageMetadata"]["totalTokenCount"] == 5


def test_a_refused_prompt_passes_through() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}}
    writer = writer_for(False)
    data = b"".join(writer.chunk(c) for c in read(as_events([body]), streamed(True))) + writer.finish(Usage(3, 0))
    assert grammar.events(data) == [{**body, "modelVersion": "fast", "responseId": "gem_1"}]


def test_what_a_writer_says_a_reader_understands() -> None:
    writer = writer_for(False)
    data = b"".join(writer.chunk(c) for c in MADE) + writer.finish(Usage(11, 7, cache_read=2))
    chunks = read(data, by_chat())
    assert "".join(c.text for c in chunks) == "a cat!"
    assert [(p.id, p.name, json.loads(p.arguments)) for c in chunks for p in c.tools] == [("c1", "look", {"at": 1}), ("c2", "see", {})]
    assert (chunks[-1].stop, chunks[-1].usage) == (Stop.TOOLS, Usage(11, 7, cache_read=2))


def test_googles_stream_is_another_formats() -> None:
    """The same chunks, for a client of each other format: nothing of Google's own slips in."""
    for dialect in dialects.every():
        if dialect is GEMINI:
            continue
        request = by_chat(stream=True)
        writer = dialect.stream_writer(request, f"{dialect.id_prefix}_1", 5)
        data = writer.start() + b"".join(writer.chunk(c) for c in read(as_events(CHUNKS), request)) + writer.finish(Usage(11, 9))
        assert b"candidates" not in data
        assert "naïve".encode() in data


def test_a_request_without_alt_sse_is_answered_as_an_array() -> None:
    assert a_request().stream_form == "array"
