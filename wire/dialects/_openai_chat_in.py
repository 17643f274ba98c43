"""OpenAI's chat completions: requests read into what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from wire.conversation import (
    File,
    Format,
    Image,
    Message,
    Part,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from wire.errors import CallerError
from wire.fields import array, missing, obj, optional_bool, optional_int, optional_number, optional_text, text, wrong

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}
DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*?);base64,(.*)", re.S)
MEDIA_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


# What is understood here, or means nothing to an answer: all else that a provider of another format is asked without is named as dropped.
UNDERSTOOD = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "seed", "stop", "n"),
        *("presence_penalty", "frequency_penalty", "response_format", "tools", "tool_choice", "parallel_tool_calls", "reasoning_effort"),
        *("user", "metadata", "store", "safety_identifier", "prompt_cache_key"),
    }
)


def read_unread(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that nothing was understood of, by name."""
    return tuple([n[:60] for n, value in body.items() if n not in UNDERSTOOD and value not in (None, False) and n.isprintable() and n.isascii()])


def read_message(value: Any, path: str) -> Message:
    message = obj(value, path)
    if "role" not in message:
        raise missing(f"{path}.role")
    word = text(message["role"], f"{path}.role")
    role = ROLES.get(word)
    if role is None:
        raise CallerError("invalid_request", f"{path}.role must be system, developer, user, assistant or tool.", field=f"{path}.role")
    content = message.get("content")
    parts: list[Part] = []
    if role is Role.ASSISTANT:
        for field in ("reasoning_content", "reasoning"):
            if isinstance(message.get(field), str) and message[field]:
                parts.append(Thinking(text=message[field]))
                break
    if isinstance(content, str):
        if content:
            parts.append(Text(content))
    elif isinstance(content, list):
        parts += [read_part(p, f"{path}.content[{i}]") for i, p in enumerate(content)]
    elif content is not None:
        raise wrong(f"{path}.content", "a string or a list of parts", content)
    elif role is not Role.ASSISTANT:
        raise missing(f"{path}.content")
    if role is Role.ASSISTANT:
        if refusal := optional_text(message, "refusal", f"{path}."):
            parts.append(Refusal(refusal))
        calls = message.get("tool_calls")
        if calls is not None:
            parts += [read_call(c, f"{path}.tool_calls[{i}]") for i, c in enumerate(array(calls, f"{path}.tool_calls"))]
        if isinstance(legacy := message.get("function_call"), dict):
            parts.append(ToolCall("", optional_text(legacy, "name"), optional_text(legacy, "arguments")))
    elif role is Role.TOOL:
        call_id = optional_text(message, "tool_call_id", f"{path}.")
        if not call_id and word == "tool":
            raise missing(f"{path}.tool_call_id")
        parts = [ToolResult(call_id, tuple(parts), name=optional_text(message, "name", f"{path}."))]
    return Message(role, tuple(parts), name=optional_text(message, "name", f"{path}."))


def read_part(value: Any, path: str) -> Part:
    part = obj(value, path)
    kind = text(part["type"], f"{path}.type") if "type" in part else "text" if "text" in part else ""
    if kind == "text":
        return Text(text(part.get("text"), f"{path}.text"))
    if kind == "image_url":
        source = part.get("image_url")
        source = {"url": source} if isinstance(source, str) else obj(source, f"{path}.image_url")
        return read_image(text(source.get("url"), f"{path}.image_url.url"), optional_text(source, "detail", f"{path}.image_url."))
    if kind == "refusal":
        return Refusal(text(part.get("refusal"), f"{path}.refusal"))
    if kind == "input_audio":
        audio = obj(part.get("input_audio"), f"{path}.input_audio")
        return File("audio", media_type=f"audio/{optional_text(audio, 'format')}", data=text(audio.get("data"), f"{path}.input_audio.data"), extra=part)
    if kind == "file":
        file = obj(part.get("file"), f"{path}.file")
        return File("file", data=optional_text(file, "file_data"), name=optional_text(file, "filename"), extra=part)
    if not kind:
        raise missing(f"{path}.type")
    return File(kind, extra=part)


