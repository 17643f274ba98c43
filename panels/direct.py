"""One model by its alias: a paced, recorded pass-through."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings

from health.resting import LIMIT
from panels.plan import Target
from panels.seating import hindrance
from panels.single import Bounds, Candidate, Single, planned_single
from panels.turn import Turn
from wire.errors import CallerError

BOUNDS = Bounds(settings.DIRECT_TIMEOUT_S, settings.DIRECT_FIRST_TOKEN_S, settings.DIRECT_IDLE_S, settings.DIRECT_WAIT_MAX_S)


async def direct(turn: Turn, target: Target) -> None:
    """Asks the one model, once."""
    model = target.model
    assert model is not None
    if model.retired:
        why = f": {model.status_reason}" if model.status_reason else ""
        raise CallerError("model_not_found", f"{model.alias} is retired{why}. GET /v1/models lists what can be asked.", status=404, field="model")
    planned = planned_single(turn, target, "direct", model.alias, model)
    rest = turn.snapshot.rest_of(model, datetime.now(UTC), (LIMIT,))
    candidate = Candidate(model, hindrance(model, turn.request, planned.tokens, rest), waits=True)
    await Single(turn, planned, [candidate], BOUNDS, purpose=turn.purpose or "direct", keep_text=bool(turn.caller.keep_text) and not turn.purpose).run()
