"""A panel from its first seat to its last line: the seats' answers side by side, or merged into one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from access.ids import new_id
from catalog.roster import Model
from health.attempt import Attempt
from health.lines import Settle
from health.resting import LIMIT
from health.writer import Ask
from panels import asks, merge, outcome, picking, plan, record, stops, stored
from panels.collections import Collection
from panels.convene import convene, order_for, permitted
from panels.outcome import SeatResult
from panels.picking import NOTHING, Beliefs
from panels.plan import Plan, Seat, Target
from panels.prompts import PromptError
from panels.seating import Hindrance, Place, hindrance, sits_in_part
from panels.turn import Stream, Turn, names_for_header, reserve, upstream_time
from wire.conversation import Chunk, Reply, Request, Stop, Text, Usage
from wire.dialects import Answer
from wire.errors import CallerError, UpstreamError
from wire.estimate import request_tokens


async def panel(turn: Turn, target: Target) -> None:
    """Every member and the explorers answer; merged, one more writes one answer from all."""
    planned = await planned_panel(turn, target)
    if turn.purpose:
        planned = replace(planned, on_record=False)
    target, collection, now = planned.target, planned.collection, planned.asked_at
    turn.panel = planned.panel
    hindrances = [s.place.hindrance for s in planned.seats if s.place.hindrance]
    if len(hindrances) == len(planned.seats):
        if not planned.seats:
            raise CallerError("invalid_request", f"The collection {collection.name!r} has no members and no explorers to seat.", field="model")
        raise outcome.failure([outcome.skipped(s, s.place.hindrance) for s in planned.seats if s.place.hindrance])
    models = [s.place.model for s in planned.seats if s.place.model and not s.place.hindrance]
    candidates = mergers(turn, planned) if target.mode == "merged" else []
    # Each merger that fails may have taken its time before the next is tried.
    ask = asks.key_ask(planned, models, (collection.timeout_s + collection.wait_max_s) * (1 + len(candidates)), candidates)
    await reserve(turn, ask)
    writer = turn.gateway.writer
    line = {"begin": [{"id": planned.panel, "panel": planned.panel}], **record.begun(planned, target.mode, turn.dialect.name)}
    writer.record(record.fitting(planned, line))
    if not turn.purpose:
        turn.gateway.note_seated([m.alias for m in models])
    if not turn.purpose and collection.picking == "record" and sits_in_part(collection):
        sat = [s.place.alias for s in planned.seats if s.place.seat == "member" and not s.place.hindrance]
        turn.gateway.evidence.note(collection.name, planned.panel, now, sat)
    sitting = Sitting(turn, planned, ask)
    with turn.gateway.stops.panel(planned.panel):
        try:
            await sitting.run()
        finally:
            sitting.close()


async def planned_panel(turn: Turn, target: Target) -> Plan:
    """Places the seats. Errors: CallerError for what no panel can do."""
    if turn.seats is not None:
        target = plan.seated_by_name(target, turn.seats, turn.snapshot)
    collection = target.collection
    assert collection is not None
    plan.check_panel(turn.request)
    if not plan.ends_with_user(turn.request):
        turn.request = turn.dialect.with_user_turn(turn.request, plan.NO_LAST_USER_TURN)
    now = datetime.now(UTC)
    seated = await turn.gateway.last_seated() if collection.explorers else {}
    beliefs, waited = await by_record(turn, collection, now)
    return plan.plan_panel(turn.request, target, turn.caller, turn.snapshot, seated, turn.request_id, now, None, turn.besides, beliefs, waited)


async def by_record(turn: Turn, collection: Collection, now: datetime) -> tuple[Beliefs, dict[str, int]]:
    """What decides who sits where the record does and not all can; of any other collection nothing is looked up."""
    if collection.picking != "record" or not sits_in_part(collection):
        return NOTHING, {}
    members = collection.members
    evidence = turn.gateway.evidence
    beliefs, panels = await asyncio.gather(
        evidence.beliefs(collection.name, members, now), evidence.last_panels(collection.name, picking.turn_within(len(members), collection.seats or 1))
    )
    return beliefs, picking.waited(members, panels)


def mergers(turn: Turn, planned: Plan) -> list[Model]:
    """Who may write the merged answer, in order: the collection's mergers, else its members."""
    collection = planned.collection
    names = collection.mergers or tuple(a for a in dict.fromkeys(collection.members) if (m := turn.snapshot.models.get(a)) and not m.ad_hoc)
    now = datetime.now(UTC)
    return [m for a in dict.fromkeys(names) if (m := turn.snapshot.models.get(a)) and not m.retired and not turn.snapshot.rest_of(m, now, (LIMIT,))]


