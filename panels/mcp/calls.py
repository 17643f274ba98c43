"""What each tool does: reads its arguments, does its work, and gives words for the model and data for programs.

Errors: CallerError, with the contract's codes; a tool's result then says so, since only that reaches the model that asked.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
from django.db import Error as DatabaseError

from access.caller import Caller
from access.pages import LIMIT, LIMIT_MAX
from panels import verdicts
from panels.api.wording import to_json
from panels.collections import Collection
from panels.gateway import Gateway
from panels.mcp.jsonrpc import MCP
from panels.outcome import SeatResult
from panels.plan import PREFIX
from panels.serve import serve
from panels.snapshot import Snapshot
from panels.turn import Turn
from wire.conversation import Message, Request, Role, Text
from wire.errors import CallerError

BESIDES_MAX = 20
MERGED, ROUTE = ":merged", ":route"
Kept = TypeVar("Kept")
Arguments = Mapping[str, Any]
OnSeat = Callable[[SeatResult], Awaitable[None]]


@dataclass(slots=True)
class Desk:
    """What a tool works with. `turn` is the panel's, once one is asked. Units: `began` monotonic seconds."""

    gateway: Gateway
    snapshot: Snapshot
    caller: Caller
    request_id: str
    headers_in: Mapping[str, str]
    began: float
    on_turn: Callable[[Turn], None]
    on_seat: OnSeat | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Shape: `text` for the model that asked, `data` for programs."""

    text: str
    data: dict[str, Any]


def told(data: dict[str, Any]) -> Found:
    """What is best read as data by both."""
    return Found(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode(), data)


class Tray:
    """Takes a turn's reply, which goes on in another envelope."""

    def __init__(self) -> None:
        self.started = False
        self.last_write = 0.0
        self.body: dict[str, Any] = {}

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = "application/json") -> None:
        self.started, self.body = True, body

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None:
        raise AssertionError("a turn whose seats are told one by one is answered whole")

    async def write(self, data: bytes) -> None:
        raise AssertionError("a turn whose seats are told one by one is answered whole")

    async def end(self) -> None:
        raise AssertionError("a turn whose seats are told one by one is answered whole")


# ------------------------------------------------------------------ the tools


async def list_collections(desk: Desk, given: Arguments) -> Found:
    may_ask = [c for c in sorted(desk.snapshot.collections.values(), key=lambda c: c.name) if desk.caller.may_ask_collection(c.name)]
    listed = [{"name": c.name, "description": c.description, "shape": c.shape, "members": len(c.members), "explorers": c.explorers} for c in may_ask]
    return told({"collections": listed})


async def ask(desk: Desk, given: Arguments) -> Found:
    name, is_merged = collection_of(text_of(given, "collection"), flag_of(given, "merged"))
    prompt, system = text_of(given, "prompt"), text_of(given, "system", "")
    if not prompt.strip():
        raise CallerError("invalid_request", "prompt is empty. Say what the panel is asked.", field="prompt")
    collection = desk.snapshot.collections.get(name)
    if collection is None:
        known = [n for n in desk.snapshot.collections if desk.caller.may_ask_collection(n)]
        raise CallerError(
            "model_not_found", f"There is no collection {name!r}. list_collections tells what there is.{meant(name, known)}", status=404, field="collection"
        )
    instructions = (Message(Role.SYSTEM, (Text(system),)),) if system.strip() else ()
    messages = (*instructions, Message(Role.USER, (Text(prompt),)))
    asked = Request(dialect=MCP.name, model=f"{PREFIX}{name}{MERGED if is_merged else ''}", messages=messages, stream=True)
    tray = Tray()
    turn = Turn(desk.gateway, MCP, desk.caller, asked, desk.snapshot, desk.request_id, tray, desk.began, desk.headers_in)
    turn.besides, turn.on_seat = besides_of(desk, collection, given.get("with")), desk.on_seat
    desk.on_turn(turn)
    await serve(turn)
    return Found(tray.body["text"], {"bench": tray.body["bench"]})


async def verdict(desk: Desk, given: Arguments) -> Found:
    call, useful, note, real, false = [given.get(name) for name in ("call", "useful", "note", "real", "false")]
    kept = await in_database(desk, lambda: verdicts.record_verdict(desk.caller.judge, call, useful, note, real, false, datetime.now(UTC)))
    return told(to_json(kept))


async def pending_verdicts(desk: Desk, given: Arguments) -> Found:
    limit = LIMIT if given.get("limit") is None else given["limit"]
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise CallerError("invalid_request", f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
    token = text_of(given, "page_token", "")
    calls = given.get("calls")
    page = await in_database(desk, lambda: verdicts.pending(desk.caller, limit, token) if calls is None else verdicts.pending_of(calls, limit, token))
    return told({"data": to_json(page.data), "next": page.next})


WORK: Mapping[str, Callable[[Desk, Arguments], Awaitable[Found]]] = {
    "list_collections": list_collections,
    "ask": ask,
    "verdict": verdict,
    "pending_verdicts": pending_verdicts,
}


# ------------------------------------------------------------------ arguments


def text_of(given: Arguments, field: str, default: str | None = None) -> str:
    value = default if given.get(field) is None else given[field]
    if not isinstance(value, str):
        raise CallerError("invalid_request", f"{field} must be a string.", field=field)
    return value


def flag_of(given: Arguments, field: str) -> bool:
    value = given.get(field)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise CallerError("invalid_request", f"{field} must be true or false.", field=field)
    return value


def collection_of(name: str, is_merged: bool) -> tuple[str, bool]:
    """Takes a collection's name as any door of the gateway writes it."""
    name = name.strip().removeprefix(PREFIX)
    if name.endswith(ROUTE):
        wanted = name.removesuffix(ROUTE)
        raise CallerError("invalid_request", f"Route mode is for an agent's own turns. Ask the panel: {wanted!r}.", field="collection")
    return (name.removesuffix(MERGED), True) if name.endswith(MERGED) else (name, is_merged)


def besides_of(desk: Desk, collection: Collection, given: object) -> tuple[str, ...]:
    """The aliases to seat besides the members, each once. Errors: CallerError 400, 403, 404."""
    if given is None:
        return ()
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise CallerError("invalid_request", "with must be a list of aliases.", field="with")
    if len(names) > BESIDES_MAX:
        raise CallerError("invalid_request", f"with names {len(names)} models; a panel seats at most {BESIDES_MAX} besides its members.", field="with")
    for name in names:
        if name not in desk.snapshot.models:
            known = [a for a, m in desk.snapshot.models.items() if not m.retired and desk.caller.may_ask_model(a)]
            raise CallerError("model_not_found", f"There is no model {name!r} on the roster to seat besides.{meant(name, known)}", status=404, field="with")
        if not desk.caller.may_ask_model(name):
            raise CallerError("not_allowed", f"This key may not ask {name!r}.", status=403, field="with")
    return tuple(dict.fromkeys(names))


def meant(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f" Did you mean {', '.join(near)}?" if near else ""


async def in_database(desk: Desk, work: Callable[[], Kept]) -> Kept:
    try:
        return await asyncio.get_running_loop().run_in_executor(desk.gateway.executor, work)
    except DatabaseError:
        raise CallerError("database_unavailable", "The database does not answer. Try again in a moment.", status=503, retry_after_s=5.0) from None
