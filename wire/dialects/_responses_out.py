"""Requests in the Responses format, towards providers: a body that came in it as it may go on, one of any other from what was understood."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from wire import tool_names
from wire.conversation import File, Format, Image, Message, Part, Refusal, Request, Role, Text, Thinking, ToolCall, ToolResult
from wire.dialects._responses_items import OURS, SEAL, TAG, sealed
from wire.dialects._responses_tools import Shown, call_item, shown, write_choice, write_tools
from wire.errors import CallerError
from wire.hosted import callers_tools

LONGEST_CALL_ID = 64
ENCRYPTED = "reasoning.encrypted_content"
# What callers of other formats call a field of this one, and what changes nothing of an answer.
NAMES_OF: Mapping[str, tuple[str, ...]] = {
    "max_output_tokens": ("max_output_tokens", "max_tokens", "max_completion_tokens", "maxOutputTokens", "num_predict"),
    "top_p": ("top_p", "topP"),
}
SILENT = frozenset({"metadata", "user", "safety_identifier", "stream_options", "prompt_cache_retention"})
# Units: tokens. How hard to think, where another format says it as a budget.
EFFORTS = ((2048, "low"), (8192, "medium"))


def sendable(item: Any) -> list[Any]:
    """An item as its provider may see it: without ids that were made here, and no thought of another kind of model, or one that nothing proves."""
    if not isinstance(item, dict):
        return [item]
    encrypted = item.get("encrypted_content")
    name = item.get("id")
    is_ours = isinstance(name, str) and OURS.fullmatch(name) is not None
    if item.get("type") == "reasoning" and (str(encrypted).startswith(SEAL) if encrypted else is_ours or not name):
        return []
    return [{k: v for k, v in item.items() if k != "id"}] if is_ours and item.get("type") != "item_reference" else [item]


def with_system_role(items: Any, role: str) -> Any:
    if not isinstance(items, list):
        return items
    return [{**i, "role": role} if isinstance(i, dict) and i.get("role") in ("system", "developer") else i for i in items]


def as_demanded(body: dict[str, Any], request: Request, quirks: Mapping[str, Any]) -> list[str]:
    """Changes a body into one that a server with demands of its own takes, and gives what its caller asked for in vain.

    Shape: the quirks `always_stream`: asked for a stream whoever wants the answer; `store`: true or false, whatever the caller said; `instructions`: what is
    said where the caller says nothing; `refuses`: names of fields that are left out, with spaces between them.
    """
    if quirks.get("always_stream") is True:
        body["stream"] = True
    if isinstance(store := quirks.get("store"), bool):
        body["store"] = store
        if not store and isinstance(body.get("input"), list):
            # Known by its id alone it is nowhere.
            body["input"] = [i for i in body["input"] if not (isinstance(i, dict) and i.get("type") == "reasoning" and not i.get("encrypted_content"))]
    if quirks.get("instructions") and not body.get("instructions"):
        body["instructions"] = quirks["instructions"]
    gone = [name for name in str(quirks.get("refuses") or "").split() if body.pop(name, None) is not None]
    return [as_written(request, *NAMES_OF.get(name, (name,))) for name in gone if name not in SILENT]


def write_body(request: Request, system_role: str, own: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A body from what was understood, and what this format has no word for. Nothing is to be stored at the provider: nobody could refer to it."""
    if request.choices > 1:
        raise CallerError("invalid_request", "This model gives one answer at a time: n must be 1. Ask again for more.", field="n")
    messages = list(request.messages)
    body: dict[str, Any] = {"store": False}
    if messages and messages[0].role is Role.SYSTEM and all(isinstance(p, Text) for p in messages[0].parts):
        body["instructions"] = messages.pop(0).text
    known = shown(request.tools) if own else {}
    names = {} if own else tool_names.sent(request)
    kept, dropped = (request.tools, ()) if own else callers_tools(request)
    body["input"] = write_items([with_names(m, names) for m in messages] if names else messages, known, system_role)
    tools = write_tools([replace(t, name=names.get(t.name, t.name)) for t in kept], own)
    choice = request.tool_choice
    if choice and names:
        choice = replace(choice, name=names.get(choice.name, choice.name), allowed=tuple([names.get(n, n) for n in choice.allowed]))
    s, reasoning = request.sampling, write_reasoning(request)
    for name, value in (
        ("max_output_tokens", request.output_limit),
        ("temperature", s.temperature),
        ("top_p", s.top_p),
        ("tools", tools or None),
        ("tool_choice", write_choice(choice, known, kept) if choice and tools else None),
        ("parallel_tool_calls", request.parallel_tool_calls),
        ("reasoning", reasoning or None),
        ("text", {"format": write_format(request.format)} if request.format else None),
        ("include", [ENCRYPTED] if request.reasoning or has_thoughts(messages) else None),
    ):
        if value is not None:
            body[name] = value
    unsaid = [
        as_written(request, *names)
        for value, names in (
            (s.stop, ("stop", "stop_sequences", "stopSequences")),
            (s.top_k, ("top_k", "topK")),
            (s.seed, ("seed",)),
            (s.presence_penalty, ("presence_penalty", "presencePenalty")),
            (s.frequency_penalty, ("frequency_penalty", "frequencyPenalty")),
        )
        if value is not None and value != ()
    ]
    if request.reasoning and not reasoning:
        unsaid.append(as_written(request, "reasoning", "reasoning_effort", "thinking", "think", "generationConfig"))
    return body, (*dropped, *unsaid)


