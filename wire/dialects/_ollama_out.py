"""Ollama's chat: bodies written from what was understood, and messages of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from wire.conversation import File, Image, Message, Part, Reasoning, Refusal, Request, Role, Text, Thinking, Tool, ToolCall, ToolResult
from wire.errors import CallerError
from wire.hosted import callers_tools

# Levels beside true and false; what others call a level is brought to the nearest of these.
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
# How a free-form tool is shown to a model that knows only functions.
RAW_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def write_body(request: Request, quirks: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A body, and what it leaves out. Errors: CallerError for what this format cannot say and that would change the answer."""
    tools, dropped = callers_tools(request)
    names: dict[str, str] = {}
    body: dict[str, Any] = {"messages": [m for message in request.messages for m in write_message(message, names)]}
    s = request.sampling
    options = {
        field: value
        for field, value in (
            ("temperature", s.temperature),
            ("top_p", s.top_p),
            ("top_k", s.top_k),
            ("seed", s.seed),
            ("presence_penalty", s.presence_penalty),
            ("frequency_penalty", s.frequency_penalty),
            ("num_predict", request.output_limit),
            ("stop", list(s.stop) or None),
        )
        if value is not None
    }
    if options:
        body["options"] = options
    if request.format:
        body["format"] = dict(request.format.schema) if request.format.schema is not None else "json"
    unsaid = list(dropped)
    choice = request.tool_choice
    if tools and not (choice and choice.mode == "none"):
        # Who must call one tool is shown that one; that it must, this format has no word for.
        shown = choice.allowed or ((choice.name,) if choice.mode == "tool" else ()) if choice else ()
        body["tools"] = [write_tool(t) for t in tools if not shown or t.name in shown]
        if choice and choice.mode in ("required", "tool"):
            unsaid.append("tool_choice")
    if request.parallel_tool_calls is False and tools:
        unsaid.append("parallel_tool_calls")
    if request.reasoning:
        if quirks.get("thinking") == "none":
            unsaid.append("think")
        elif (think := write_think(request.reasoning)) is not None:
            body["think"] = think
    return body, tuple(dict.fromkeys(unsaid))


def write_think(wish: Reasoning) -> bool | str | None:
    if wish.enabled is False or wish.effort == "none" or wish.budget == 0:
        return False
    if wish.effort:
        return EFFORTS.get(wish.effort, True)
    return True if wish.enabled or wish.budget else None


def write_tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "custom":
        parameters: dict[str, Any] = RAW_INPUT
    else:
        parameters = {"type": "object", "properties": {}, **(tool.parameters or {})}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def write_message(message: Message, names: dict[str, str]) -> list[dict[str, Any]]:
    """`names` gathers which tool a call id belongs to: results name the tool here, beside the call."""
    out: list[dict[str, Any]] = []
    rest: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            out.append(write_result(part, names.get(part.call_id) or part.name))
        else:
            if isinstance(part, ToolCall):
                names[part.id] = part.name
            rest.append(part)
    if message.role is Role.ASSISTANT:
        return [*out, message_out(rest)]
    if rest or not out:
        made = {"role": "user" if message.role is Role.TOOL else message.role.value, "content": text_of(rest)}
        out.append({**made, "images": found} if (found := images_of(rest)) else made)
    return out


def write_result(part: ToolResult, name: str) -> dict[str, Any]:
    result: dict[str, Any] = {"role": "tool", "content": text_of(part.told)}
    if name:
        result["tool_name"] = name
    if part.call_id:
        result["tool_call_id"] = part.call_id
    if images := images_of(part.parts):
        result["images"] = images
    return result


def text_of(parts: Iterable[Part]) -> str:
    """Several texts as one, a paragraph each: their words must not run into each other."""
    return "\n\n".join(p.text for p in parts if isinstance(p, Text) and p.text)


def images_of(parts: Iterable[Part]) -> list[str]:
    """The images' bytes. Errors: CallerError for one given by its address, and for files, which this format has no word for."""
    found = []
    for part in parts:
        if isinstance(part, File):
            what = "audio" if part.kind == "audio" else "a file"
            raise CallerError("invalid_request", f"messages hold {what}, which Ollama cannot take. Send what it says as text.", field="messages")
        if isinstance(part, Image):
            if not part.data:
                raise CallerError("invalid_request", "messages hold an image by its address, and Ollama takes bytes only. Send the bytes.", field="messages")
            found.append(part.data)
    return found


def message_out(parts: Iterable[Part]) -> dict[str, Any]:
    """An assistant's message."""
    parts = tuple(parts)
    out: dict[str, Any] = {"role": "assistant", "content": "".join(p.text for p in parts if isinstance(p, Text | Refusal))}
    if thought := "".join(p.text for p in parts if isinstance(p, Thinking)):
        out["thinking"] = thought
    if images := images_of(parts):
        out["images"] = images
    if calls := [p for p in parts if isinstance(p, ToolCall)]:
        out["tool_calls"] = [call_out(c, i) for i, c in enumerate(calls)]
    return out


def call_out(call: ToolCall, index: int) -> dict[str, Any]:
    """A call with its id, which clients that know ids echo."""
    function = {"index": index, "name": call.name, "arguments": {"input": call.arguments} if call.kind == "custom" else as_object(call.arguments)}
    return {"id": call.id, "function": function} if call.id else {"function": function}


def as_object(arguments: str) -> dict[str, Any]:
    """A call's arguments, whatever the model that made it wrote."""
    try:
        found = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return {"input": arguments}
    return found if isinstance(found, dict) else {"input": found}
