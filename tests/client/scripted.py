"""A server on a real socket that answers what a test says, for what a healthy server does not do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Scripted:
    """Shape: `answers` go out one a request, the last again and again; `asked` is what came: method, path, headers, body."""

    url: str
    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def scripted(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[Scripted]:
    """Serves until the block ends. An answer with status 0 is a connection that breaks."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            server.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers, data = server.answers[min(len(server.asked), len(server.answers)) - 1]
            self.close_connection = True
            if status == 0:
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer

        def log_message(self, *parts: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Scripted(f"http://127.0.0.1:{listening.server_address[1]}", list(answers))
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
