"""The lean entry: gateway paths are answered here before Django's handler, whose middleware would cost several times what a call does.

What Django's stack would bring it brings itself: the host allow-list, origins and CORS, limits of body and encoding, HEAD and OPTIONS,
security headers, request ids, one log line a call, a cap on calls at once, proxies' headers, and the worker's lifespan.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")

import django

django.setup()

import orjson
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http.request import HttpRequest, split_domain_port, validate_host

from access import door
from access.ids import request_id
from benchwarmers.middleware import API_HEADERS, foreign_host
from panels import views
from panels.gateway import Gateway
from wire.dialects import Dialect
from wire.errors import CallerError

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

log = logging.getLogger("bench.entry")
LOG_CALLS = settings.LOG_LEVEL in ("DEBUG", "INFO")
SECURITY = [(k.lower().encode(), v.encode()) for k, v in API_HEADERS.items()]
EXPOSED = (
    b"x-request-id, x-bench-panel, x-bench-overhead-ms, x-bench-model, x-bench-call, "
    b"x-bench-attempts, x-bench-dropped, x-bench-count, retry-after, mcp-session-id"
)
OVERHEAD = "x-bench-overhead-ms"
SCRIPT_NAME = settings.FORCE_SCRIPT_NAME or ""


class CallerLeft(Exception):
    """The caller closed the connection while its body was still coming."""


class LeanRequest(HttpRequest):
    """As much of Django's request as authentication and the views need, made from the scope; nothing is parsed that nobody asks for."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        # HttpRequest's own initialiser makes eight containers that no gateway view looks at.
        self.scope, self.receive = scope, receive
        self.method = scope["method"]
        self.path = self.path_info = scope["path"].removeprefix(SCRIPT_NAME)
        raw = scope.get("raw_path") or scope["path"].encode()
        self.raw_path = raw.decode("latin-1").partition("?")[0].removeprefix(SCRIPT_NAME)
        self.META = meta_of(scope)
        self.COOKIES: dict[str, str] = {}
        self.resolver_match = None
        client = scope.get("client")
        peer = client[0] if client else ""
        way = door.approach(peer, scope.get("scheme", "http"), self.META, settings.TRUSTED_PROXIES)
        self.META[door.WAS_FORWARDED] = way.forwarded
        self.META["REMOTE_ADDR"] = way.address
        self.META["HTTP_HOST"] = way.host
        self.way = way
        self.request_id = request_id(self.META.get("HTTP_X_REQUEST_ID"))
        self.turn: Any = None

    @property
    def scheme(self) -> str:
        return self.way.scheme

    @cached_property
    def lower_headers(self) -> dict[str, str]:
        """Headers by their own names, for the dialects that read some; those sent several times joined by a comma."""
        found: dict[str, str] = {}
        for raw_name, raw_value in self.scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            found[name] = f"{found[name]},{value}" if name in found else value
        return found

    async def read_body(self) -> bytes:
        """The whole body. Errors: CallerError 413 and 415."""
        meta = self.META
        if (coding := meta.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()) not in ("", "identity"):
            raise CallerError("unsupported_encoding", f"Bodies are taken as they are, not as Content-Encoding {coding[:40]!r}.", status=415)
        limit = settings.MAX_BODY_BYTES
        length = meta.get("HTTP_CONTENT_LENGTH", "")
        too_large = CallerError("body_too_large", f"The body is larger than {limit // (1024 * 1024)} MiB (BENCH_MAX_BODY_MB).", status=413)
        if length.isdecimal() and int(length[:20]) > limit:
            raise too_large
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise CallerLeft
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise too_large
            if not message.get("more_body", False):
                return part if not parts else b"".join([*parts, part])
            parts.append(part)


