"""The paths below /bench that run on the gateway's own entry: asking as a page does it, what that would cost, stopping it, comparing its answers.

They take what the dialects' paths take, and a signed-in user's session besides.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import unquote

from django.conf import settings

from access import sessions
from access.auth import KeyAuthentication, LoopbackAuthentication, UserAuthentication
from access.caller import Caller
from access.door import extract_key
from panels import lookup, stops
from panels.api.wording import to_json
from panels.asking import question
from panels.comparison import compare
from panels.detached import serve_on
from panels.estimate import estimate
from panels.gateway import Gateway
from panels.live import LiveSeats
from panels.plan import Target
from panels.reading import in_reader
from panels.serve import serve
from panels.turn import Turn, upstream_time
from panels.views import GatewayView
from wire.bench_chat import BENCH
from wire.conversation import Request
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.fields import obj, optional_text
from wire.jsontext import parse_body

# How long a call that nobody here knows is looked for by the other workers, each of which looks twice a second.
HEARD_WITHIN_S, HEARD_EVERY_S = 2.0, 0.1


class PageView(GatewayView):
    """What these paths share."""

    authentication_classes = [KeyAuthentication, UserAuthentication, LoopbackAuthentication]
    dialect = BENCH

    async def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        cookies = sessions.cookies_of(request.META.get("HTTP_COOKIE", ""))
        session_key = cookies.get(settings.SESSION_COOKIE_NAME)
        if session_key and extract_key(request.META, request.META["QUERY_STRING"]) is None:
            user = await in_reader(request.gateway, lambda: sessions.user_of(session_key))
            sessions.put_in(request, cookies, user)
        await super().dispatch(request, *args, **kwargs)

    async def turn_of(self, request: Any, caller: Caller) -> tuple[Turn, Target]:
        """Reads a question. Errors: CallerError."""
        began = time.monotonic()
        gateway: Gateway = request.gateway
        body = await request.read_body()
        inbound = Inbound(request.path, request.META["QUERY_STRING"], request.lower_headers, None)
        asked = await question(gateway, request.snapshot, caller, inbound, body)
        turn = Turn(gateway, self.dialect, caller, asked.request, request.snapshot, request.request_id, request.out, began, request.lower_headers)
        turn.seats, turn.besides, turn.detached = asked.seats, asked.besides, asked.detached
        return turn, asked.target


class Ask(PageView):
    """`POST /bench/ask`."""

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        turn, _ = await self.turn_of(request, caller)
        turn.live = LiveSeats(request.out)
        request.turn = turn
        await (serve_on(turn, request.out) if turn.detached else serve(turn))


# ------------------------------------------------------------------ stopping


class Cancel(PageView):
    """Stops what an id names, wherever it runs. What this worker knows is stopped at once; else the word is left for the others."""

    field: str

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        await request.read_body()
        name = unquote(request.raw_path.split("/")[-2])
        await self.stop(request.gateway, caller, name)
        await request.out.whole(202, [], {self.field: name, "status": "cancelling"})

    async def stop(self, gateway: Gateway, caller: Caller, name: str) -> None:
        """Errors: CallerError 403, 404, 409."""
        if running := gateway.stops.found(name):
            if not stops.may_stop(caller, running[0].judge, running[0].key_id):
                raise stops.forbidden()
            gateway.stops.stop(name)
            return
        if not lookup.OURS.fullmatch(name):
            raise self.unknown(name)
        on_record = await in_reader(gateway, lambda: self.look_up(name))
        if on_record is not None and on_record.is_over:
            raise self.over(name)
        if on_record is not None and not stops.may_stop(caller, on_record.judge, on_record.key_id):
            raise stops.forbidden()
        await in_reader(gateway, lambda: stops.tell(name, caller))
        if on_record is not None and on_record.is_running:
            return
        # A routed or direct call leaves no trace in the database before its end, or one of its first tries only.
        for _ in range(round(HEARD_WITHIN_S / HEARD_EVERY_S)):
            await asyncio.sleep(HEARD_EVERY_S)
            heeded = await in_reader(gateway, lambda: stops.heeded(name))
            if heeded is not None:
                if not heeded:
                    raise stops.forbidden()
                return
        raise self.unknown(name) if on_record is None else self.over(name)

    def look_up(self, name: str) -> stops.OnRecord | None:
        raise NotImplementedError

    def unknown(self, name: str) -> CallerError:
        return CallerError("not_found", f"There is no {self.field} {name[:200]} under way or on record.", status=404)

    def over(self, name: str) -> CallerError:
        return CallerError("already_over", f"The {self.field} {name} is over already.", status=409)


class CancelCall(Cancel):
    """`POST /bench/calls/<call>/cancel`."""

    field = "call"

    def look_up(self, name: str) -> stops.OnRecord | None:
        return stops.call_on_record(name)


class CancelPanel(Cancel):
    """`POST /bench/panels/<panel_id>/cancel`."""

    field = "panel"

    def look_up(self, name: str) -> stops.OnRecord | None:
        return stops.panel_on_record(name)


# ------------------------------------------------------------------ what it would cost, and what the answers say


class Estimate(PageView):
    """`POST /bench/estimate`."""

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        turn, target = await self.turn_of(request, caller)
        await request.out.whole(200, [], await estimate(turn, target))


class Compare(PageView):
    """`POST /bench/panels/<panel_id>/compare`."""

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        began = time.monotonic()
        panel = unquote(request.raw_path.split("/")[-2])
        data = await request.read_body()
        body = obj(parse_body(data), "the body") if data.strip() else {}
        by = optional_text(body, "with")
        asked = Request(dialect="", model=by or panel, messages=())
        turn = Turn(request.gateway, self.dialect, caller, asked, request.snapshot, request.request_id, request.out, began, request.lower_headers)
        request.turn = turn
        with upstream_time(turn):
            found = await compare(turn, panel, by)
        await request.out.whole(200, turn.headers(), to_json(found))
