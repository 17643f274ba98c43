"""OpenAI's chat completions: replies, usage, and errors that stand inside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from wire.blame import upstream_error
from wire.conversation import (
    NOTHING,
    Part,
    Refusal,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from wire.errors import CallerError, UpstreamError

STOPS = {
    "stop": Stop.END,
    "length": Stop.LENGTH,
    "max_tokens": Stop.LENGTH,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "content_filter": Stop.FILTER,
    "refusal": Stop.REFUSAL,
    "stop_sequence": Stop.SEQUENCE,
}
FINISHES = {
    Stop.END: "stop",
    Stop.LENGTH: "length",
    Stop.TOOLS: "tool_calls",
    Stop.SEQUENCE: "stop",
    Stop.FILTER: "content_filter",
    Stop.REFUSAL: "stop",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def usage_in(value: Any) -> Usage | None:
    """`prompt_tokens` includes cached ones here; DeepSeek says the cached ones in a field of its own."""
    if not isinstance(value, dict) or not ("prompt_tokens" in value or "completion_tokens" in value or "total_tokens" in value):
        return None
    details = value.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else NOTHING
    output = value.get("completion_tokens_details")
    output = output if isinstance(output, dict) else NOTHING
    cached = count(details.get("cached_tokens")) or count(value.get("prompt_cache_hit_tokens"))
    total_in, total_out = count(value.get("prompt_tokens")), count(value.get("completion_tokens"))
    written = count(details.get("cache_write_tokens") or details.get("cache_creation_tokens"))
    return Usage(
        input=total_in,
        output=total_out,
        cache_read=min(cached, total_in),
        cache_write=min(written, total_in - min(cached, total_in)),
        reasoning=min(count(output.get("reasoning_tokens")), total_out),
    )


def usage_out(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def error_inside(body: Mapping[str, Any]) -> UpstreamError | None:
    """An error that stands in a body or chunk whose status said 200, in any of the shapes seen in the wild."""
    inner = body.get("error")
    if not inner and "error_message" not in body and body.get("object") != "error":
        return None
    found = inner if isinstance(inner, dict) else body
    said = found.get("message") or body.get("error_message") or body.get("message") or (inner if isinstance(inner, str) else "") or "an error without a message"
    status = None
    for value in (found.get("code"), found.get("status"), body.get("code"), body.get("status"), found.get("status_code"), body.get("status_code")):
        digits = str(value) if isinstance(value, int) and not isinstance(value, bool) else value if isinstance(value, str) else ""
        if len(digits) == 3 and digits.isdecimal() and digits[0] in "45":
            status = int(digits)
            break
    words = f"{said} {found.get('type') or ''} {found.get('code') or ''}" if status is None else str(said)
    if status is None:
        lowered = words.lower()
        if "rate_limit" in lowered or "rate limit" in lowered or "too many requests" in lowered:
            status = 429
        elif "overloaded" in lowered:
            status = 503
        elif "insufficient_quota" in lowered:
            status = 402
        elif "invalid_request" in lowered:
            status = 400
        elif "authentication" in lowered:
            status = 401
    error = upstream_error(status, str(said))
    error.usage = usage_in(body.get("usage"))
    return error


def reply_parts(message: Mapping[str, Any]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for field in ("reasoning_content", "reasoning"):
        if isinstance(message.get(field), str) and message[field]:
            parts.append(Thinking(text=message[field]))
            break
    content = message.get("content")
    if isinstance(content, str) and content:
        parts.append(Text(content))
    elif isinstance(content, list):
        parts += [Text(p["text"]) for p in content if isinstance(p, dict) and isinstance(p.get("text"), str) and p["text"]]
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        parts.append(Refusal(message["refusal"]))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            parts.append(
                ToolCall(str(call.get("id") or ""), function["name"], arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode())
            )
        elif isinstance(call, dict) and isinstance(custom := call.get("custom"), dict):
            parts.append(ToolCall(str(call.get("id") or ""), str(custom.get("name") or ""), str(custom.get("input") or ""), kind="custom"))
    return tuple(parts)


def error_out(error: CallerError) -> dict[str, Any]:
    inner: dict[str, Any] = {
        "message": error.message,
        "type": ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "server_error"),
        "param": error.field or None,
        "code": error.code,
    }
    if error.seats:
        inner["seats"] = error.seats
    return {"error": inner}
