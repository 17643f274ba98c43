"""All outgoing HTTP that is no model call: model lists, catalogs, hubs, sign-ins. Addresses are checked on the connection that is made, nothing is followed.

WebError   no usable answer came; its `code` says why
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import requests
import requests.adapters
import urllib3
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.util import connection as sockets

from catalog import addresses
from catalog.addresses import AddressRefused

CONNECT_S = 5.0
PIECE_BYTES = 65536
MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")
USER_AGENT = "benchwarmers"


class WebError(Exception):
    """Shape: `code` is address_refused, unreachable, timed_out, too_large, redirected, refused (a status that is not 2xx) or not_json.

    The message holds no byte of the answer: it may be any page of the network that this server stands in.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer, whatever its status. `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """What it says it is, as far as that can be shown."""
        said = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return said if MEDIA_TYPE.fullmatch(said) else "no content type" if not said else "an odd content type"


# ------------------------------------------------------------------ the time that one request has


class Watch:
    """Ends a request's connections when its time is over: a server that sends a byte now and then answers each single read in time, for days."""

    def __init__(self, timeout_s: float) -> None:
        self.is_over = False
        self.doors: list[socket.socket] = []
        self.lock = threading.Lock()
        self.timer = threading.Timer(timeout_s, self.end)
        self.timer.daemon = True

    def __enter__(self) -> Watch:
        self.before = watching.set(self)
        self.timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        watching.reset(self.before)
        self.timer.cancel()
        with self.lock:
            for door in self.doors:
                door.close()
            self.doors.clear()

    def add(self, opened: socket.socket) -> None:
        """Takes a second handle of the connection, since TLS takes the first one away."""
        with self.lock:
            self.doors.append(opened.dup())
        if self.is_over:
            self.end()

    def end(self) -> None:
        self.is_over = True
        with self.lock:
            for door in self.doors:
                try:
                    door.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it had ended by itself


watching: ContextVar[Watch | None] = ContextVar("watching", default=None)


def watched(opened: socket.socket) -> socket.socket:
    if watch := watching.get():
        watch.add(opened)
    return opened


# ------------------------------------------------------------------ connections that look at the address they connect to


def connect(connection: HTTPConnection, named: bool) -> socket.socket:
    """Opens a connection's socket to an address that was checked. Errors: as urllib3's own, and AddressRefused."""
    host = connection._dns_host.rstrip(".")
    try:
        found = addresses.resolve(host, connection.port or 0, named)
    except OSError as error:
        raise NewConnectionError(connection, f"The name does not resolve: {error}") from error
    last: OSError | None = None
    for address in found:
        try:
            return watched(sockets.create_connection((address, connection.port or 0), connection.timeout, socket_options=connection.socket_options))
        except TimeoutError as error:
            raise urllib3.exceptions.ConnectTimeoutError(connection, "The connection timed out.") from error
        except OSError as error:
            last = error
    raise NewConnectionError(connection, f"No connection: {last}") from last


class PublicHTTP(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self, named=False)


class PublicHTTPS(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self, named=False)


class NamedHTTP(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self, named=True)


class NamedHTTPS(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self, named=True)


class ProxiedHTTP(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return watched(super()._new_conn())


class ProxiedHTTPS(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return watched(super()._new_conn())


def pools(http: type[HTTPConnection], https: type[HTTPSConnection]) -> dict[str, type[HTTPConnectionPool]]:
    return {
        "http": type("Pool", (HTTPConnectionPool,), {"ConnectionCls": http}),
        "https": type("SecurePool", (HTTPSConnectionPool,), {"ConnectionCls": https}),
    }


POOLS = {False: pools(PublicHTTP, PublicHTTPS), True: pools(NamedHTTP, NamedHTTPS)}
PROXY_POOLS = pools(ProxiedHTTP, ProxiedHTTPS)


class CheckedAdapter(requests.adapters.HTTPAdapter):
    """Connects to checked addresses only, where no proxy stands between."""

    def __init__(self, named: bool, secure: bool) -> None:
        self.named, self.secure = named, secure
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        # The system's certificates besides the library's own: a team's servers are often signed by its own authority. To read them takes 25 ms.
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context() if self.secure else None, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS[self.named]

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = PROXY_POOLS
        return manager


def proxies_for(url: str, named: bool) -> dict[str, str]:
    """The environment's proxy, for public hosts only: a private one is not to be told to a proxy, which could not reach it either."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = settings.PROXIES.get(parts.scheme)
    if not proxy or proxy_bypass_environment(host, settings.PROXIES) or addresses.literal(host) is not None or addresses.is_local_name(host):
        return {}
    if named:
        try:
            found = socket.getaddrinfo(host, parts.port or 0, type=socket.SOCK_STREAM)
        except OSError:
            found = []  # only the proxy knows the name
        if not all(addresses.is_public(str(entry[4][0])) for entry in found):
            return {}
    return {parts.scheme: proxy}


# ------------------------------------------------------------------ one request


def fetch(url: str, headers: Mapping[str, str], *, named: bool, limit_bytes: int, timeout_s: float) -> Fetched:
    """Gets one address once, and gives what it answered, whatever the status. `named`: an admin named the host, so it may be private.

    Units: `timeout_s` is for the whole of it.
    Errors: WebError.
    """
    return once("GET", url, headers, None, named=named, limit_bytes=limit_bytes, timeout_s=timeout_s)


def send(
    url: str, headers: Mapping[str, str], *, form: Mapping[str, str] | None = None, json_body: Any = None, named: bool, limit_bytes: int, timeout_s: float
) -> Fetched:
    """Posts a form, or JSON, to one address once, under the same rules as `fetch`; a redirect is an answer, and the body goes nowhere else.

    Errors: WebError; its message holds no byte of what was sent.
    """
    kind = "application/json" if form is None else "application/x-www-form-urlencoded"
    body = json.dumps(json_body) if form is None else urlencode(form)
    return once("POST", url, {"Content-Type": kind, **headers}, body.encode(), named=named, limit_bytes=limit_bytes, timeout_s=timeout_s)


def once(method: str, url: str, headers: Mapping[str, str], data: bytes | None, *, named: bool, limit_bytes: int, timeout_s: float) -> Fetched:
    if urlsplit(url).scheme not in ("http", "https"):
        raise WebError("address_refused", "The address must begin with http:// or https://.")
    late = WebError("timed_out", f"It did not finish its answer within {timeout_s:g} s.")
    with Watch(timeout_s) as watch:
        try:
            fetched = asked(method, url, headers, data, named, limit_bytes, timeout_s)
        except WebError as error:
            raise late if watch.is_over and error.code == "unreachable" else error from None
        if watch.is_over:
            raise late  # what was cut off may look like a whole answer
        return fetched


def asked(method: str, url: str, headers: Mapping[str, str], data: bytes | None, named: bool, limit_bytes: int, timeout_s: float) -> Fetched:
    with requests.Session() as session:
        # The environment's .netrc would replace the key, its proxies would see private hosts.
        session.trust_env = False
        adapter = CheckedAdapter(named, urlsplit(url).scheme == "https")
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        try:
            addresses.check_host(urlsplit(url).hostname or "", named)
            answer = session.request(
                method,
                url,
                data=data,
                headers={"User-Agent": USER_AGENT, "Accept": "application/json", **headers},
                timeout=(min(CONNECT_S, timeout_s), timeout_s),
                allow_redirects=False,
                stream=True,
                proxies=proxies_for(url, named),
            )
            with answer:
                body = bytearray()
                for piece in answer.iter_content(PIECE_BYTES):
                    body += piece
                    if len(body) > limit_bytes:
                        raise WebError("too_large", f"It answered more than {limit_bytes:,} bytes.", answer.status_code)
                return Fetched(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, bytes(body))
        except AddressRefused as refused:
            raise WebError("address_refused", f"Its address is refused. {refused}") from None
        except requests.exceptions.SSLError:
            raise WebError("unreachable", "Its certificate is not trusted, or it speaks no TLS.") from None
        except requests.exceptions.ConnectTimeout:
            raise WebError("timed_out", "No connection came about in time.") from None
        except (requests.exceptions.ReadTimeout, TimeoutError):
            raise WebError("timed_out", f"It did not answer within {timeout_s:g} s.") from None
        except requests.exceptions.ConnectionError as error:
            raise WebError(*why(error, timeout_s)) from None
        except (requests.exceptions.RequestException, HTTPError, OSError, ValueError):
            # ValueError: headers or an address that the library refuses; its text would repeat them.
            raise WebError("unreachable", "It answered nothing that is HTTP.") from None


def why(error: Exception, timeout_s: float) -> tuple[str, str]:
    """Tells a refused connection from an unknown name, in words of our own: the library's hold addresses, and at times bytes."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        inner = one.args[0] if one.args and isinstance(one.args[0], BaseException) else getattr(one, "reason", None)
        one = one.__cause__ or (inner if isinstance(inner, BaseException) else None) or one.__context__
    if any(isinstance(part, socket.gaierror) for part in chain):
        return "unreachable", "Its host name does not resolve."
    if any(isinstance(part, ConnectionRefusedError) for part in chain):
        return "unreachable", "Nothing listens there (connection refused)."
    if any(isinstance(part, TimeoutError | urllib3.exceptions.TimeoutError) for part in chain):
        return "timed_out", f"It did not answer within {timeout_s:g} s."
    return "unreachable", "The connection broke off, or it speaks no HTTP."


def json_of(fetched: Fetched, what: str = "JSON") -> Any:
    """Reads an answer's JSON. `what` it should have been goes into the message.

    Errors: WebError, "not a model API (got text/html, status 200)"; never a byte of the body, which a JSON library's own text would show.
    """
    got = f"got {fetched.media_type}, status {fetched.status}"
    if 300 <= fetched.status < 400:
        raise WebError("redirected", f"not {what} ({got}): it redirects elsewhere, which is not followed.", fetched.status)
    if not 200 <= fetched.status < 300:
        raise WebError("refused", f"not {what} ({got}).", fetched.status)
    if fetched.media_type in ("text/html", "application/xhtml+xml"):
        raise WebError("not_json", f"not {what} ({got}).", fetched.status)
    try:
        return json.loads(fetched.body)
    except (ValueError, RecursionError):
        raise WebError("not_json", f"not {what} ({got}).", fetched.status) from None


def get_json(url: str, headers: Mapping[str, str], named: bool, limit_bytes: int = 16_000_000, timeout_s: float = 20.0, what: str = "JSON") -> Any:
    """Gets one address and reads its JSON. Errors: WebError."""
    return json_of(fetch(url, headers, named=named, limit_bytes=limit_bytes, timeout_s=timeout_s), what)
