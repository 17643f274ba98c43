"""What a question would cost, before it is asked: who would sit now, what goes in, what usually comes back, and what may come at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from catalog.roster import Model
from health import typical
from health.costs import cost_pusd, usd_text
from health.resting import LIMIT
from panels import asks, plan
from panels.merge import TEMPLATE_TOKENS
from panels.plan import Plan, Target
from panels.reading import in_reader
from panels.route import in_order, picked
from panels.seating import Hindrance, hindrance
from panels.single import planned_single
from panels.sitting import mergers, planned_panel
from panels.turn import Turn
from wire.conversation import Usage
from wire.errors import CallerError

# Of a model that has never answered anybody here.
OUTPUT_UNKNOWN = 800


@dataclass(frozen=True, slots=True)
class Guess:
    """One seat before it is asked. Units: tokens, and trillionths of a US dollar; None for an unknown price or a seat that would be skipped."""

    alias: str
    seat: str
    hindrance: Hindrance | None
    input: tuple[int, int]
    output: tuple[int, int]
    cost: tuple[int, int] | None

    def data(self) -> dict[str, Any]:
        asked = self.hindrance is None
        return {
            "model": self.alias,
            "seat": self.seat,
            "status": "ready" if asked else "skipped",
            "reason": {"code": self.hindrance.code, "message": self.hindrance.message} if self.hindrance else None,
            "input_tokens": self.input[0] if asked else 0,
            "output_tokens": {"typical": self.output[0], "most": self.output[1]} if asked else {"typical": 0, "most": 0},
            "cost_usd": {"typical": usd_text(self.cost[0]), "most": usd_text(self.cost[1])} if self.cost else None,
        }


async def estimate(turn: Turn, target: Target) -> dict[str, Any]:
    """Reckons a request that is not sent. Errors: CallerError for one that would be refused whoever sits."""
    if target.mode in ("panel", "merged"):
        planned = await planned_panel(turn, target)
        places = [(s.place.alias, s.place.model, s.place.seat, s.place.hindrance) for s in planned.seats]
    else:
        planned, places = await single(turn, target)
    able = [model for _, model, _, hindered in places if model and not hindered]
    merging = mergers(turn, planned)[:1] if target.mode == "merged" and len(able) > 1 else []
    said = await in_reader(turn.gateway, lambda: typical.output_tokens([m.alias for m in (*able, *merging)], planned.asked_at))
    guesses = [guess(planned, alias, model, seat, hindered, said, (planned.tokens, planned.tokens)) for alias, model, seat, hindered in places]
    for merger in merging:
        read = [planned.tokens + TEMPLATE_TOKENS + sum(g.output[i] for g in guesses if g.hindrance is None) for i in (0, 1)]
        guesses.append(guess(planned, merger.alias, merger, "merger", None, said, (read[0], read[1])))
    return told(turn.request.model, target.mode, planned, guesses)


def guess(planned: Plan, alias: str, model: Model | None, seat: str, hindered: Hindrance | None, said: dict[str, int], tokens: tuple[int, int]) -> Guess:
    if model is None or hindered is not None:
        return Guess(alias, seat, hindered, (0, 0), (0, 0), None)
    most = asks.output_limit(planned, model)
    usual = min(said.get(alias, OUTPUT_UNKNOWN), most)
    typically = cost_pusd(Usage(input=tokens[0], output=usual), model.price_on(planned.asked_at.date()))
    at_most = asks.worst_cost(planned, model, tokens[1] - planned.tokens)
    cost = None if typically is None or at_most is None else (typically, at_most)
    return Guess(alias, seat, None, tokens, (usual, most), cost)


async def single(turn: Turn, target: Target) -> tuple[Plan, list[tuple[str, Model | None, str, Hindrance | None]]]:
    """The one model of a direct call, or the member that would be tried first; where none can, all with what hinders them."""
    now = datetime.now(UTC)
    if target.model is not None:
        model = target.model
        planned = planned_single(turn, target, "direct", model.alias, model)
        return planned, [(model.alias, model, "direct", hindrance(model, turn.request, planned.tokens, turn.snapshot.rest_of(model, now, (LIMIT,))))]
    collection = target.collection
    assert collection is not None
    members = [m for alias in dict.fromkeys(collection.members) if (m := turn.snapshot.models.get(alias))]
    if not members:
        raise CallerError("invalid_request", f"The collection {collection.name!r} has no members that could take the turn.", field="model")
    seed = plan.new_seed()
    order, why = await picked(turn, collection.name, collection.picking, members, seed, now)
    planned = planned_single(turn, target, "route", order[0].alias, order[0], seed, why)
    candidates = in_order(turn, planned, order, None, now)
    first = next((c for c in candidates if c.hindrance is None), None)
    return planned, [(c.model.alias, c.model, "route", c.hindrance) for c in ([first] if first else candidates)]


def told(name: str, mode: str, planned: Plan, guesses: Sequence[Guess]) -> dict[str, Any]:
    asked = [g for g in guesses if g.hindrance is None]
    known = [g.cost for g in asked if g.cost is not None]
    sums = [usd_text(sum(cost[i] for cost in known)) if known or not asked else None for i in (0, 1)]
    return {
        "model": name,
        "mode": mode,
        "input_tokens": planned.tokens,
        "seats": [g.data() for g in guesses],
        "cost_usd": {"typical": sums[0], "most": sums[1]},
        "unknown": list(dict.fromkeys([g.alias for g in asked if g.cost is None])),
    }
