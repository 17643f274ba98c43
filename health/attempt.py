"""The road of one upstream call: send, read, settle. One attempt, one ledger row, whatever its purpose.

An `Attempt` is made, then either `whole()` or `stream()` is awaited once, then `row()` tells what happened. `row()` may be asked at any
moment, also after a cancellation: it then says what had come by then. Nothing here touches the database, and nothing is tried twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from catalog import providers
from catalog.providers import Provider
from catalog.roster import Model
from catalog.upstream import Upstream, UpstreamReply
from health.costs import cost_pusd
from wire import dialects, limit_headers, limit_words
from wire.conversation import Chunk, Part, Refusal, Reply, Request, Stop, Text, Thinking, ToolCall, ToolPiece, Usage
from wire.errors import CallerError, Empty, Fault, Garbage, TimedOut, Truncated, UpstreamError, redacted
from wire.estimate import text_tokens
from wire.jsontext import parse_upstream

NOTHING_USED = Usage()
# What a seat's status is for each way a call can fail; everything else is `error`.
STATUSES = {
    "rate_limit_exceeded": "rate_limited",
    "no_credit": "no_credit",
    "upstream_timeout": "timeout",
    "content_policy": "refused",
}


@dataclass(frozen=True, slots=True)
class Order:
    """What one upstream call is for, and how long it may take. Everything in it goes into the ledger row.

    Units: `timeout_s` for the whole call, `first_token_s` and `idle_s` for streamed ones; `input_tokens` as estimated.
    """

    id: str
    call: str
    panel: str
    purpose: str
    seat: str
    model: Model
    request: Request
    judge: str
    input_tokens: int
    timeout_s: float
    collection: str = ""
    key_id: int | None = None
    key_name: str = ""
    team: str = ""
    request_id: str = ""
    first_token_s: float = 60.0
    idle_s: float = 120.0


class Attempt:
    """One upstream call under way, and afterwards what became of it."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.started_at = datetime.now(UTC)
        self.began = time.monotonic()
        self.ended: float | None = None
        self.first: float | None = None
        self.status = "cancelled"  # until something else is known: a call that nobody ended was broken off
        self.http_status: int | None = None
        self.code = ""
        self.error = ""
        self.retry_after_s: float | None = None
        self.failure: UpstreamError | None = None
        self.finish = ""
        self.stop: Stop | None = None
        self.usage: Usage | None = None
        self.said: list[str] = []
        self.thought = 0  # characters
        self.called = 0  # characters of tool arguments
        self.sent = False
        self.told: tuple[limit_headers.Told, ...] = ()  # what a refusal told of the provider's limits
        self.limits_said: Mapping[str, str] = limit_headers.NOTHING  # the headers of a good answer that tell of them, unread
        self.dropped: tuple[str, ...] = ()
        self.recorded = False
        self.estimate: Usage | None = None
        self.costed: tuple[Usage, int | None] | None = None
        self.known: dict[str, Any] | None = None

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

    def observe(self, chunks: list[Chunk]) -> None:
        """Notes what came: enough for the ledger and for a seat's text."""
        for chunk in chunks:
            if chunk.choice == 0 and chunk.text:
                self.said.append(chunk.text)
            if chunk.thinking:
                self.thought += len(chunk.thinking)
            for piece in chunk.tools:
                self.called += len(piece.arguments) + len(piece.name)
            if chunk.refusal:
                self.said.append(chunk.refusal)
            if chunk.usage:
                self.usage = chunk.usage
            if chunk.stop:
                self.stop, self.finish = chunk.stop, chunk.finish
            if self.first is None and chunk.has_content:
                self.first = time.monotonic()

    def settle(self, answer: Reply) -> None:
        """Notes a whole answer."""
        self.said = [p.text for p in answer.parts if isinstance(p, Text | Refusal)]
        self.thought = sum(len(p.text) for p in answer.parts if isinstance(p, Thinking))
        self.called = sum(len(p.arguments) + len(p.name) for p in answer.parts if isinstance(p, ToolCall))
        self.usage, self.stop, self.finish = answer.usage, answer.stop, answer.finish
        if any(isinstance(p, Refusal) for p in answer.parts):
            self.stop = Stop.REFUSAL
        self.conclude()

    def conclude(self) -> None:
        """The status of an answer that came whole."""
        if self.stop is Stop.LENGTH:
            self.status = "truncated"
        elif self.stop in (Stop.FILTER, Stop.REFUSAL):
            self.status = "refused"
        else:
            self.status = "ok"

    def failed(self, error: UpstreamError) -> UpstreamError:
        """Notes a failure; messages lose every key on the way."""
        error.message = redacted(error.message, self.order.model.endpoint.key)
        self.failure = error
        self.retry_after_s = error.retry_after_s
        self.code = error.code
        self.error = error.message[:500]
        if isinstance(error.usage, Usage):
            self.usage = error.usage
        if self.first is not None:
            # Content had come, so whatever ended it the answer is half an answer.
            self.status = "partial"
            if not isinstance(error, Truncated | TimedOut):
                self.code = error.code = "upstream_truncated"
        else:
            self.status = STATUSES.get(error.code, "error")
            if error.http_status and error.http_status >= 400 and (self.http_status or 0) < 400:
                self.http_status = error.http_status  # an error inside a 200: what it says of itself is the truth
        return error

    def give_up(self, code: str, why: str) -> None:
        """Notes why a call was broken off; an answer whose end had come is one all the same."""
        if self.final_status() == "cancelled":
            self.code, self.error = code, why

    # ------------------------------------------------------------------ afterwards

    @property
    def text(self) -> str:
        return "".join(self.said)

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    @property
    def ttft_s(self) -> float | None:
        return None if self.first is None else self.first - self.began

    def final_status(self) -> str:
        """A caller who left after the finish reason had come got an answer, not a broken one."""
        if self.status == "cancelled" and self.finish:
            self.conclude()
        return self.status

    def final_usage(self) -> Usage:
        """The provider's own count, else an estimate of what went and what came, marked as one."""
        if self.usage is not None and (self.finish or self.first is None):
            return self.usage
        if self.usage is not None:
            # Some tell their counts as a stream begins: of one that broke off they know what went, not what came.
            came = self.came()
            return replace(self.usage, output=came, estimated=True) if came > self.usage.output else self.usage
        if self.estimate is None or self.ended is None:
            self.estimate = self.estimated()
        return self.estimate

    def came(self) -> int:
        return text_tokens(self.text) + (self.thought + self.called + 3) // 4

    def estimated(self) -> Usage:
        nothing_ran = not self.sent or (self.first is None and self.failure is not None and (self.http_status or 0) >= 400)
        if nothing_ran or (self.failure is not None and self.failure.fault is Fault.NETWORK and self.first is None):
            return NOTHING_USED
        return Usage(input=self.order.input_tokens, output=self.came(), estimated=True)

    def cost(self) -> int | None:
        """Units: trillionths of a US dollar; None where a needed price is unknown."""
        usage = self.final_usage()
        if self.costed is None or self.costed[0] is not usage:
            self.costed = usage, cost_pusd(usage, self.order.model.price_on(self.started_at.date()))
        return self.costed[1]

    def facts(self) -> dict[str, Any]:
        """What a row says of the call whatever becomes of it, by `health.models.Attempt`'s field names. A copy of its own each time."""
        if self.known is not None:
            return self.known.copy()
        order, model = self.order, self.order.model
        self.known = {
            "id": order.id,
            "call": order.call,
            "panel": order.panel,
            "request": order.request_id,
            "purpose": order.purpose,
            "seat": order.seat,
            "collection": order.collection,
            "judge": order.judge,
            "key_id": order.key_id,
            "key_name": order.key_name,
            "team": order.team,
            "endpoint": model.endpoint.name,
            "model": model.alias,
            "served_name": model.served_name,
            "started_at": self.started_at.isoformat(),
            "latency_ms": 0,
            "ttft_ms": None,
            "status": "",
            "http_status": None,
            "code": "",
            "error": "",
            "finish_reason": "",
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
            "estimated": False,
            "cost_pusd": None,
        }
        return self.known.copy()

    def row(self) -> dict[str, Any]:
        """The ledger row as things stand."""
        usage, row = self.final_usage(), self.facts()
        row["latency_ms"] = round(self.seconds * 1000)
        row["ttft_ms"] = None if self.first is None else round((self.first - self.began) * 1000)
        row["status"], row["http_status"] = self.final_status(), self.http_status
        row["code"], row["error"], row["finish_reason"] = self.code, self.error, self.finish[:40]
        row["input_tokens"], row["output_tokens"], row["reasoning_tokens"] = usage.input, usage.output, usage.reasoning
        row["cache_read_tokens"], row["cache_write_tokens"] = usage.cache_read, usage.cache_write
        row["estimated"], row["cost_pusd"] = usage.estimated, self.cost()
        return row

    def stub(self) -> dict[str, Any]:
        """The row that is written should the call be lost: its reservation as the estimate."""
        limit = self.order.request.output_limit or self.order.model.output_limit or 4096
        usage = Usage(input=self.order.input_tokens, output=limit, estimated=True)
        row = self.facts()
        row["status"] = row["code"] = "lost"
        row["error"] = "The server ended while the call was under way."
        row["input_tokens"], row["output_tokens"], row["estimated"] = usage.input, usage.output, True
        row["cost_pusd"] = cost_pusd(usage, self.order.model.price_on(self.started_at.date()))
        return row


