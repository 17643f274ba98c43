"""What became of one upstream call: what came, how it ended, what it used and cost, and the ledger row that says so.

`row()` may be asked at any moment, also after a cancellation: it then says what had come by then. Nothing here waits for anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from catalog.roster import Model
from health.costs import cost_pusd
from wire import limit_headers
from wire.conversation import Chunk, Refusal, Reply, Request, Stop, Text, Thinking, ToolCall, Usage
from wire.errors import Fault, TimedOut, Truncated, UpstreamError, redacted
from wire.estimate import text_tokens

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


class Account:
    """Keeps what is known of one upstream call, from its beginning on."""

    def __init__(self, order: Order, now: datetime) -> None:
        self.order = order
        self.started_at = now
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

    # ------------------------------------------------------------------ what comes

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
