"""One model by its alias: a paced, recorded pass-through, streamed or in one piece."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from django.conf import settings

from access.ids import new_id
from health.attempt import Attempt
from panels import asks, outcome, plan, record
from panels.convene import order_for, permitted
from panels.plan import Plan, Target
from panels.turn import Stream, Turn, release, reserve, upstream_time
from wire.conversation import Chunk
from wire.dialects import Answer
from wire.errors import CallerError, UpstreamError


async def direct(turn: Turn, target: Target) -> None:
    """A paced, recorded pass-through to one model."""
    planned = plan.plan_direct(turn.request, target, turn.caller, turn.snapshot, turn.request_id, datetime.now(UTC))
    seat, model = planned.seats[0], target.model
    assert model is not None
    turn.panel = planned.panel
    ask = asks.key_ask(planned, [model], settings.DIRECT_TIMEOUT_S + settings.DIRECT_WAIT_MAX_S)
    await reserve(turn, ask)
    timeout_s = settings.DIRECT_TIMEOUT_S
    order = order_for(planned, seat, "direct", timeout_s, min(timeout_s, settings.DIRECT_FIRST_TOKEN_S), settings.DIRECT_IDLE_S)
    attempt = Attempt(order)
    seat_ask = asks.seat_ask(planned, attempt)
    writer = turn.gateway.writer
    ended = False
    try:
        if seat_ask is not None:
            refused = await permitted(turn.gateway, seat_ask, attempt, settings.DIRECT_WAIT_MAX_S)
            if refused is not None:
                seat_ask = None
                status, code, message, wait = refused
                raise outcome.failure([outcome.unasked(seat, status, code, message, wait)], planned.asked_at)
            attempt = Attempt(order)
        writer.record({"begin": [attempt.stub()]})
        turn.gateway.note_seated([model.alias])

        def finish() -> None:
            """Writes the call down, once, before the caller has the last byte."""
            nonlocal ended
            if ended:
                return
            ended = True
            result = outcome.result_of(seat, attempt)
            line: dict[str, Any] = {"attempts": [attempt.row()], **release(turn, ask, [result])}
            if seat_ask is not None:
                line.setdefault("settle", []).append({"permit": seat_ask.id, "truth": asks.seat_truth(seat_ask, attempt)})
            if turn.caller.keep_text and settings.KEEP_TEXT_DAYS:
                kept = record.begun(planned, "direct", turn.dialect.name)
                line["panels"] = [*kept["panels"], *record.ended(planned.panel, outcome.panel_status([result]), result.seconds)["panels"]]
                line["seats"] = [record.seat_row(planned.panel, result)]
            writer.record(line)

        try:
            if turn.request.stream:
                await direct_stream(turn, planned, attempt, finish)
            else:
                await direct_whole(turn, planned, attempt, finish)
        finally:
            finish()
    finally:
        if ask is not None and not ended:
            writer.record(release(turn, ask, []))


def direct_headers(attempt: Attempt) -> dict[str, str]:
    dropped = {"x_bench_dropped": ", ".join(attempt.dropped)} if attempt.dropped else {}
    return {"x_bench_model": quote(attempt.order.model.alias, safe=""), "x_bench_call": attempt.order.call, "x_bench_attempts": "1", **dropped}


async def direct_whole(turn: Turn, planned: Plan, attempt: Attempt, finish: Callable[[], None]) -> None:
    with upstream_time(turn):
        try:
            reply = await attempt.whole(turn.gateway.upstream)
        except UpstreamError:
            raise direct_failure(planned, attempt) from None
    answer = Answer(new_id(turn.dialect.id_prefix), turn.request.model, int(planned.asked_at.timestamp()), reply, attempt.final_usage())
    body = turn.dialect.write_reply(answer)
    finish()
    await turn.reply(body, **direct_headers(attempt))


def direct_failure(planned: Plan, attempt: Attempt) -> CallerError:
    return outcome.failure([outcome.result_of(planned.seats[0], attempt)], planned.asked_at)


async def direct_stream(turn: Turn, planned: Plan, attempt: Attempt, finish: Callable[[], None]) -> None:
    """Headers wait for the first real content, or 10 s; from then on an error is an event of the stream."""
    out = turn.out
    writer = turn.dialect.stream_writer(turn.request, new_id(turn.dialect.id_prefix), int(planned.asked_at.timestamp()))
    stream = Stream(turn, writer)
    early: list[Chunk] = []

    async def sink(chunks: list[Chunk]) -> None:
        if not out.started:
            if attempt.first is None:
                early.extend(chunks)  # nothing real yet: the answer may still be an error with a status of its own
                return
            turn.upstream_s = attempt.ttft_s or 0.0
            await stream.begin(**direct_headers(attempt))
        if early:
            chunks, early[:] = [*early, *chunks], []
        data = b"".join([writer.chunk(c) for c in chunks])
        if data:
            await out.write(data)

    stream.begin_late(direct_headers(attempt))
    try:
        try:
            await attempt.stream(turn.gateway.upstream, sink)
        except UpstreamError:
            error = direct_failure(planned, attempt)
            finish()
            if not out.started:
                turn.upstream_s = attempt.seconds
                raise error from None
            await out.write(writer.error(error))
            await out.end()
            return
        finish()
        if not out.started:  # an answer without content, such as one cut off by its length at once
            turn.upstream_s = attempt.seconds
            await stream.begin(**direct_headers(attempt))
        data = b"".join([writer.chunk(c) for c in early]) if early else b""
        await out.write(data + writer.finish(attempt.final_usage()))
        await out.end()
    finally:
        stream.stop()
