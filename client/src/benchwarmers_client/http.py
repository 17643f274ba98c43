"""Calls to the server: one address, one key, clear failures. Calls to this machine never go through a proxy.

ServerFailure
    NoServer     nothing answers there, or what answers is no Benchwarmers server
        Unreached    the request never left, so that it may be sent again whatever it was
    Refused      the server says no, with its reason
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from benchwarmers_client import __version__
from benchwarmers_client.server import Server
from benchwarmers_client.sse import Event, events

CONNECT_S = 5.0
# A panel may take as long as its collection allows, and says something every 15 s when it streams.
READ_S = 60.0
LONG_S = 3600.0
LONGEST_REASON = 2000
FIND = "Start one (make run), or say where it is: --url or BENCHWARMERS_URL."


class ServerFailure(Exception):
    """The message says what happened and what to do."""


class NoServer(ServerFailure):
    pass


class Unreached(NoServer):
    pass


class Refused(ServerFailure):
    """Shape: `status` and `code` are the server's, `body` its whole answer where it was JSON."""

    def __init__(self, message: str, status: int, code: str = "", body: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.body = status, code, body


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, as it came. Shape: names of headers are looked up in any case."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def path_of(*parts: str) -> str:
    """A path below /bench, names percent-encoded, slashes too."""
    return "/bench/" + "/".join(quote(part, safe="") for part in parts)


class Client:
    """The way to one server. Close it, or use it with `with`. Shape: `find` says how another server is named, for who finds none."""

    def __init__(self, server: Server, agent: str = "benchwarmers-client", find: str = FIND) -> None:
        self.server, self.find = server, find
        headers = {"user-agent": f"{agent}/{__version__}"}
        if server.key:
            headers["authorization"] = f"Bearer {server.key}"
        # The environment's proxies for other machines only. A redirect would take the key to wherever it points.
        self.inner = httpx.Client(headers=headers, timeout=httpx.Timeout(READ_S, connect=CONNECT_S), trust_env=not server.is_here, follow_redirects=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.close()

    def get(self, path: str, **query: Any) -> Any:
        """Errors: ServerFailure."""
        return self.send("GET", path, query={name: value for name, value in query.items() if value not in (None, "", False)})

    def every(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Walks a list, page by page. Errors: ServerFailure."""
        token = ""
        while True:
            page = self.get(path, page_token=token, **{"limit": 500, **query})
            yield from page["data"]
            token = page.get("next") or ""
            if not token:
                return

    def send(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None, timeout_s: float = READ_S, **headers: str) -> Any:
        """Sends one request and gives its JSON, None for an empty answer. Errors: ServerFailure."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.exchange(method, path, body, query=query, timeout_s=timeout_s, headers=given)
        return self.read(answer.status, answer.headers, answer.data)

    def exchange(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = READ_S,
    ) -> Answer:
        """Sends one request, with JSON or bytes, and gives the answer whatever its status. Errors: ServerFailure."""
        with self.reaching():
            answer = self.inner.request(
                method,
                self.server.url + path,
                json=body,
                content=content,
                params=dict(query or {}),
                headers=dict(headers or {}),
                timeout=httpx.Timeout(timeout_s, connect=CONNECT_S),
            )
        return Answer(answer.status_code, answer.headers, answer.content)

    @contextmanager
    def stream(self, path: str, body: Any = None, *, method: str = "POST", headers: Mapping[str, str] | None = None) -> Iterator[Iterator[Event]]:
        """Sends a request whose answer is an event stream. Leaving early hangs up, which cancels what the server does for it. Errors: ServerFailure."""
        with (
            self.reaching(),
            self.inner.stream(method, self.server.url + path, json=body, headers={"accept": "text/event-stream", **(headers or {})}) as answer,
        ):
            if answer.status_code != 200 or not answer.headers.get("content-type", "").startswith("text/event-stream"):
                self.read(answer.status_code, answer.headers, answer.read())
                raise NoServer(f"What answers at {self.server.url} is no Benchwarmers server: it did not stream.")
            yield events(answer.iter_bytes())

    @contextmanager
    def reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectTimeout:
            raise Unreached(f"No server answers at {self.server.url} within {CONNECT_S:g} s.") from None
        except httpx.ProxyError:
            raise NoServer(f"The proxy that the environment names (HTTP_PROXY, HTTPS_PROXY) does not let {self.server.url} through.") from None
        except httpx.ConnectError:
            raise Unreached(f"There is no server at {self.server.url}. {self.find}") from None
        except httpx.ReadTimeout:
            raise Refused(f"The server at {self.server.url} did not answer in time.", 0, "timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeEncodeError) as error:
            raise NoServer(f"The connection to {self.server.url} broke ({type(error).__name__}).") from None

    def read(self, status: int, headers: Mapping[str, str], data: bytes) -> Any:
        """Reads an answer. Errors: Refused, NoServer for what is not this server's."""
        if status == 204 or (status < 300 and not data):
            return None
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        if body is None:
            what = headers.get("content-type", "").partition(";")[0] or "nothing"
            proxied = "" if self.server.is_here else " If a proxy stands between (HTTP_PROXY, HTTPS_PROXY), it may have answered; NO_PROXY leaves a host out."
            raise NoServer(f"What answers at {self.server.url} is no Benchwarmers server: it sent {what}, status {status}.{proxied}")
        if status >= 300:
            message, code = reason_of(body)
            raise Refused(message or f"The server answered {status}.", status, code, body)
        return body


def reason_of(body: Any) -> tuple[str, str]:
    """Message and code of an error, in the shape of /bench or of a dialect."""
    if not isinstance(body, dict):
        return "", ""
    error = body.get("error")
    if isinstance(error, dict):
        return str(error.get("message") or "")[:LONGEST_REASON], str(error.get("code") or "")
    return str(body.get("detail") or body.get("title") or "")[:LONGEST_REASON], str(body.get("code") or "")
