"""The seats side by side: each on its own task, handed over as it finishes, until all have, or the quorum's grace or the panel's time is over.

No database here. A task that the panel no longer waits for goes on by itself and records its answer; a caller who leaves cancels them all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from access.ids import new_id
from health.attempt import Attempt, Order
from health.writer import Ask, DatabaseAway, Denied
from panels import asks, record, stops
from panels.outcome import SeatResult, late, result_of, skipped, unasked
from panels.plan import Plan, Seat
from wire.errors import UpstreamError

if TYPE_CHECKING:
    from panels.gateway import Gateway
    from panels.turn import Live

OnSeat = Callable[[SeatResult], Awaitable[None]]


def order_for(plan: Plan, seat: Seat, purpose: str, timeout_s: float, first_token_s: float, idle_s: float) -> Order:
    assert seat.place.model is not None
    caller = plan.caller
    return Order(
        id=new_id("att"),
        call=seat.call,
        panel=plan.panel,
        purpose=purpose,
        seat=seat.place.seat,
        model=seat.place.model,
        request=plan.request,
        judge=caller.judge,
        input_tokens=plan.tokens,
        timeout_s=timeout_s,
        collection=plan.target.collection.name if plan.target.collection else "",
        key_id=caller.key_id,
        key_name=caller.key_name,
        team=caller.team,
        request_id=plan.request_id,
        first_token_s=first_token_s,
        idle_s=idle_s,
    )


async def convene(
    gateway: Gateway, plan: Plan, purpose: str, on_seat: OnSeat, tasks: dict[asyncio.Task[SeatResult], Seat], live: Live | None = None
) -> list[SeatResult]:
    """Asks every seat of a plan, calls `on_seat` for each as it finishes, and gives all results by position.

    Shape: `tasks` is filled with the seats' tasks; those that are not done afterwards still write their rows. `live` hears what they say meanwhile.

    1. reserve all seats' endpoint and model limits in one go;
    2. start a task a seat; what is hindered is a result at once;
    3. wait for all, or until `timeout_s`, or `grace_s` past the quorum;
    4. what still runs is told as late, and goes on by itself.
    """
    collection = plan.collection
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    until = loop.time() + collection.timeout_s
    results: list[SeatResult] = []
    attempts: dict[asyncio.Task[SeatResult], Attempt] = {}
    finished = False
    waiting = []
    try:
        begin = []
        for seat in plan.seats:
            if seat.place.hindrance:
                results.append(skipped(seat, seat.place.hindrance))
                continue
            order = order_for(plan, seat, purpose, collection.timeout_s, collection.first_token_timeout_s, collection.idle_timeout_s)
            attempt = Attempt(order)
            ask = asks.seat_ask(plan, attempt)
            if ask is None:
                begin.append(attempt.stub())
            else:
                waiting.append(seat.call)
            task = asyncio.create_task(sit(gateway, plan, seat, attempt, ask, collection.wait_max_s, live))
            tasks[task], attempts[task] = seat, attempt
        # One line for all that go out at once, before any of them does.
        gateway.writer.record(record.fitting(plan, {"begin": begin, "seats": [record.seat_row(plan.panel, r) for r in results]}))
        if live:
            live.begun(plan, purpose, waiting)
        for result in list(results):
            await on_seat(result)
        pending = set(tasks)
        graced = False
        while pending:
            done, pending = await asyncio.wait(pending, timeout=max(until - loop.time(), 0), return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            for task in sorted(done, key=lambda t: tasks[t].position):
                # One that was stopped before its first step has no result of its own.
                result = result_of(tasks[task], attempts[task]) if task.cancelled() else task.result()
                if task.cancelled():
                    write_down(gateway, plan, tasks[task], attempts[task], task)
                results.append(result)
                await on_seat(result)
            if collection.quorum and not graced and sum(r.answered for r in results) >= collection.quorum:
                graced = True
                until = min(until, loop.time() + collection.grace_s)
        for task in pending:
            gateway.keep(task)
            why = f"No answer within {collection.grace_s} s of the quorum" if graced else f"No answer within {collection.timeout_s} s"
            result = late(tasks[task], time.monotonic() - began, f"{why}; it is kept if it comes.")
            results.append(result)
            await on_seat(result)
        finished = True
    finally:
        if not finished:  # the caller left: nothing goes on that nobody asked to
            for task in tasks:
                task.cancel()
                # A task that had not taken its first step ends without its last one.
                task.add_done_callback(partial(write_down, gateway, plan, tasks[task], attempts[task]))
    return sorted(results, key=lambda r: r.position)


async def sit(gateway: Gateway, plan: Plan, seat: Seat, attempt: Attempt, ask: Ask | None, wait_max_s: float, live: Live | None = None) -> SeatResult:
    """One seat: its permit, its call, its record. Cancelled, it still records what had come; stopped, it is a seat like any other.

    Without a permit to wait for, its beginning is on record.
    """
    order = attempt.order
    running = gateway.stops.enter(seat.call, plan.panel, plan.caller)
    try:
        if ask is not None:
            try:
                refused = await permitted(gateway, ask, attempt, wait_max_s)
            except asyncio.CancelledError:
                if not running.was_stopped():
                    raise
                refused = "cancelled", stops.CODE, stops.WHY, None
            if refused is not None:
                attempt.recorded = True  # there is nothing to record of a call that never was
                result = unasked(seat, *refused)
                gateway.writer.record(record.fitting(plan, {"seats": [record.seat_row(plan.panel, result)]}))
                return result
            attempt.restart()
            gateway.writer.record({"begin": [attempt.stub()]})
            if live:
                live.started(seat)
        try:
            if order.request.stream:
                await attempt.stream(gateway.upstream, partial(live.delta, seat.call) if live else swallow)
            else:
                await attempt.whole(gateway.upstream)
        except UpstreamError as error:
            gateway.learn(attempt, error, every_kind=False)
        except asyncio.CancelledError:
            if not running.was_stopped():
                raise
            attempt.give_up(stops.CODE, stops.WHY)
        finally:
            attempt.recorded = True
            result = result_of(seat, attempt)
            line = record.fitting(plan, {"attempts": [attempt.row()], "seats": [record.seat_row(plan.panel, result)]})
            if ask is not None:
                line["settle"] = [{"permit": ask.id, "truth": asks.seat_truth(ask, attempt)}]
            gateway.writer.record(line)
            if attempt.limits_said or attempt.told:
                gateway.heard(attempt)
        return result
    finally:
        gateway.stops.leave(seat.call)


def write_down(gateway: Gateway, plan: Plan, seat: Seat, attempt: Attempt, task: asyncio.Task[SeatResult]) -> None:
    """Records a seat that was cancelled before it could do so itself."""
    if not attempt.recorded:
        attempt.recorded = True
        line = {"attempts": [attempt.row()], "seats": [record.seat_row(plan.panel, result_of(seat, attempt))]}
        gateway.writer.record(record.fitting(plan, line))


async def swallow(chunks: Sequence[object]) -> None:
    """Seats of a panel are delivered whole, so their chunks are only noted by the attempt."""


async def permitted(gateway: Gateway, ask: Ask, attempt: Attempt, wait_max_s: float) -> tuple[str, str, str, float | None] | None:
    """Waits for an endpoint's and a model's limits as long as the collection allows.

    Shape: None once permitted, else the seat's status, code, message and wait.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_max_s
    while True:
        try:
            reserved = await gateway.writer.reserve(None, [asks.now(ask, attempt, until - loop.time())])
        except DatabaseAway:
            return "error", "database_unavailable", "The database cannot be reached, and this call has limits to keep.", 5.0
        outcome = reserved.rest[0]
        if not isinstance(outcome, Denied):
            return None
        if outcome.never:
            return "error", "invalid_request", asks.limit_message(attempt.order.model, outcome), None
        if loop.time() + outcome.wait_s > until:
            return "rate_limited", "rate_limit_exceeded", asks.limit_message(attempt.order.model, outcome), outcome.wait_s
        # A little late rather than a little early, and not all at once.
        await asyncio.sleep(outcome.wait_s + 0.01)
