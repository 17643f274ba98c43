"""The road of one upstream call: send, read, settle. One attempt, one ledger row, whatever its purpose.

An `Attempt` is made, then either `whole()` or `stream()` is awaited once, then `row()` tells what happened. Nothing here touches the database, and
nothing is tried twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import orjson

from catalog import providers
from catalog.providers import Provider
from catalog.upstream import Upstream, UpstreamReply
from health.account import Account, Order
from health.pieces import as_chunks, is_lines, put_together
from wire import dialects, limit_headers, limit_words
from wire.conversation import Chunk, Reply, Usage
from wire.errors import CallerError, Empty, Fault, Garbage, TimedOut, UpstreamError
from wire.jsontext import parse_upstream

__all__ = ["Attempt", "Order"]


class Attempt(Account):
    """One upstream call under way, and afterwards what became of it."""

    def __init__(self, order: Order) -> None:
        super().__init__(order, datetime.now(UTC))

    def restart(self) -> None:
        """The clock of a call begins when it goes out, not when it was planned or queued."""
        self.started_at = datetime.now(UTC)
        self.began = time.monotonic()
        self.known = None

    # ------------------------------------------------------------------ the two ways to ask

    async def whole(self, upstream: Upstream) -> Reply:
        """Asks for the answer in one piece. Errors: UpstreamError, after which `row()` knows it too."""
        reply: UpstreamReply | None = None
        try:
            async with asyncio.timeout(self.order.timeout_s):
                reply = await self.send(upstream, None)
                data = await reply.read()
            answer = self.gather(data) if reply.is_event_stream or is_lines(data) else self.parse(data)
        except TimeoutError:
            raise self.failed(TimedOut(f"No answer within {self.order.timeout_s:g} s.")) from None
        except UpstreamError as error:
            raise self.failed(error) from None
        finally:
            self.ended = self.ended or time.monotonic()
            if reply:
                reply.close()
        self.first = self.first or self.ended
        self.settle(answer)
        return answer

    async def stream(self, upstream: Upstream, sink: Callable[[list[Chunk]], Awaitable[None]]) -> None:
        """Asks for a stream and hands its chunks to `sink` as they come, in lists of what came together.

        Errors: UpstreamError. After content has come (`self.first` is set) nothing may be tried elsewhere.
        """
        reply: UpstreamReply | None = None
        loop = asyncio.get_running_loop()
        until = loop.time() + self.order.timeout_s
        try:
            async with asyncio.timeout_at(min(loop.time() + self.order.first_token_s, until)) as deadline:
                reply = await self.send(upstream, self.order.idle_s)
                if reply.comes_as(self.dialect.stream_types):
                    reader = self.dialect.stream_reader(self.order.request)
                    async for data in reply.chunks():
                        if chunks := reader.feed(data):
                            waiting = self.first is None
                            self.observe(chunks)
                            if waiting and self.first is not None:
                                deadline.reschedule(until)
                            await sink(chunks)
                        if reader.done:
                            break
                    if last := reader.close():
                        self.observe(last)
                        await sink(last)
                else:
                    data = await reply.read()
                    in_disguise = is_lines(data) or (data.lstrip()[:1] != b"{" and b"data:" in data[:4096])
                    answer = self.gather(data) if in_disguise else self.parse(data)
                    self.first = self.ended = time.monotonic()
                    self.settle(answer)
                    deadline.reschedule(until)
                    await sink(as_chunks(answer))
        except TimeoutError:
            early, whole = f"No first token within {self.order.first_token_s:g} s.", f"The stream was not over within {self.order.timeout_s:g} s."
            raise self.failed(TimedOut(early if self.first is None else whole)) from None
        except UpstreamError as error:
            raise self.failed(error) from None
        finally:
            self.ended = self.ended or time.monotonic()
            if reply:
                reply.close()
        if self.status == "cancelled":
            self.conclude()

    # ------------------------------------------------------------------ the steps

    @property
    def provider(self) -> Provider:
        return providers.get(self.order.model.endpoint.kind)

    @property
    def dialect(self) -> dialects.Dialect:
        return dialects.get(self.provider.dialect)

    async def send(self, upstream: Upstream, idle_s: float | None) -> UpstreamReply:
        """Posts the call; an error status is read and raised."""
        model, request = self.order.model, self.order.request
        endpoint, provider = model.endpoint, self.provider
        quirks = {**endpoint.quirks, **model.quirks} if model.quirks else endpoint.quirks
        if provider.demands:
            quirks = {**provider.demands, **quirks}
        if model.output_limit:
            quirks = {"max_tokens": model.output_limit, **quirks}
        if request.only_here and request.dialect != self.dialect.name:
            message = f"{model.alias} is asked in another format, which has no word for {', '.join(request.only_here)[:200]}."
            raise UpstreamError(message, code="unfit", fault=Fault.CALLER)
        try:
            if request.bound and request.dialect != self.dialect.name:
                raise CallerError("invalid_request", f"{request.bound} can only be honoured by a provider of the request's own format. Leave it out.")
            outbound = self.dialect.write_request(request, model.served_name, quirks)
        except CallerError as error:
            # This provider has no word for it; another may have.
            raise UpstreamError(error.message, code="unfit", fault=Fault.CALLER) from None
        # What only the caller's own format knows is left out by every other.
        self.dropped = outbound.dropped if request.dialect == self.dialect.name else tuple(dict.fromkeys([*outbound.dropped, *request.unread]))
        headers = {
            **provider.headers(endpoint.key),
            **outbound.headers,
            "content-type": "application/json",
            "accept": "text/event-stream" if request.stream or outbound.body.get("stream") is True else "application/json",
            "user-agent": "benchwarmers",
        }
        self.sent = True
        door, url = provider.local() or upstream, provider.chat_url(endpoint.base_url, model.served_name, request.stream)
        reply: UpstreamReply = await door.post(url, headers, orjson.dumps(outbound.body), idle_s)
        self.http_status = reply.status
        if 200 <= reply.status < 300:
            self.limits_said = limit_headers.said(reply.headers)
            return reply
        try:
            data = await reply.read(1024 * 1024)
        except UpstreamError:
            data = b""
        finally:
            reply.close()
        if reply.status < 400:
            raise UpstreamError(f"The endpoint answered {reply.status}, a redirect; its base URL may be wrong.", http_status=reply.status)
        self.told = limit_words.in_refusal(reply.status, reply.headers, data, endpoint.base_url, time.time())
        refusal = provider.read_error(reply.status, reply.headers, data)
        if refusal.usage is None and data[:1] == b"{":
            refusal.usage = self.billed(data)
        raise refusal

    def billed(self, data: bytes) -> Usage | None:
        """Some providers bill for what they refuse, and say so in the error's body."""
        try:
            body = parse_upstream(data)
            return self.dialect.read_usage(body) if isinstance(body, dict) else None
        except ValueError:
            return None

    def parse(self, data: bytes) -> Reply:
        if not data.strip():
            raise Empty("The endpoint answered with nothing at all.")
        try:
            body = parse_upstream(data)
        except ValueError:
            what = "HTML" if data.lstrip()[:1] == b"<" else "something that is no JSON"
            raise Garbage(f"The endpoint answered with {what}.") from None
        return self.dialect.read_reply(body, self.order.request)

    def gather(self, data: bytes) -> Reply:
        """A stream where one piece was asked for, put together."""
        reader = self.dialect.stream_reader(self.order.request)
        chunks = reader.feed(data)
        self.observe(chunks)
        last = reader.close()
        self.observe(last)
        return put_together([*chunks, *last])