class Sitting:
    """One panel from its first seat to its last line."""

    def __init__(self, turn: Turn, planned: Plan, ask: Ask | None) -> None:
        self.turn, self.plan, self.ask = turn, planned, ask
        self.mode = planned.target.mode
        self.results: list[SeatResult] = []
        self.merge_order: list[str] | None = None
        self.why = ""
        self.status = "failed"
        self.closed = False
        self.tasks: dict[asyncio.Task[SeatResult], Seat] = {}
        self.wrote_text = False
        request = turn.request
        self.answer_id = new_id(turn.dialect.id_prefix)
        streams = request.stream and turn.on_seat is None
        self.writer = turn.dialect.stream_writer(request, self.answer_id, int(planned.asked_at.timestamp())) if streams else None
        self.stream = Stream(turn, self.writer) if self.writer else None
        self.live = turn.live

    async def run(self) -> None:
        if self.stream and self.writer:
            await self.stream.begin()
            if first := self.writer.start():
                await self.turn.out.write(first)
        with upstream_time(self.turn):
            await convene(self.turn.gateway, self.plan, self.turn.purpose or self.mode, self.on_seat, self.tasks, self.live)
            if not any(r.answered for r in self.results):
                await self.nobody()
                return
            if self.mode == "merged":
                await self.merged()
        self.status = "degraded" if self.why else outcome.panel_status(self.results)
        await self.finish()

    async def on_seat(self, result: SeatResult) -> None:
        self.results.append(result)
        self.turn.results = self.results
        if self.live:
            self.live.over(result)
        if self.turn.on_seat:
            await self.turn.on_seat(result)
        if self.mode == "panel":
            await self.say(outcome.seat_text(result))

    async def say(self, text: str) -> None:
        """One whole piece of text to a streaming caller, apart from the one before it."""
        if self.writer and not self.live:
            await self.turn.out.write(self.writer.chunk(Chunk(text=f"\n\n{text}" if self.wrote_text else text)))
            self.wrote_text = True

    async def nobody(self) -> None:
        """No seat answered: the request fails, with the stream's own error event where one has begun."""
        error = outcome.failure(self.results)
        if self.live:
            await self.live.drain()
        self.close()
        if self.writer:
            await self.turn.out.write(self.writer.error(error))
            await self.turn.out.end()
            return
        raise error

    # ------------------------------------------------------------------ merging

    async def merged(self) -> None:
        """One answer alone is returned as its seat's; else the mergers are tried in order; else side by side, and said so."""
        answers = merge.shuffled([r for r in self.results if r.answered], self.plan.seed)
        if len(answers) == 1:
            await self.side_by_side("" if len(self.results) == 1 else "only one seat answered, so there was nothing to merge")
            return
        self.merge_order = [r.call for r in answers]
        try:
            request = merge.merge_request(self.plan, answers, self.plan.collection.merge_prompt)
        except PromptError as error:
            await self.side_by_side(f"unmerged: the collection's merge_prompt {error}".rstrip("."))
            return
        for model in mergers(self.turn, self.plan):
            if self.turn.gateway.stops.is_stopped(self.plan.panel):
                await self.side_by_side("unmerged: the panel was stopped")
                return
            if hindered := hindrance(model, request, request_tokens(request), None):
                self.skip_merger(model, hindered)
                continue
            result, wrote = await self.ask_merger(model, request)
            if result.answered and result.status in ("ok", "truncated"):
                self.merged_text = result.text.strip()
                await self.say(merge.key_of_labels(answers))
                return
            if wrote:
                break  # half a merged answer has been read: another would contradict it
        await self.side_by_side("unmerged: no merger answered")

    def skip_merger(self, model: Model, hindered: Hindrance) -> None:
        """All answers together may be more than a model holds that held the question."""
        seat = Seat(new_id("call"), len(self.results), Place(model.alias, model, "merger"))
        self.results.append(result := outcome.skipped(seat, hindered))
        self.turn.gateway.writer.record(record.fitting(self.plan, {"seats": [record.seat_row(self.plan.panel, result)]}))
        if self.live:
            self.live.started(replace(seat, place=replace(seat.place, hindrance=hindered)))
            self.live.over(result)

    async def ask_merger(self, model: Model, request: Request) -> tuple[SeatResult, bool]:
        """Lets one merger write. Shape: its seat, and whether the caller has read any of it."""
        seat = Seat(new_id("call"), len(self.results), Place(model.alias, model, "merger"))
        running = self.turn.gateway.stops.enter(seat.call, self.plan.panel, self.turn.caller)
        try:
            result, wrote = await self.written_by(seat, model, request, running)
        finally:
            self.turn.gateway.stops.leave(seat.call)
        if self.live:
            self.live.over(result)
        return result, wrote

    async def written_by(self, seat: Seat, model: Model, request: Request, running: stops.Running) -> tuple[SeatResult, bool]:
        collection = self.plan.collection
        planned = replace(self.plan, request=request, tokens=request_tokens(request))
        order = order_for(planned, seat, self.turn.purpose or "merged", collection.timeout_s, collection.first_token_timeout_s, collection.idle_timeout_s)
        attempt = Attempt(order)
        writer, live = self.turn.gateway.writer, self.live
        seat_ask = asks.seat_ask(planned, attempt)
        if live:
            live.started(seat, "waiting" if seat_ask else "running")
        if seat_ask is not None:
            try:
                refused = await permitted(self.turn.gateway, seat_ask, attempt, collection.wait_max_s)
            except asyncio.CancelledError:
                if not running.was_stopped():
                    raise
                refused = "cancelled", stops.CODE, stops.WHY, None
            if refused is not None:
                self.results.append(unasked := outcome.unasked(seat, *refused))
                return unasked, False
            attempt = Attempt(order)
            if live:
                live.started(seat)
        begun = {"begin": [attempt.stub()], "seats": [record.running_seat(self.plan.panel, seat.call, seat.position, model.alias, "merger")]}
        writer.record(record.fitting(self.plan, begun))
        wrote = False

        async def sink(chunks: list[Chunk]) -> None:
            nonlocal wrote
            if self.writer and (text := "".join(c.text for c in chunks)):
                wrote = self.wrote_text = True
                if live is None:
                    await self.turn.out.write(self.writer.chunk(Chunk(text=text)))
            if live:
                await live.delta(seat.call, chunks)

        try:
            if request.stream:
                await attempt.stream(self.turn.gateway.upstream, sink)
            else:
                await attempt.whole(self.turn.gateway.upstream)
        except UpstreamError as error:
            self.turn.gateway.learn(attempt, error, every_kind=False)
        except asyncio.CancelledError:
            if not running.was_stopped():
                raise
            attempt.give_up(stops.CODE, stops.WHY)
            wrote = True  # who stops a merger wants none
        finally:
            result = outcome.result_of(seat, attempt)
            self.results.append(result)
            line = record.fitting(self.plan, {"attempts": [attempt.row()], "seats": [record.seat_row(self.plan.panel, result)]})
            if seat_ask is not None:
                line["settle"] = [{"permit": seat_ask.id, "truth": asks.seat_truth(seat_ask, attempt)}]
            writer.record(line)
            if attempt.limits_said or attempt.told:
                self.turn.gateway.heard(attempt)
        return result, wrote

    merged_text: str = ""

    async def side_by_side(self, why: str) -> None:
        self.why = why
        for result in sorted((r for r in self.results if r.seat != "merger"), key=lambda r: r.position):
            await self.say(outcome.seat_text(result))

    # ------------------------------------------------------------------ the end

    async def finish(self) -> None:
        seconds = time.monotonic() - self.turn.began
        bench = outcome.bench_data(self.plan, self.mode, self.status, self.results, seconds)
        if self.why:
            bench["reason"] = self.why
        if self.live:
            bench["text"] = self.merged_text or None
            await self.live.drain()
        usage = outcome.total_usage(self.results)
        if self.turn.beside:
            self.close(self.turn.beside(self.answer(usage, bench)))
        self.close()
        last = b""
        if self.writer:
            if line := outcome.degraded_line(self.results, self.why):
                await self.say(line)
            last = self.writer.finish(usage, bench)
        answer = self.answer(usage, bench)
        stored.keep(self.turn, answer)
        if self.writer:
            await self.turn.out.write(last)
            await self.turn.out.end()
            return
        dropped = list(dict.fromkeys([name for r in self.results for name in r.dropped]))
        await self.turn.reply(self.turn.dialect.write_reply(answer), **({"x_bench_dropped": names_for_header(dropped)} if dropped else {}))

    def answer(self, usage: Usage, bench: dict[str, Any]) -> Answer:
        reply = Reply((Text(self.text()),), Stop.END, "stop", usage, raw=self.writer.whole if self.writer else None)
        return Answer(self.answer_id, self.turn.request.model, int(self.plan.asked_at.timestamp()), reply, usage, bench, self.turn.request)

    def text(self) -> str:
        seats = [r for r in self.results if r.seat != "merger"]
        if not self.merged_text:
            return outcome.panel_text(seats, self.why)
        line = outcome.degraded_line(self.results)
        order = {call: i for i, call in enumerate(self.merge_order or [])}
        answers = sorted((r for r in seats if r.call in order), key=lambda r: order[r.call])
        return "\n\n".join([*([line] if line else []), self.merged_text, merge.key_of_labels(answers)])

    def close(self, beside: Mapping[str, Any] | None = None) -> None:
        """Writes the panel's end, once; also when the caller has left in the middle."""
        if self.stream:
            self.stream.stop()
        if self.live:
            self.live.close()
        if self.closed:
            return
        self.closed = True
        seconds = time.monotonic() - self.turn.began
        line = {**record.fitting(self.plan, record.ended(self.plan.panel, self.status, seconds, self.merge_order)), **(beside or {})}
        running = {task for task in self.tasks if not task.done()}
        if self.ask is None:
            line["over"] = [self.plan.panel]
        elif not running:
            line["settle"] = [self.settled_by_ledger(self.ask)]
        self.turn.gateway.writer.record(line)
        if self.ask is not None and running:
            self.settle_after(running, self.ask)

    def settle_after(self, running: set[asyncio.Task[SeatResult]], ask: Ask) -> None:
        """Late seats, and those that a caller's leaving cancels, still write their rows: what the key used is what the ledger says after the last."""

        def over(task: asyncio.Task[SeatResult]) -> None:
            running.discard(task)
            if not running:
                self.turn.gateway.writer.record({"settle": [self.settled_by_ledger(ask)]})

        for task in list(running):
            task.add_done_callback(over)

    def settled_by_ledger(self, ask: Ask) -> Settle:
        """The rows of all seats stand before it, also of those that came after the panel had stopped waiting. Nobody called: nothing used."""
        return {"permit": ask.id, "panel": self.plan.panel, "unused": True}