def meta_of(scope: Scope) -> dict[str, Any]:
    """Headers by their WSGI names. Names with an underscore are left out: they would pass for others."""
    meta: dict[str, Any] = {"QUERY_STRING": scope.get("query_string", b"").decode("latin-1"), "REQUEST_METHOD": scope["method"]}
    for raw_name, raw_value in scope["headers"]:
        if b"_" in raw_name:
            continue
        name = "HTTP_" + raw_name.decode("latin-1").upper().replace("-", "_")
        value = raw_value.decode("latin-1")
        meta[name] = f"{meta[name]},{value}" if name in meta else value
    return meta


async def unheard(message: Any) -> None:
    """Takes what is said to a caller who has left."""


class Outgoing:
    """The way back to one caller."""

    __slots__ = ("began", "extra", "head", "last_write", "send", "started", "status")

    def __init__(self, send: Send, head: bool, extra: list[tuple[bytes, bytes]]) -> None:
        self.send, self.head, self.extra = send, head, extra
        self.began = time.monotonic()
        self.started = False
        self.status = 0
        self.last_write = 0.0

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None:
        self.started, self.status, self.last_write = True, status, time.monotonic()
        raw = [(b"content-type", content_type.encode()), *[(k.encode(), v.encode("latin-1", "replace")) for k, v in headers], *self.extra, *SECURITY]
        if not headers or headers[0][0] != OVERHEAD:  # a turn tells its own, without the time that its providers took
            raw.append((OVERHEAD.encode(), b"%.2f" % ((self.last_write - self.began) * 1000)))
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, data: bytes) -> None:
        self.last_write = time.monotonic()
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    def leave(self) -> None:
        self.send = unheard

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = "application/json") -> None:
        """A reply in one piece, its length told."""
        data = b"" if body is None else orjson.dumps(body)
        await self.start(status, [*headers, ("content-length", str(len(data)))], content_type)
        await self.send({"type": "http.response.body", "body": b"" if self.head else data, "more_body": False})


class Watch:
    """The one task a request that reads on after the body: what comes is the caller's leaving, and it cancels the request's work."""

    def __init__(self, receive: Receive, work: asyncio.Task[Any]) -> None:
        self.receive, self.work = receive, work
        self.left = False
        self.task = asyncio.ensure_future(self.until_gone())

    async def until_gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.left = True
        self.work.cancel()


