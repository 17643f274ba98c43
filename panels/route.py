"""Route mode: one member takes the turn with its tools and keeps the conversation; if it fails before answering, the next does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from access.ids import new_id
from catalog import providers
from catalog.roster import Model
from health.attempt import Attempt
from health.writer import DatabaseAway, Denied
from panels import asks, memory, picking, record
from panels.convene import order_for, sit
from panels.memory import Known, Trail
from panels.outcome import SeatResult
from panels.plan import Picked, Plan, Seat, Target, new_seed, picked_from
from panels.seating import Hindrance, Place, hindrance
from panels.single import Bounds, Candidate, Single, planned_single
from panels.turn import Turn
from wire import dialects
from wire.conversation import Part, Request
from wire.errors import CallerError

# A conversation of so many messages takes its time to be looked through, which nobody else's call should wait for.
LONG = 5_000


async def route(turn: Turn, target: Target) -> None:
    """Serves one turn of a conversation.

    1. know the conversation again, by what its client repeats;
    2. put the members in order: its own member first, then as the collection picks;
    3. ask the first that can; on a failure before content the next;
    4. remember who took it; let the others answer in the shadow where the collection says so.
    """
    collection = target.collection
    assert collection is not None
    members = [m for alias in dict.fromkeys(collection.members) if (m := turn.snapshot.models.get(alias))]
    if not members:
        raise CallerError("invalid_request", f"The collection {collection.name!r} has no members that could take the turn.", field="model")
    scope = memory.scope_of(turn.caller, collection.name)
    is_long = len(turn.request.messages) > LONG
    trail = await asyncio.to_thread(memory.trail_of, turn.request, turn.headers_in, scope) if is_long else memory.trail_of(turn.request, turn.headers_in, scope)
    now = datetime.now(UTC)
    known = await turn.gateway.known(trail.digests, now)
    pinned = memory.pinned(trail, known)
    seed = new_seed()
    order, why = await picked(turn, collection.name, collection.picking, members, seed, now)
    planned = planned_single(turn, target, "route", order[0].alias, order[0], seed, why)
    candidates = in_order(turn, planned, order, pinned, now)

    def prepare(model: Model) -> Request:
        return fitting(turn.request, trail, known, model)

    def remember(model: Model, parts: Sequence[Part]) -> dict[str, Any]:
        now = datetime.now(UTC)
        items = memory.items_of(trail, turn.request, parts, model.alias, known, scope, now)
        for mark in turn.dialect.marks_of(turn.request, single.answer_id):
            items.append({"digest": memory.digest(scope, "mark", mark), "kind": "mark", "model": model.alias, "payload": "", "used_at": now.isoformat()})
        turn.gateway.memory.note(items)
        return {"pins": items} if items else {}

    bounds = Bounds(collection.timeout_s, collection.first_token_timeout_s, collection.idle_timeout_s, collection.wait_max_s)
    keep = collection.keep_text if collection.keep_text is not None else bool(turn.caller.keep_text)
    single = Single(
        turn,
        planned,
        candidates,
        bounds,
        purpose=turn.purpose or "route",
        keep_text=keep and not turn.purpose,
        failover_on_refusal=collection.failover_on_refusal,
        prepare=prepare,
        remember=remember,
    )
    await single.run()
    if not turn.purpose and collection.shadow_share > 0 and random.random() < collection.shadow_share:
        shadow(turn, single, members)


def in_order(turn: Turn, planned: Plan, order: Sequence[Model], pinned: str | None, now: datetime) -> list[Candidate]:
    """The conversation's member first, the others as picked, each with what hinders it. The last that can is waited for."""
    ranked = sorted(order, key=lambda m: m.alias != pinned)
    found = [(m, barred(turn, planned, m, now)) for m in ranked]
    last = next((m.alias for m, bar in reversed(found) if bar is None), None)
    return [Candidate(m, bar, waits=m.alias in (pinned, last)) for m, bar in found]


