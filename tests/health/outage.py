"""Takes the database away and brings it back: SQLite by another connection that locks it, PostgreSQL by a cable that is cut."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Callable

Pair = tuple[socket.socket, socket.socket]


class Lock:
    """Holds SQLite's database for itself."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection: sqlite3.Connection | None = None

    def begin(self) -> None:
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("BEGIN EXCLUSIVE")

    def end(self) -> None:
        if self.connection:
            self.connection.execute("ROLLBACK")
            self.connection.close()
            self.connection = None

    close = end


class Cable:
    """A TCP proxy in front of PostgreSQL.

    Shape: `cut_at`, once set, cuts everything when a client sends these bytes; with `reaches` after they have arrived, else before.
    """

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.cut_at: bytes | None = None
        self.reaches = False
        self.is_heard = True
        self.pairs: list[Pair] = []
        self.listener: socket.socket | None = None
        self.port = 0
        self.end()

    def end(self) -> None:
        """Mends it: it can be connected to again."""
        self.cut_at, self.is_heard = None, True
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port))
            self.port = self.listener.getsockname()[1]
            self._start(self._accept, self.listener)

    def begin(self) -> None:
        """Cuts it: connections break, new ones are refused."""
        listener, self.listener = self.listener, None
        if listener:
            # A listener that a thread waits on stays open until something comes.
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    close = begin

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            self.pairs.append((client, server))
            self._start(self._pump, client, server, True)
            self._start(self._pump, server, client, False)

    def _pump(self, source: socket.socket, sink: socket.socket, watched: bool) -> None:
        try:
            while data := source.recv(65536):
                if watched and self.cut_at and self.cut_at in data:
                    if not self.reaches:
                        return self.begin()
                    self.is_heard = False
                elif not watched and not self.is_heard:
                    return self.begin()  # the answer has come, and nobody hears it
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            source.close()
