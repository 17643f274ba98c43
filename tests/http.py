"""A plain HTTP caller for tests: whole replies, streams that are read as far as a test wants, and bytes past all rules."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 60.0  # how long a silent server is borne before a test fails


@dataclass(frozen=True, slots=True)
class Reply:
    """Headers by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def code(self) -> str:
        """The code of an error in the OpenAI shape."""
        return str(self.json["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])

    @property
    def content(self) -> str:
        return str(self.json["choices"][0]["message"]["content"])


def send(host: str, port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, lowered(response), response.read())
    finally:
        connection.close()


def lowered(response: http.client.HTTPResponse) -> dict[str, str]:
    """Headers by lower-case name; those sent several times joined by a comma."""
    out: dict[str, str] = {}
    for name, value in response.getheaders():
        out[name.lower()] = f"{out[name.lower()]}, {value}" if name.lower() in out else value
    return out


class Stream:
    """A reply that is read while it comes. `got` is all that has come."""

    def __init__(self, host: str, port: int, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        self.connection.request("POST", path, body, dict(headers))
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.headers = lowered(self.response)
        self.got = b""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        sock = self.connection.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.response.close()
        self.connection.close()

    def until(self, text: str) -> str:
        """Reads until a text has come. Errors: AssertionError where the stream ends before."""
        mark = text.encode()
        while mark not in self.got:
            piece = self.response.read1(65536)
            assert piece, f"the stream ended without {text!r}: {self.got[-500:]!r}"
            self.got += piece
        return self.got.decode(errors="replace")

    def rest(self) -> bytes:
        """Reads to the end."""
        while piece := self.response.read1(65536):
            self.got += piece
        return self.got

    def events(self) -> list[Any]:
        """All events' data, JSON read, comments left out; `[DONE]` as text."""
        return list(events_of(self.rest()))

    @property
    def whole(self) -> Reply:
        return Reply(self.status, self.headers, self.rest())


def events_of(body: bytes) -> Iterator[Any]:
    for block in body.decode().split("\n\n"):
        lines = [line[5:].lstrip(" ") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            data = "\n".join(lines)
            yield data if data == "[DONE]" else json.loads(data)


def content_of(events: list[Any]) -> str:
    """A streamed OpenAI answer's text."""
    return "".join(c["delta"].get("content") or "" for e in events if isinstance(e, dict) for c in e.get("choices") or [])


def exchange(host: str, port: int, data: bytes, *, half_close: bool = False) -> bytes:
    """Sends exactly these bytes and reads until the server closes, or stays silent for long after having answered."""
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as sock:
        try:
            sock.sendall(data)
            if half_close:
                sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may have answered and closed before it heard all
        got = b""
        try:
            while piece := sock.recv(65536):
                got += piece
                if finished(got):
                    break
        except OSError:
            pass
        return got


def finished(got: bytes) -> bool:
    """Whether a whole answer with a length is there."""
    head, mark, body = got.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if mark and line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False
