"""One answer from the first of several models that gives one: what direct and route mode share.

    reserve ─▶ attempt ─▶ real content: from here on nothing is tried elsewhere ─▶ record, remember ─▶ last byte
                  └─ failed before content: the next candidate, silently

Nothing is sent twice to the same model. Headers leave with the first real content, or after 10 s, whichever comes first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from django.conf import settings

from access.ids import new_id
from catalog.roster import Model
from health.attempt import Attempt
from health.pieces import put_together
from health.reserve import Ask
from health.writer import DatabaseAway, Denied
from panels import asks, outcome, plan, record, stops, stored
from panels.convene import order_for
from panels.outcome import SeatResult
from panels.plan import Plan, Seat
from panels.seating import Hindrance, Place, resting
from panels.turn import Stream, Turn, names_for_header, release, reserve, upstream_time
from wire.conversation import Chunk, Part, Reply, Request
from wire.dialects import Answer, StreamWriter
from wire.errors import CallerError, UpstreamError
from wire.estimate import request_tokens

# A failure of these is the caller's own: the next model would say the same.
CALLERS_OWN = frozenset({"invalid_request", "content_policy"})
# A candidate but the last gets half of the time that is left, so that the last can still finish.
SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long things may take. Units: seconds."""

    timeout_s: float
    first_token_s: float
    idle_s: float
    wait_max_s: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may take the turn, with what hinders it. `waits`: its own limits are waited for before the next is tried."""

    model: Model
    hindrance: Hindrance | None = None
    waits: bool = False


class Single:
    """One such answer, from its first attempt to its last line.

    Shape: `prepare` makes the request that a candidate is sent; `remember` is told the parts of the answer and gives what is kept of it.
    """

    def __init__(
        self,
        turn: Turn,
        planned: Plan,
        candidates: Sequence[Candidate],
        bounds: Bounds,
        *,
        purpose: str,
        keep_text: bool = False,
        failover_on_refusal: bool = False,
        prepare: Callable[[Model], Request] | None = None,
        remember: Callable[[Model, Sequence[Part]], dict[str, Any]] | None = None,
    ) -> None:
        self.turn, self.plan, self.candidates, self.bounds = turn, planned, candidates, bounds
        self.purpose, self.keep_text, self.failover_on_refusal = purpose, keep_text, failover_on_refusal
        self.prepare, self.remember = prepare, remember
        self.until = time.monotonic() + bounds.timeout_s
        self.attempts: list[Attempt] = []
        self.refused: list[SeatResult] = []  # candidates that were never asked
        self.ask: Ask | None = None
        self.permits: dict[str, Ask] = {}
        self.ended = False
        self.rested = False  # a failed try has made somebody rest
        self.kept: list[Chunk] = []  # of a stream: what memory needs of its parts
        self.answer_id = new_id(turn.dialect.id_prefix)
        self.writer: StreamWriter | None = None
        self.stream: Stream | None = None
        self.live = turn.live

    @property
    def seat(self) -> Seat:
        return self.plan.seats[0]

    # ------------------------------------------------------------------ the flow

    async def run(self) -> None:
        """Errors: CallerError while nothing was sent yet."""
        turn = self.turn
        turn.panel = self.plan.panel
        able = [c for c in self.candidates if c.hindrance is None]
        self.refused = [outcome.skipped(self.seat_of(c.model), c.hindrance) for c in self.candidates if c.hindrance]
        if not able:
            raise self.nobody()
        self.ask = asks.key_ask(self.plan, [self.dearest(able)], self.bounds.timeout_s + self.bounds.wait_max_s)
        await reserve(turn, self.ask)
        if self.ask is not None:  # should this process die, whoever drains its outbox ends the key's permit
            turn.gateway.writer.record({"begin": [self.ask.stub]})
        running = turn.gateway.stops.enter(self.seat.call, self.plan.panel, turn.caller)
        try:
            if turn.request.stream:
                await self.streamed(able)
            else:
                await self.whole(able)
        except asyncio.CancelledError:
            if not running.was_stopped():
                raise
            await self.stopped()
        finally:
            turn.gateway.stops.leave(self.seat.call)
            self.finish(None)
            if self.live:
                self.live.close()

    def dearest(self, able: Sequence[Candidate]) -> Model:
        """What the key reserves for: the turn must be paid whoever takes it. An unknown price is the dearest of all."""
        if len(able) == 1:
            return able[0].model
        costs = {c.model.alias: asks.worst_cost(self.plan, c.model) for c in able}
        return max((c.model for c in able), key=lambda m: float("inf") if costs[m.alias] is None else costs[m.alias] or 0)

    async def whole(self, able: Sequence[Candidate]) -> None:
        turn = self.turn
        for candidate in able:
            attempt = self.attempt_for(candidate.model, last=candidate is able[-1])
            with upstream_time(turn):
                if not await self.permitted(candidate, attempt):
                    continue
                try:
                    reply = await self.going_out(attempt).whole(turn.gateway.upstream)
                except UpstreamError as error:
                    self.failed(attempt, error)
                    if self.is_callers_own(error):
                        break
                    continue
            if self.failover_on_refusal and attempt.status == "refused" and candidate is not able[-1]:
                self.record(attempt)
                continue
            answer = Answer(self.answer_id, turn.request.model, int(self.plan.asked_at.timestamp()), reply, attempt.final_usage(), request=turn.request)
            body = turn.dialect.write_reply(answer)
            await self.succeeded(attempt, reply.parts, answer)
            await turn.reply(body, **self.headers(attempt))
            return
        raise await self.given_up()

    async def streamed(self, able: Sequence[Candidate]) -> None:
        turn, out, live, waits = self.turn, self.turn.out, self.live, False
        self.writer = writer = turn.dialect.stream_writer(turn.request, self.answer_id, int(self.plan.asked_at.timestamp()))
        self.stream = stream = Stream(turn, writer)
        if live:
            await stream.begin()
            first = self.seat_of(able[0].model)
            waits = asks.seat_ask(self.plan, self.attempt_for(able[0].model, last=True)) is not None
            live.begun(replace(self.plan, seats=(first,)), self.purpose, [first.call] if waits else ())
        else:
            stream.begin_late()
        try:
            for candidate in able:
                attempt = self.attempt_for(candidate.model, last=candidate is able[-1])
                if not await self.permitted(candidate, attempt):
                    continue
                if live and (waits or self.attempts or candidate is not able[0]):
                    live.started(self.seat_of(candidate.model))
                early: list[Chunk] = []
                self.kept = []
                try:
                    await self.going_out(attempt).stream(turn.gateway.upstream, self.sink(attempt, writer, stream, early))
                except UpstreamError as error:
                    self.failed(attempt, error)
                    if attempt.first is not None:
                        stream.stop()
                        await self.broken(writer, attempt)
                        return
                    if self.is_callers_own(error):
                        break
                    continue
                if self.failover_on_refusal and attempt.first is None and attempt.status == "refused" and candidate is not able[-1]:
                    self.record(attempt)
                    continue
                turn.upstream_s += attempt.seconds if not out.started else 0.0
                if not out.started:  # an answer without content, such as one that its length cut off at once
                    await stream.begin(**self.headers(attempt))
                told = await self.told() if live else None
                data = b"".join([writer.chunk(c) for c in early]) + writer.finish(attempt.final_usage(), told)
                parts = self.parts_of(attempt)
                reply = Reply(parts, attempt.stop, attempt.finish, attempt.usage, raw=writer.whole)
                answer = Answer(self.answer_id, turn.request.model, int(self.plan.asked_at.timestamp()), reply, attempt.final_usage(), request=turn.request)
                await self.succeeded(attempt, parts, answer)
                stream.stop()
                await out.write(data)
                await out.end()
                return
            nobody = await self.given_up()
            self.finish(None)
            if not out.started:
                raise nobody
            if live:
                await self.told()
            stream.stop()
            await out.write(writer.error(nobody))
            await out.end()
        finally:
            stream.stop()

    def sink(self, attempt: Attempt, writer: StreamWriter, stream: Stream, early: list[Chunk]) -> Callable[[list[Chunk]], Any]:
        out, turn, kept, live = self.turn.out, self.turn, self.kept, self.live

        async def sink(chunks: list[Chunk]) -> None:
            for chunk in chunks:
                if chunk.tools or chunk.thinking or chunk.signature or chunk.redacted:
                    kept.append(chunk)
            if attempt.first is None:
                early.extend(chunks)  # nothing real yet: the answer may still be an error, and another model's turn
                return
            if not out.started:
                turn.upstream_s += attempt.ttft_s or 0.0
                await stream.begin(**self.headers(attempt))
            if early:
                chunks, early[:] = [*early, *chunks], []
            if live:
                await live.delta(self.seat.call, chunks)
            if data := b"".join([writer.chunk(c) for c in chunks]):
                await out.write(data)

        return sink

    async def broken(self, writer: StreamWriter, attempt: Attempt) -> None:
        """A failure after content: the stream's own error event, no finish reason, nothing replayed."""
        error = outcome.failure([outcome.result_of(self.seat_of(attempt.order.model), attempt)])
        self.finish(attempt)
        if self.live:
            await self.told()
        await self.turn.out.write(writer.error(error))
        await self.turn.out.end()

    async def stopped(self) -> None:
        """Somebody stopped it: what had come is recorded, and no other model is asked. Errors: CallerError while nothing was sent yet."""
        if (last := self.attempts[-1] if self.attempts else None) is not None:
            last.give_up(stops.CODE, stops.WHY)
            results = [outcome.result_of(self.seat_of(last.order.model), last)]
        else:
            results = [outcome.unasked(self.seat, "cancelled", stops.CODE, stops.WHY)]
            self.refused = results
        error = stops.stopped_error(outcome.failed_seats(results))
        self.finish(last)
        if self.writer is None or not self.turn.out.started:
            raise error
        if self.stream:
            self.stream.stop()
        if self.live:
            await self.told()
        await self.turn.out.write(self.writer.error(error))
        await self.turn.out.end()

    async def told(self) -> dict[str, Any]:
        """Tells whoever watches how the seat ended. Shape: the `bench` object of a panel of one seat."""
        assert self.live is not None
        result = self.result() if self.attempts else self.refused[-1]
        self.live.over(result)
        await self.live.drain()
        status, seconds = outcome.panel_status([result]), time.monotonic() - self.turn.began
        return {**outcome.bench_data(self.plan, self.purpose, status, [result], seconds), "text": None}

    # ------------------------------------------------------------------ attempts

    def attempt_for(self, model: Model, last: bool) -> Attempt:
        request = self.prepare(model) if self.prepare else self.plan.request
        planned = self.plan if request is self.plan.request else replace(self.plan, request=request)
        left = max(self.until - time.monotonic(), 1.0)
        timeout_s = left if last else left * SHARE
        return Attempt(order_for(planned, self.seat_of(model), self.purpose, timeout_s, min(self.bounds.first_token_s, timeout_s), self.bounds.idle_s))

    def seat_of(self, model: Model) -> Seat:
        return replace(self.seat, place=Place(model.alias, model, self.seat.place.seat))

    async def permitted(self, candidate: Candidate, attempt: Attempt) -> bool:
        """The endpoint's and the model's limits. Waits for them where nobody else can take the turn, or the conversation lives here."""
        if self.plan.target.mode == "route" and (rest := self.turn.gateway.rest_of(candidate.model)):
            # Learned since the turn was planned, perhaps from its own first try: the next model behind the same key is not asked in vain.
            self.refused.append(outcome.skipped(self.seat_of(candidate.model), resting(candidate.model, rest)))
            return False
        ask = asks.seat_ask(self.plan, attempt)
        if ask is None:
            return True
        until = time.monotonic() + (self.bounds.wait_max_s if candidate.waits else 0.0)
        while True:
            try:
                denied = (await self.turn.gateway.writer.reserve(None, [asks.now(ask, attempt, until - time.monotonic())])).rest[0]
            except DatabaseAway:
                text = "The database cannot be reached, and this call has limits to keep."
                self.refused.append(outcome.unasked(self.seat_of(candidate.model), "error", "database_unavailable", text, 5.0))
                return False
            if not isinstance(denied, Denied):
                self.permits[attempt.order.id] = ask
                return True
            message = asks.limit_message(candidate.model, denied)
            if denied.never:
                self.refused.append(outcome.unasked(self.seat_of(candidate.model), "error", "invalid_request", message))
                return False
            if time.monotonic() + denied.wait_s > until:
                self.refused.append(outcome.unasked(self.seat_of(candidate.model), "rate_limited", "rate_limit_exceeded", message, denied.wait_s))
                return False
            await asyncio.sleep(denied.wait_s + 0.01)

    def going_out(self, attempt: Attempt) -> Attempt:
        """Marks a call as under way, so that it is known to be lost should this process die."""
        attempt.restart()
        self.attempts.append(attempt)
        if self.turn.goes_out:
            self.turn.goes_out()
        self.turn.gateway.writer.record({"begin": [attempt.stub()]})
        if not self.turn.purpose:
            self.turn.gateway.note_seated([attempt.order.model.alias])
        return attempt

    def failed(self, attempt: Attempt, error: UpstreamError) -> None:
        """Writes a failed try down and lets rest who has to."""
        self.record(attempt)
        if attempt.told:
            self.turn.gateway.heard(attempt)
        self.rested |= self.turn.gateway.learn(attempt, error, every_kind=self.plan.target.mode == "route")

    def is_callers_own(self, error: UpstreamError) -> bool:
        return error.code in CALLERS_OWN and not (error.code == "content_policy" and self.failover_on_refusal)

    # ------------------------------------------------------------------ writing down

    def record(self, attempt: Attempt, extra: dict[str, Any] | None = None) -> None:
        """One attempt's row, once, and what it really used of its permit."""
        line: dict[str, Any] = {"attempts": [attempt.row()], **(extra or {})}
        attempt.recorded = True
        if (ask := self.permits.pop(attempt.order.id, None)) is not None:
            line.setdefault("settle", []).append({"permit": ask.id, "truth": asks.seat_truth(ask, attempt)})
        self.turn.gateway.writer.record(line)

    async def succeeded(self, attempt: Attempt, parts: Sequence[Part], answer: Answer) -> None:
        """Records the answer and what its conversation needs next, before the caller has the last byte."""
        gateway, model = self.turn.gateway, attempt.order.model
        stored.keep(self.turn, answer)
        extra = self.remember(model, parts) if self.remember else {}
        self.finish(attempt, extra, answer)
        gateway.succeeded(attempt)
        rested = bool(attempt.limits_said) and gateway.heard(attempt)
        if rested or extra.get("pins"):
            # Another process may take the next turn at once, and it must know whose conversation this is, and who is not to be asked.
            await gateway.writer.flush(1.0)

    def finish(self, last: Attempt | None, extra: dict[str, Any] | None = None, answer: Answer | None = None) -> None:
        """The end, once, however it came: every attempt's row, the key's permit, the texts where they are kept."""
        if self.ended:
            return
        self.ended = True
        if self.turn.purpose:
            self.turn.results = [self.result()] if self.attempts else self.refused
        open_ones = [a for a in self.attempts if not a.recorded]
        line: dict[str, Any] = dict(extra or {})
        if self.ask is not None:
            line |= release(self.turn, self.ask, [outcome.result_of(self.seat, a) for a in self.attempts])
        if self.keep_text and settings.KEEP_TEXT_DAYS and self.attempts:
            line |= self.texts()
        if answer is not None and self.turn.beside:
            line |= self.turn.beside(answer)
        for attempt in open_ones:
            self.record(attempt, line)
            line = {}
        if line:
            self.turn.gateway.writer.record(line)

    def texts(self) -> dict[str, Any]:
        result = self.result()
        begun = record.begun(self.plan, self.plan.target.mode, self.turn.dialect.name)
        ended = record.ended(self.plan.panel, outcome.panel_status([result]), result.seconds)
        return {"panels": [*begun["panels"], *ended["panels"]], "seats": [record.seat_row(self.plan.panel, result)]}

    def result(self) -> SeatResult:
        """The seat over all its tries."""
        results = [outcome.result_of(self.seat_of(a.order.model), a) for a in self.attempts]
        tries = tuple([t for r in results for t in r.tries])
        return replace(results[-1], tries=tries, cost_pusd=outcome.total_cost(results), usage=outcome.total_usage(results))

    def parts_of(self, attempt: Attempt) -> tuple[Part, ...]:
        """A stream's answer as parts, for memory and for what is kept under its id."""
        text = [Chunk(text=attempt.text)] if attempt.text else []
        try:
            return put_together([*self.kept, *text]).parts
        except UpstreamError:
            return ()

    def headers(self, attempt: Attempt) -> dict[str, str]:
        found = {
            "x_bench_model": quote(attempt.order.model.alias, safe=""),
            "x_bench_call": attempt.order.call,
            "x_bench_attempts": str(len(self.attempts)),
        }
        if attempt.dropped:
            found["x_bench_dropped"] = names_for_header(attempt.dropped)
        return found

    # ------------------------------------------------------------------ when nobody answered

    async def given_up(self) -> CallerError:
        """The error, once every process knows who rests: another one may take the caller's next try at once."""
        if self.rested:
            await self.turn.gateway.writer.flush(1.0)
        return self.nobody()

    def nobody(self) -> CallerError:
        """The one error: of the caller's own fault as it was said, else by what all have in common."""
        results = [*(outcome.result_of(self.seat_of(a.order.model), a) for a in self.attempts), *self.refused]
        if self.attempts and (failure := self.attempts[-1].failure) and self.is_callers_own(failure):
            results = results[len(self.attempts) - 1 : len(self.attempts)]
        return outcome.exhausted(results)


def planned_single(turn: Turn, target: plan.Target, seat: str, alias: str, model: Model, seed: int = 0, picked: plan.Picked | None = None) -> Plan:
    """A plan of one seat; which model takes it is decided on the way."""
    tokens = request_tokens(turn.request)
    place = Place(alias, model, seat)
    seats = (Seat(new_id("call"), 0, place),)
    budgets = plan.budgets_of(target, turn.caller, turn.snapshot)
    return Plan(new_id("pan"), target, turn.caller, turn.request, turn.request_id, tokens, datetime.now(UTC), seed, seats, picked, budgets)
