"""Requests in Anthropic's Messages format, read. What only this format knows is noted by name, for providers of other formats."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from wire.conversation import (
    NOTHING,
    File,
    Format,
    Image,
    Message,
    Part,
    Reasoning,
    Request,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_number, optional_text, text, wrong

# Fields that are understood; all others only a provider of the same format gets.
READ = frozenset(
    {
        "model", "messages", "system", "max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "tools", "tool_choice", "thinking",
        "output_config", "output_format", "mcp_servers",
    }
)  # fmt: skip
TOOL_READ = frozenset({"name", "description", "input_schema", "strict", "type", "cache_control"})
# Claude Code's line about itself. It changes from call to call and would ruin every other provider's prompt cache.
ATTRIBUTION = "x-anthropic-billing-header:"
# Claude Code lists it to keep deferred loading switched on; no model is meant to see it.
PLACEHOLDER = "DeferredToolPlaceholder"
SESSION = re.compile(r"_session_([0-9a-fA-F-]{8,})$")  # of older Claude Codes: user_…_account_…_session_…
MEDIA_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
CHOICES = {"auto": "auto", "any": "required", "none": "none", "tool": "tool"}
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
MOST_LINES = 40

# Tools that the caller runs but that only this format describes by name; others are told what they take.
KNOWN_TOOLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "bash_",
        "Runs a command in a persistent shell and returns its output.",
        {"type": "object", "properties": {"command": {"type": "string"}, "restart": {"type": "boolean"}}},
    ),
    (
        "text_editor_",
        "Views, creates and edits text files.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
                "path": {"type": "string"},
                "file_text": {"type": "string"},
                "old_str": {"type": "string"},
                "new_str": {"type": "string"},
                "insert_line": {"type": "integer"},
                "insert_text": {"type": "string"},
                "view_range": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["command", "path"],
        },
    ),
)


class Noted:
    """What reading one request gathers: the names that no canonical value holds, tools by call id, tools defined on the way."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.calls: dict[str, str] = {}
        self.tools: list[Tool] = []

    def __call__(self, name: str) -> None:
        self.names[name] = None


def read_request(inbound: Inbound, dialect: str) -> Request:
    body = obj(inbound.body, "the body")
    name = model_name(body)
    if "messages" not in body:
        raise missing("messages")
    turns = array(body["messages"], "messages")
    if not turns:
        raise CallerError("invalid_request", "messages must hold at least one message.", field="messages")
    noted = Noted()
    for field in body.keys() - READ:
        noted(field)
    messages = system_in(body.get("system"), noted)
    last_user = max((i for i, t in enumerate(turns) if isinstance(t, dict) and t.get("role") == "user"), default=-1)
    for i, turn in enumerate(turns):
        messages += turn_in(turn, f"messages[{i}]", noted, is_over=i < last_user)
    if not messages:
        messages = [Message(Role.USER, ())]
    tools = tools_in(body, noted)
    choice, parallel = choice_in(body.get("tool_choice"), noted)
    limit = optional_int(body, "max_tokens", least=0)
    headers = {h: joined(inbound.headers[h]) for h in ("anthropic-beta", "anthropic-version") if inbound.headers.get(h)}
    if "anthropic-beta" in headers:
        noted("anthropic-beta")
    mark = mark_of(inbound.headers, body.get("metadata"))
    return Request(
        dialect=dialect,
        model=name,
        messages=tuple(messages),
        stream=bool(optional_bool(body, "stream")),
        # 0 only warms a cache up, which others cannot: the least that they can do is one token.
        output_limit=None if limit is None else max(limit, 1),
        sampling=sampling_in(body),
        format=format_in(body, noted),
        tools=tools,
        tool_choice=choice,
        reasoning=reasoning_in(body),
        parallel_tool_calls=parallel,
        raw=body,
        usage_wanted=True,
        headers=headers or None,
        marks=(mark,) if mark else (),
        operation="count" if inbound.path.rstrip("/").endswith("/count_tokens") else "ask",
        unread=tuple(sorted(noted.names)),
    )


