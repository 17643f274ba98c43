"""What stands around the items of a Responses answer: the response object, how it ended, its usage, its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wire.blame import upstream_error
from wire.conversation import NOTHING, Request, Stop, Usage
from wire.dialects._openai_chat_reply import count
from wire.dialects._openai_chat_reply import usage_in as chat_usage_in
from wire.errors import UpstreamError

# What a response repeats of its request, and what it says where the request did not. Source: https://platform.openai.com/docs/api-reference/responses/object
REPEATED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
# The codes that a response's error or an error event may bear, as the statuses they would have had.
STATUSES = (
    (re.compile(r"rate_limit|too_many_requests|tokens_exceeded", re.I), 429),
    (re.compile(r"insufficient_quota|billing|usage_limit", re.I), 429),
    (re.compile(r"overloaded|slow_down|at_capacity|unavailable", re.I), 503),
    (re.compile(r"timeout|timed_out", re.I), 504),
    (re.compile(r"content_policy|content_filter|moderation|cyber_policy|bio_policy", re.I), 403),
    (re.compile(r"invalid|context_length|too_long|too_large|unsupported|missing_required|not_found", re.I), 400),
    (re.compile(r"authentication|permission|api_key", re.I), 401),
)


def response_head(request: Request | None, answer_id: str, model: str, created_s: int) -> dict[str, Any]:
    """The response object without what only an answer can say."""
    raw = (request.raw if request else None) or NOTHING
    said = {name: raw[name] if raw.get(name) is not None else default for name, default in REPEATED.items()}
    if isinstance(text := said["text"], dict) and "format" not in text:
        said["text"] = {"format": {"type": "text"}, **text}
    fixed = {"id": answer_id, "object": "response", "created_at": created_s, "status": "in_progress", "error": None, "incomplete_details": None, "model": model}
    return {**fixed, **said, "output": [], "usage": None}


def ending(stop: Stop | None) -> dict[str, Any]:
    """Status and the reason of an incomplete one."""
    if stop is Stop.LENGTH:
        return {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if stop is Stop.FILTER:
        return {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    return {"status": "completed", "incomplete_details": None}


def stop_of(response: Mapping[str, Any], called: bool, refused: bool) -> tuple[Stop, str]:
    """Why an answer ended, and the provider's word for it."""
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        word = reason if isinstance(reason, str) and reason else "incomplete"
        return (Stop.FILTER if word == "content_filter" else Stop.LENGTH), word
    if called:
        return Stop.TOOLS, "completed"
    return (Stop.REFUSAL if refused else Stop.END), "completed"


# ------------------------------------------------------------------ usage


def usage_in(value: Any) -> Usage | None:
    """`input_tokens` includes cached ones here, `output_tokens` reasoning. Some servers use chat's names."""
    if not isinstance(value, dict):
        return None
    if not ("input_tokens" in value or "output_tokens" in value):
        return chat_usage_in(value)
    details, made = value.get("input_tokens_details"), value.get("output_tokens_details")
    details = details if isinstance(details, dict) else NOTHING
    made = made if isinstance(made, dict) else NOTHING
    given, out = count(value.get("input_tokens")), count(value.get("output_tokens"))
    read = min(count(details.get("cached_tokens")), given)
    return Usage(given, out, read, min(count(details.get("cache_write_tokens")), given - read), min(count(made.get("reasoning_tokens")), out))


def usage_out(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


# ------------------------------------------------------------------ errors


def error_in(response: Mapping[str, Any]) -> UpstreamError | None:
    """The error that a response or a body holds, whatever status came with it."""
    if response.get("error"):
        return error_of(response)
    return error_of({"error": response}) if response.get("object") == "error" else None


def error_of(found: Mapping[str, Any]) -> UpstreamError:
    """Reads `{"error": {code, message}}`, an error event that holds these itself, or a failed response that holds nothing."""
    inner = found.get("error")
    given = inner if isinstance(inner, dict) else found
    said = given.get("message") or (inner if isinstance(inner, str) else "") or "The response failed without a reason."
    said = " ".join(str(said).split())[:300]
    words = " ".join(str(w) for w in (given.get("code"), given.get("type")) if isinstance(w, str | int) and not isinstance(w, bool))
    status = next((s for s in (number_in(given.get(name)) for name in ("status", "status_code", "code")) if s), None)
    if status is None:
        status = next((status for pattern, status in STATUSES if pattern.search(words)), None)
    error = upstream_error(status, f"{said} {words}")
    error.message = said  # the code has told what it is; it belongs to no sentence
    error.usage = usage_in(found.get("usage"))
    return error


def number_in(value: Any) -> int | None:
    digits = str(value) if isinstance(value, int) and not isinstance(value, bool) else value if isinstance(value, str) else ""
    return int(digits) if len(digits) == 3 and digits.isdecimal() and digits[0] in "45" else None
