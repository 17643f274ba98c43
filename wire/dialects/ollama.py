"""Ollama's own API, both ways: chat and generate, one JSON object a line.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md. It knows no ids for tool calls, gives their arguments as objects, takes images
by their bytes only, and streams unless told not to.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from wire.blame import upstream_error
from wire.conversation import (
    Chunk,
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
    ToolPiece,
    ToolResult,
    Usage,
)
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.errors import CallerError, Empty, Garbage, Truncated
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_number, optional_text, text, wrong
from wire.jsontext import parse_upstream

ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
STOPS = {"stop": Stop.END, "length": Stop.LENGTH}
LONGEST_LINE = 32 * 1024 * 1024
GENERATE = "/api/generate"


class Ollama(Dialect):
    name = "ollama"
    routes = (Route("POST", "/api/chat", "ask"), Route("POST", GENERATE, "ask"))
    id_prefix = "oll"
    stream_types = ("application/x-ndjson", "application/ndjson", "application/jsonl")
    takes_image_urls = False

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        body = obj(inbound.body, "the body")
        options = obj(body["options"], "options") if body.get("options") is not None else {}
        limit = optional_int(options, "num_predict", "options.")
        stream = optional_bool(body, "stream")
        return Request(
            dialect=self.name,
            model=model_name(body),
            messages=read_prompt(body) if inbound.path.endswith(GENERATE) else read_messages(body),
            stream=stream is not False,
            output_limit=limit if limit is not None and limit > 0 else None,
            sampling=read_sampling(options),
            format=read_format(body.get("format")),
            tools=read_tools(body.get("tools")),
            reasoning=read_think(body.get("think")),
            raw=body,
            usage_wanted=True,
        )

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw = answer.reply.raw
        if answer.request is not None and generating(answer.request):
            body: dict[str, Any] = {"response": answer.reply.text}
            if thought := "".join(p.text for p in answer.reply.parts if isinstance(p, Thinking)):
                body["thinking"] = thought
        elif isinstance(raw, dict) and isinstance(raw.get("message"), dict):
            body = dict(raw)
        else:
            body = {"message": message_out(answer.reply.parts)}
        body = {**body, **head(answer.model, answer.created_s), **tail(answer.reply.stop, answer.usage)}
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return LineWriter(request.model, created_s, generating(request))

    def write_error(self, error: CallerError) -> dict[str, Any]:
        found: dict[str, Any] = {"error": error.message, "code": error.code}
        if error.seats:
            found["seats"] = error.seats
        return found

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        if request.choices > 1:
            raise CallerError("invalid_request", "n must be 1 here: Ollama gives one answer a call.", field="n")
        own = request.dialect == self.name and request.raw and not generating(request)
        body = dict(request.raw or {}) if own else write_body(request)
        body["model"], body["stream"] = served_name, request.stream
        for field, value in (quirks.get("defaults") or {}).items():
            body.setdefault(field, value)
        return Outbound(body, dropped=() if request.dialect == self.name else dropped(request))

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no Ollama reply.")
        raise_error(body)
        if not isinstance(body.get("message"), dict) and not isinstance(body.get("response"), str):
            raise Garbage("The endpoint answered with JSON that is no Ollama reply.")
        chunk = read_line(body, 0)
        parts = parts_of(chunk)
        stop = stop_of(body, bool(chunk.tools))
        if not parts and stop is Stop.END:
            raise Empty("The endpoint answered with nothing in it.")
        raw = body if request.dialect == self.name and "message" in body and not generating(request) else None
        return Reply(parts, stop, str(body.get("done_reason") or "stop"), usage_in(body), raw)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return usage_in(body)

    def stream_reader(self, request: Request) -> StreamReader:
        return LineReader(keep_raw=request.dialect == self.name and not generating(request))

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = request.raw
        if raw and isinstance(raw.get("messages"), list):
            raw = {**raw, "messages": [*raw["messages"], {"role": "user", "content": text}]}
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = Ollama()


# ------------------------------------------------------------------ requests in


def generating(request: Request) -> bool:
    """Whether the request came to /api/generate, whose replies have another shape."""
    return bool(request.raw) and "messages" not in (request.raw or {})


def read_messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    if "messages" not in body:
        raise missing("messages")
    given = array(body["messages"], "messages")
    if not given:
        raise CallerError("invalid_request", "messages must hold at least one message.", field="messages")
    out: list[Message] = []
    open_calls: list[ToolCall] = []
    made = 0
    for i, value in enumerate(given):
        path = f"messages[{i}]"
        item = obj(value, path)
        role = ROLES.get(text(item.get("role"), f"{path}.role"))
        if role is None:
            raise CallerError("invalid_request", f"{path}.role must be system, user, assistant or tool.", field=f"{path}.role")
        said = optional_text(item, "content", f"{path}.")
        parts: list[Part] = []
        if thought := optional_text(item, "thinking", f"{path}."):
            parts.append(Thinking(text=thought))
        if said:
            parts.append(Text(said))
        if item.get("images") is not None:
            parts += [read_image(text(v, f"{path}.images[{j}]")) for j, v in enumerate(array(item["images"], f"{path}.images"))]
        if role is Role.TOOL:
            name = optional_text(item, "tool_name", f"{path}.") or optional_text(item, "name", f"{path}.")
            call = next((c for c in open_calls if not name or c.name == name), None)
            if call:
                open_calls.remove(call)
            parts = [ToolResult(call.id if call else f"call_{made}", tuple(parts), name=name or (call.name if call else ""))]
        elif item.get("tool_calls") is not None:
            for j, one in enumerate(array(item["tool_calls"], f"{path}.tool_calls")):
                function = obj(obj(one, f"{path}.tool_calls[{j}]").get("function"), f"{path}.tool_calls[{j}].function")
                arguments = function.get("arguments")
                written = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
                # No ids here: a call is known by its place, which a client repeats with its history.
                call = ToolCall(f"call_{made}", text(function.get("name"), f"{path}.tool_calls[{j}].function.name"), written)
                made += 1
                open_calls.append(call)
                parts.append(call)
        out.append(Message(role, tuple(parts)))
    return tuple(out)


def read_prompt(body: Mapping[str, Any]) -> tuple[Message, ...]:
    if "prompt" not in body:
        raise missing("prompt")
    prompt = optional_text(body, "prompt")
    for field in ("suffix", "context"):
        if body.get(field):
            raise CallerError("invalid_request", f"{field} is not taken here. Ask /api/chat with the conversation as messages.", field=field)
    images = [read_image(text(v, f"images[{j}]")) for j, v in enumerate(array(body["images"], "images"))] if body.get("images") is not None else []
    system = optional_text(body, "system")
    first = (Message(Role.SYSTEM, (Text(system),)),) if system else ()
    return (*first, Message(Role.USER, (*((Text(prompt),) if prompt else ()), *images)))


def read_image(data: str) -> Image:
    """Bare base64; the kind of image is read from its first bytes, as written in base64."""
    for start, media in (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")):
        if data.startswith(start):
            return Image(media_type=media, data=data)
    if data.startswith("data:"):
        before, _, after = data.partition(",")
        return Image(media_type=before[5:].partition(";")[0] or "image/png", data=after)
    return Image(media_type="image/png", data=data)


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
        function = obj(obj(item, f"tools[{i}]").get("function"), f"tools[{i}].function")
        parameters = function.get("parameters")
        tools.append(
            Tool(
                name=text(function.get("name"), f"tools[{i}].function.name"),
                description=optional_text(function, "description", f"tools[{i}].function."),
                parameters=None if parameters is None else obj(parameters, f"tools[{i}].function.parameters"),
            )
        )
    return tuple(tools)


def read_think(value: Any) -> Reasoning | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Reasoning(enabled=value)
    if isinstance(value, str):
        return Reasoning(effort=value, enabled=True)
    raise wrong("think", "true, false or a level", value)


# ------------------------------------------------------------------ requests out


def dropped(request: Request) -> tuple[str, ...]:
    """What only tunes and has no word here."""
    found = []
    if request.parallel_tool_calls is not None:
        found.append("parallel_tool_calls")
    if request.tool_choice is not None and request.tool_choice.mode != "auto":
        found.append("tool_choice")
    return tuple([*found, *request.unread])


def write_body(request: Request) -> dict[str, Any]:
    names: dict[str, str] = {}
    messages = [m for message in request.messages for m in write_message(message, names)]
    body: dict[str, Any] = {"messages": messages}
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
        body["format"] = "json" if request.format.kind == "json" else dict(request.format.schema or {})
    # "none" is kept by not offering any tool; the format has no other word for it.
    if request.tools and not (request.tool_choice and request.tool_choice.mode == "none"):
        allowed = request.tool_choice.allowed if request.tool_choice else ()
        body["tools"] = [write_tool(t) for t in request.tools if not allowed or t.name in allowed]
    if request.reasoning:
        thinks = request.reasoning.enabled is not False and (request.reasoning.enabled or request.reasoning.effort or request.reasoning.budget)
        if request.reasoning.enabled is False:
            body["think"] = False
        elif thinks:
            body["think"] = request.reasoning.effort if request.reasoning.effort in ("low", "medium", "high") else True
    return body


def write_tool(tool: Tool) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, **dict(tool.parameters or {})}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def write_message(message: Message, names: dict[str, str]) -> list[dict[str, Any]]:
    """`names` gathers which tool a call id belongs to: results name the tool here, not the call."""
    out: list[dict[str, Any]] = []
    said, images, calls, thinking = [], [], [], []
    for part in message.parts:
        if isinstance(part, ToolResult):
            inner = [p for p in part.parts if isinstance(p, Image)]
            result: dict[str, Any] = {"role": "tool", "content": "".join(p.text for p in part.parts if isinstance(p, Text))}
            if name := names.get(part.call_id) or part.name:
                result["tool_name"] = name
            if inner:
                result["images"] = [image_bytes(p) for p in inner]
            out.append(result)
        elif isinstance(part, ToolCall):
            names[part.id] = part.name
            calls.append({"function": {"name": part.name, "arguments": as_object(part.arguments)}})
        elif isinstance(part, Image):
            images.append(image_bytes(part))
        elif isinstance(part, Thinking):
            thinking.append(part.text)
        elif isinstance(part, Text | Refusal):
            said.append(part.text)
    if said or images or calls or thinking or not out:
        made: dict[str, Any] = {"role": "user" if message.role is Role.TOOL else message.role.value, "content": "".join(said)}
        if images:
            made["images"] = images
        if calls:
            made["tool_calls"] = calls
        if thought := "".join(thinking):
            made["thinking"] = thought
        out.append(made)
    return out


def image_bytes(image: Image) -> str:
    if not image.data:
        raise CallerError("invalid_request", "An image given by its address cannot go to Ollama, which takes bytes only.", field="messages")
    return image.data


def as_object(arguments: str) -> dict[str, Any]:
    try:
        found = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return {"input": arguments}
    return found if isinstance(found, dict) else {"input": found}


# ------------------------------------------------------------------ replies


def head(model: str, created_s: int) -> dict[str, Any]:
    return {"model": model, "created_at": datetime.fromtimestamp(created_s, UTC).isoformat().replace("+00:00", "Z")}


def tail(stop: Stop | None, usage: Usage) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": "length" if stop is Stop.LENGTH else "stop",
        "prompt_eval_count": usage.input,
        "eval_count": usage.output,
    }


def message_out(parts: tuple[Part, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {"role": "assistant", "content": "".join(p.text for p in parts if isinstance(p, Text | Refusal))}
    if thought := "".join(p.text for p in parts if isinstance(p, Thinking)):
        out["thinking"] = thought
    if calls := [p for p in parts if isinstance(p, ToolCall)]:
        out["tool_calls"] = [{"function": {"name": c.name, "arguments": as_object(c.arguments)}} for c in calls]
    return out


def raise_error(body: Mapping[str, Any]) -> None:
    """Errors: UpstreamError where a line is an error."""
    said = body.get("error")
    if said:
        status = body.get("status_code") or body.get("code")
        raise upstream_error(status if isinstance(status, int) else None, said if isinstance(said, str) else str(said)[:300])


def read_line(body: Mapping[str, Any], calls_before: int) -> Chunk:
    message = body.get("message")
    message = message if isinstance(message, dict) else {"content": body.get("response"), "thinking": body.get("thinking")}
    pieces = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            written = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
            # Ids are minted: every other format needs them, and each must differ from all others of its conversation.
            pieces.append(ToolPiece(calls_before + len(pieces), f"call_{secrets.token_hex(12)}", function["name"], written or "{}"))
    said, thought = message.get("content"), message.get("thinking")
    return Chunk(text=said if isinstance(said, str) else "", thinking=thought if isinstance(thought, str) else "", tools=tuple(pieces))


def parts_of(chunk: Chunk) -> tuple[Part, ...]:
    parts: list[Part] = []
    if chunk.thinking:
        parts.append(Thinking(text=chunk.thinking))
    if chunk.text:
        parts.append(Text(chunk.text))
    parts += [ToolCall(t.id, t.name, t.arguments) for t in chunk.tools]
    return tuple(parts)


def stop_of(body: Mapping[str, Any], called: bool) -> Stop:
    return Stop.TOOLS if called else STOPS.get(str(body.get("done_reason") or "stop"), Stop.END)


def usage_in(body: Mapping[str, Any]) -> Usage | None:
    counts = [body.get(f) for f in ("prompt_eval_count", "eval_count")]
    if not any(isinstance(c, int) and not isinstance(c, bool) for c in counts):
        return None
    given, made = [c if isinstance(c, int) and not isinstance(c, bool) and 0 <= c < 2**53 else 0 for c in counts]
    return Usage(input=given, output=made)


# ------------------------------------------------------------------ streams


class LineReader(StreamReader):
    def __init__(self, keep_raw: bool) -> None:
        self.keep_raw = keep_raw
        self.buffer = b""
        self.done = False
        self.content = False
        self.calls = 0

    def feed(self, data: bytes) -> list[Chunk]:
        lines = (self.buffer + data).split(b"\n")
        self.buffer = lines.pop()
        if len(self.buffer) > LONGEST_LINE:
            raise Garbage("The endpoint streamed a line without an end.")
        return [c for line in lines if line.strip() and (c := self.line(line)) is not None]

    def close(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        if not self.done and self.buffer.strip():
            line, self.buffer = self.buffer, b""
            try:
                parse_upstream(line)
            except ValueError:
                pass  # half a line: the sign of a cut
            else:
                chunks = [c for c in (self.line(line),) if c is not None]
        if not self.done:
            if self.content:
                raise Truncated("The endpoint's stream broke off before its end.")
            raise Empty("The endpoint's stream ended without an answer.")
        return chunks

    def line(self, line: bytes) -> Chunk | None:
        if self.done:
            return None
        try:
            body = parse_upstream(line)
        except ValueError:
            raise Garbage("The endpoint streamed a line that is no JSON.") from None
        if not isinstance(body, dict):
            return None
        raise_error(body)
        chunk = read_line(body, self.calls)
        self.calls += len(chunk.tools)
        self.content = self.content or chunk.has_content
        raw = body if self.keep_raw else None
        if body.get("done") is True:
            self.done = True
            # A call may stand lines before the end, and the end then says "stop" as if nothing had been called.
            return replace(chunk, stop=stop_of(body, self.calls > 0), finish=str(body.get("done_reason") or "stop"), usage=usage_in(body), raw=raw)
        return replace(chunk, raw=raw)


class LineWriter(StreamWriter):
    """Writes lines; a tool call is written once it is whole, since its arguments are an object here."""

    content_type = "application/x-ndjson"

    def __init__(self, model: str, created_s: int, generates: bool) -> None:
        self.head = head(model, created_s)
        self.generates = generates
        self.stop: Stop | None = None
        self.last: dict[str, Any] = {}
        self.calls: dict[int, dict[str, str]] = {}

    def start(self) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        if chunk.choice:
            return b""
        out = b""
        raw = chunk.raw if isinstance(chunk.raw, dict) and "message" in chunk.raw and "choices" not in chunk.raw and not self.generates else None
        if chunk.stop:
            self.stop = chunk.stop
            if raw is not None:
                self.last = {k: v for k, v in raw.items() if k not in ("model", "created_at", "message", "done", "done_reason")}
        if raw is not None:
            if chunk.has_content:
                out = self.line({**raw, **self.head, "done": False})
            return out
        for piece in chunk.tools:
            call = self.calls.setdefault(piece.index, {"name": "", "arguments": ""})
            call["name"] = call["name"] or piece.name
            call["arguments"] += piece.arguments
        if chunk.text or chunk.thinking or chunk.refusal:
            out = self.line(self.words(chunk.text + chunk.refusal, chunk.thinking))
        return out

    def words(self, said: str, thought: str = "") -> dict[str, Any]:
        if self.generates:
            return {**self.head, "response": said, **({"thinking": thought} if thought else {}), "done": False}
        return {**self.head, "message": {"role": "assistant", "content": said, **({"thinking": thought} if thought else {})}, "done": False}

    def finish(self, usage: Usage, bench: Mapping[str, Any] | None = None) -> bytes:
        out = b""
        if self.calls and not self.generates:
            calls = [{"function": {"name": c["name"], "arguments": as_object(c["arguments"])}} for _, c in sorted(self.calls.items())]
            out = self.line({**self.head, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False})
        words = {"response": ""} if self.generates else {"message": {"role": "assistant", "content": ""}}
        last: dict[str, Any] = {**self.head, **words, **self.last, **tail(self.stop, usage)}
        if bench is not None:
            last["bench"] = bench
        return out + self.line(last)

    def error(self, error: CallerError) -> bytes:
        return self.line(DIALECT.write_error(error))

    def keepalive(self) -> bytes:
        """A line with no words in it: clients parse every line, so an empty one would break them."""
        return self.line(self.words(""))

    @staticmethod
    def line(body: dict[str, Any]) -> bytes:
        return orjson.dumps(body) + b"\n"
