"""Server-sent events in every legal form, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from benchwarmers_client.sse import Event, events
from hypothesis import given
from hypothesis import strategies as st

FORMS: dict[str, tuple[bytes, list[Event]]] = {
    "no space behind the colon": (b'data:{"a":1}\n\n', [Event("message", '{"a":1}')]),
    "a name and CRLF": (b'event:x\r\ndata: {"a":1}\r\n\r\n', [Event("x", '{"a":1}')]),
    "a field without a colon": (b"data\n\n", [Event("message", "")]),
    "a byte order mark": (b'\xef\xbb\xbfdata: {"a":1}\n\n', [Event("message", '{"a":1}')]),
    "id and retry": (b'id: 5\nretry: 10\ndata: {"a":1}\n\n', [Event("message", '{"a":1}', "5")]),
    "an unfinished event": (b'data: {"a":1}', []),
    "one line, then the end": (b'data: {"a":1}\n', []),
    "only a comment": (b": only a comment\n\n", []),
    "a name without data": (b"event: x\n\ndata: 1\n\n", [Event("message", "1")]),
    "CR alone": (b"data: 1\r\rdata: 2\r\r", [Event("message", "1"), Event("message", "2")]),
    "several lines of data": (b"data: 1\ndata:\ndata: 2\n\n", [Event("message", "1\n\n2")]),
    "two spaces": (b"data:  1\n\n", [Event("message", " 1")]),
    "an id with NUL": (b"id: a\0b\ndata: 1\n\n", [Event("message", "1")]),
    "an id that stays": (b"id: 7\ndata: 1\n\ndata: 2\n\n", [Event("message", "1", "7"), Event("message", "2", "7")]),
    "a line separator inside": ("data: a\u2028b\n\n".encode(), [Event("message", "a\u2028b")]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_legal_form_is_read(form: str) -> None:
    data, expected = FORMS[form]
    assert list(events([data])) == expected


@given(st.sampled_from(sorted(FORMS)), st.lists(st.integers(0, 60), max_size=8))
def test_it_matters_nowhere_where_the_pieces_break(form: str, cuts: list[int]) -> None:
    data, expected = FORMS[form]
    marks = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    assert list(events([data[a:b] for a, b in pairwise(marks)])) == expected


def test_a_character_that_is_cut_in_half_stays_whole() -> None:
    data = "data: ü😀\n\n".encode()
    assert [e.data for e in events([data[i : i + 1] for i in range(len(data))])] == ["ü😀"]
