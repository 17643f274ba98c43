"""A request that goes on when its caller leaves: a page that is loaded anew finds its panel where it was."""

from __future__ import annotations

import asyncio
from typing import Any

from panels.serve import serve
from panels.turn import Turn


async def serve_on(turn: Turn, out: Any) -> None:
    """Serves a request to its end. Shape: `out.leave()` makes a way back on which nobody listens any more take whatever is said."""
    work = asyncio.ensure_future(serve(turn))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        if not work.done():
            if turn.live is not None:
                turn.live.close()
            out.leave()
            turn.gateway.keep(work)
        raise
