"""The answers of a panel on record, compared: one merger lists what they claim, and the list is kept with the panel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import connection

from access.caller import Caller
from access.ids import new_id
from catalog.roster import Model
from health.attempt import Attempt, Order
from health.costs import usd_text
from panels import asks, claims, lookup, merge, outcome, plan, record, stops
from panels.convene import order_for, permitted
from panels.models import Comparison, Panel, Seat
from panels.outcome import SeatResult
from panels.plan import Plan, Target
from panels.prompt_text import messages_of, words_of
from panels.reading import in_reader
from panels.seating import Place, hindrance
from panels.sitting import mergers
from panels.turn import Turn, reserve
from wire.conversation import Request
from wire.errors import CallerError, UpstreamError
from wire.estimate import request_tokens

PURPOSE = "compare"
TIMEOUT_S, WAIT_MAX_S = 300.0, 30.0
# Each costs, and who could not be read by three is rarely read by a fourth.
TRIED = 3


@dataclass(frozen=True, slots=True)
class Compared:
    """A panel as it is compared. Shape: `answers` by position."""

    panel: str
    collection: str
    question: str
    seed: int
    answers: tuple[SeatResult, ...]


async def compare(turn: Turn, panel: str, by: str = "") -> dict[str, Any]:
    """Compares a panel's answers and keeps what was found. `by` names the merger. Errors: CallerError.

    1. read the panel's texts, if the caller may;
    2. reserve for the dearest merger;
    3. ask one after the other until one gives a list that can be read;
    4. record the call and the list in one line.
    """
    compared = await in_reader(turn.gateway, lambda: load(panel, turn.caller))
    target = target_of(turn, compared, by)
    answers = merge.shuffled(compared.answers, compared.seed)
    planned, able = planned_by(turn, compared, target, answers, by)
    turn.panel = panel
    dearest = max(able, key=lambda m: float("inf") if (cost := asks.worst_cost(planned, m)) is None else cost)
    permit = asks.key_ask(planned, [dearest], (TIMEOUT_S + WAIT_MAX_S) * len(able))
    if permit is not None:  # the panel's own has its name, and is settled by the panel's rows
        name = new_id("cmp")
        permit = replace(permit, id=name, stub={"id": name, "panel": ""})
    await reserve(turn, permit)
    results: list[SeatResult] = []
    try:
        for model in able:
            found = await ask(turn, planned, model, answers, compared.question, results)
            if found is not None:
                await turn.gateway.writer.flush(1.0)
                return found
            if results[-1].status == "cancelled":
                break
    finally:
        if permit is not None:
            turn.gateway.writer.record({"settle": [{"permit": permit.id, "truth": asks.key_truth(permit, results)}]})
    raise failure(results)


# ------------------------------------------------------------------ what is compared, and by whom


def load(panel: str, caller: Caller) -> Compared:
    """Reads a panel's answers. Asks the database. Errors: CallerError 403, 404, 409."""

    def look(also_running: bool = False) -> Panel | None:
        row = Panel.objects.filter(pk=panel).first()
        return row if row is not None and (also_running or row.status != Panel.Status.RUNNING) else None

    # One that seems to run may have ended a moment ago: who heard its last word asks at once.
    row = (lookup.after_a_drain(look, panel) or look(also_running=True)) if panel.isprintable() else None
    if row is None:
        raise CallerError("not_found", f"There is no panel {panel[:200]} on record.", status=404)
    if not caller.may("operate") and not lookup.is_own(caller, row.judge, row.key_id):
        raise CallerError("not_allowed", "This panel was asked by somebody else. Its texts are open to who asked it and to operators.", status=403)
    if row.status == Panel.Status.RUNNING:
        raise CallerError("panel_running", f"Panel {panel} is still being answered. Compare its answers when it is done.", status=409)
    seats = Seat.objects.filter(panel=row).exclude(seat="merger").order_by("position", "call")
    answers = [SeatResult(s.call, s.position, s.model, s.seat, s.status, text=s.text or "") for s in seats]
    answers = [r for r in answers if r.answered]
    if len(answers) < 2:
        raise CallerError("not_comparable", "Fewer than two answers of this panel are on record with their texts.", status=409)
    return Compared(panel, row.collection, question_of(messages_of(row.prompt)), row.seed, tuple(answers))


