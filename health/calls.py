"""A call that nobody waits for: probes, onboarding, the suite. It takes the same road as a seat, from a queue's thread instead of an event loop.

    rests and limits ─▶ permit ─▶ Attempt ─▶ ledger row, settled permit, what it taught about rests

A permit is always made, also where nothing limits the call, so that one that dies with its process is on record as lost.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings

from access.ids import new_id
from catalog.roster import Model
from catalog.upstream import Upstream
from health import ledger
from health.attempt import Attempt, Order
from health.database import Database, DatabaseAway
from health.holds import FOREGROUND, call_holds, shadow_holds
from health.learned import applied, in_force, notes
from health.learned import rest_of as rest_of_told
from health.outbox import Outbox
from health.reserve import Ask, Denied
from health.reserve import Request as Reservation
from health.resting import Resting, line_of, line_of_success, load_rests, rest_after
from wire.conversation import Chunk, Reply, Request
from wire.errors import UpstreamError
from wire.estimate import request_tokens

MARGIN_S = 60
OUTPUT_UNKNOWN = 4096
NEVER = threading.Event()


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of it.

    Shape: `attempt` is None where it never went out; then `denied` or `rest` say why. `reply` is None after a failure, and `error` says which;
    a streamed call has no `reply`, its `text` is the attempt's.
    """

    attempt: Attempt | None
    reply: Reply | None = None
    error: UpstreamError | None = None
    denied: Denied | None = None
    rest: Resting | None = None

    @property
    def text(self) -> str:
        return self.attempt.text if self.attempt else ""


def ask(
    model: Model,
    request: Request,
    *,
    purpose: str,
    judge: str,
    timeout_s: float,
    first_token_s: float = 60.0,
    idle_s: float = 60.0,
    wait_max_s: float = 30.0,
    minds_rests: bool = True,
    batch: str = "",
    stop: threading.Event = NEVER,
) -> Asked:
    """Asks one model once, waiting at most `wait_max_s` for our own limits; whole, or streamed where the request says so. For one thread, not an event loop.

    Shape: `purpose` is the ledger's: probe, onboard, suite. `batch` stands in the row's request. Errors: DatabaseAway before anything went out;
    afterwards none, and what became of the call is on record.
    """
    standing, now = load_rests(), datetime.now(UTC)
    model = applied({model.alias: model}, in_force(now, (f"endpoint:{model.endpoint.id}", f"model:{model.id}")))[model.alias]
    if minds_rests and (rest := rest_of(model, standing, now)):
        return Asked(None, rest=rest)
    tokens = request_tokens(request)
    attempt = Attempt(
        Order(
            id=new_id("att"),
            call=new_id("call"),
            panel=new_id("pan"),
            purpose=purpose,
            seat="direct",
            model=model,
            request=request,
            judge=judge,
            input_tokens=tokens,
            timeout_s=timeout_s,
            request_id=batch,
            first_token_s=first_token_s,
            idle_s=idle_s,
        )
    )
    db = Database()
    try:
        permit = reserve(db, attempt, tokens, wait_max_s, stop)
        if isinstance(permit, Denied):
            return Asked(None, denied=permit)
        attempt.restart()
        reply: Reply | None = None
        error: UpstreamError | None = None
        try:
            reply = asyncio.run(send(attempt))
        except UpstreamError as failure:
            error = failure
        finally:
            record(line_after(attempt, permit, error, standing), db)
    finally:
        db.close()
    return Asked(attempt, reply, error)


def record(line: dict[str, Any], db: Database) -> None:
    """Writes down what became of a call. With the database away it goes into an outbox that nobody holds any more, for the next drain."""
    try:
        ledger.commit([line], db=db)
    except DatabaseAway:
        box = Outbox(Path(settings.OUTBOX_FOLDER), "calls")
        box.append(line)
        box.close()


def rest_of(model: Model, standing: Mapping[str, Resting], now: datetime) -> Resting | None:
    """The rest that a model or its endpoint has now, the longer one of two."""
    found = [r for scope in (f"model:{model.alias}", f"endpoint:{model.endpoint.name}") if (r := standing.get(scope)) and r.until > now]
    return max(found, key=lambda r: r.until) if found else None


def reserve(db: Database, attempt: Attempt, tokens: int, wait_max_s: float, stop: threading.Event) -> Ask | Denied:
    """Makes the call's permit, in the windows of its endpoint and model. Errors: DatabaseAway."""
    order = attempt.order
    amount = tokens + (order.request.output_limit or order.model.output_limit or OUTPUT_UNKNOWN)
    holds, shadow = call_holds(order.model, amount), shadow_holds(order.model, amount)
    until = time.monotonic() + wait_max_s
    while True:
        attempt.restart()
        expires_at = attempt.started_at + timedelta(seconds=order.timeout_s + MARGIN_S)
        patience_s = max(until - time.monotonic(), 0.0)
        ask = Ask(order.id, holds, expires_at, attempt.stub(), shadow, order.purpose not in FOREGROUND, patience_s)
        (answer,) = ledger.transact(db, [], [Reservation(None, [ask])])
        outcome = answer.rest[0]
        if not isinstance(outcome, Denied):
            return ask
        if outcome.never or time.monotonic() + outcome.wait_s > until or stop.wait(outcome.wait_s + 0.01):
            return outcome


async def send(attempt: Attempt) -> Reply | None:
    """Errors: UpstreamError."""
    upstream = Upstream()
    await upstream.open()
    try:
        if not attempt.order.request.stream:
            return await attempt.whole(upstream)
        await attempt.stream(upstream, swallow)
        return None
    finally:
        await upstream.close()


async def swallow(chunks: list[Chunk]) -> None:
    """The attempt notes what comes."""


def line_after(attempt: Attempt, permit: Ask, error: UpstreamError | None, standing: Mapping[str, Resting]) -> dict[str, Any]:
    """What the ledger is told: the row, what was really used, who rests or rests no more."""
    usage, model, now = attempt.final_usage(), attempt.order.model, datetime.now(UTC)
    amounts = {"requests": 1 if attempt.sent else 0, "tokens": usage.input + usage.output, "parallel": 0}
    line: dict[str, Any] = {
        "attempts": [attempt.row()],
        "settle": [{"permit": permit.id, "truth": {h.meter: amounts[h.measure] for h in (*permit.holds, *permit.shadow)}}],
    }
    told = notes.told_by(attempt, now)
    line |= notes.line_of(model, told, now)
    if error is not None:
        rest = rest_after(error, model.endpoint.name, model.alias, standing, now)
        return {**line, **line_of(rest)} if rest else line
    scopes = [s for s in (f"model:{model.alias}", f"endpoint:{model.endpoint.name}") if s in standing]
    rests = line_of_success(scopes, attempt.started_at)["rests"] if scopes else []
    if (spent := rest_of_told(model, told, now)) is not None:
        rests += line_of(spent)["rests"]
    return {**line, "rests": rests} if rests else line
