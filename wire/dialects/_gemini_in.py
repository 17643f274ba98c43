"""Requests in Gemini's format, read: fields in camelCase and in snake_case, as Google's own API takes both."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import orjson

from wire.conversation import File, Format, Image, Message, Part, Reasoning, Request, Role, Sampling, Text, Thinking, Tool, ToolCall, ToolChoice, ToolResult
from wire.dialects import Inbound
from wire.dialects._gemini_schema import as_json_schema
from wire.errors import CallerError
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_number, optional_text, text
from wire.hosted import CALLERS

# Where the name of a model begins, the longer first.
PLACES = ("/v1beta/models/", "/v1/models/", "/models/", "/v1beta/", "/v1/")
SHARED = frozenset({"/v1/"})  # other APIs of this server live there too
METHODS = ("generateContent", "streamGenerateContent", "countTokens")
ENDINGS = tuple(f":{method}" for method in METHODS)
READ = frozenset({"contents", "systemInstruction", "generationConfig", "tools", "toolConfig", "cachedContent", "model", "generateContentRequest"})
CONFIG_READ = frozenset(
    {
        "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType", "responseSchema", "responseJsonSchema",
        "thinkingConfig", "seed", "presencePenalty", "frequencyPenalty", "responseModalities",
    }
)  # fmt: skip
ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.TOOL, "tool": Role.TOOL, "": Role.USER}
MODES = {"ANY": "required", "NONE": "none"}
SAFE_NAME = re.compile(r"[\w$.\-\[\]]{1,80}", re.ASCII)
# A result's one field, where all it holds is a text.
SAID = ("output", "result", "content", "error")


@cache
def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def safe(name: str) -> str:
    """A field's name that may stand in a header."""
    return name if SAFE_NAME.fullmatch(name) else "a field"


class Box:
    """A JSON object whose fields are asked for by their camelCase names. Errors: CallerError that names a field as the caller wrote it."""

    __slots__ = ("body", "path")

    def __init__(self, value: Any, path: str = "") -> None:
        self.body = obj(value, path or "the body")
        self.path = f"{path}." if path else ""

    def key(self, name: str) -> str:
        return name if self.body.get(name) is not None or snake(name) not in self.body else snake(name)

    def at(self, name: str) -> str:
        return self.path + self.key(name)

    def get(self, name: str) -> Any:
        return self.body.get(self.key(name))

    def text(self, name: str) -> str:
        return optional_text(self.body, self.key(name), self.path)

    def truth(self, name: str) -> bool | None:
        return optional_bool(self.body, self.key(name), self.path)

    def number(self, name: str) -> float | None:
        return optional_number(self.body, self.key(name), self.path)

    def whole(self, name: str, least: int | None = None) -> int | None:
        """Digits in a text are a number too: so Google's JSON writes large ones."""
        value = self.get(name)
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}", value, re.ASCII):
            value = int(value)
        return optional_int({self.key(name): value}, self.key(name), self.path, least=least)

    def box(self, name: str) -> Box | None:
        value = self.get(name)
        return None if value is None else Box(value, self.at(name))

    def boxes(self, name: str) -> list[Box]:
        """A list of objects; one alone counts as a list."""
        return [Box(value, path) for value, path in self.many(name)]

    def many(self, name: str) -> list[tuple[Any, str]]:
        value, path = self.get(name), self.at(name)
        if value is None:
            return []
        if isinstance(value, dict):
            return [(value, path)]
        return [(v, f"{path}[{i}]") for i, v in enumerate(array(value, path))]