def with_names(message: Message, names: Mapping[str, str]) -> Message:
    parts = tuple([replace(p, name=names.get(p.name, p.name)) if isinstance(p, ToolCall) else p for p in message.parts])
    return replace(message, parts=parts)


def as_written(request: Request, *names: str) -> str:
    """A field by the name that its caller gave it."""
    raw = request.raw or {}
    places = [raw, *(raw[k] for k in ("generationConfig", "generation_config", "options") if isinstance(raw.get(k), dict))]
    return next((name for name in names for place in places if name in place), names[0])


def has_thoughts(messages: list[Message]) -> bool:
    parts: list[Part] = [p for m in messages for p in m.parts]
    return any(isinstance(p, Thinking) and p.signature.startswith(TAG) for p in parts)


def write_reasoning(request: Request) -> dict[str, str]:
    wish = request.reasoning
    if wish is None:
        return {}
    effort = wish.effort
    if not effort and wish.budget:
        effort = next((word for most, word in EFFORTS if wish.budget <= most), "high")
    return {**({"effort": effort} if effort else {}), **({"summary": wish.summary} if wish.summary else {})}


def write_format(form: Format) -> dict[str, Any]:
    if form.kind == "json":
        return {"type": "json_object"}
    made: dict[str, Any] = {"type": "json_schema", "name": form.name or "answer", "schema": dict(form.schema or {})}
    return made if form.strict is None else {**made, "strict": form.strict}


# ------------------------------------------------------------------ items


def call_id_out(call_id: str) -> str:
    """Other formats' ids may be longer than this one takes; the same one always becomes the same."""
    return call_id if len(call_id) <= LONGEST_CALL_ID else f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def write_items(messages: Iterable[Message], known: Mapping[str, Shown], system_role: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    custom: set[str] = set()
    for message in messages:
        said: list[dict[str, Any]] = []

        def speak(role: str, said: list[dict[str, Any]] = said) -> None:
            if said:
                out.append({"type": "message", "role": role, "content": list(said)})
                said.clear()

        role = system_role if message.role is Role.SYSTEM else "assistant" if message.role is Role.ASSISTANT else "user"
        for part in message.parts:
            if isinstance(part, ToolCall):
                speak(role)
                item = call_item("", call_id_out(part.id), part.name, part.arguments, part.kind, known, "completed")
                if item["type"] == "custom_tool_call":
                    custom.add(part.id)
                out.append({k: v for k, v in item.items() if k not in ("id", "status")})
            elif isinstance(part, ToolResult):
                speak(role)
                kind = "custom_tool_call_output" if part.call_id in custom else "function_call_output"
                out.append({"type": kind, "call_id": call_id_out(part.call_id), "output": result_out(part)})
            elif isinstance(part, Thinking):
                # A thought goes back only to where it came from, and only with what proves it.
                if part.signature.startswith(TAG):
                    speak(role)
                    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
                    out.append({"type": "reasoning", "summary": summary, "encrypted_content": sealed(part.signature)})
            else:
                said.append(part_out(part, message.role is Role.ASSISTANT))
        speak(role)
    return out


def result_out(result: ToolResult) -> Any:
    """A tool's output: text where it is only that."""
    if all(isinstance(p, Text) for p in result.told):
        return "".join(p.text for p in result.told if isinstance(p, Text))
    return [part_out(p, False) for p in result.told]


def part_out(part: Part, assistant: bool) -> dict[str, Any]:
    if isinstance(part, Image):
        url = part.url or f"data:{part.media_type};base64,{part.data}"
        return {"type": "input_image", "image_url": url, "detail": part.detail} if part.detail else {"type": "input_image", "image_url": url}
    if isinstance(part, File):
        return file_out(part)
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    said = getattr(part, "text", "")
    return {"type": "output_text", "text": said, "annotations": []} if assistant else {"type": "input_text", "text": said}


def file_out(file: File) -> dict[str, Any]:
    """Errors: CallerError for what this format has no part for."""
    if file.kind == "audio" and file.data:
        return {"type": "input_audio", "input_audio": {"data": file.data, "format": file.media_type.removeprefix("audio/")}}
    if file.url:
        return {"type": "input_file", "file_url": file.url}
    if file.data:
        data = file.data if file.data.startswith("data:") else f"data:{file.media_type or 'application/pdf'};base64,{file.data}"
        return {"type": "input_file", "filename": file.name or "file", "file_data": data}
    raise CallerError(
        "invalid_request", f"A part of the kind {file.kind[:40]!r} cannot be given to this model. Send it as text or as an image.", field="messages"
    )
