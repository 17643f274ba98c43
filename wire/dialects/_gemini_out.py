"""Requests in Gemini's format, written: from one of the same format nearly as it came, from any other by what was understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from wire import tool_names
from wire.conversation import NOTHING, Format, Request, Tool
from wire.dialects import Outbound
from wire.dialects._gemini_in import Box, camel, snake
from wire.dialects._gemini_schema import as_parameters
from wire.dialects._gemini_turns import UNSIGNED, Turns
from wire.dialects._gemini_wants import BUDGETS, Dropped, Wants, config_out, wants
from wire.errors import CallerError
from wire.hosted import callers_tools

Json = dict[str, Any]

CUSTOM_SCHEMA = {"type": "OBJECT", "properties": {"input": {"type": "STRING"}}, "required": ["input"]}
CONFIG = frozenset(
    {
        "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType", "responseSchema", "responseJsonSchema",
        "responseModalities", "thinkingConfig", "seed", "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "mediaResolution",
        "speechConfig",
    }
)  # fmt: skip


def resource(served_name: str) -> str:
    return served_name if served_name.startswith(("models/", "tunedModels/")) else f"models/{served_name}"


# ------------------------------------------------------------------ the same format


def same_format(request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
    """The body as it came but for the name, and what this API would refuse for good."""
    assert request.raw is not None
    model, dropped = wants(served_name, quirks), Dropped(NOTHING)
    body = dict(request.raw)
    if body.get("model") is not None:
        body["model"] = resource(served_name)
    if not body.get("tools"):
        for name in ("tools", "toolConfig", "tool_config"):
            body.pop(name, None)
    if model.signatures and isinstance(body.get("contents"), list):
        body["contents"] = [signed(c) for c in body["contents"]]
    config_key = Box(body).key("generationConfig")
    if isinstance(config := body.get(config_key), dict):
        body[config_key] = fitted(config, model, dropped, config_key)
    add_defaults(body, config_key, quirks)
    return Outbound(body, dropped=tuple(dropped.names))


def signed(content: Any) -> Any:
    """A model's turn whose first call bears a signature: calls that another provider made have none, and are refused without."""
    parts = content.get("parts") if isinstance(content, dict) and content.get("role") == "model" else None
    if not isinstance(parts, list):
        return content
    calls = [i for i, p in enumerate(parts) if Box(p).get("functionCall") is not None]
    if not calls or any(Box(parts[i]).get("thoughtSignature") for i in calls):
        return content
    return {**content, "parts": [{**p, "thoughtSignature": UNSIGNED} if i == calls[0] else p for i, p in enumerate(parts)]}


def fitted(config: Json, model: Wants, dropped: Dropped, place: str) -> Json:
    """Limits and thinking as this very model takes them; the caller's own object where it takes all."""
    box, out = Box(config), dict(config)
    if model.limit and (box.whole("maxOutputTokens") or 0) > model.limit:
        out[box.key("maxOutputTokens")] = model.limit
        dropped.say(f"{place}.{box.key('maxOutputTokens')}")
    thinking = box.box("thinkingConfig")
    if thinking and model.thinking == "none":
        del out[box.key("thinkingConfig")]
        dropped.say(f"{place}.{box.key('thinkingConfig')}")
    elif thinking and model.thinking == "budget" and (level := thinking.text("thinkingLevel").lower()):
        rest = {k: v for k, v in thinking.body.items() if k != thinking.key("thinkingLevel")}
        if level in BUDGETS and thinking.get("thinkingBudget") is None:
            rest["thinkingBudget"] = BUDGETS[level]
        out[box.key("thinkingConfig")] = rest
    return out


