"""MCP over HTTP: one POST a message, answered in JSON or as an event stream. GET is 405, as the protocol has it for servers that never speak unasked."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from contextlib import nullcontext
from functools import partial
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request as DrfRequest

from access.auth import MissingKey, NotAllowed
from access.caller import Caller
from panels.mcp import jsonrpc, sessions
from panels.mcp.calls import Desk
from panels.mcp.cancels import Cancelled, Cancels
from panels.mcp.channel import Channel
from panels.turn import Turn
from panels.views import GatewayView
from wire.errors import CallerError
from wire.jsontext import parse_body

log = logging.getLogger("bench.mcp")
sdk_side: Any = None  # panels.mcp.server, once it is loaded


class MayAskOrJudge(BasePermission):
    """Opens the door to whoever may use one of the tools; each tool then asks for its own scope. Errors: MissingKey, NotAllowed."""

    def has_permission(self, request: DrfRequest, view: Any) -> bool:
        caller = request.user
        if not isinstance(caller, Caller):
            raise MissingKey
        if not (caller.may("ask") or caller.may("judge")):
            raise NotAllowed("This needs the scope ask or judge, which this caller does not have.")
        return True


class Refused(Exception):
    """A request that never gets as far as the protocol's own answers."""

    def __init__(self, status: int, code: int, message: str, id: jsonrpc.Id = None) -> None:
        super().__init__(message)
        self.status, self.body = status, jsonrpc.error(id, code, message)


class McpView(GatewayView):
    """Both addresses, and both generations of the protocol."""

    permission_classes = [MayAskOrJudge]
    dialect = jsonrpc.MCP

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        began = time.monotonic()

        def headers() -> list[tuple[str, str]]:
            turn: Turn | None = request.turn
            return turn.headers() if turn else [("x-bench-overhead-ms", f"{(time.monotonic() - began) * 1000:.2f}")]

        try:
            if request.method == "DELETE":
                await self.end(request, caller)
                await request.out.whole(204, headers(), None)
                return
            takes_json, takes_stream = accepted(request.META.get("HTTP_ACCEPT", ""))
            message = message_of(await request.read_body())
            sdk = await loaded()
            is_session = sdk.is_sessions_version(request.lower_headers.get("mcp-protocol-version"))
            session = await self.session_of(request, caller, message) if is_session else None
        except Refused as refused:
            await request.out.whole(refused.status, headers(), refused.body)
            return
        if "id" not in message or "method" not in message:
            if session:
                heed(request.gateway.cancels, session, message)
            await request.out.whole(202, headers(), None)
            return
        desk = Desk(request.gateway, request.snapshot, caller, request.request_id, request.lower_headers, began, partial(setattr, request, "turn"))
        channel = Channel(request.out, headers, takes_json=takes_json, takes_stream=takes_stream)
        exchange = sdk.Exchange(channel, desk, message["id"], message.get("params") or {})
        answer = await self.respond(sdk, exchange, message, request, session)
        opened = sdk.agreed_version(answer) if is_session and message["method"] == "initialize" else ""
        more = [("mcp-session-id", sessions.open_session(caller, opened).token)] if opened else []
        await channel.finish(answer, sdk.status_of(answer, is_session), more)

    async def respond(self, sdk: Any, exchange: Any, message: dict[str, Any], request: Any, session: sessions.Session | None) -> dict[str, Any]:
        connection = sdk.connection_of(message, request.lower_headers, session.version if session else None)
        heeding = request.gateway.cancels.heeded(session.token, message["id"]) if session else nullcontext()
        try:
            with heeding:
                answer: dict[str, Any] = await sdk.respond(exchange, message, connection)
                return answer
        except Cancelled:
            return jsonrpc.error(message["id"], jsonrpc.CANCELLED, "The request was cancelled.")
        except Exception as error:
            # A stream may have begun: its client waits for an answer by this id, which the entry's own error would not have.
            log.error("an MCP call failed", exc_info=error, extra={"request_id": request.request_id})
            return jsonrpc.error(message["id"], jsonrpc.INTERNAL_ERROR, "The server failed at this request; its log has the reason under the request's id.")

    async def session_of(self, request: Any, caller: Caller, message: dict[str, Any]) -> sessions.Session | None:
        """The session that a request names, None where it names none. Errors: Refused; only a 404 makes a client open another by itself."""
        token = request.META.get("HTTP_MCP_SESSION_ID", "").strip()
        if not token or message.get("method") == "initialize":
            return None
        session = sessions.find_session(token, caller)
        if session is None or await request.gateway.cancels.is_ended(token):
            raise Refused(404, jsonrpc.SESSION_NOT_FOUND, "There is no such session. Open one with initialize.", message.get("id"))
        return session

    async def end(self, request: Any, caller: Caller) -> None:
        session = await self.session_of(request, caller, {})
        if session is None:
            raise Refused(400, jsonrpc.INVALID_REQUEST, "DELETE ends a session; the header mcp-session-id says which.")
        request.gateway.cancels.end(session.token)


def heed(cancels: Cancels, session: sessions.Session, message: dict[str, Any]) -> None:
    """Does what a notification asks for. Nothing is asked of clients here, so their answers are to nothing; and of notifications one needs a deed."""
    taken_back = (message.get("params") or {}).get("requestId")
    if message.get("method") == "notifications/cancelled" and jsonrpc.is_id(taken_back):
        cancels.cancel(session.token, taken_back)


async def loaded() -> Any:
    """The SDK's side of this. Its import takes a second or more, which no other call should wait for."""
    global sdk_side
    if sdk_side is None:
        sdk_side = await asyncio.to_thread(importlib.import_module, "panels.mcp.server")
    return sdk_side


def accepted(accept: str) -> tuple[bool, bool]:
    """Whether a client takes JSON, and whether it takes an event stream. One that does not say takes both. Errors: Refused for one that takes neither."""
    kinds = set()
    for one in (accept.strip() or "*/*").lower().split(","):
        kind, *parameters = [part.strip() for part in one.split(";")]
        if not any(p.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for p in parameters):
            kinds.add(kind)
    takes_json, takes_stream = bool(kinds & {"*/*", "application/*", "application/json"}), bool(kinds & {"*/*", "text/*", "text/event-stream"})
    if not takes_json and not takes_stream:
        raise Refused(406, jsonrpc.REFUSED, "Answers here are application/json or text/event-stream, and Accept names neither.")
    return takes_json, takes_stream


def message_of(body: bytes) -> dict[str, Any]:
    """Reads a body as one message of the protocol. Errors: Refused."""
    try:
        message = parse_body(body)
    except CallerError as error:
        raise Refused(400, jsonrpc.PARSE_ERROR, error.message) from None
    if wrong := fault_of(message):
        raise Refused(400, jsonrpc.INVALID_REQUEST, wrong)
    found: dict[str, Any] = message
    return found


def fault_of(message: Any) -> str:
    """What makes a body no message of the protocol; empty where it is one."""
    if not isinstance(message, dict):
        return "The body must be one JSON-RPC message; batches are not taken."
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0".'
    if "id" in message and not jsonrpc.is_id(message["id"]):
        return "id must be a string or a whole number."
    if "method" not in message:
        return "" if "result" in message or "error" in message else "method is missing."
    if not isinstance(message["method"], str):
        return "method must be a string."
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object."
    return ""
