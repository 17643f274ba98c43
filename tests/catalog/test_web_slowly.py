"""Servers that answer a byte at a time: a request ends when its time is over, whatever part of the answer drips."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from catalog import web

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
# What comes at once, and what comes again and again without an end.
DRIPS = {
    "a body": (OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "a body without a length": (OK + b"\r\n", b" "),
    "a chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n", b" "),
    "a chunk's length": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "a header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "the status": (b"HTTP/1.1 200 ", b"O"),
    "statuses that say to wait": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


class Dripping:
    def __init__(self, first: bytes, again: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.first, self.again = first, again
        self.was_left = threading.Event()
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        caller, _ = self.listener.accept()
        with closing(caller):
            caller.recv(65536)
            try:
                caller.sendall(self.first)
                while not self.closed.wait(0.02):
                    caller.sendall(self.again)
            except OSError:
                self.was_left.set()

    def close(self) -> None:
        self.closed.set()
        self.listener.close()
        self.thread.join(5)


@pytest.fixture(params=DRIPS)
def dripping(request: pytest.FixtureRequest) -> Iterator[Dripping]:
    server = Dripping(*DRIPS[request.param])
    with closing(server):
        yield server


def test_what_drips_ends_with_the_requests_time_and_its_connection_with_it(dripping: Dripping) -> None:
    with pytest.raises(web.WebError) as caught:
        web.fetch(f"http://127.0.0.1:{dripping.port}/", {}, named=True, limit_bytes=1_000_000, timeout_s=0.3)
    assert caught.value.code == "timed_out"
    assert dripping.was_left.wait(5)


def test_a_proxy_that_drips_ends_too(dripping: Dripping, settings: Any) -> None:
    settings.PROXIES = {"http": f"http://127.0.0.1:{dripping.port}"}
    with pytest.raises(web.WebError) as caught:
        web.fetch("http://catalog.example.org/", {}, named=False, limit_bytes=1_000_000, timeout_s=0.3)
    assert caught.value.code == "timed_out"
    assert dripping.was_left.wait(5)
