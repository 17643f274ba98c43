"""OpenAI's chat completions: bodies written from what was understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from wire import tool_names
from wire.conversation import (
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from wire.errors import CallerError
from wire.hosted import callers_tools

# What a budget of tokens is in words.
EFFORTS = ((2048, "low"), (8192, "medium"))
# What a wish to think, or not to, is called in the formats that know one which this one has no word for.
WISHES = ("thinking", "think", "generationConfig", "reasoning")


def write_body(request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A body built from what was understood, for requests that came in another dialect or that we made; and what it leaves out.

    Errors: CallerError for what would change the answer.
    """
    if request.choices > 1:
        raise CallerError("invalid_request", "n must be 1: only one answer finds its way back into the request's format. Ask several times.", field="n")
    names = tool_names.sent(request)
    tools, dropped = callers_tools(request)
    choice = request.tool_choice
    if choice and choice.name in names:
        choice = replace(choice, name=names[choice.name])
    body: dict[str, Any] = {"messages": write_messages(request.messages, names)}
    if request.output_limit is not None:
        body["max_tokens"] = request.output_limit
    s, effort = request.sampling, write_effort(request.reasoning)
    if request.reasoning and not effort:
        dropped = (*dropped, next((n for n in WISHES if n in (request.raw or {})), WISHES[0]))
    for field, value in (
        ("temperature", s.temperature),
        ("top_p", s.top_p),
        ("seed", s.seed),
        ("presence_penalty", s.presence_penalty),
        ("frequency_penalty", s.frequency_penalty),
        ("parallel_tool_calls", request.parallel_tool_calls),
        ("tool_choice", write_choice(choice)),
        ("reasoning_effort", effort or None),
    ):
        if value is not None:
            body[field] = value
    if s.stop:
        body["stop"] = list(s.stop)
    if request.format:
        if request.format.kind == "json":
            body["response_format"] = {"type": "json_object"}
        else:
            schema: dict[str, Any] = {"name": request.format.name or "answer", "schema": request.format.schema or {}}
            if request.format.strict is not None:
                schema["strict"] = request.format.strict
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if tools:
        body["tools"] = [write_tool(replace(t, name=names.get(t.name, t.name))) for t in tools]
    return body, dropped if s.top_k is None else (*dropped, "top_k")


def write_effort(wish: Reasoning | None) -> str:
    """How hard to think, in this format's one word for it."""
    if wish is None or wish.effort or not wish.budget:
        return wish.effort if wish else ""
    return next((word for most, word in EFFORTS if wish.budget <= most), "high")


def write_choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    if choice.allowed:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.allowed]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return choice.mode


def write_tool(tool: Tool) -> dict[str, Any]:
    parameters = dict(tool.parameters or {})
    parameters.setdefault("type", "object")
    parameters.setdefault("properties", {})
    function: dict[str, Any] = {"name": tool.name, "parameters": parameters}
    if tool.description:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def write_messages(messages: Iterable[Message], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """A message each, but one a tool result. Pictures and files of results, which no tool message may hold, are shown by a user behind them."""
    out: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        for result in (p for p in message.parts if isinstance(p, ToolResult)):
            pictures = [write_part(p) for p in result.parts if isinstance(p, Image | File)]
            said = text_of(result.told) or ("The result is shown in the next message." if pictures else "")
            out.append({"role": "tool", "tool_call_id": result.call_id, "content": said})
            shown += pictures
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if not rest and message.role is not Role.ASSISTANT and (len(message.parts) > 0 or message.role is Role.TOOL):
            continue
        if shown:
            out.append({"role": "user", "content": shown})
            shown = []
        if message.role is Role.ASSISTANT:
            rest = tuple(replace(p, name=names.get(p.name, p.name)) if isinstance(p, ToolCall) else p for p in rest)
            out.append({"role": "assistant", **message_out(rest)})
            continue
        plain = all(isinstance(p, Text) for p in rest)
        out.append({"role": "system" if message.role is Role.SYSTEM else "user", "content": text_of(rest) if plain else [write_part(p) for p in rest]})
    return [*out, {"role": "user", "content": shown}] if shown else out


def text_of(parts: Iterable[Part]) -> str:
    """Several texts as one, a paragraph each: their words must not run into each other."""
    return "\n\n".join(p.text for p in parts if isinstance(p, Text) and p.text)


def write_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        url = part.url or f"data:{part.media_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": url, "detail": part.detail} if part.detail else {"url": url}}
    if isinstance(part, File):
        return write_file(part)
    return {"type": "text", "text": getattr(part, "text", "")}


def write_file(part: File) -> dict[str, Any]:
    """An attachment. Errors: CallerError for one that this format has no part for."""
    if part.extra and part.extra.get("type") in ("input_audio", "file"):
        return dict(part.extra)  # it came in this format
    if part.kind == "audio" and part.data:
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.media_type.rpartition("/")[2].removeprefix("x-") or "wav"}}
    if part.kind == "file" and part.data:
        data = part.data if part.data.startswith("data:") else f"data:{part.media_type or 'application/pdf'};base64,{part.data}"
        return {"type": "file", "file": {"filename": part.name or "file", "file_data": data}}
    what = "a file by its address or id" if part.kind == "file" else part.kind
    raise CallerError("invalid_request", f"messages hold {what}, which this provider cannot take. Send a file by its bytes.", field="messages")


def message_out(parts: tuple[Part, ...]) -> dict[str, Any]:
    """An assistant's message; null content where there are only calls."""
    said = "".join(p.text for p in parts if isinstance(p, Text))
    calls = [p for p in parts if isinstance(p, ToolCall)]
    refusals = "".join(p.text for p in parts if isinstance(p, Refusal))
    out: dict[str, Any] = {"role": "assistant", "content": said if said or not (calls or refusals) else None, "refusal": refusals or None}
    if thinking := "".join(p.text for p in parts if isinstance(p, Thinking)):
        out["reasoning_content"] = thinking
    if calls:
        out["tool_calls"] = [
            {"id": c.id, "type": "custom", "custom": {"name": c.name, "input": c.arguments}}
            if c.kind == "custom"
            else {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments or "{}"}}
            for c in calls
        ]
    return out


def whole_choice(choice: Any, index: int) -> Any:
    if not isinstance(choice, dict):
        return choice
    choice = {"index": index, "logprobs": None, **choice}
    if choice.get("finish_reason") is None:
        choice["finish_reason"] = "stop"
    return choice
