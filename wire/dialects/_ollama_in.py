"""Ollama's chat and generate: requests read into what they mean.

Tool calls may come without ids, as older servers and clients write them: such a call is known by its place, which a client repeats with its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from wire.conversation import Format, Image, Message, Part, Reasoning, Role, Sampling, Text, Thinking, Tool, ToolCall, ToolResult
from wire.errors import CallerError
from wire.fields import array, missing, obj, optional_int, optional_number, optional_text, text, wrong

ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
IMAGE_HEADS = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
# What of /api/generate has no place in a chat.
ONLY_GENERATE = ("prompt", "system", "images", "suffix", "context", "template", "raw")
UNDERSTOOD = frozenset({"model", "messages", "stream", "format", "tools", "think", "options", *ONLY_GENERATE})
OPTIONS = frozenset({"num_predict", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty"})


class Messages:
    """Reads messages. Calls that have no ids get some, and results find their calls by the id, else by the tool's name, else by the order."""

    def __init__(self) -> None:
        self.waiting: list[ToolCall] = []  # calls that no result was given for yet
        self.made = 0

    def read(self, given: Any) -> tuple[Message, ...]:
        messages = array(given, "messages")
        if not messages:
            raise CallerError("invalid_request", "messages must hold at least one message. There is no model to load here.", field="messages")
        return tuple([self.message(obj(m, f"messages[{i}]"), f"messages[{i}]") for i, m in enumerate(messages)])

    def message(self, item: Mapping[str, Any], path: str) -> Message:
        if "role" not in item:
            raise missing(f"{path}.role")
        role = ROLES.get(text(item["role"], f"{path}.role"))
        if role is None:
            raise CallerError("invalid_request", f"{path}.role must be system, user, assistant or tool.", field=f"{path}.role")
        parts: list[Part] = []
        if thought := optional_text(item, "thinking", f"{path}."):
            parts.append(Thinking(text=thought))
        if said := optional_text(item, "content", f"{path}."):
            parts.append(Text(said))
        parts += read_images(item, f"{path}.")
        if role is Role.TOOL:
            return Message(role, (self.result(item, parts, path),))
        if item.get("tool_calls") is not None:
            parts += [self.call(c, f"{path}.tool_calls[{i}]") for i, c in enumerate(array(item["tool_calls"], f"{path}.tool_calls"))]
        return Message(role, tuple(parts))

    def call(self, value: Any, path: str) -> ToolCall:
        given = obj(value, path)
        function = obj(given.get("function"), f"{path}.function")
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments if arguments is not None else {}).decode()
        found = ToolCall(optional_text(given, "id", f"{path}.") or self.new_id(), text(function.get("name"), f"{path}.function.name"), written)
        self.waiting.append(found)
        return found

    def result(self, item: Mapping[str, Any], parts: list[Part], path: str) -> ToolResult:
        call_id = optional_text(item, "tool_call_id", f"{path}.")
        name = optional_text(item, "tool_name", f"{path}.") or optional_text(item, "name", f"{path}.")
        fits = [c for c in self.waiting if (c.id == call_id if call_id else c.name == name)] or (self.waiting if not call_id else [])
        call = fits[0] if fits else None
        if call:
            self.waiting.remove(call)
        return ToolResult(call_id or (call.id if call else self.new_id()), tuple(parts), name=name or (call.name if call else ""))

    def new_id(self) -> str:
        self.made += 1
        return f"call_{self.made - 1}"


def read_prompt(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """One turn out of /api/generate. Errors: CallerError for what only a model that is spoken to without a chat's form could do."""
    for field in ("suffix", "context", "template", "raw"):
        if body.get(field):
            raise CallerError("invalid_request", f"{field} is not taken here. Ask /api/chat with the conversation as messages.", field=field)
    prompt, images = optional_text(body, "prompt"), read_images(body, "")
    if not prompt and not images:
        raise CallerError("invalid_request", "prompt is missing. There is no model to load here.", field="prompt")
    system = optional_text(body, "system")
    first = (Message(Role.SYSTEM, (Text(system),)),) if system else ()
    return (*first, Message(Role.USER, (*((Text(prompt),) if prompt else ()), *images)))


def read_images(item: Mapping[str, Any], path: str) -> list[Image]:
    if item.get("images") is None:
        return []
    return [read_image(text(v, f"{path}images[{i}]"), f"{path}images[{i}]") for i, v in enumerate(array(item["images"], f"{path}images"))]


def read_image(data: str, path: str) -> Image:
    """Bare base64, whose first characters tell the kind of image. Errors: CallerError for an address: this format knows bytes only."""
    if data.startswith(("http://", "https://")):
        raise CallerError("invalid_request", f"{path} must hold an image's bytes in base64, not its address.", field=path)
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        if media := head[5:].partition(";")[0].strip().lower():
            return Image(media_type=media, data=data)
    return Image(media_type=next((media for head, media in IMAGE_HEADS if data.startswith(head)), "image/png"), data=data)


def read_sampling(options: Mapping[str, Any]) -> Sampling:
    stop = options.get("stop")
    stops = (stop,) if isinstance(stop, str) else tuple([text(s, f"options.stop[{i}]") for i, s in enumerate(array(stop, "options.stop"))]) if stop else ()
    return Sampling(
        temperature=optional_number(options, "temperature", "options."),
        top_p=optional_number(options, "top_p", "options."),
        top_k=optional_int(options, "top_k", "options."),
        stop=stops,
        seed=optional_int(options, "seed", "options.", most=2**63),
        presence_penalty=optional_number(options, "presence_penalty", "options."),
        frequency_penalty=optional_number(options, "frequency_penalty", "options."),
    )


def read_format(value: Any) -> Format | None:
    if value in (None, ""):
        return None
    if isinstance(value, str):
        if value != "json":
            raise CallerError("invalid_request", 'format must be "json" or a JSON schema.', field="format")
        return Format("json")
    return Format("schema", obj(value, "format"), "answer")


def read_tools(value: Any) -> tuple[Tool, ...]:
    if value is None:
        return ()
    tools = []
    for i, item in enumerate(array(value, "tools")):
        path = f"tools[{i}]"
        tool = obj(item, path)
        function = obj(tool.get("function"), f"{path}.function")
        parameters = function.get("parameters")
        tools.append(
            Tool(
                name=text(function.get("name"), f"{path}.function.name"),
                description=optional_text(function, "description", f"{path}.function."),
                parameters=None if parameters is None else obj(parameters, f"{path}.function.parameters"),
                extra=tool,
            )
        )
    return tuple(tools)


def read_think(value: Any) -> Reasoning | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Reasoning(enabled=value)
    if isinstance(value, str):
        return Reasoning(effort=value, enabled=True) if value else None
    raise wrong("think", "true, false or a level", value)


def read_unread(body: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that nothing was understood of, by name."""
    found = [name for name, value in body.items() if name not in UNDERSTOOD and value is not None]
    found += [f"options.{name}" for name, value in options.items() if name not in OPTIONS and value is not None]
    return tuple([name[:60] for name in found if name.isprintable() and name.isascii()])
