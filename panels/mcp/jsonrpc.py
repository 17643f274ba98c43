"""JSON-RPC messages, and MCP as the dialect that a turn and the entry's errors are written in."""

from __future__ import annotations

from typing import Any

from wire.conversation import Text
from wire.dialects import Answer, Dialect
from wire.errors import CallerError

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
REFUSED = -32000  # an HTTP status tells more
SESSION_NOT_FOUND = -32001
CANCELLED = -32800  # a session's client waits for an answer even to what it took back

Id = str | int | None


def is_id(value: object) -> bool:
    """An id as the protocol allows it: no null, no bool, and no number that no JSON writer of ours can say."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63)


def result(id: Id, said: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": said}


def error(id: Id, code: int, message: str, data: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **({"data": data} if data is not None else {})}}


def notification(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})}


def error_data(fault: CallerError) -> dict[str, Any]:
    """What a program wants to know of an error: the contract's code, and what goes with it."""
    more = {"field": fault.field, "retry_after_s": fault.retry_after_s, "seats": fault.seats}
    return {"code": fault.code, "message": fault.message, "status": fault.status, **{k: v for k, v in more.items() if v}}


class Mcp(Dialect):
    """Answers become what the `ask` tool gives back; errors before any tool runs become JSON-RPC errors."""

    name = "mcp"

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        return {"text": "".join(p.text for p in answer.reply.parts if isinstance(p, Text)), "bench": answer.bench}

    def write_error(self, fault: CallerError) -> dict[str, Any]:
        return error(None, INVALID_REQUEST if fault.status == 400 else REFUSED, fault.message, error_data(fault))


MCP = Mcp()
