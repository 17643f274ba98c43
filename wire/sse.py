"""Server-sent events: bytes in any packets to events, and events to bytes.

Follows the WHATWG event stream format: lines end in CR, LF or CRLF, a field's value loses one leading space, several data lines join with
LF, comments are skipped, an event without a blank line after it is dropped at the end.
"""

from __future__ import annotations

from typing import NamedTuple

KEEPALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


class ServerEvent(NamedTuple):
    event: str
    data: bytes


class TooLong(ValueError):
    """One event is longer than any model's; the stream is not trusted further."""


class Parser:
    """Takes bytes as they come and gives whole events.

    Errors: TooLong when one event grows over `limit` bytes.
    """

    __slots__ = ("_buffer", "_data", "_event", "_held", "_skip_lf", "limit")

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._buffer = b""
        self._data: list[bytes] = []
        self._event = ""
        self._skip_lf = False
        self._held = 0  # bytes of the event's earlier lines
        self.limit = limit

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        buffer = self._buffer + chunk if self._buffer else chunk
        if b"\r" in buffer:
            # A CR at the very end may be the first half of CRLF: it ends the line now, and an LF that follows is skipped.
            if buffer.endswith(b"\r"):
                self._skip_lf = True
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        self._buffer = lines.pop()
        out: list[ServerEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    out.append(ServerEvent(self._event, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data = []
                    self._held = 0
                self._event = ""
            elif line[0] == 0x3A:  # a comment
                continue
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._held += len(line)
            elif line.startswith(b"event:"):
                self._event = line[6:].lstrip(b" ").decode("utf-8", "replace")
            elif line == b"data":
                self._data.append(b"")
                self._held += 1
        if len(self._buffer) + self._held > self.limit:
            raise TooLong(f"an event of over {self.limit} bytes")
        return out

    def close(self) -> list[ServerEvent]:
        """The last event, where the sender forgot the blank line after it: many do, so it is not dropped."""
        out = self.feed(b"\n\n") if self._buffer or self._data else []
        self._buffer = b""
        return out


def event(data: bytes, name: str = "") -> bytes:
    """One event; `data` must hold no line end."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data) if name else b"data: %b\n\n" % data