def question_of(messages: Sequence[dict[str, Any]]) -> str:
    """The last thing that was asked, as words."""
    return words_of(next((m.get("content") for m in reversed(messages) if m.get("role") == "user"), ""))


def target_of(turn: Turn, compared: Compared, by: str) -> Target:
    """What the caller must be allowed to ask. A panel whose collection is gone is compared by a model named."""
    collection = turn.snapshot.collections.get(compared.collection)
    if by:
        if by not in turn.snapshot.models:
            raise CallerError("model_not_found", f"There is no model {by[:200]!r} on the roster.", status=404, field="with")
        is_its_own = collection is not None and by in (*collection.mergers, *collection.members) and turn.caller.may_ask_collection(collection.name)
        if not is_its_own and not turn.caller.may_ask_model(by):
            raise CallerError("not_allowed", f"The caller may not ask {by[:200]!r}.", status=403, field="with")
        return Target("merged", collection=collection)
    if collection is None:
        raise CallerError("not_comparable", "The collection is gone. Name a model with `with`.", status=409, field="with")
    target = Target("merged", collection=collection)
    plan.allow(turn.caller, target)
    return target


def planned_by(turn: Turn, compared: Compared, target: Target, answers: Sequence[SeatResult], by: str) -> tuple[Plan, list[Model]]:
    """A plan for whoever compares, and who can, in order. Errors: CallerError where nobody can."""
    request = claims.request_for(answers, compared.question, turn.request.model, in_shape=False)
    turn.request = request
    budgets = plan.budgets_of(target, turn.caller, turn.snapshot)
    planned = Plan(compared.panel, target, turn.caller, request, turn.request_id, request_tokens(request), datetime.now(UTC), compared.seed, (), None, budgets)
    asked = [turn.snapshot.models[by]] if by else mergers(turn, planned)
    hindered = [(m, hindrance(m, request, planned.tokens, None)) for m in asked]
    able = [m for m, why in hindered if why is None][:TRIED]
    if not able:
        skipped = [outcome.skipped(plan.Seat(new_id("call"), i, Place(m.alias, m, "merger")), why) for i, (m, why) in enumerate(hindered) if why]
        if skipped:
            raise outcome.exhausted(skipped)
        raise CallerError("not_comparable", "Nobody can compare: the collection's mergers rest or are retired. Name a model with `with`.", status=409)
    return planned, able


# ------------------------------------------------------------------ asking


async def ask(turn: Turn, planned: Plan, model: Model, answers: Sequence[SeatResult], question: str, results: list[SeatResult]) -> dict[str, Any] | None:
    """Lets one merger list the claims, and keeps them with the call; None where it gave none that can be read. `results` takes the call."""
    gateway = turn.gateway
    request = claims.request_for(answers, question, planned.request.model, in_shape=model.facts.get("structured_output") is True)
    seat = plan.Seat(new_id("call"), 0, Place(model.alias, model, "merger"))
    attempt = Attempt(order_of(planned, request, seat))
    permit = asks.seat_ask(planned, attempt)
    running = gateway.stops.enter(seat.call, planned.panel, turn.caller)
    try:
        if permit is not None:
            try:
                refused = await permitted(gateway, permit, attempt, WAIT_MAX_S)
            except asyncio.CancelledError:
                if not running.was_stopped():
                    raise
                refused = "cancelled", stops.CODE, stops.WHY, None
            if refused is not None:
                results.append(outcome.unasked(seat, *refused))
                return None
            attempt.restart()
        gateway.writer.record({"begin": [attempt.stub()]})
        found: claims.Found | None = None
        try:
            await attempt.whole(gateway.upstream)
            found = claims.read(attempt.text, answers)
        except UpstreamError as error:
            gateway.learn(attempt, error, every_kind=False)
        except claims.Unreadable:
            pass
        except asyncio.CancelledError:
            if not running.was_stopped():
                raise
            attempt.give_up(stops.CODE, stops.WHY)
        finally:
            result = outcome.result_of(seat, attempt)
            results.append(result)
            line: dict[str, Any] = {"attempts": [attempt.row()]}
            if permit is not None:
                line["settle"] = [{"permit": permit.id, "truth": asks.seat_truth(permit, attempt)}]
            kept = kept_of(planned, result, found) if found is not None else None
            gateway.writer.record({**line, "comparisons": [kept]} if kept else line)
            if attempt.limits_said or attempt.told:
                gateway.heard(attempt)
    finally:
        gateway.stops.leave(seat.call)
    return None if kept is None else shown(kept, json.loads(kept["claims"]), usd_text(result.cost_pusd), outcome.usage_data(result.usage))


