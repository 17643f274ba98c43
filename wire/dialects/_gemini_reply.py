"""Replies in Gemini's format: their parts, stop reasons, counts and errors, both ways."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire import tool_names
from wire.blame import upstream_error
from wire.conversation import Part, Refusal, Request, Stop, Text, Thinking, ToolCall, Usage
from wire.dialects._gemini_in import Box, code_text, dumped
from wire.errors import CallerError, UpstreamError
from wire.jsontext import parse_upstream
from wire.waits import duration_s

STOPS = {
    "STOP": Stop.END,
    "MAX_TOKENS": Stop.LENGTH,
    "CONTINUATION": Stop.LENGTH,
    "FINISH_REASON_UNSPECIFIED": Stop.END,
    **dict.fromkeys(
        (
            "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION", "JAILBREAK",
            "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "PUP_LIMITED_DISABLED",
        ),
        Stop.FILTER,
    ),
}  # fmt: skip
# The model failed at what it was to write: what came is no answer to go on from.
FAILURES = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"})
FINISHES = {Stop.LENGTH: "MAX_TOKENS", Stop.FILTER: "SAFETY", Stop.REFUSAL: "SAFETY"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
ERROR_INFO, RETRY_INFO = "type.googleapis.com/google.rpc.ErrorInfo", "type.googleapis.com/google.rpc.RetryInfo"
CODES = {name: code for code, name in STATUSES.items() if code != 413 and code != 415} | {"INTERNAL": 500, "ABORTED": 503, "UNKNOWN": 500}


# ------------------------------------------------------------------ counts


def count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def usage_in(value: Any) -> Usage | None:
    """Prompt counts include cached ones here; candidates' leave thoughts out, and what tools read stands beside the prompt's."""
    if not isinstance(value, dict) or not value.keys() & {"promptTokenCount", "candidatesTokenCount", "totalTokenCount"}:
        return None
    prompt, tools, thoughts = (count(value.get(f)) for f in ("promptTokenCount", "toolUsePromptTokenCount", "thoughtsTokenCount"))
    said = value.get("candidatesTokenCount")
    total = count(value.get("totalTokenCount"))
    made = count(said) if said is not None else max(0, total - prompt - tools - thoughts)
    return Usage(input=prompt + tools, output=made + thoughts, cache_read=min(count(value.get("cachedContentTokenCount")), prompt), reasoning=thoughts)


def usage_out(usage: Usage) -> dict[str, Any]:
    out = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cache_read:
        out["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        out["thoughtsTokenCount"] = usage.reasoning
    return out


# ------------------------------------------------------------------ errors


def error_out(error: CallerError) -> dict[str, Any]:
    """Google's shape. Our code is the reason of its ErrorInfo, a wait stands in its RetryInfo, as Google's own clients read them."""
    info: dict[str, Any] = {"@type": ERROR_INFO, "reason": error.code, "domain": "benchwarmers"}
    if error.field:
        info["metadata"] = {"field": error.field}
    details = [info]
    if error.retry_after_s is not None:
        details.append({"@type": RETRY_INFO, "retryDelay": f"{max(1, -int(-error.retry_after_s // 1))}s"})
    inner: dict[str, Any] = {
        "code": error.status,
        "message": error.message,
        "status": STATUSES.get(error.status, "INVALID_ARGUMENT" if error.status < 500 else "INTERNAL"),
        "details": details,
    }
    if error.seats:
        inner["seats"] = error.seats
    return {"error": inner}


def error_in(body: Mapping[str, Any]) -> UpstreamError | None:
    """An error that stands in a body or chunk whose status said 200."""
    inner = body.get("error")
    if not inner:
        return None
    found = inner if isinstance(inner, dict) else {"message": inner}
    code = found.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else CODES.get(str(found.get("status")))
    details = found.get("details")
    delays = [duration_s(d["retryDelay"]) for d in details if isinstance(d, dict) and isinstance(d.get("retryDelay"), str)] if isinstance(details, list) else []
    said = found.get("message")
    error = upstream_error(status, said if isinstance(said, str) and said else "an error without a message", next((d for d in delays if d), None))
    error.usage = usage_in(body.get("usageMetadata"))
    return error


# ------------------------------------------------------------------ parts of an answer, read


@dataclass(slots=True)
class Names:
    """What a reader must know of the request.

    Shape: `back` the caller's tool names by those that were sent, `custom` the sent names of free-form tools, `same` whether it came in this format.
    """

    back: Mapping[str, str] = field(default_factory=dict)
    custom: frozenset[str] = frozenset()
    same: bool = False


def names_of(request: Request, same: bool) -> Names:
    if same:
        return Names(same=True)
    sent = tool_names.sent(request)
    return Names(tool_names.back(request), frozenset(sent.get(t.name, t.name) for t in request.tools if t.kind == "custom"))


def part_in(part: Mapping[str, Any], names: Names) -> Part | None:
    """One part of an answer. Media that a model made, which no other format's reply can hold, is left to those who read this one."""
    signature = part.get("thoughtSignature")
    signature = signature if isinstance(signature, str) else ""
    said = part.get("text")
    if isinstance(said, str):
        if part.get("thought") is True:
            # Another format's client would take Google's signature for its own provider's.
            signature = signature if names.same else ""
            return Thinking(said, signature) if said or signature else None
        return Text(said) if said else None
    call = part.get("functionCall")
    if isinstance(call, dict) and isinstance(name := call.get("name"), str) and name:
        given = call.get("args")
        arguments = dumped(given if isinstance(given, dict) else {})
        call_id = call["id"] if isinstance(call.get("id"), str) and call["id"] else minted()
        if name in names.custom:
            return ToolCall(call_id, names.back.get(name, name), custom_input(given), kind="custom", signature=signature)
        return ToolCall(call_id, names.back.get(name, name), arguments, signature=signature)
    code = part.get("executableCode")
    if isinstance(code, dict) and isinstance(code.get("code"), str):
        return Text(code_text(code["code"], str(code.get("language") or "").lower()))
    outcome = part.get("codeExecutionResult")
    if isinstance(outcome, dict) and isinstance(outcome.get("output"), str):
        return Text(code_text(outcome["output"]))
    return None


