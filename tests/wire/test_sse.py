"""Server-sent events: however the bytes are cut, the events are the same."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import sse


def parsed(*pieces: bytes) -> list[tuple[str, bytes]]:
    parser = sse.Parser()
    out = [tuple(e) for piece in pieces for e in parser.feed(piece)]
    return out + [tuple(e) for e in parser.close()]


CASES = {
    "one event": (b"data: a\n\n", [("", b"a")]),
    "no space behind the colon": (b"data:a\n\n", [("", b"a")]),
    "only one space is taken off": (b"data:  a\n\n", [("", b" a")]),
    "CRLF": (b"data: a\r\n\r\n", [("", b"a")]),
    "CR alone": (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
    "line ends mixed": (b"data: a\r\n\ndata: b\r\r\n", [("", b"a"), ("", b"b")]),
    "several data lines join with LF": (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
    "an empty data line is data": (b"data: a\ndata\ndata:\n\n", [("", b"a\n\n")]),
    "a named event": (b"event: ping\ndata: {}\n\n", [("ping", b"{}")]),
    "the name holds for one event": (b"event: ping\ndata: 1\n\ndata: 2\n\n", [("ping", b"1"), ("", b"2")]),
    "a name without data is no event": (b"event: ping\n\ndata: 1\n\n", [("", b"1")]),
    "comments are skipped": (b": keep-alive\n\ndata: a\n: in between\n\n", [("", b"a")]),
    "unknown fields are skipped": (b"id: 7\nretry: 10\nother\ndata: a\n\n", [("", b"a")]),
    "blank lines give nothing": (b"\n\n\r\n\n", []),
    "the last event without its blank line": (b"data: a\n\ndata: [DONE]", [("", b"a"), ("", b"[DONE]")]),
    "characters beyond ASCII": ("data: naïve 🙂\n\n".encode(), [("", "naïve 🙂".encode())]),
    "a line separator of Unicode ends no line": ("data: a\u2028b\u0085c\n\n".encode(), [("", "a\u2028b\u0085c".encode())]),
    "a colon in the data": (b"data: a: b\n\n", [("", b"a: b")]),
}


@pytest.mark.parametrize(("stream", "events"), CASES.values(), ids=CASES)
def test_a_stream_gives_its_events_however_it_is_cut(stream: bytes, events: list[tuple[str, bytes]]) -> None:
    assert parsed(stream) == events
    assert parsed(*[stream[i : i + 1] for i in range(len(stream))]) == events
    for at in range(len(stream) + 1):
        assert parsed(stream[:at], stream[at:]) == events


LINES = st.lists(
    st.tuples(
        st.sampled_from([b"data: ", b"data:", b"data", b"event: ", b": ", b"id: ", b"", b"dat", b"data: \xf0\x9f\x99\x82"]),
        st.binary(max_size=6).map(lambda b: b.replace(b"\r", b"").replace(b"\n", b"")),
        st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n"]),
    ),
    max_size=14,
).map(lambda lines: b"".join(part for line in lines for part in line))


@given(stream=LINES | st.binary(max_size=80), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_cuts_change_nothing(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(stream), *[c % (len(stream) + 1) for c in cuts]})
    assert parsed(*[stream[a:b] for a, b in pairwise(edges)]) == parsed(stream)


@given(stream=LINES)
def test_it_reads_what_a_plain_reading_of_the_format_reads(stream: bytes) -> None:
    """The format read slowly: lines first, then fields, then blank lines."""
    events, data, name = [], [], ""
    lines = re.split(b"\r\n|\n|\r", stream + b"\n\n")
    for line in lines[:-1]:
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            data, name = [], ""
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    assert parsed(stream) == events


@given(data=st.binary(max_size=60).map(lambda b: b.replace(b"\r", b" ").replace(b"\n", b" ")), name=st.sampled_from(["", "message_delta"]))
def test_what_is_written_is_read_back(data: bytes, name: str) -> None:
    assert parsed(sse.event(data, name)) == [(name, data)]


def test_keepalives_and_the_end_are_no_answers() -> None:
    assert parsed(sse.KEEPALIVE) == []
    assert parsed(sse.DONE) == [("", b"[DONE]")]


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 100 + b"\n"], ids=["one endless line", "endless lines of one event"])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    parser = sse.Parser(limit=1000)
    with pytest.raises(sse.TooLong):  # noqa: PT012
        for _ in range(50):
            parser.feed(piece)


def test_many_events_within_the_limit_are_no_long_one() -> None:
    parser = sse.Parser(limit=1000)
    assert sum(len(parser.feed(b"data: " + b"x" * 100 + b"\n\n")) for _ in range(50)) == 50
    assert len(sse.Parser(limit=1000).feed((b"data: " + b"x" * 100 + b"\n\n") * 50)) == 50