def order_of(planned: Plan, request: Request, seat: plan.Seat) -> Order:
    collection = planned.target.collection
    timeout_s = float(collection.timeout_s) if collection else TIMEOUT_S
    return order_for(replace(planned, request=request), seat, PURPOSE, timeout_s, timeout_s, timeout_s)


def failure(results: Sequence[SeatResult]) -> CallerError:
    """The one error: what was said but could not be read is no fault of who asked."""
    if any(r.answered for r in results):
        message = f"No merger gave a list of claims that can be read. {outcome.told(results)}"
        return CallerError("upstream_garbage", message, status=502, seats=outcome.failed_seats(results))
    return outcome.exhausted(results)


# ------------------------------------------------------------------ keeping


def kept_of(planned: Plan, result: SeatResult, found: claims.Found) -> dict[str, Any]:
    return {
        "panel": planned.panel,
        "call": result.call,
        "model": result.model,
        "judge": planned.caller.judge,
        "at": datetime.now(UTC).isoformat(),
        "status": result.status,
        "claims": orjson.dumps(found.claims).decode(),
        "dropped_claims": found.dropped_claims,
        "dropped_quotes": found.dropped_quotes,
    }


def shown(kept: dict[str, Any], listed: Any, cost_usd: str | None, usage: dict[str, Any] | None) -> dict[str, Any]:
    """One comparison as callers see it."""
    return {
        "call": kept["call"],
        "model": kept["model"],
        "judge": kept["judge"],
        "at": datetime.fromisoformat(kept["at"]) if isinstance(kept["at"], str) else kept["at"],
        "status": kept["status"],
        "claims": listed,
        "dropped": {"claims": kept["dropped_claims"], "quotes": kept["dropped_quotes"]},
        "cost_usd": cost_usd,
        "usage": usage,
    }


FIELDS = ("panel", "call", "model", "judge", "at", "status", "claims", "dropped_claims", "dropped_quotes")
COLUMNS = ", ".join("panel_id" if f == "panel" else f for f in FIELDS)
# Nothing is kept of a panel whose texts were taken away meanwhile; a line that is committed again is no later than what it wrote.
PUT = (
    f"INSERT INTO panels_comparison ({COLUMNS}) SELECT {', '.join(['%s'] * len(FIELDS))}"  # noqa: S608
    " WHERE EXISTS (SELECT 1 FROM panels_panel WHERE id = %s AND prompt IS NOT NULL)"
    " ON CONFLICT (panel_id) DO UPDATE SET " + ", ".join(f"{f} = excluded.{f}" for f in FIELDS[1:]) + " WHERE panels_comparison.at < excluded.at"
)


def commit_comparisons(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    for item in items:
        at = connection.ops.adapt_datetimefield_value(datetime.fromisoformat(item["at"]))
        values = [at if f == "at" else record.clean(item[f]) for f in FIELDS]
        cursor.execute(PUT, [*values, item["panel"]])


def forget(panels: Sequence[str]) -> None:
    """Takes the claims of some panels away; that they were compared, and what it cost, stays."""
    Comparison.objects.filter(panel__in=panels).update(claims=None)