def dumped(value: Any) -> str:
    """JSON text; also of whole numbers that the fast writer has no room for."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False)


def joined(header: str) -> str:
    """A header that came once or several times, each value once."""
    return ",".join(dict.fromkeys([v for value in header.split(",") if (v := value.strip())]))


def mark_of(headers: Mapping[str, str], metadata: Any) -> str:
    """Claude Code's session and, of a sub-agent, the agent: the header and `metadata.user_id` tell the same."""
    told = optional_text(obj(metadata, "metadata"), "user_id", "metadata.") if metadata is not None else ""
    session = headers.get("x-claude-code-session-id", "").strip()
    if not session and told[:1] == "{":
        try:
            said = orjson.loads(told)
        except orjson.JSONDecodeError:
            said = None
        session = said["session_id"] if isinstance(said, dict) and isinstance(said.get("session_id"), str) else ""
    if not session and (found := SESSION.search(told)):
        session = found[1]
    return f"claude:{session}:{headers.get('x-claude-code-agent-id', '').strip()}" if session else ""


# ------------------------------------------------------------------ messages


def system_in(value: Any, noted: Noted) -> list[Message]:
    """The system prompt, without Claude Code's line about itself."""
    if value is None:
        return []
    if isinstance(value, str):
        said = value.partition("\n")[2] if value.startswith(ATTRIBUTION) else value
        return [Message(Role.SYSTEM, (Text(said),))] if said else []
    blocks = array(value, "system")
    first = blocks[0] if blocks else None
    if isinstance(first, dict) and isinstance(first.get("text"), str) and first["text"].startswith(ATTRIBUTION):
        said = first["text"].partition("\n")[2]
        blocks = [{**first, "text": said}, *blocks[1:]] if said.strip() else blocks[1:]
    parts = parts_in(blocks, "system", noted)
    return [Message(Role.SYSTEM, parts)] if parts else []


def turn_in(value: Any, path: str, noted: Noted, is_over: bool) -> list[Message]:
    """One turn as messages: a user's tool results stand in a message of their own, before what else the user says.

    Shape: `is_over` where a user speaks later; a system turn may say that it then no longer counts.
    """
    turn = obj(value, path)
    if "role" not in turn:
        raise missing(f"{path}.role")
    role = ROLES.get(text(turn["role"], f"{path}.role"))
    if role is None:
        raise CallerError("invalid_request", f"{path}.role must be user, assistant or system.", field=f"{path}.role")
    content = turn.get("content")
    if isinstance(content, str):
        parts: tuple[Part, ...] = (Text(content),) if content else ()
    elif isinstance(content, list):
        parts = parts_in(content, f"{path}.content", noted)
    elif content is None and role is Role.SYSTEM:
        parts = ()
    elif content is None:
        raise missing(f"{path}.content")
    else:
        raise wrong(f"{path}.content", "a string or a list of blocks", content)
    if role is Role.SYSTEM:
        return [Message(role, parts)] if parts and not (is_over and turn.get("clear_at") == "next_user_message") else []
    results = tuple(p for p in parts if isinstance(p, ToolResult))
    if not results:
        return [Message(role, parts)]
    rest = tuple(p for p in parts if not isinstance(p, ToolResult))
    return [Message(Role.TOOL, results), *([Message(role, rest)] if rest else [])]


def parts_in(blocks: list[Any], path: str, noted: Noted) -> tuple[Part, ...]:
    out: list[Part] = []
    for i, value in enumerate(blocks):
        out += block_in(obj(value, f"{path}[{i}]"), f"{path}[{i}]", noted)
    return tuple(out)