def is_lines(data: bytes) -> bool:
    """Several JSON objects, one a line: a stream of NDJSON, whatever it calls itself."""
    first, _, rest = data.strip().partition(b"\n")
    return first[:1] == b"{" and first[-1:] == b"}" and rest.lstrip()[:1] == b"{"


def as_chunks(answer: Reply) -> list[Chunk]:
    """A whole answer as the chunks of a stream, for a caller who asked for one."""
    chunks: list[Chunk] = []
    calls = 0
    for part in answer.parts:
        if isinstance(part, Text):
            chunks.append(Chunk(text=part.text))
        elif isinstance(part, Thinking):
            chunks.append(Chunk(thinking=part.text, signature=part.signature, redacted=part.redacted))
        elif isinstance(part, Refusal):
            chunks.append(Chunk(refusal=part.text))
        elif isinstance(part, ToolCall):
            chunks.append(Chunk(tools=(ToolPiece(calls, part.id, part.name, part.arguments, part.kind, part.signature),)))
            calls += 1
    chunks.append(Chunk(stop=answer.stop or Stop.END, finish=answer.finish, usage=answer.usage))
    return chunks


def put_together(chunks: list[Chunk]) -> Reply:
    """The first choice of a stream as a whole answer."""
    text, thinking, refusal = [], [], []
    thoughts: list[Thinking] = []
    calls: dict[int, dict[str, str]] = {}
    stop, finish, usage = None, "", None
    for chunk in chunks:
        usage = chunk.usage or usage
        if chunk.choice:
            continue
        text.append(chunk.text)
        thinking.append(chunk.thinking)
        refusal.append(chunk.refusal)
        if chunk.signature or chunk.redacted:
            # A signature ends the thinking that it signs: several of these in one answer stay apart.
            if chunk.signature or any(thinking):
                thoughts.append(Thinking("".join(thinking), signature=chunk.signature))
            if chunk.redacted:
                thoughts.append(Thinking(redacted=chunk.redacted))
            thinking = []
        if chunk.stop:
            stop, finish = chunk.stop, chunk.finish
        for piece in chunk.tools:
            call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": "", "kind": piece.kind, "signature": ""})
            call["id"] = call["id"] or piece.id
            call["name"] = call["name"] or piece.name
            call["arguments"] += piece.arguments
            call["signature"] = call["signature"] or piece.signature
    parts: list[Part] = [*thoughts]
    if joined := "".join(thinking):
        parts.append(Thinking(text=joined))
    if joined := "".join(text):
        parts.append(Text(joined))
    if joined := "".join(refusal):
        parts.append(Refusal(joined))
    parts += [ToolCall(c["id"], c["name"], c["arguments"], c["kind"], c["signature"]) for _, c in sorted(calls.items())]
    if not parts and stop in (None, Stop.END):
        raise Empty("The endpoint's stream held no answer.")
    return Reply(tuple(parts), stop or Stop.END, finish or "stop", usage)