class Entry:
    """The ASGI application of one worker."""

    def __init__(self) -> None:
        self.django = get_asgi_application()
        self.gateway: Gateway | None = None
        self.paths = views.exact_paths()
        self.prefixes = views.prefixes()
        self.patterns = views.patterns()
        self.methods: dict[str, list[str]] = {}
        for method, path in self.paths:
            self.methods.setdefault(path, []).append(method)
        self.hosts: dict[str, bool] = {}
        self.calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"].removeprefix(SCRIPT_NAME)
            if (found := self.find(scope["method"], path)) is not None:
                await self.call(found, scope, receive, send)
            elif settings.ONLY == "gateway" and path not in ("/livez", "/readyz", "/metrics"):
                out = Outgoing(send, scope["method"] == "HEAD", [])
                await out.whole(404, [], {"error": {"message": "This server answers the gateway's paths only.", "code": "not_found"}})
            else:
                await self.others(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self.lifespan(receive, send)

    async def others(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pages and `/bench`, by Django; their bodies have the same limit, told before Django gathers them."""
        size, limit = 0, settings.MAX_BODY_BYTES
        length = next((v for k, v in scope["headers"] if k == b"content-length"), b"")
        if length.isdigit() and int(length[:20]) > limit:
            out = Outgoing(send, False, [])
            own = request_id(next((v.decode("latin-1") for k, v in scope["headers"] if k == b"x-request-id"), None))
            body = {"type": "about:blank", "title": "Content too large", "status": 413, "code": "body_too_large", "request_id": own}
            await out.whole(
                413, [("x-request-id", own)], {**body, "detail": f"The body is larger than {limit // (1024 * 1024)} MiB."}, "application/problem+json"
            )
            return

        async def counted() -> dict[str, Any]:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            return message if size <= limit else {"type": "http.disconnect"}

        await self.django(scope, counted, send)  # type: ignore[arg-type]  # the stubs are stricter than ASGI

    def find(self, method: str, path: str) -> type[views.GatewayView] | Sequence[str] | None:
        """The view of a gateway path, its allowed methods where the method is another, None for any other path."""
        seek = "GET" if method == "HEAD" else method
        if view := self.paths.get((seek, path)):
            return view
        if path in self.methods:
            return self.methods[path]
        if path.startswith("/bench/"):  # most of these are Django's
            return next((view for m, pattern, view in self.patterns if m == seek and pattern.fullmatch(path)), None)
        under = [(m, prefix, view) for m, prefix, endings, view in self.prefixes if path.startswith(prefix) and (not endings or path.endswith(endings))]
        if view := next((view for m, _, view in under if m == seek), None):
            return view
        # Prefixes as wide as /v1/ take what looks like a model's method; of anything else they say nothing.
        return [m for m, prefix, _ in under if prefix.count("/") > 2] or None

    def dialect_of(self, path: str) -> Dialect:
        """The format that a gateway path answers in, whatever the method."""
        views_here = [view for (_, own), view in self.paths.items() if own == path]
        views_here += [view for _, prefix, endings, view in self.prefixes if path.startswith(prefix) and (not endings or path.endswith(endings))]
        return views_here[0].dialect if views_here else views.GatewayView.dialect

    # ------------------------------------------------------------------ one call

    async def call(self, found: type[views.GatewayView] | Sequence[str], scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        request = LeanRequest(scope, receive)
        extra = [(b"x-request-id", request.request_id.encode())]
        out = Outgoing(send, request.method == "HEAD", extra)
        dialect = found.dialect if isinstance(found, type) else self.dialect_of(request.path)
        self.calls += 1
        try:
            try:
                if not self.is_allowed_host(request.META["HTTP_HOST"]):
                    raise foreign_host()
                if origin := request.META.get("HTTP_ORIGIN"):
                    extra += cors(origin)
                if request.method == "OPTIONS":
                    await self.options(request, found, out)
                elif not isinstance(found, type):
                    raise CallerError("invalid_request", f"{request.method} is not answered here.", status=405)
                else:
                    await self.handle(found, request, out)
            except CallerError as error:
                if out.started:
                    raise
                headers = error_headers(error, request, found)
                await out.whole(dialect.status_of(error), headers, dialect.write_error(error), dialect.error_type)
        except (CallerLeft, asyncio.CancelledError):
            out.status = out.status or 499
            if isinstance(sys.exception(), asyncio.CancelledError):
                raise
        except Exception as error:
            # Nothing of a caller's or a provider's goes into a log: the traceback names places, not contents.
            log.error("a gateway call failed", exc_info=error, extra={"request_id": request.request_id})
            if not out.started:
                failed = CallerError("server_error", "The server failed at this request; its log has the reason under the request's id.", status=500)
                await out.whole(500, [], dialect.write_error(failed), dialect.error_type)
        finally:
            self.calls -= 1
            if LOG_CALLS:
                log_call(request, out, began)

    async def handle(self, view: type[views.GatewayView], request: LeanRequest, out: Outgoing) -> None:
        """Runs a view, and cancels it when the caller leaves."""
        gateway = self.gateway
        if gateway is None:
            raise CallerError("server_busy", "The server is starting.", status=503, retry_after_s=1)
        if request.scope.get("state", {}).get("stopping"):
            raise CallerError("server_busy", "The server is stopping; open calls end, new ones go elsewhere.", status=503, retry_after_s=5)
        if self.calls > settings.MAX_CALLS:
            raise CallerError("server_busy", "The server has as many calls under way as it takes (BENCH_MAX_CALLS).", status=503, retry_after_s=1)
        request.gateway, request.out = gateway, out  # type: ignore[attr-defined]
        snapshot = await gateway.snapshot()
        request.snapshot, request.keyring = snapshot, snapshot.keyring  # type: ignore[attr-defined]
        work, read_body = asyncio.current_task(), request.read_body
        assert work is not None
        watch: Watch | None = None

        async def body_then_watch() -> bytes:
            nonlocal watch
            data = await read_body()
            watch = Watch(request.receive, work)
            return data

        request.read_body = body_then_watch  # type: ignore[method-assign]
        try:
            await view().dispatch(request)
        except asyncio.CancelledError:
            if watch is not None and watch.left:
                work.uncancel()
                raise CallerLeft from None
            raise
        finally:
            if watch is not None:
                watch.task.cancel()

    def is_allowed_host(self, host: str) -> bool:
        known = self.hosts.get(host)
        if known is None:
            domain, _ = split_domain_port(host)
            known = bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
            if len(self.hosts) < 1000:
                self.hosts[host] = known
        return known

    async def options(self, request: LeanRequest, found: type[views.GatewayView] | Sequence[str], out: Outgoing) -> None:
        """A browser's preflight needs no key; a page that may not call is told so."""
        origin = request.META.get("HTTP_ORIGIN", "")
        path = request.path
        methods = sorted(
            {m for (m, p) in self.paths if p == path}
            | {m for m, prefix, endings, _ in self.prefixes if path.startswith(prefix) and (not endings or path.endswith(endings))}
            | {"OPTIONS"}
        )
        allow = ", ".join(methods)
        if not origin:
            await out.whole(204, [("allow", allow)], None)
        elif is_allowed_origin(origin):
            wanted = request.META.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "") or "authorization, content-type"
            headers = [("access-control-allow-methods", allow), ("access-control-allow-headers", wanted), ("access-control-max-age", "600")]
            await out.whole(204, headers, None)
        else:
            raise CallerError("not_allowed", "A page of this origin may not call the gateway. BENCH_ALLOWED_ORIGINS names those that may.", status=403)

    # ------------------------------------------------------------------ the worker's life

    async def lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self.gateway = Gateway()
                    await self.gateway.open()
                    # What is loaded by now stays: looking through it for garbage again and again would stop every call for 50 ms or more.
                    gc.collect()
                    gc.freeze()
                except Exception as error:
                    log.error("the worker could not start", exc_info=error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if self.gateway:
                    await self.gateway.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def is_allowed_origin(origin: str) -> bool:
    return door.normal_origin(origin) in {door.normal_origin(o) for o in settings.ALLOWED_ORIGINS}


def cors(origin: str) -> list[tuple[bytes, bytes]]:
    if not is_allowed_origin(origin):
        return [(b"vary", b"origin")]
    return [(b"vary", b"origin"), (b"access-control-allow-origin", origin.encode("latin-1")), (b"access-control-expose-headers", EXPOSED)]


def error_headers(error: CallerError, request: LeanRequest, found: Any) -> list[tuple[str, str]]:
    headers = request.turn.headers() if request.turn else []
    if error.retry_after_s is not None or error.status == 429:
        headers.append(("retry-after", str(max(1, math.ceil(error.retry_after_s or 1)))))
    if error.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    if error.status == 405 and not isinstance(found, type):
        headers.append(("allow", ", ".join(sorted(found))))
    return headers


def log_call(request: LeanRequest, out: Outgoing, began: float) -> None:
    """One line a call: never its query, its body or its key."""
    turn = request.turn
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "Z",
        "level": "info",
        "logger": "bench.calls",
        "message": "call",
        "request_id": request.request_id,
        "method": request.method,
        "path": quote(request.path[:200], safe="/:"),
        "status": out.status,
        "ms": round((time.monotonic() - began) * 1000, 1),
    }
    if turn:
        line["panel"] = turn.panel
        line["key"] = turn.caller.key_name
        line["model"] = turn.request.model[:200]
    try:
        os.write(2, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    except OSError:
        pass  # whoever read our stderr is gone; the call was answered all the same


application = Entry()