def dumped(value: Any) -> str:
    """JSON text; also of whole numbers that the fast writer has no room for."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------ the request


def read_path(path: str) -> tuple[str, str]:
    """The model and the method that a path names. Errors: CallerError 404 for a method that there is not."""
    rest = next((path[len(place) :] for place in PLACES if path.startswith(place)), path)
    name, colon, method = rest.rpartition(":")
    if not colon or method not in METHODS:
        raise CallerError(
            "model_not_found",
            f"There is nothing here. Gemini's format is answered at /v1beta/models/<model> with :{', :'.join(METHODS)}.",
            status=404,
            field="model",
        )
    return model_name({"model": name}), method


def read_request(inbound: Inbound, dialect: str) -> Request:
    name, method = read_path(inbound.path)
    body = Box(inbound.body)
    if method == "countTokens" and (inner := body.box("generateContentRequest")):
        body = inner
    if body.get("contents") is None:
        raise missing(body.at("contents"))
    reading = Reading()
    for field_name in body.body:
        if camel(field_name) not in READ:
            reading.note(field_name)
    system = read_system(body, reading)
    messages = reading.contents(body)
    if not messages:
        raise CallerError("invalid_request", f"{body.at('contents')} must hold at least one content.", field=body.at("contents"))
    config = body.box("generationConfig") or Box({}, body.at("generationConfig"))
    for field_name in config.body:
        if camel(field_name) not in CONFIG_READ:
            reading.note(f"{body.key('generationConfig')}.{field_name}")
    tools = read_tools(body, reading)
    return Request(
        dialect=dialect,
        model=name,
        messages=(*system, *messages),
        stream=method == "streamGenerateContent",
        output_limit=config.whole("maxOutputTokens") or None,
        sampling=read_sampling(config),
        format=read_format(config, reading),
        tools=tools,
        tool_choice=read_choice(body, reading),
        reasoning=read_thinking(config.box("thinkingConfig")),
        choices=config.whole("candidateCount") or 1,
        raw=reading.raw(body.body),
        usage_wanted=True,
        operation="count" if method == "countTokens" else "ask",
        unread=tuple(reading.unread),
        bound=bound_to(body, config),
        stream_form="" if "sse" in parse_qs(inbound.query).get("alt", []) else "array",
    )


def bound_to(body: Box, config: Box) -> str:
    """What only a provider of this format can honour: contents that lie at Google, answers that are no text."""
    if body.get("cachedContent"):
        body.text("cachedContent")
        return body.at("cachedContent")
    kinds = [text(v, path).upper() for v, path in config.many("responseModalities")]
    return config.at("responseModalities") if kinds and "TEXT" not in kinds else ""


def read_system(body: Box, reading: Reading) -> tuple[Message, ...]:
    value = body.get("systemInstruction")
    if value is None:
        return ()
    if isinstance(value, str):
        parts: tuple[Part, ...] = (Text(value),) if value else ()
    else:
        parts = tuple(reading.parts(Box(value, body.at("systemInstruction"))))
    return (Message(Role.SYSTEM, parts),) if parts else ()


# ------------------------------------------------------------------ the conversation


@dataclass(slots=True)
class Reading:
    """What reading one request gathers.

    Shape: `unread` names by the caller's spelling; `unanswered` the calls that no result has answered yet, `placed` the ids made up for some;
    `answered` the ids of those that one has; `said` the last result by its tool's name; `doubled` the parts, by their identity, that say one again.
    """

    unread: dict[str, None] = field(default_factory=dict)
    unanswered: list[ToolCall] = field(default_factory=list)
    placed: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    said: dict[str, Any] = field(default_factory=dict)
    doubled: set[int] = field(default_factory=set)

    def note(self, name: str) -> None:
        self.unread[safe(name)] = None

    def contents(self, body: Box) -> list[Message]:
        messages = []
        for content in body.boxes("contents"):
            said = content.text("role")
            role = ROLES.get(said)
            if role is None:
                raise CallerError("invalid_request", f"{content.at('role')} must be user or model.", field=content.at("role"))
            parts = self.parts(content)
            if not parts and content.get("parts"):
                continue
            if role is not Role.ASSISTANT:
                role = Role.TOOL if parts and all(isinstance(p, ToolResult) for p in parts) else Role.USER
            messages.append(Message(role, tuple(parts)))
        return messages

    def parts(self, content: Box) -> list[Part]:
        return [part for box in content.boxes("parts") for part in self.part(box)]

    def part(self, box: Box) -> list[Part]:
        signature = box.text("thoughtSignature")
        if box.get("text") is not None:
            said = box.text("text")
            if box.get("thought") is True:
                return [Thinking(said, signature)] if said or signature else []
            return [Text(said, {"thoughtSignature": signature} if signature else None)] if said else []
        if call := box.box("functionCall"):
            return [self.call(call, signature)]
        if result := box.box("functionResponse"):
            return self.result(result, box.body)
        if media := box.box("inlineData") or box.box("fileData"):
            return [read_media(media)]
        if code := box.box("executableCode"):
            return [Text(code_text(code.text("code"), code.text("language").lower()))]
        if outcome := box.box("codeExecutionResult"):
            return [Text(code_text(outcome.text("output")))]
        for name in box.body.keys() - {"thought", "thoughtSignature", "thought_signature"}:
            self.note(f"{box.path}{name}")
        return []

    def call(self, box: Box, signature: str) -> ToolCall:
        arguments = obj(box.get("args"), box.at("args")) if box.get("args") is not None else {}
        # Without an id a call is known by its place, which a client repeats with its history.
        call_id = box.text("id")
        if not call_id:
            call_id = f"call_{len(self.placed)}"
            self.placed.add(call_id)
        call = ToolCall(call_id, text(box.get("name"), box.at("name")), dumped(arguments), signature=signature)
        self.unanswered.append(call)
        self.answered.discard(call.id)
        return call

    def result(self, box: Box, part: Mapping[str, Any]) -> list[Part]:
        """One result, unless it says again what an earlier one said: histories taken up again repeat theirs."""
        call_id, name = box.text("id"), box.text("name")
        response = box.get("response")
        call = next((c for c in self.unanswered if c.id == call_id), None) if call_id else None
        if call is None and (not call_id or call_id not in self.answered):
            call = next((c for c in self.unanswered if c.name == name and (not call_id or c.id in self.placed)), None)
        if call:
            self.unanswered.remove(call)
            call_id = call.id
        elif call_id in self.answered if call_id else self.said.get(name, self) == response:
            self.doubled.add(id(part))
            return []
        self.answered.add(call_id or f"call_{name}")
        self.said[name] = response
        said, failed = result_text(response)
        parts: list[Part] = [Text(said)] if said else []
        for inner in box.boxes("parts"):
            if media := inner.box("inlineData") or inner.box("fileData"):
                parts.append(read_media(media))
        return [ToolResult(call_id or f"call_{name}", tuple(parts), is_error=failed, name=name or (call.name if call else ""))]

    def raw(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body as it came, without the results that stood in it twice."""
        if not self.doubled or not isinstance(body.get("contents"), list):
            return body
        contents = []
        for content in body["contents"]:
            if isinstance(content.get("parts"), list):
                kept = [p for p in content["parts"] if id(p) not in self.doubled]
                if len(kept) < len(content["parts"]):
                    if not kept:
                        continue
                    content = {**content, "parts": kept}
            contents.append(content)
        return {**body, "contents": contents}


