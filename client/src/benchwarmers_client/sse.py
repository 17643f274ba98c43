"""Reads server-sent events out of text as it comes. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Shape: `name` is message where none was given; `id` the last one given so far."""

    name: str
    data: str
    id: str = ""


def events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Gives each event once it is complete; one that the stream's end cuts off is dropped."""
    name, data, last_id = "", [], ""
    for line in lines(pieces):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
            elif field == "id" and "\0" not in value:
                last_id = value
            continue
        if data:
            yield Event(name or "message", "\n".join(data), last_id)
        name, data = "", []


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Cuts UTF-8 into lines at CR, LF or CRLF, wherever the pieces break; gives only lines that were ended. A byte order mark at the start is no text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    kept, is_first, after_cr = "", True, False
    for piece in pieces:
        text = decoder.decode(piece)
        if is_first and text:
            text, is_first = text.removeprefix("\ufeff"), False
        if after_cr and text:
            text, after_cr = text.removeprefix("\n"), False
        kept += text
        while (end := next((i for i, c in enumerate(kept) if c in "\r\n"), -1)) >= 0:
            line, rest = kept[:end], kept[end + 1 :]
            if kept[end] == "\r":
                after_cr = not rest
                rest = rest.removeprefix("\n")
            kept = rest
            yield line
