"""A request of the pages' own form: read with what it takes from an earlier panel, and who sits in it by name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from access.caller import Caller
from panels import again, plan
from panels.again import Asked
from panels.gateway import Gateway
from panels.plan import Target
from panels.reading import in_reader
from panels.snapshot import Snapshot
from panels.views import refuse_endless
from wire.bench_chat import BENCH, Earlier, Wishes, read_wishes
from wire.conversation import Request
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.jsontext import LARGE_BYTES, parse_body


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of whom. Shape: `seats` None where the collection seats as it does."""

    request: Request
    target: Target
    seats: tuple[str, ...] | None
    besides: tuple[str, ...]
    detached: bool = False


async def question(gateway: Gateway, snapshot: Snapshot, caller: Caller, inbound: Inbound, body: bytes) -> Question:
    """Reads a body, and what it takes from a panel on record. Errors: CallerError."""
    is_large = len(body) > LARGE_BYTES  # which takes its time, and nobody else's call should wait for it
    value = await asyncio.to_thread(parse_body, body) if is_large else parse_body(body)
    if is_large:
        refuse_endless(value)
    wishes = read_wishes(value)
    earlier = await in_reader(gateway, lambda: again.asked(wishes.again, caller)) if wishes.again else None
    inbound = Inbound(inbound.path, inbound.query, inbound.headers, value, taken(earlier, value) if earlier else None)
    # What was kept may be as large as any body.
    request = await asyncio.to_thread(BENCH.read_request, inbound) if is_large or earlier else BENCH.read_request(inbound)
    target = plan.resolve(request.model, snapshot)
    plan.allow(caller, target)
    seats = wishes.seats
    allow_seats(seats or (), "bench.seats", target, caller, snapshot)
    if seats is None and earlier is not None and not wishes.reseat and target.mode in ("panel", "merged"):
        # Explorers of then whom the caller may not name sit for nobody's asking; who has left the roster since is skipped, and said so.
        seats = tuple([a for a in earlier.seats if a not in snapshot.models or may_seat(a, target, caller)]) or None
    check_seats(wishes, target)
    allow_seats(wishes.besides, "bench.with", target, caller, snapshot)
    return Question(request, target, seats, wishes.besides, wishes.detached)


def taken(earlier: Asked, body: Any) -> Earlier:
    """What an earlier panel stands in for. Errors: CallerError 404 where its prompt is needed and gone."""
    if earlier.messages is None and body.get("messages") is None:
        raise CallerError("not_found", "The prompt of that panel is kept no longer. Send it as messages.", status=404, field="bench.again")
    return Earlier(earlier.messages or (), earlier.model)


def check_seats(wishes: Wishes, target: Target) -> None:
    if target.mode in ("panel", "merged"):
        return
    for names, field in ((wishes.seats, "bench.seats"), (wishes.besides, "bench.with")):
        if names:
            raise CallerError("invalid_request", f"{field} is for panels. Ask bench/<collection> or bench/<collection>:merged.", field=field)


def allow_seats(names: Sequence[str], field: str, target: Target, caller: Caller, snapshot: Snapshot) -> None:
    """Who may ask a collection may seat its members; anybody else must be one that the caller may ask. Errors: CallerError 403 and 404."""
    for name in names:
        if name not in snapshot.models:
            raise CallerError("model_not_found", f"There is no model {name[:200]!r} on the roster to seat.", status=404, field=field)
        if not may_seat(name, target, caller):
            raise CallerError("not_allowed", f"The caller may not ask {name[:200]!r}.", status=403, field=field)


def may_seat(name: str, target: Target, caller: Caller) -> bool:
    return (target.collection is not None and name in target.collection.members) or caller.may_ask_model(name)