def add_defaults(body: Json, config_key: str, quirks: Mapping[str, Any]) -> None:
    """What an endpoint's roster adds where the caller said nothing: fields of the body, or of its generation config by any spelling."""
    defaults = quirks.get("defaults")
    for name, value in (defaults if isinstance(defaults, dict) else NOTHING).items():
        if camel(name) == "generationConfig" and isinstance(value, dict):
            given = value
        elif camel(name) in CONFIG:
            given = {camel(name): value}
        else:
            body.setdefault(name, value)
            continue
        config = dict(body.get(config_key) or {})
        for key, one in given.items():
            if config.get(camel(key)) is None and config.get(snake(camel(key))) is None:
                config[key] = one
        body[config_key] = config


# ------------------------------------------------------------------ another format


def from_understood(request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
    """A body from the canonical values. Errors: CallerError for what this format cannot say and that would change the answer."""
    if request.choices > 1:
        raise CallerError("invalid_request", "n must be 1: this provider is asked for one answer a call. Ask several times.", field="n")
    model, dropped = wants(served_name, quirks), Dropped(request.raw or NOTHING)
    tools, hosted = callers_tools(request)
    for name in hosted:
        dropped.names[name] = None
    choice = request.tool_choice
    if choice and choice.allowed and choice.mode != "required":
        tools = tuple(t for t in tools if t.name in choice.allowed)
    turns = Turns(tool_names.sent(request), model)
    for message in request.messages:
        turns.add(message)
    body: Json = {}
    # Before Gemini 3 a promised shape and tools exclude each other.
    promised = model.schema and not (tools and model.thinking != "level")
    if request.format and not promised:
        turns.system.append({"text": json_prompt(request.format)})
    system, contents = turns.finish()
    body["contents"] = contents
    if system:
        body["systemInstruction"] = {"parts": system}
    if tools:
        body["tools"] = [{"functionDeclarations": [declaration(t, turns.names, dropped) for t in tools]}]
        if calling := calling_out(request, turns.names):
            body["toolConfig"] = {"functionCallingConfig": calling}
    if request.parallel_tool_calls is False:
        dropped.say("parallel_tool_calls")
    config = config_out(request, model, promised, dropped)
    if config:
        body["generationConfig"] = config
    add_defaults(body, "generationConfig", quirks)
    return Outbound(body, dropped=tuple(dropped.names))


def json_prompt(wanted: Format) -> str:
    asked = "Answer with one JSON object and nothing else."
    if wanted.schema is not None:
        asked += f" It must match this JSON schema:\n{orjson.dumps(dict(wanted.schema)).decode()}"
    return asked


# ------------------------------------------------------------------ tools


def declaration(tool: Tool, names: Mapping[str, str], dropped: Dropped) -> Json:
    out: Json = {"name": names.get(tool.name, tool.name)}
    if tool.description:
        out["description"] = tool.description
    if tool.kind == "custom":
        out["parameters"] = CUSTOM_SCHEMA
        if grammar := grammar_of(tool):
            out["description"] = f"{tool.description}\n\nThe input must match this grammar:\n{grammar}".strip()
    elif tool.parameters and (parameters := as_parameters(tool.parameters, lambda word: dropped.word("tools", word))):
        out["parameters"] = parameters
    return out


def grammar_of(tool: Tool) -> str:
    """The grammar that a free-form tool's input must match, where its format tells one."""
    extra = tool.extra or NOTHING
    inner = extra.get("custom")
    told = (inner if isinstance(inner, dict) else extra).get("format")
    grammar = told.get("grammar") if isinstance(told, dict) else None
    found = (grammar if isinstance(grammar, dict) else told or {}).get("definition") if isinstance(told, dict) else None
    return found if isinstance(found, str) else ""


def calling_out(request: Request, names: Mapping[str, str]) -> Json | None:
    choice = request.tool_choice
    if choice is None or choice.mode == "auto":
        return None
    if choice.mode == "none":
        return {"mode": "NONE"}
    allowed = [choice.name] if choice.mode == "tool" else list(choice.allowed)
    return {"mode": "ANY", **({"allowedFunctionNames": [names.get(n, n) for n in allowed]} if allowed else {})}