def block_in(block: dict[str, Any], path: str, noted: Noted) -> list[Part]:
    """One block as parts. A type that is not known counts as the text it holds."""
    kind = text(block["type"], f"{path}.type") if "type" in block else "text" if "text" in block else ""
    if not kind:
        raise missing(f"{path}.type")
    if block.get("cache_control") is not None:
        noted("cache_control")
    if kind == "text":
        said = text(block.get("text"), f"{path}.text")
        return [Text(said)] if said else []
    if kind == "image":
        return [image_in(block, path)]
    if kind == "thinking":
        return [Thinking(text=optional_text(block, "thinking", f"{path}."), signature=optional_text(block, "signature", f"{path}."))]
    if kind == "redacted_thinking":
        return [Thinking(redacted=text(block.get("data"), f"{path}.data"))]
    if kind == "tool_use":
        call = ToolCall(text(block.get("id"), f"{path}.id"), text(block.get("name"), f"{path}.name"), dumped(block.get("input") or {}))
        noted.calls[call.id] = call.name
        return [call]
    if kind == "tool_result":
        return [result_in(block, path, noted)]
    if kind == "document":
        return document_in(block, path, noted)
    if kind == "tool_reference":
        return [Text(f"The tool {optional_text(block, 'tool_name', f'{path}.')} is loaded and can be called now.")]
    if kind == "tool_addition":
        added = block.get("tool")
        if isinstance(added, dict) and isinstance(defined := added.get("definition"), dict):
            noted.tools += tool_in(defined, f"{path}.tool.definition", noted)
        return []
    if kind == "container_upload":
        return [File("file", name=optional_text(block, "file_id", f"{path}."), extra=block)]
    if said := readable(block):
        return [Text(said, extra=block)]
    noted(kind)
    return []


def image_in(block: dict[str, Any], path: str) -> Part:
    source = obj(block.get("source"), f"{path}.source")
    if source.get("type") == "url" or ("url" in source and "data" not in source):
        return Image(url=text(source.get("url"), f"{path}.source.url"))
    if source.get("type") == "file":
        return File("file", name=optional_text(source, "file_id", f"{path}.source."), extra=block)
    media = optional_text(source, "media_type", f"{path}.source.").strip().lower()
    return Image(media_type=MEDIA_TYPES.get(media, media), data=text(source.get("data"), f"{path}.source.data"))


def document_in(block: dict[str, Any], path: str, noted: Noted) -> list[Part]:
    """Text stays text, so that any model can read it; anything else is a file."""
    source = obj(block.get("source"), f"{path}.source")
    kind = optional_text(source, "type", f"{path}.source.")
    title = optional_text(block, "title", f"{path}.")
    if kind == "text":
        data = text(source.get("data"), f"{path}.source.data")
        return [Text(f"{title}\n\n{data}" if title else data, extra=block)]
    if kind == "content":
        content = source.get("content")
        parts = (Text(content),) if isinstance(content, str) else parts_in(array(content, f"{path}.source.content"), f"{path}.source.content", noted)
        return [Text(title), *parts] if title else list(parts)
    media = optional_text(source, "media_type", f"{path}.source.") or "application/pdf"
    if kind == "url":
        return [File("file", media_type=media, url=text(source.get("url"), f"{path}.source.url"), name=title, extra=block)]
    if kind == "file":
        return [File("file", name=title or optional_text(source, "file_id", f"{path}.source."), extra=block)]
    return [File("file", media_type=media, data=text(source.get("data"), f"{path}.source.data"), name=title, extra=block)]


def result_in(block: dict[str, Any], path: str, noted: Noted) -> ToolResult:
    content = block.get("content")
    if content is None or isinstance(content, str):
        parts: tuple[Part, ...] = (Text(content),) if content else ()
    else:
        parts = parts_in(array(content, f"{path}.content"), f"{path}.content", noted)
    call_id = text(block.get("tool_use_id"), f"{path}.tool_use_id")
    return ToolResult(call_id, parts, is_error=bool(optional_bool(block, "is_error", f"{path}.")), name=noted.calls.get(call_id, ""))


def readable(value: Any) -> str:
    """What a person could read in a block that only this format knows: titles, addresses and texts, a line each."""
    lines: list[str] = []
    level = [value]
    while level and len(lines) < MOST_LINES:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                lines += [one[f] for f in ("title", "source", "url", "text", "stdout", "stderr") if isinstance(one.get(f), str) and one[f].strip()]
                if isinstance(one.get("content"), str) and one["content"].strip():
                    lines.append(one["content"])
                inner += [v for v in one.values() if isinstance(v, dict | list)]
            else:
                inner += [v for v in one if isinstance(v, dict | list)]
        level = inner
    return "\n".join(lines[:MOST_LINES])


