"""What whole answers and streams of Anthropic's Messages format share: stop reasons, counts, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from wire.blame import upstream_error
from wire.conversation import Stop, Usage
from wire.errors import CallerError, UpstreamError

STOPS = {
    "end_turn": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "stop_sequence": Stop.SEQUENCE,
    "tool_use": Stop.TOOLS,
    "pause_turn": Stop.END,
    "refusal": Stop.FILTER,
}
FINISHES = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.TOOLS: "tool_use",
    Stop.SEQUENCE: "stop_sequence",
    Stop.FILTER: "refusal",
    Stop.REFUSAL: "refusal",
}
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
ERROR_TYPES = {status: kind for kind, status in STATUSES.items()}


def stop_in(reason: Any, called: bool) -> Stop:
    """A call that was made is waited for, whatever else ended the turn; a reason that nobody knows yet is an end."""
    stop = STOPS.get(reason, Stop.END) if isinstance(reason, str) else Stop.END
    if called and stop in (Stop.END, Stop.SEQUENCE):
        return Stop.TOOLS
    return Stop.END if stop is Stop.TOOLS and not called else stop


def stop_out(stop: Stop | None, called: bool, refused: bool) -> str:
    if refused and stop in (None, Stop.END):
        return "refusal"
    if called and stop in (None, Stop.END, Stop.SEQUENCE):
        return "tool_use"
    if stop is Stop.TOOLS and not called:
        return "end_turn"
    return FINISHES[stop or Stop.END]


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def usage_in(value: Any) -> Usage | None:
    """`input_tokens` leaves the cache out here; the canonical count holds it."""
    if not isinstance(value, Mapping) or not any(count(value.get(name)) is not None for name in COUNTS):
        return None
    fresh, read, written, output = (count(value.get(name)) or 0 for name in COUNTS)
    details = value.get("output_tokens_details")
    thought = count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    return Usage(input=fresh + read + written, output=output, cache_read=read, cache_write=written, reasoning=min(thought or 0, output))


def usage_out(usage: Usage) -> dict[str, Any]:
    out: dict[str, Any] = {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        out["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return out


def error_inside(body: Mapping[str, Any]) -> UpstreamError | None:
    """An error that stands in a body or an event though the status said 200."""
    inner = body.get("error")
    if body.get("type") != "error" and not inner:
        return None
    found = inner if isinstance(inner, dict) else body
    kind = found.get("type") if isinstance(found.get("type"), str) else ""
    said = found.get("message") or (inner if isinstance(inner, str) else "") or body.get("message") or kind or "an error without a message"
    error = upstream_error(STATUSES.get(str(kind)), f"{kind}: {said}" if kind not in STATUSES and kind != "error" and kind else str(said))
    error.usage = usage_in(body.get("usage"))
    return error


def custom_input(arguments: str) -> str:
    """What a free-form tool is given: it went out as a tool with one field."""
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    return found["input"] if isinstance(found, dict) and isinstance(found.get("input"), str) else arguments


def error_out(error: CallerError) -> dict[str, Any]:
    kind = ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    if error.code in ("upstream_overloaded", "server_busy"):
        kind = "overloaded_error"
    inner: dict[str, Any] = {"type": kind, "message": error.message, "code": error.code}
    if error.field:
        inner["param"] = error.field
    if error.seats:
        inner["seats"] = error.seats
    return {"type": "error", "error": inner}


def word(value: Mapping[str, Any], name: str) -> str:
    said = value.get(name)
    return said if isinstance(said, str) else ""


def is_whole(data: bytes) -> bool:
    """A last event without its blank line counts if its JSON is whole; half of one is the sign of a cut."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return data == b"[DONE]"
    return True
