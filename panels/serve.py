"""The one road of a request: plan, reserve, convene, settle, record. Every dialect and every mode goes down it.

caller ─▶ view ─▶ serve ─▶ plan ─▶ reserve ─▶ convene ─▶ settle ─▶ record ─▶ caller
"""

from __future__ import annotations

from panels import dry, plan
from panels.count import count
from panels.direct import direct
from panels.route import route
from panels.sitting import panel
from panels.turn import Turn


async def serve(turn: Turn) -> None:
    """Answers one request. Errors: CallerError before anything was sent; afterwards errors go into the stream."""
    target = plan.resolve(turn.request.model, turn.snapshot)
    plan.allow(turn.caller, target)
    if turn.caller.is_dry:
        turn.snapshot, turn.purpose = dry.dried(turn.snapshot), dry.PURPOSE
        target = plan.resolve(turn.request.model, turn.snapshot)
    plan.check_images(turn.request)
    if turn.request.operation == "count":
        await count(turn, target)
    elif target.mode == "direct":
        await direct(turn, target)
    elif target.mode == "route":
        await route(turn, target)
    else:
        await panel(turn, target)