def result_text(response: Any) -> tuple[str, bool]:
    """What a tool answered, as text, and whether that is an error."""
    if response is None:
        return "", False
    if isinstance(response, str):
        return response, False
    if isinstance(response, dict) and len(response) == 1:
        name, value = next(iter(response.items()))
        if name in SAID:
            return value if isinstance(value, str) else dumped(value), name == "error"
    return dumped(response), False


def read_media(box: Box) -> Part:
    """Bytes, or a file by its address. A file that lies at Google is one that only Google can look at, so it is no image by address."""
    media = box.text("mimeType").lower()
    address, name = box.text("fileUri"), box.text("displayName")
    if address:
        return File("audio" if media.startswith("audio/") else "file", media_type=media, url=address, name=name)
    data = box.get("data")
    if data is None:
        raise missing(box.at("data"))
    data = text(data, box.at("data"))
    if media.startswith("image/"):
        return Image(media_type={"image/jpg": "image/jpeg"}.get(media, media), data=standard(data))
    return File("audio" if media.startswith("audio/") else "file", media_type=media, data=standard(data), name=name)


def standard(data: str) -> str:
    """Base64 in its usual letters: Google's own clients write the ones that fit into addresses."""
    return data.replace("-", "+").replace("_", "/") if "-" in data or "_" in data else data


def code_text(code: str, language: str = "") -> str:
    return f"\n```{language}\n{code.rstrip()}\n```\n"


# ------------------------------------------------------------------ what else is asked for


def read_sampling(config: Box) -> Sampling:
    top_k = config.number("topK")
    return Sampling(
        temperature=config.number("temperature"),
        top_p=config.number("topP"),
        top_k=None if top_k is None or abs(top_k) > 2**31 else int(top_k),
        stop=tuple([text(v, path) for v, path in config.many("stopSequences")]),
        seed=config.whole("seed"),
        presence_penalty=config.number("presencePenalty"),
        frequency_penalty=config.number("frequencyPenalty"),
    )


def read_format(config: Box, reading: Reading) -> Format | None:
    media = config.text("responseMimeType")
    schema = config.box("responseJsonSchema") or config.box("responseSchema")
    if media not in ("", "application/json", "text/plain"):
        reading.note(config.at("responseMimeType"))
        return None
    if schema:
        return Format("schema", as_json_schema(schema.body), "answer")
    return Format("json") if media == "application/json" else None


def read_tools(body: Box, reading: Reading) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for box in body.boxes("tools"):
        for function in box.boxes("functionDeclarations"):
            schema = function.box("parametersJsonSchema") or function.box("parameters")
            tools.append(
                Tool(
                    name=text(function.get("name"), function.at("name")),
                    description=function.text("description"),
                    parameters=None if schema is None else as_json_schema(schema.body),
                )
            )
        for name, value in box.body.items():
            if camel(name) != "functionDeclarations" and value is not None:
                # Google's own servers run these, so no other provider can.
                tools.append(Tool(name=safe(name), kind=safe(camel(name)) if name not in CALLERS else "hosted"))
    return tuple(tools)


def read_choice(body: Box, reading: Reading) -> ToolChoice | None:
    config = body.box("toolConfig")
    if config is None:
        return None
    for name in config.body:
        if camel(name) != "functionCallingConfig":
            reading.note(f"{body.key('toolConfig')}.{name}")
    calling = config.box("functionCallingConfig")
    if calling is None:
        return None
    mode = MODES.get(calling.text("mode").upper(), "auto")
    allowed = tuple(text(v, path) for v, path in calling.many("allowedFunctionNames"))
    if mode == "required" and len(allowed) == 1:
        return ToolChoice("tool", name=allowed[0])
    return ToolChoice(mode, allowed=() if mode == "none" else allowed)


def read_thinking(box: Box | None) -> Reasoning | None:
    """A budget of 0 switches thinking off, -1 leaves it to the model."""
    if box is None:
        return None
    budget, level = box.whole("thinkingBudget"), box.text("thinkingLevel").lower()
    if level == "thinking_level_unspecified":
        level = ""
    shown = box.truth("includeThoughts")
    if budget is None and not level and not shown:
        return None
    return Reasoning(
        effort=level,
        budget=budget if budget is not None and budget >= 0 else None,
        enabled=None if budget is None and not level else budget != 0,
        summary="auto" if shown else "",
    )