# ------------------------------------------------------------------ tools and the rest


def tools_in(body: Mapping[str, Any], noted: Noted) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    if body.get("tools") is not None:
        for i, value in enumerate(array(body["tools"], "tools")):
            tools += tool_in(obj(value, f"tools[{i}]"), f"tools[{i}]", noted)
    if body.get("mcp_servers") is not None:
        for i, value in enumerate(array(body["mcp_servers"], "mcp_servers")):
            server = obj(value, f"mcp_servers[{i}]")
            if not any(t.kind == "mcp_toolset" for t in tools):
                tools.append(Tool(optional_text(server, "name", f"mcp_servers[{i}]."), kind="mcp_server", extra=server))
    names = {t.name for t in tools}
    return tuple([*tools, *[t for t in noted.tools if t.name not in names]])


def tool_in(tool: dict[str, Any], path: str, noted: Noted) -> list[Tool]:
    """One tool. A deferred one counts as any other: whoever lists it wants it called."""
    kind = optional_text(tool, "type", f"{path}.") or "custom"
    if tool.get("cache_control") is not None:
        noted("cache_control")
    if tool.get("defer_loading") and tool.get("name") == PLACEHOLDER:
        return []
    if kind != "custom":
        name = optional_text(tool, "name", f"{path}.")
        for prefix, description, parameters in KNOWN_TOOLS:
            if kind.startswith(prefix):
                return [Tool(name, description, parameters, extra=tool)]
        return [Tool(name or kind, kind=kind, extra=tool)]
    for field in tool.keys() - TOOL_READ:
        noted(f"tools.{field}")
    schema = tool.get("input_schema")
    return [
        Tool(
            name=text(tool.get("name"), f"{path}.name"),
            description=optional_text(tool, "description", f"{path}."),
            parameters=None if schema is None else obj(schema, f"{path}.input_schema"),
            strict=optional_bool(tool, "strict", f"{path}."),
            extra=tool,
        )
    ]


def choice_in(value: Any, noted: Noted) -> tuple[ToolChoice | None, bool | None]:
    """Which tool, and whether several at once."""
    if value is None:
        return None, None
    choice = obj(value, "tool_choice")
    kind = text(choice.get("type"), "tool_choice.type")
    alone = optional_bool(choice, "disable_parallel_tool_use", "tool_choice.")
    parallel = None if alone is None else not alone
    if kind not in CHOICES:
        noted("tool_choice")
        return None, parallel
    return ToolChoice(CHOICES[kind], name=text(choice.get("name"), "tool_choice.name") if kind == "tool" else ""), parallel


def sampling_in(body: Mapping[str, Any]) -> Sampling:
    stops = body.get("stop_sequences")
    return Sampling(
        temperature=optional_number(body, "temperature"),
        top_p=optional_number(body, "top_p"),
        top_k=optional_int(body, "top_k"),
        stop=() if stops is None else tuple([text(s, f"stop_sequences[{i}]") for i, s in enumerate(array(stops, "stop_sequences"))]),
    )


def output_config(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return NOTHING if body.get("output_config") is None else obj(body["output_config"], "output_config")


def format_in(body: Mapping[str, Any], noted: Noted) -> Format | None:
    config = output_config(body)
    path = "output_config.format" if config.get("format") is not None else "output_format"  # the second is the older place
    value = config.get("format") if config.get("format") is not None else body.get("output_format")
    if value is None:
        return None
    given = obj(value, path)
    if given.get("type") != "json_schema":
        noted(path)
        return None
    return Format("schema", obj(given.get("schema"), f"{path}.schema"), strict=True)


def reasoning_in(body: Mapping[str, Any]) -> Reasoning | None:
    effort = optional_text(output_config(body), "effort", "output_config.")
    if body.get("thinking") is None:
        return Reasoning(effort=effort) if effort else None
    thinking = obj(body["thinking"], "thinking")
    kind = text(thinking.get("type"), "thinking.type")
    return Reasoning(effort=effort, budget=optional_int(thinking, "budget_tokens", "thinking.", least=0), enabled=kind != "disabled")
