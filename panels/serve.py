"""The one road of a request: plan, reserve, convene, settle, record. Every dialect and every mode goes down it.

caller ─▶ view ─▶ serve ─▶ plan ─▶ reserve ─▶ convene ─▶ settle ─▶ record ─▶ caller
"""

from __future__ import annotations

from panels import plan
from panels.direct import direct
from panels.sitting import panel
from panels.turn import Turn
from wire.errors import CallerError


async def serve(turn: Turn) -> None:
    """Answers one request. Errors: CallerError before anything was sent; afterwards errors go into the stream."""
    target = plan.resolve(turn.request.model, turn.snapshot)
    plan.allow(turn.caller, target)
    plan.check_images(turn.request)
    if target.mode == "route":
        text = "Route mode is not here yet. Ask a panel (bench/<collection>), or one model by its alias."
        raise CallerError("not_implemented", text, status=501, field="model")
    if target.mode == "direct":
        await direct(turn, target)
    else:
        await panel(turn, target)
