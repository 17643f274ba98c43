"""A small web server on a free port whose pages a test sets, and that keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Pages:
    """Shape: `pages` maps a path (with its query) to status, headers and body; None as a body hangs up without an answer."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.pages: dict[str, tuple[int, dict[str, str], bytes | None]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.held = threading.Event()

    def put(self, path: str, body: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        raw = body if isinstance(body, bytes) or body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.pages[path] = (status, {"Content-Type": content_type, **{name.replace("_", "-"): value for name, value in headers.items()}}, raw)


@contextmanager
def serving() -> Iterator[Pages]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            status, headers, body = pages.pages.get(self.path, (404, {"Content-Type": "application/json"}, b'{"error": "no such page"}'))
            if body is None:
                self.close_connection = True
                return
            if body == b"HOLD":
                pages.held.wait(30)
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def do_POST(self) -> None:
            """Pages for a post stand under "POST path body", its JSON written closely, or under "POST path"."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            exact = f"POST {self.path} {json.dumps(json.loads(body), separators=(',', ':'))}" if body.startswith(b"{") else ""
            self.path = exact if exact in pages.pages else f"POST {self.path}"
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    pages = Pages(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        pages.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
