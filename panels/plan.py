"""What a request will do, before anything is spent: the name resolved, the caller's rights looked at, the seats placed. Frozen, and pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from access.budgets import Limit
from access.caller import Caller
from access.ids import new_id
from catalog.addresses import AddressRefused, check_image_url
from catalog.roster import Model
from health.costs import cost_pusd
from health.resting import LIMIT
from panels.collections import Collection
from panels.picking import NOTHING, Beliefs, Pick
from panels.seating import Hindrance, Place, hindrance, pick, seats
from panels.snapshot import Snapshot
from wire.conversation import File, Image, Request, Role, Usage, each_part
from wire.errors import CallerError
from wire.estimate import request_tokens

PREFIX = "bench/"
MODES = {":merged": "merged", ":route": "route"}
NO_LAST_USER_TURN = "Please go on."
ONE_OF_EACH = Usage(input=1, output=1)


@dataclass(frozen=True, slots=True)
class Target:
    """What a name stands for: a model (direct), or a collection in a mode."""

    mode: str
    model: Model | None = None
    collection: Collection | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """One seat of a plan, with the id of its call."""

    call: str
    position: int
    place: Place


@dataclass(frozen=True, slots=True)
class Picked:
    """Why the record seated whom it did. Shape: `draws` by alias: the Beta's two parameters and what was drawn from it by the panel's seed."""

    draws: Mapping[str, tuple[float, float, float]]
    forced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Shape: `request` is what every seat is sent; `picked` where the record decided; `budgets` are those that it falls under, besides the key's.

    Units: `tokens` estimated input, `asked_at` aware UTC.
    """

    panel: str
    target: Target
    caller: Caller
    request: Request
    request_id: str
    tokens: int
    asked_at: datetime
    seed: int
    seats: tuple[Seat, ...]
    picked: Picked | None = None
    budgets: tuple[Limit, ...] = ()
    on_record: bool = True  # whether its panel and seats are kept besides its calls

    @property
    def collection(self) -> Collection:
        assert self.target.collection is not None
        return self.target.collection


def budgets_of(target: Target, caller: Caller, snapshot: Snapshot) -> tuple[Limit, ...]:
    """The budgets of owner, team and collection that a request falls under."""
    return snapshot.budgets.of(caller.owner, caller.team, target.collection.name if target.collection else "")


def resolve(name: str, snapshot: Snapshot) -> Target:
    """An exact alias wins, then `bench/<collection>`, then its modes. Errors: CallerError 404 `model_not_found`."""
    if model := snapshot.models.get(name):
        return Target("direct", model=model)
    if name.startswith(PREFIX):
        rest = name[len(PREFIX) :]
        if collection := snapshot.collections.get(rest):
            return Target("panel", collection=collection)
        for ending, mode in MODES.items():
            if rest.endswith(ending) and (collection := snapshot.collections.get(rest[: -len(ending)])):
                return Target(mode, collection=collection)
    raise CallerError("model_not_found", f"There is no model or collection {name!r}. GET /v1/models lists what can be asked.", status=404, field="model")


def allow(caller: Caller, target: Target) -> None:
    """Errors: CallerError 403 `not_allowed`."""
    if target.model and not caller.may_ask_model(target.model.alias):
        raise CallerError("not_allowed", f"This key may not ask {target.model.alias!r}.", status=403, field="model")
    if target.collection and not caller.may_ask_collection(target.collection.name):
        raise CallerError("not_allowed", f"This key may not ask the collection {target.collection.name!r}.", status=403, field="model")


def seated_by_name(target: Target, seats: Sequence[str], snapshot: Snapshot) -> Target:
    """Puts those in the members' place whom the caller named for this one panel: all of them sit, nobody explores. Mergers stay the collection's own."""
    collection = target.collection
    assert collection is not None
    mergers = collection.mergers or tuple([a for a in dict.fromkeys(collection.members) if (m := snapshot.models.get(a)) and not m.ad_hoc])
    return replace(target, collection=replace(collection, members=tuple(seats), mergers=mergers, seats=None, explorers=0))


def check_images(request: Request) -> None:
    """No image is fetched here, and no provider is sent to fetch one that lies inside somebody's network."""
    for message in request.messages:
        for part in each_part(message.parts):
            if isinstance(part, Image | File) and part.url:
                try:
                    check_image_url(part.url)
                except AddressRefused as error:
                    raise CallerError("invalid_request", f"An address in the request is refused: {error}", field="messages") from None


def check_panel(request: Request) -> None:
    """What a panel cannot do is refused, with what to do instead."""
    if request.tools:
        raise CallerError(
            "tools_need_route", "A panel answers with text and takes no tools. Ask for bench/<collection>:route, one member with its tools.", field="tools"
        )
    if request.choices > 1:
        raise CallerError("invalid_request", "A panel gives one answer a seat: n must be 1. Ask again for more, or seat a model twice.", field="n")


def plan_panel(
    request: Request,
    target: Target,
    caller: Caller,
    snapshot: Snapshot,
    last_seated: Mapping[str, datetime],
    request_id: str,
    now: datetime,
    seed: int | None = None,
    besides: Sequence[str] = (),
    beliefs: Beliefs = NOTHING,
    waited: Mapping[str, int] | None = None,
) -> Plan:
    """Places the seats. `request` already ends with a user turn; `besides` are aliases that sit with the members this once.

    `beliefs` and `waited`, the panels since each member sat, decide where not all members sit.

    Errors: CallerError 400 where no seat can take it.
    """
    assert target.collection is not None
    tokens = request_tokens(request)
    seed = new_seed() if seed is None else seed

    def check(model: Model) -> Hindrance | None:
        return hindrance(model, request, tokens, snapshot.rest_of(model, now, (LIMIT,)))

    budgets = budgets_of(target, caller, snapshot)

    def may_explore(model: Model) -> bool:
        # Nobody chose it: one that a budget cannot reckon with is passed over, where a member's unknown price refuses the panel.
        return not (budgets or caller.budget_usd is not None) or cost_pusd(ONE_OF_EACH, model.price_on(now.date())) is not None

    sits = pick(target.collection, snapshot.models, beliefs, waited or {}, seed, check, besides)
    placed = seats(target.collection, snapshot.models, last_seated, seed, check, besides, sits, may_explore)
    return Plan(
        panel=new_id("pan"),
        target=target,
        caller=caller,
        request=request,
        request_id=request_id,
        tokens=tokens,
        asked_at=now,
        seed=seed,
        seats=tuple([Seat(new_id("call"), i, p) for i, p in enumerate(placed)]),
        picked=picked_from(sits, beliefs) if sits else None,
        budgets=budgets,
    )


def new_seed() -> int:
    return random.SystemRandom().getrandbits(53)


def picked_from(sits: Pick, beliefs: Beliefs) -> Picked | None:
    """What is kept of a pick; None where the order given decided."""
    if not sits.draws and not sits.forced:
        return None
    return Picked({alias: (round((b := beliefs.about(alias)).a, 6), round(b.b, 6), round(drawn, 6)) for alias, drawn in sits.draws.items()}, sits.forced)


def ends_with_user(request: Request) -> bool:
    return request.messages[-1].role is Role.USER