def minted() -> str:
    """An id for a call that came without one: every other format needs them, and each must differ from all others of its conversation."""
    return f"call_{secrets.token_hex(12)}"


def custom_input(given: Any) -> str:
    """What a free-form tool is given: it went out as a tool with one field."""
    said = given.get("input") if isinstance(given, dict) else None
    return said if isinstance(said, str) else dumped(given if given is not None else {})


def named(candidate: Mapping[str, Any]) -> Mapping[str, Any]:
    """A candidate whose calls all have ids; itself where they have."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list) or not any(lacks_id(p) for p in parts):
        return candidate
    new = [{**p, "functionCall": {"id": minted(), **{k: v for k, v in p["functionCall"].items() if k != "id"}}} if lacks_id(p) else p for p in parts]
    return {**candidate, "content": {**content, "parts": new}}  # type: ignore[dict-item]


def lacks_id(part: Any) -> bool:
    call = part.get("functionCall") if isinstance(part, dict) else None
    return isinstance(call, dict) and bool(call.get("name")) and not call.get("id")


def parts_in(candidate: Mapping[str, Any], names: Names) -> list[Part]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [found for p in (parts if isinstance(parts, list) else ()) if isinstance(p, dict) and (found := part_in(p, names)) is not None]


def stop_in(finish: str, called: bool) -> Stop:
    stop = STOPS.get(finish, Stop.END)
    return Stop.TOOLS if called and stop is Stop.END else stop


def block_in(body: Mapping[str, Any]) -> str:
    """Why a prompt was refused before any answer; empty where it was not."""
    feedback = body.get("promptFeedback")
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    return reason if isinstance(reason, str) and reason != "BLOCKED_REASON_UNSPECIFIED" else ""


# ------------------------------------------------------------------ parts of an answer, written


def shows_thoughts(request: Request | None) -> bool:
    """Thoughts stand before an answer, where clients that did not ask for any look for the answer."""
    if request is None or not request.raw:
        return False
    config = request.raw.get("generationConfig") or request.raw.get("generation_config")
    thinking = Box(config).get("thinkingConfig") if isinstance(config, dict) else None
    return isinstance(thinking, dict) and Box(thinking).get("includeThoughts") is True


def parts_out(parts: tuple[Part, ...], stop: Stop | None, thoughts: bool) -> list[dict[str, Any]]:
    """An answer's parts. Signatures of other providers' thinking stay here: this format's client would send them to Google."""
    out: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Thinking):
            if thoughts and part.text:
                out.append({"text": part.text, "thought": True})
        elif isinstance(part, ToolCall):
            if (call := call_out(part.id, part.name, part.arguments, part.kind, stop)) is not None:
                out.append(call)
        elif isinstance(part, Text | Refusal) and part.text:
            out.append({"text": part.text})
    return out or [{"text": ""}]


def call_out(call_id: str, name: str, arguments: str, kind: str, stop: Stop | None) -> dict[str, Any] | None:
    """One call; None for one that the output limit cut off: nobody may take it for a whole one."""
    found: Any = None
    if kind != "custom":
        try:
            found = parse_upstream((arguments or "{}").encode("utf-8", "replace"))
        except ValueError:
            if stop is Stop.LENGTH:
                return None
    args = found if isinstance(found, dict) else {"input": arguments if found is None else found}
    return {"functionCall": {"id": call_id or minted(), "name": name, "args": args}}


def candidate_out(parts: list[dict[str, Any]], finish: str = "", index: int = 0) -> dict[str, Any]:
    out: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
    if finish:
        out["finishReason"] = finish
    return {**out, "index": index}
