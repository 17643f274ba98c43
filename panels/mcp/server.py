"""The official SDK at work: it checks, routes and writes the protocol's messages, one request at a time. Imported at the first call, for it takes long.

Each request is a connection of its own to the SDK, in either of the protocol's generations; nothing outlives it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from django.conf import settings
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundLadderRejection, classify_inbound_request
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from panels.mcp import jsonrpc, tools
from panels.mcp.calls import WORK, Desk
from panels.mcp.channel import Channel
from panels.outcome import SeatResult
from wire.errors import CallerError

UNNAMED_VERSION = "2025-03-26"  # what the protocol says a session's client means that names none
BY_NAME = {tool.name: tool for tool in tools.TOOLS}
LISTED = [
    types.Tool(name=t.name, title=t.title, description=t.description, input_schema=t.schema, annotations=types.ToolAnnotations.model_validate(t.hints))
    for t in tools.TOOLS
]


class Exchange:
    """One request and what goes back for it, as the SDK wants to see them (its `DispatchContext`)."""

    transport = TransportContext(kind="streamable-http", can_send_request=False)
    can_send_request = False

    def __init__(self, channel: Channel, desk: Desk, request_id: str | int, params: Mapping[str, Any]) -> None:
        self.channel, self.desk, self.request_id = channel, desk, request_id
        self.message_metadata = ServerMessageMetadata(request_context=self, can_send_request=False)
        self.cancel_requested = anyio.Event()
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, Mapping) else None
        self.token = token if jsonrpc.is_id(token) else None
        self.steps = 0
        self.seats = 0
        desk.on_seat = self.on_seat

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self.channel.say(jsonrpc.notification(method, None if params is None else dict(params)))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Says how far the call is, to a client that gave a token for it. How far is counted here: it must never stand still."""
        if self.token is not None:
            self.steps += 1
            told = {"progressToken": self.token, "progress": self.steps, **({"message": message} if message else {})}
            await self.notify("notifications/progress", told)

    async def on_seat(self, result: SeatResult) -> None:
        self.seats += 1
        await self.progress(self.seats, message=f"{result.model}: {result.status} ({self.seats} done)")

    async def beat(self) -> None:
        if self.token is None:
            await self.channel.say(None)
        else:
            await self.progress(self.seats, message=f"waiting for seats, {self.seats} done")


async def list_tools(ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=LISTED)


async def call_tool(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    exchange = ctx.request
    assert isinstance(exchange, Exchange)
    tool = BY_NAME.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}. tools/list lists what there is.")
    desk = exchange.desk
    try:
        if not desk.caller.may(tool.scope):
            raise CallerError("not_allowed", f"This needs the scope {tool.scope}, which this caller does not have.", status=403)
        with exchange.channel.kept_alive(exchange.beat):
            found = await WORK[tool.name](desk, params.arguments or {})
    except CallerError as error:
        wait = f" Try again in {error.retry_after_s:.0f} s." if error.retry_after_s else ""
        said = types.TextContent(type="text", text=f"{error.code}: {error.message}{wait}")
        return types.CallToolResult(content=[said], structured_content={"error": jsonrpc.error_data(error)}, is_error=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=found.text)], structured_content=found.data)


SERVER: Server[Any] = Server(
    "benchwarmers",
    title="Benchwarmers",
    version=settings.VERSION,
    instructions=tools.INSTRUCTIONS,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
)
SERVER.middleware.clear()  # traces for OpenTelemetry, which nothing here collects


# ------------------------------------------------------------------ which generation, and one request in it


def is_sessions_version(version: str | None) -> bool:
    """Whether a request belongs to the older generation, which begins with a handshake. A version that nobody knows is for the newer one to refuse."""
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def agreed_version(answer: Mapping[str, Any]) -> str:
    """What a handshake settled on; empty where it failed."""
    return str(answer.get("result", {}).get("protocolVersion", ""))


def connection_of(message: Mapping[str, Any], headers: Mapping[str, str], session_version: str | None) -> Connection | InboundLadderRejection:
    """What the SDK knows of who asks: the newer generation says it in each request, the older one said it in its handshake."""
    named = headers.get("mcp-protocol-version")
    if not is_sessions_version(named):
        route = classify_inbound_request(message, headers=headers)
        if isinstance(route, InboundLadderRejection):
            return route
        return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
    wanted = (message.get("params") or {}).get("protocolVersion") if message["method"] == "initialize" else None
    version = named or session_version or (wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else UNNAMED_VERSION)
    return Connection.from_envelope(version, None, None)


async def respond(exchange: Exchange, message: Mapping[str, Any], connection: Connection | InboundLadderRejection) -> dict[str, Any]:
    """Answers one request. Errors: whatever is a fault of ours."""
    id = exchange.request_id
    if isinstance(connection, InboundLadderRejection):
        return jsonrpc.error(id, connection.code, connection.message, connection.data)
    try:
        said = await serve_one(SERVER, exchange, message["method"], message.get("params"), connection=connection, lifespan_state=None)
    except MCPError as error:
        return jsonrpc.error(id, error.code, error.message, error.data)
    except ValidationError as error:
        wrong = ", ".join(dict.fromkeys(".".join(map(str, e["loc"])) for e in error.errors(include_input=False, include_url=False)))
        return jsonrpc.error(id, jsonrpc.INVALID_PARAMS, f"Missing, or of the wrong type: {wrong[:300]}")
    return jsonrpc.result(id, said)


def status_of(answer: Mapping[str, Any], is_session: bool) -> int:
    """The HTTP status of an answer: the newer generation has one for each kind of error, the older one only for what was no request at all."""
    error = answer.get("error")
    return 200 if is_session or not error else ERROR_CODE_HTTP_STATUS.get(error["code"], 200)