def read_image(url: str, detail: str = "") -> Image:
    """A data URL by its bytes, its media type put right and its other parameters left out; any other URL as it is."""
    if found := DATA_URL.match(url):
        media = found[1].strip().lower()
        return Image(media_type=MEDIA_TYPES.get(media, media), data=found[3], detail=detail)
    return Image(url=url, detail=detail)


def read_call(value: Any, path: str) -> ToolCall:
    call = obj(value, path)
    if isinstance(custom := call.get("custom"), dict):
        return ToolCall(optional_text(call, "id", f"{path}."), optional_text(custom, "name"), optional_text(custom, "input"), kind="custom")
    function = obj(call.get("function"), f"{path}.function")
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return ToolCall(optional_text(call, "id", f"{path}."), text(function.get("name"), f"{path}.function.name"), arguments or "")


def read_sampling(body: Mapping[str, Any]) -> Sampling:
    stop = body.get("stop")
    if isinstance(stop, str):
        stops: tuple[str, ...] = (stop,)
    elif stop is None:
        stops = ()
    else:
        stops = tuple([text(s, f"stop[{i}]") for i, s in enumerate(array(stop, "stop"))])
    return Sampling(
        temperature=optional_number(body, "temperature"),
        top_p=optional_number(body, "top_p"),
        top_k=optional_int(body, "top_k"),
        stop=stops,
        seed=optional_int(body, "seed", most=2**63),
        presence_penalty=optional_number(body, "presence_penalty"),
        frequency_penalty=optional_number(body, "frequency_penalty"),
    )


def read_format(value: Any) -> Format | None:
    if value is None:
        return None
    given = obj(value, "response_format")
    kind = text(given.get("type"), "response_format.type")
    if kind == "json_object":
        return Format("json")
    if kind == "json_schema":
        schema = obj(given.get("json_schema"), "response_format.json_schema")
        inner = schema.get("schema")
        return Format(
            "schema",
            obj(inner, "response_format.json_schema.schema") if inner is not None else None,
            optional_text(schema, "name", "response_format.json_schema."),
            optional_bool(schema, "strict", "response_format.json_schema."),
        )
    return None


def read_choice(value: Any) -> ToolChoice | None:
    if value is None:
        return None
    if isinstance(value, str):
        return ToolChoice(value if value in ("none", "required") else "auto")
    given = obj(value, "tool_choice")
    if given.get("type") == "allowed_tools":
        allowed = obj(given.get("allowed_tools", given), "tool_choice.allowed_tools")
        names = [allowed_name(t, f"tool_choice.allowed_tools.tools[{i}]") for i, t in enumerate(array(allowed.get("tools"), "tool_choice.allowed_tools.tools"))]
        return ToolChoice("required" if allowed.get("mode") == "required" else "auto", allowed=tuple(names))
    inner = given.get("function") or given.get("custom") or given
    return ToolChoice("tool", name=text(obj(inner, "tool_choice.function").get("name"), "tool_choice.function.name"))


def allowed_name(value: Any, path: str) -> str:
    tool = obj(value, path)
    inner = tool.get("function")
    return optional_text(inner if isinstance(inner, dict) else tool, "name", f"{path}.")


def read_tools(value: Any) -> tuple[Tool, ...]:
    if value is None:
        return ()
    tools = []
    for i, item in enumerate(array(value, "tools")):
        path = f"tools[{i}]"
        tool = obj(item, path)
        kind = optional_text(tool, "type", f"{path}.") or "function"
        inner = tool.get(kind)
        given = obj(inner, f"{path}.{kind}") if kind in ("function", "custom") or inner is not None else tool
        parameters = given.get("parameters")
        tools.append(
            Tool(
                name=text(given.get("name"), f"{path}.{kind}.name") if kind in ("function", "custom") else optional_text(given, "name"),
                description=optional_text(given, "description", f"{path}.{kind}."),
                parameters=None if parameters is None else obj(parameters, f"{path}.{kind}.parameters"),
                strict=optional_bool(given, "strict", f"{path}.{kind}."),
                kind=kind,
                extra=tool,
            )
        )
    return tuple(tools)
