"""MCP over stdio on one side, over HTTP on the other: a line in is one message, its answers come back as lines.

Source: https://modelcontextprotocol.io/specification, transports. Requests run side by side, since a panel takes minutes while a client pings.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from benchwarmers_client.http import CONNECT_S, LONG_S, Client
from benchwarmers_client.sse import events

AT_ONCE = 16
INTERNAL_ERROR, PARSE_ERROR = -32603, -32700


class Bridge:
    """One client's way to the server. `session` is the older protocol's, as the server named it."""

    def __init__(self, client: Client, out: Any) -> None:
        self.client, self.out = client, out
        self.lock = threading.Lock()
        self.session = ""
        self.version = ""

    def write(self, message: Any) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        with self.lock:
            self.out.write(line + "\n")
            self.out.flush()

    def headers_for(self, message: Any) -> dict[str, str]:
        found = {"accept": "application/json, text/event-stream"}
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = str(meta.get("io.modelcontextprotocol/protocolVersion", "")) if isinstance(meta, dict) else ""
        if stated:  # the newer generation says with each message what it speaks, and repeats parts of it in headers
            found |= {"mcp-protocol-version": stated, "mcp-method": str(message.get("method", ""))}
            if isinstance(params, dict) and isinstance(params.get("name"), str) and params["name"].isascii():
                found["mcp-name"] = params["name"]
        else:
            if self.version:
                found["mcp-protocol-version"] = self.version
            if self.session:
                found["mcp-session-id"] = self.session
        return found

    def pass_on(self, message: Any) -> None:
        """Sends one message and writes what comes back. A failure becomes the message's own error, so that nobody waits for an answer for ever."""
        name = message.get("id") if isinstance(message, dict) else None
        try:
            with self.client.inner.stream(
                "POST", self.client.server.url + "/mcp", json=message, headers=self.headers_for(message), timeout=httpx.Timeout(LONG_S, connect=CONNECT_S)
            ) as answer:
                self.session = answer.headers.get("mcp-session-id", self.session)
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    for event in events(answer.iter_bytes()):
                        if event.data:
                            self.told(json.loads(event.data))
                    return
                data = answer.read()
                if data.strip():
                    self.told(json.loads(data))
                elif answer.status_code >= 400 and name is not None:
                    self.failed(name, f"The server answered {answer.status_code}.")
        except ValueError:
            self.failed(name, "What answered is no Benchwarmers server.")
        except httpx.HTTPError:
            self.failed(name, f"There is no server at {self.client.server.url}. Start it, or set BENCHWARMERS_URL.")

    def told(self, message: Any) -> None:
        result = message.get("result") if isinstance(message, dict) else None
        if isinstance(result, dict) and "protocolVersion" in result:
            self.version = str(result["protocolVersion"])
        if isinstance(message, dict) and "jsonrpc" not in message:  # an error in another shape, such as a refused key
            raise ValueError
        self.write(message)

    def failed(self, name: Any, why: str) -> None:
        if name is not None:
            self.write({"jsonrpc": "2.0", "id": name, "error": {"code": INTERNAL_ERROR, "message": why}})


def run(client: Client) -> None:
    """Passes messages on until stdin ends."""
    bridge = Bridge(client, sys.stdout)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mcp") as pool:
        for line in sys.stdin:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except ValueError:
                bridge.write({"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": "That is no JSON."}})
                continue
            if isinstance(message, dict) and message.get("method") == "initialize":
                bridge.pass_on(message)  # what follows needs the session that this opens
            else:
                pool.submit(bridge.pass_on, message)
