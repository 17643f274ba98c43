"""OpenAI's chat completions, both ways.

Source: https://platform.openai.com/docs/api-reference/chat. Servers that call themselves compatible differ in ways this file bears with:
heartbeats as data, errors inside a 200, a finish reason before the last text, usage on a chunk of its own or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from wire import sse, tool_names
from wire.blame import upstream_error
from wire.conversation import (
    NOTHING,
    Chunk,
    File,
    Format,
    Image,
    Message,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Request,
    Role,
    Sampling,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolPiece,
    ToolResult,
    Usage,
)
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_number, optional_text, text, wrong
from wire.hosted import callers_tools
from wire.jsontext import parse_upstream

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}
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
DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*?);base64,(.*)", re.S)
MEDIA_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
STREAM_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier"})


class OpenAIChat(Dialect):
    name = "openai-chat"
    routes = (Route("POST", "/v1/chat/completions", "ask"), Route("POST", "/chat/completions", "ask"))

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        body = obj(inbound.body, "the body")
        name = model_name(body)
        if "messages" not in body:
            raise missing("messages")
        messages = array(body["messages"], "messages")
        if not messages:
            raise CallerError("invalid_request", "messages must hold at least one message.", field="messages")
        stream_options = body.get("stream_options")
        limit = optional_int(body, "max_completion_tokens", least=1)
        older = optional_int(body, "max_tokens", least=1)
        return Request(
            dialect=self.name,
            model=name,
            messages=tuple([read_message(m, f"messages[{i}]") for i, m in enumerate(messages)]),
            stream=bool(optional_bool(body, "stream")),
            output_limit=limit if limit is not None else older,
            sampling=read_sampling(body),
            format=read_format(body.get("response_format")),
            tools=read_tools(body.get("tools")),
            tool_choice=read_choice(body.get("tool_choice")),
            reasoning=Reasoning(effort=effort) if (effort := optional_text(body, "reasoning_effort")) else None,
            parallel_tool_calls=optional_bool(body, "parallel_tool_calls"),
            choices=optional_int(body, "n", least=1, most=128) or 1,
            raw=body,
            marks=tuple([f"prompt_cache_key:{mark}" for mark in (optional_text(body, "prompt_cache_key"),) if mark]),
            usage_wanted=stream_options is not None and bool(optional_bool(obj(stream_options, "stream_options"), "include_usage", "stream_options.")),
        )

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw = answer.reply.raw
        if isinstance(raw, dict) and isinstance(raw.get("choices"), list):
            body = {
                **raw,
                "id": raw.get("id") or answer.id,
                "object": "chat.completion",
                "created": raw.get("created") or answer.created_s,
                "model": answer.model,
            }
            body["choices"] = [whole_choice(c, i) for i, c in enumerate(raw["choices"])]
            if not isinstance(raw.get("usage"), dict):
                body["usage"] = usage_out(answer.usage)
        else:
            body = {
                "id": answer.id,
                "object": "chat.completion",
                "created": answer.created_s,
                "model": answer.model,
                "choices": [
                    {"index": 0, "message": message_out(answer.reply.parts), "logprobs": None, "finish_reason": FINISHES[answer.reply.stop or Stop.END]}
                ],
                "usage": usage_out(answer.usage),
            }
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return ChatWriter(request.model, answer_id, created_s, request.usage_wanted)

    def write_error(self, error: CallerError) -> dict[str, Any]:
        inner: dict[str, Any] = {
            "message": error.message,
            "type": ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "server_error"),
            "param": error.field or None,
            "code": error.code,
        }
        if error.seats:
            inner["seats"] = error.seats
        return {"error": inner}

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        dropped: tuple[str, ...] = ()
        if request.dialect == self.name and request.raw:
            body = dict(request.raw)
        else:
            body, dropped = write_body(request)
        body["model"] = served_name
        body["stream"] = request.stream
        if not body.get("tools"):
            for field in ("tools", "tool_choice", "parallel_tool_calls"):
                body.pop(field, None)
        if request.stream and quirks.get("stream_options", True):
            given = body.get("stream_options")
            body["stream_options"] = {**given, "include_usage": True} if isinstance(given, dict) else {"include_usage": True}
        else:
            body.pop("stream_options", None)
        if not request.stream:
            del body["stream"]
        if (param := quirks.get("token_param")) and request.output_limit is not None:
            for field in ("max_tokens", "max_completion_tokens"):
                body.pop(field, None)
            body[param] = request.output_limit
        if role := quirks.get("system_role"):
            body["messages"] = [{**m, "role": role} if m.get("role") in ("system", "developer") else m for m in body["messages"]]
        for field, value in (quirks.get("defaults") or {}).items():
            body.setdefault(field, value)
        return Outbound(body, dropped=dropped)

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no chat completion.")
        if error := error_inside(body):
            raise error
        choices = body.get("choices")
        if not isinstance(choices, list):
            raise Garbage("The endpoint answered with JSON that is no chat completion.")
        if not choices or not isinstance(choices[0], dict):
            raise Empty("The endpoint answered without a choice.")
        first = choices[0]
        message = first.get("message") or first.get("delta")
        finish = first.get("finish_reason") if isinstance(first.get("finish_reason"), str) else ""
        parts = reply_parts(message if isinstance(message, dict) else {})
        if request.dialect != self.name and (names := tool_names.back(request)):
            parts = tuple([replace(p, name=names.get(p.name, p.name)) if isinstance(p, ToolCall) else p for p in parts])
        usage = usage_in(body.get("usage"))
        stop = STOPS.get(finish, Stop.END)
        if not parts and stop in (Stop.END, Stop.TOOLS):
            raise Empty("The endpoint answered with nothing in it.")
        return Reply(parts=parts, stop=stop, finish=finish or "stop", usage=usage, raw=body if request.dialect == self.name else None)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return usage_in(body.get("usage"))

    def stream_reader(self, request: Request) -> StreamReader:
        same = request.dialect == self.name
        return ChatReader(keep_raw=same, names=None if same else tool_names.back(request))

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw:
            return cut
        messages = []
        for message in request.raw["messages"]:
            gone = [f for f in ("reasoning_content", "reasoning") if isinstance(message.get(f), str) and foreign(Thinking(text=message[f]))]
            messages.append({k: v for k, v in message.items() if k not in gone} if gone else message)
        return replace(cut, raw={**request.raw, "messages": messages})

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = {**request.raw, "messages": [*request.raw["messages"], {"role": "user", "content": text}]} if request.raw else request.raw
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = OpenAIChat()


# ------------------------------------------------------------------ requests in


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


def write_choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    if choice.allowed:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.allowed]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return choice.mode


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


# ------------------------------------------------------------------ requests out


def write_body(request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A body built from what was understood, for requests that came in another dialect or that we made; and what it leaves out."""
    names = tool_names.sent(request)
    tools, dropped = callers_tools(request)
    choice = request.tool_choice
    if choice and choice.name in names:
        choice = replace(choice, name=names[choice.name])
    body: dict[str, Any] = {"messages": write_messages(request.messages, names)}
    if request.output_limit is not None:
        body["max_tokens"] = request.output_limit
    s = request.sampling
    for field, value in (
        ("temperature", s.temperature),
        ("top_p", s.top_p),
        ("seed", s.seed),
        ("presence_penalty", s.presence_penalty),
        ("frequency_penalty", s.frequency_penalty),
        ("parallel_tool_calls", request.parallel_tool_calls),
        ("tool_choice", write_choice(choice)),
        ("reasoning_effort", request.reasoning.effort if request.reasoning and request.reasoning.effort else None),
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
            said = text_of(result.parts) or ("The result is shown in the next message." if pictures else "")
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


# ------------------------------------------------------------------ usage and errors


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


# ------------------------------------------------------------------ streams


class ChatReader(StreamReader):
    """Reads a provider's stream. A finish reason is only noted: text may follow it, and it holds once the stream has ended."""

    def __init__(self, keep_raw: bool = True, names: Mapping[str, str] | None = None) -> None:
        self.keep_raw = keep_raw
        self.names = names  # the caller's tool names by those that were sent
        self.parser = sse.Parser()
        self.done = False
        self.finished = False
        self.content = False

    def feed(self, data: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            events = self.parser.feed(data)
        except sse.TooLong as error:
            raise Garbage(f"The endpoint streamed {error}.") from None
        for event in events:
            self.read(event.data, chunks)
        return chunks

    def close(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        if not self.done:
            for event in self.parser.close():
                if event.data == b"[DONE]" or is_whole(event.data):
                    self.read(event.data, chunks)
        if not (self.done or self.finished):
            if self.content or any(c.has_content for c in chunks):
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        return chunks

    def read(self, data: bytes, chunks: list[Chunk]) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        if data[:1] != b"{":
            return  # a heartbeat in disguise
        try:
            obj = parse_upstream(data)
        except ValueError:
            raise Garbage("The endpoint streamed a chunk that is no JSON.") from None
        if error := error_inside(obj):
            raise error
        usage = usage_in(obj.get("usage"))
        choices = obj.get("choices")
        if not isinstance(choices, list) or not choices:
            chunks.append(Chunk(usage=usage, raw=obj if self.keep_raw else None))
            return
        several = len(choices) > 1
        for choice in choices:
            if isinstance(choice, dict):
                chunks.append(self.choice(choice, {**obj, "choices": [choice]} if several else obj, usage))
                usage = None

    def choice(self, choice: dict[str, Any], raw: dict[str, Any], usage: Usage | None) -> Chunk:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
            delta = delta if isinstance(delta, dict) else {}
        said = delta.get("content")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        refused = delta.get("refusal")
        pieces: tuple[ToolPiece, ...] = ()
        if calls := delta.get("tool_calls"):
            pieces = read_pieces(calls)
            if self.names:
                pieces = tuple([replace(p, name=self.names.get(p.name, p.name)) for p in pieces])
        finish = choice.get("finish_reason")
        if finish:
            self.finished = True
            finish = str(finish)
        chunk = Chunk(
            text=said if isinstance(said, str) else "",
            thinking=thought if isinstance(thought, str) else "",
            refusal=refused if isinstance(refused, str) else "",
            tools=pieces,
            stop=STOPS.get(finish, Stop.END) if finish else None,
            finish=finish or "",
            usage=usage,
            choice=count(choice.get("index")),
            raw=raw if self.keep_raw else None,
        )
        if not self.content and chunk.has_content:
            self.content = True
        return chunk


def is_whole(data: bytes) -> bool:
    """A last event without its blank line counts if its JSON is whole; half of one is the sign of a cut."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def read_pieces(calls: Any) -> tuple[ToolPiece, ...]:
    out = []
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = orjson.dumps(arguments).decode()
        index = call.get("index")
        out.append(ToolPiece(index if isinstance(index, int) else position, str(call.get("id") or ""), str(function.get("name") or ""), arguments or ""))
    return tuple(out)


def piece_out(piece: ToolPiece) -> dict[str, Any]:
    """Id, type and name stand on a call's first piece only."""
    function = {"name": piece.name, "arguments": piece.arguments} if piece.name else {"arguments": piece.arguments}
    first = {"id": piece.id, "type": "function"} if piece.id else {}
    return {"index": piece.index, **first, "function": function}


class ChatWriter(StreamWriter):
    """Writes a stream for a caller: one id throughout, the role first, one finish reason a choice and that last, usage only where asked for."""

    def __init__(self, model: str, answer_id: str, created_s: int, usage_wanted: bool) -> None:
        self.head = {"id": answer_id, "object": "chat.completion.chunk", "created": created_s, "model": model}
        self.usage_wanted = usage_wanted
        self.roles: set[int] = set()
        self.held: dict[int, dict[str, Any]] = {}

    def start(self) -> bytes:
        self.roles.add(0)
        return self.write({**self.head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}]})

    def chunk(self, chunk: Chunk) -> bytes:
        raw = chunk.raw
        if not (isinstance(raw, dict) and "choices" in raw):
            return self.made(chunk)
        body = {**raw, **self.head}
        body.pop("usage", None)
        choices = raw["choices"]
        if not choices:
            # A chunk of usage only is held back; one that says something else (a content filter's result) goes on.
            return self.write({**body, "choices": []}) if raw.keys() - STREAM_FIELDS else b""
        choice = choices[0]
        if chunk.finish:
            if chunk.has_content or choice.get("logprobs"):
                self.held[chunk.choice] = {**body, "choices": [{"index": chunk.choice, "delta": {}, "finish_reason": chunk.finish}]}
                choice = {**choice, "finish_reason": None}
            else:
                self.held[chunk.choice] = {**body, "choices": [{**choice, "delta": {}, "finish_reason": chunk.finish}]}
                return b""
        if chunk.choice not in self.roles:
            self.roles.add(chunk.choice)
            delta = choice.get("delta")
            choice = {**choice, "delta": {"role": "assistant", **(delta if isinstance(delta, dict) else {})}}
        if choice is not choices[0]:
            body["choices"] = [choice]
        return self.write(body)

    def made(self, chunk: Chunk) -> bytes:
        """A chunk of ours, from what was understood."""
        delta: dict[str, Any] = {}
        if chunk.choice not in self.roles:
            self.roles.add(chunk.choice)
            delta = {"role": "assistant", "content": ""}
        if chunk.text:
            delta["content"] = chunk.text
        if chunk.thinking:
            delta["reasoning_content"] = chunk.thinking
        if chunk.refusal:
            delta["refusal"] = chunk.refusal
        if chunk.tools:
            delta["tool_calls"] = [piece_out(t) for t in chunk.tools]
        if chunk.stop:
            self.held[chunk.choice] = {**self.head, "choices": [{"index": chunk.choice, "delta": {}, "logprobs": None, "finish_reason": FINISHES[chunk.stop]}]}
        if not delta:
            return b""
        return self.write({**self.head, "choices": [{"index": chunk.choice, "delta": delta, "logprobs": None, "finish_reason": None}]})

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        held = self.held or {0: {**self.head, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]}}
        out = []
        for number, index in enumerate(sorted(held)):
            body = held[index]
            if bench is not None and number == 0:
                body = {**body, "bench": bench}
            out.append(self.write(body))
        if self.usage_wanted:
            out.append(self.write({**self.head, "choices": [], "usage": usage_out(usage)}))
        return b"".join(out) + sse.DONE

    def error(self, error: CallerError) -> bytes:
        return self.write(DIALECT.write_error(error))

    def keepalive(self) -> bytes:
        return sse.KEEPALIVE

    @staticmethod
    def write(body: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps(body) + b"\n\n"
