"""The only door to the network for model calls. Sends once, never retries, follows nowhere.

A connection from the pool that the peer had already closed, before a byte of answer came, is replaced once: nothing was asked on it.
Source: RFC 9112 section 9.3.1 on retrying requests whose connection closed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # not in the stubs

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings

from catalog.addresses import AddressRefused, check_host, check_ip
from wire.errors import Garbage, TimedOut, Truncated, Unreachable

CONNECT_S = 10.0
MAX_REPLY_BYTES = 64 * 1024 * 1024

# Holds a list while a request is being sent; a connection made for it is noted there, so that a stale one from the pool can be told apart.
MADE: ContextVar[list[bool] | None] = ContextVar("MADE", default=None)


class CheckedResolver(AbstractResolver):
    """Resolves through the system, and refuses the addresses that no model lives at, at connect time: a name may point elsewhere later."""

    def __init__(self) -> None:
        self.inner = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = await self.inner.resolve(host, port, family)
        for item in found:
            check_ip(ipaddress.ip_address(item["host"]), named=True)
        return found

    async def close(self) -> None:
        await self.inner.close()


class Connector(aiohttp.TCPConnector):
    async def _create_connection(self, *args: Any, **kwargs: Any) -> Any:
        made = MADE.get()
        if made is not None:
            made.append(True)
        return await super()._create_connection(*args, **kwargs)


class UpstreamReply:
    """An endpoint's answer, its body still on the way.

    Shape: `headers` by lower-case names. Errors: `read` and `chunks` raise Truncated, TimedOut or Garbage.
    """

    __slots__ = ("headers", "response", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.status = response.status
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in response.headers.items()}

    @property
    def is_event_stream(self) -> bool:
        return self.comes_as(("text/event-stream",))

    def comes_as(self, types: Sequence[str]) -> bool:
        """Whether the content type is one of some, parameters aside."""
        return self.headers.get("content-type", "").strip().lower().startswith(tuple(types))

    async def read(self, limit: int = MAX_REPLY_BYTES) -> bytes:
        """The whole body; Garbage over `limit` bytes."""
        try:
            if (length := self.response.content_length) is not None and length <= limit:
                return await self.response.read()
            parts, size = [], 0
            async for part in self.response.content.iter_any():
                size += len(part)
                if size > limit:
                    raise Garbage(f"The endpoint's answer is longer than {limit} bytes.")
                parts.append(part)
            return b"".join(parts)
        except aiohttp.ServerTimeoutError:
            raise TimedOut("The endpoint fell silent in the middle of its answer.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Truncated(f"The endpoint's answer broke off ({type(error).__name__}).") from None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, inflated where it was compressed."""
        content = self.response.content
        try:
            while True:
                part = await content.readany()
                if not part:
                    return
                yield part
        except aiohttp.ServerTimeoutError:
            raise TimedOut("The endpoint fell silent in the middle of its answer.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Truncated(f"The endpoint's stream broke off ({type(error).__name__}).") from None

    def close(self) -> None:
        """Gives the connection back where the body was read whole, else drops it, which tells the endpoint to stop."""
        self.response.close()


class Upstream:
    """One pool of connections a process; made on the running loop, closed at shutdown."""

    def __init__(self) -> None:
        self.session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        connector = Connector(limit=0, resolver=CheckedResolver(), ttl_dns_cache=60, keepalive_timeout=30)
        self.session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=True,
            skip_auto_headers=("Accept", "User-Agent"),
            read_bufsize=2**18,
        )

    async def close(self) -> None:
        if self.session:
            await self.session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, idle_s: float | None) -> UpstreamReply:
        """Sends one call and waits for the head of the answer.

        Units: `idle_s` seconds of silence allowed (None: the caller's own deadline alone).
        Errors: Unreachable, TimedOut; AddressRefused becomes Unreachable. An error status is an answer, not an error, here.
        """
        assert self.session is not None
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        made: list[bool] = []
        token = MADE.set(made)
        try:
            refuse_literal(url)
            for again in (False, True):
                try:
                    response = await self.session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy_for(url))
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                    if made or again or isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    continue
                return UpstreamReply(response)
            raise AssertionError("unreachable")
        except AddressRefused as error:
            raise Unreachable(str(error)) from None
        except (aiohttp.ServerTimeoutError, TimeoutError) as error:
            if isinstance(error, aiohttp.SocketTimeoutError) or "read" in str(error).lower():
                raise TimedOut("The endpoint did not begin to answer in time.") from None
            raise Unreachable("The endpoint could not be reached in time.") from None
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"The endpoint could not be reached ({error.os_error.strerror or type(error.os_error).__name__}).") from None
        except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
            raise Garbage(f"The endpoint's answer is no HTTP ({type(error).__name__}).") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(f"The connection to the endpoint failed ({type(error).__name__}).") from None
        finally:
            MADE.reset(token)


@lru_cache(maxsize=4096)
def refuse_literal(url: str) -> None:
    """A host that is written as an address, in whatever spelling, goes past the resolver, so it is checked here."""
    check_host(urlsplit(url).hostname or "", named=True)


def proxy_for(url: str) -> str | None:
    """The environment's proxy for public hosts; nothing for this machine and private addresses."""
    if not settings.PROXIES:
        return None
    parts = urlsplit(url)
    host = parts.hostname or ""
    with contextlib.suppress(ValueError):
        if not ipaddress.ip_address(host).is_global:
            return None
    if host == "localhost" or "." not in host or proxy_bypass_environment(host, settings.PROXIES):
        return None
    found = settings.PROXIES.get(parts.scheme)
    return found if isinstance(found, str) else None
