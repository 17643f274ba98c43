"""The way of a scorer in the sandbox to the model: one socket of this process, one throw-away key an attempt, and the gateway's own road behind it.

A key dies with its attempt, asks no other model than the run's subject, and never is a provider's: that one stays on this side.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from access.caller import Caller
from panels.gateway import Gateway
from panels.outcome import SeatResult
from panels.serve import serve
from panels.snapshot import Snapshot
from panels.turn import Turn
from suite.grading.answers import visible
from suite.running.asking import PURPOSE
from suite.running.limits import Limits
from wire import dialects
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.jsontext import parse_body

PATH = "/v1/chat/completions"
MOST_CALLS = 200
MOST_BODY = 8 * 1024 * 1024


@dataclass(slots=True)
class Pass:
    """What one attempt may do by its key, and what it has done."""

    model: str
    caller: Caller
    snapshot: Callable[[], Awaitable[Snapshot]]
    run: str
    limits: Limits = field(default_factory=Limits)
    results: list[SeatResult] = field(default_factory=list)
    calls: int = 0
    errors: list[CallerError] = field(default_factory=list)
    finish: str = ""


class Body:
    """Takes a turn's reply as it would go out."""

    def __init__(self) -> None:
        self.started = False
        self.last_write = 0.0
        self.status = 500
        self.body: dict[str, Any] = {}

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = "application/json") -> None:
        self.started, self.status, self.body = True, status, body

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None:
        raise AssertionError("nothing is streamed here")

    async def write(self, data: bytes) -> None:
        raise AssertionError("nothing is streamed here")

    async def end(self) -> None:
        raise AssertionError("nothing is streamed here")


class Proxy:
    """One a process that works on runs."""

    def __init__(self, gateway: Gateway, folder: Path) -> None:
        self.gateway, self.socket = gateway, folder / "proxy.sock"
        self.passes: dict[str, Pass] = {}
        self.runner: web.AppRunner | None = None

    async def open(self) -> None:
        app = web.Application(client_max_size=MOST_BODY)
        app.router.add_post(PATH, self.answer)
        self.runner = web.AppRunner(app, access_log=None)
        await self.runner.setup()
        await web.UnixSite(self.runner, str(self.socket)).start()
        self.socket.chmod(0o666)  # the sandbox's user is nobody; what may be done is the key's

    async def close(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()

    @asynccontextmanager
    async def passing(self, granted: Pass) -> Any:
        """Gives a key for as long as an attempt lasts."""
        key = f"bw_attempt_{secrets.token_urlsafe(24)}"
        self.passes[key] = granted
        try:
            yield key
        finally:
            del self.passes[key]

    def granted(self, given: str) -> Pass | None:
        said = given.encode("utf-8", "surrogateescape")
        return next((granted for key, granted in self.passes.items() if hmac.compare_digest(key.encode(), said)), None)

    async def answer(self, request: web.Request) -> web.Response:
        dialect = dialects.get("openai-chat")
        try:
            granted = self.granted(request.headers.get("Authorization", "").removeprefix("Bearer ").strip())
            if granted is None:
                raise CallerError("invalid_key", "This key is none of an attempt that is under way.", status=401)
            granted.calls += 1
            if granted.calls > MOST_CALLS:
                raise CallerError("rate_limit_exceeded", f"An attempt makes at most {MOST_CALLS} calls.", status=429)
            check_limits(granted)
            body = parse_body(await request.read())
            if not isinstance(body, dict) or body.get("model") != granted.model:
                raise CallerError("not_allowed", "An attempt asks the model under test, as BW_MODEL_MODEL names it, and no other.", status=403, field="model")
            if body.get("stream"):
                raise CallerError("invalid_request", "Answers are not streamed here. Leave stream out.", field="stream")
            asked = dialect.read_request(Inbound(PATH, "", {}, body))
            out = Body()
            turn = Turn(self.gateway, dialect, granted.caller, asked, await granted.snapshot(), granted.run, out, time.monotonic())
            turn.purpose = PURPOSE
            try:
                await serve(turn)
            finally:
                granted.results += turn.results
            with suppress(KeyError, IndexError, TypeError):
                spoken(out.body)
                granted.finish = str(out.body["choices"][0]["finish_reason"] or "")
            return web.json_response(out.body, status=out.status)
        except CallerError as error:
            if granted := self.granted(request.headers.get("Authorization", "").removeprefix("Bearer ").strip()):
                granted.errors.append(error)
            return web.Response(text=json.dumps(dialect.write_error(error)), status=error.status, content_type="application/json")
        except asyncio.CancelledError:
            raise
        except Exception:
            return web.json_response({"error": {"message": "The model proxy failed.", "type": "server_error"}}, status=500)


def check_limits(granted: Pass) -> None:
    """Holds an attempt to its task's ceilings before each call, so that it overshoots by one at most. Errors: CallerError."""
    limits, results = granted.limits, granted.results
    cost = sum(r.cost_pusd or 0 for r in results)
    tokens = sum(r.usage.input + r.usage.output for r in results)
    most = min((cap for cap in (limits.task_tokens, limits.attempt_tokens) if cap is not None), default=None)
    if (limits.task_cost is not None and cost >= limits.task_cost * 1e12) or (most is not None and tokens >= most):
        raise CallerError("rate_limit_exceeded", "The attempt has used what its task may cost.", status=429)


def spoken(body: dict[str, Any]) -> None:
    """Moves what a model thought aloud out of its answers: a scorer grades what was said."""
    for choice in body["choices"]:
        message = choice["message"]
        if isinstance(content := message.get("content"), str):
            said, broke_off = visible(content)
            if said != content.strip():
                message["content"], message["reasoning_content"] = said, message.get("reasoning_content") or content
            if broke_off:
                choice["finish_reason"] = "length"
