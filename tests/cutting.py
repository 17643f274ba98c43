"""A road to a server that a test can cut: what goes over it is passed on as it is, until its connections are ended."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

BYTES = 65_536


@dataclass(slots=True)
class Way:
    """One connection, and what was asked on it last."""

    inner: socket.socket
    outer: socket.socket
    asked: str = ""

    def end(self) -> None:
        for sock in (self.inner, self.outer):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@dataclass
class Road:
    """Listens on a port of its own for a server on loopback. `asked` holds the head of each request that came, in order."""

    port: int
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock, self._ways, self._is_open = threading.Lock(), list[Way](), threading.Event()
        self._is_open.set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        with suppress(OSError):
            while True:
                outer, _ = self._door.accept()
                threading.Thread(target=self._carry, args=(outer,), daemon=True).start()

    def _carry(self, outer: socket.socket) -> None:
        self._is_open.wait()
        with outer, socket.create_connection(("127.0.0.1", self.port)) as inner:
            way = Way(inner, outer)
            with self._lock:
                self._ways.append(way)
            back = threading.Thread(target=pump, args=(inner, outer), daemon=True)
            back.start()
            with suppress(OSError):
                while data := outer.recv(BYTES):
                    for head in re.findall(rb"(?:GET|POST|PATCH|DELETE) \S+ HTTP/1\.1\r\n.*?\r\n\r\n", data, re.DOTALL):
                        way.asked = head.decode("latin-1")
                        self.asked.append(way.asked)
                    inner.sendall(data)
            way.end()
            back.join()
            with self._lock:
                self._ways.remove(way)

    def cut(self, path: str) -> int:
        """Ends the connections whose last request names a path, and lets no new one through until `mend`. Gives how many there were."""
        self._is_open.clear()
        with self._lock:
            found = [way for way in self._ways if path in way.asked.partition("\r\n")[0]]
        for way in found:
            way.end()
        return len(found)

    def mend(self) -> None:
        self._is_open.set()

    def close(self) -> None:
        self.mend()
        self._door.close()
        with self._lock:
            ways = list(self._ways)
        for way in ways:
            way.end()


def pump(source: socket.socket, to: socket.socket) -> None:
    """Passes on what comes until either end is gone, and tells the other of the end."""
    with suppress(OSError):
        while data := source.recv(BYTES):
            to.sendall(data)
    with suppress(OSError):
        to.shutdown(socket.SHUT_RDWR)