def barred(turn: Turn, planned: Plan, model: Model, now: datetime) -> Hindrance | None:
    """What keeps a member from this turn: what keeps any model, tools and promised shapes that it is known not to have, and the key's own list."""
    request = turn.request
    if turn.caller.models is not None and not turn.caller.may_ask_model(model.alias):
        return Hindrance("not_allowed", f"This key may not ask {model.alias}.")
    if request.tools and model.facts.get("tools") is False:
        return Hindrance("no_tools", f"{model.alias} takes no tools.")
    if request.format and request.format.kind == "schema" and model.facts.get("structured_output") is False:
        return Hindrance("no_structured_output", f"{model.alias} does not keep to a schema.")
    return hindrance(model, request, planned.tokens, turn.snapshot.rest_of(model, now))


async def picked(turn: Turn, collection: str, by: str, members: Sequence[Model], seed: int, now: datetime) -> tuple[list[Model], Picked | None]:
    """The members in the order in which they are tried: as given, or by their record, before any verdict as given."""
    if by != "record":
        return list(members), None
    aliases = [m.alias for m in members]
    beliefs = await turn.gateway.evidence.beliefs(collection, aliases, now)
    pick = picking.ranked(aliases, beliefs, seed)
    return [members[i] for i in pick.seated], picked_from(pick, beliefs)


def fitting(request: Request, trail: Trail, known: dict[str, Known], model: Model) -> Request:
    """The request as one member may see it: without thinking that is known to be another's, with the reasoning that its own calls need."""
    dialect = dialects.get(providers.get(model.endpoint.kind).dialect)
    if trail.thoughts:
        request = dialects.get(request.dialect).without_thinking(request, lambda part: memory.is_foreign(part, trail, known, model.alias))
    if dialect.name != request.dialect and trail.tools:
        request = memory.restored(request, trail, known, model.alias)
    return request


# ------------------------------------------------------------------ shadow seats


def shadow(turn: Turn, single: Single, members: Sequence[Model]) -> None:
    """Lets the members that did not take the turn answer it too, off the path. Nothing they say is executed; all of it can be judged."""
    taken = single.attempts[-1].order.model.alias if single.attempts else ""
    now = datetime.now(UTC)
    others = [m for m in members if m.alias != taken and not m.ad_hoc and barred(turn, single.plan, m, now) is None]
    if others and settings.KEEP_TEXT_DAYS:
        turn.gateway.keep(asyncio.ensure_future(shadows(turn, single, others)))


async def shadows(turn: Turn, single: Single, others: Sequence[Model]) -> None:
    """The key pays for shadows too: without budget left for all of them there are none."""
    gateway, collection = turn.gateway, single.plan.collection
    try:
        ask = asks.key_ask(single.plan, others, collection.timeout_s)
    except CallerError:
        return  # a model of unknown price is no shadow of a key with a budget
    if ask is not None:
        name = new_id("shd")
        ask = replace(ask, id=name, stub={"id": name, "panel": ""}, holds=tuple(h for h in ask.holds if h.measure in ("tokens", "pusd")))
        try:
            if isinstance((await gateway.writer.reserve(ask, [])).first, Denied):
                return
        except DatabaseAway:
            return
    lines = single.texts()
    seats = [Seat(new_id("call"), i + 1, Place(m.alias, m, "shadow")) for i, m in enumerate(others)]
    running = [record.running_seat(single.plan.panel, s.call, s.position, s.place.alias, "shadow") for s in seats]
    gateway.writer.record({**lines, "seats": [*lines["seats"], *running]})
    tasks = [asyncio.ensure_future(one_shadow(turn, single.plan, s)) for s in seats]
    try:
        results = await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        await asyncio.wait(tasks)  # they write down what had come; the key keeps paying what was reserved
        if ask is not None:
            gateway.writer.record({"settle": [{"permit": ask.id}]})
        raise
    if ask is not None:
        gateway.writer.record({"settle": [{"permit": ask.id, "truth": asks.key_truth(ask, results)}]})


async def one_shadow(turn: Turn, planned: Plan, seat: Seat) -> SeatResult:
    collection = planned.collection
    order = order_for(planned, seat, "shadow", collection.timeout_s, collection.first_token_timeout_s, collection.idle_timeout_s)
    attempt = Attempt(order)
    ask = asks.seat_ask(planned, attempt)
    if ask is None:
        turn.gateway.writer.record({"begin": [attempt.stub()]})
    return await sit(turn.gateway, planned, seat, attempt, ask, 0.0)
