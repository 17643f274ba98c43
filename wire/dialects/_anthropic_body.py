"""Requests in Anthropic's Messages format that came in another: a body from what was understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from wire import tool_names
from wire.conversation import NOTHING, Format, Request, Tool, ToolChoice
from wire.dialects import Outbound
from wire.dialects._anthropic_out import LEAST_BUDGET, OUTPUT_LIMIT, Wants, headers_out, wants
from wire.dialects._anthropic_turns import Block, Turns, lacks_thinking, text_block
from wire.errors import CallerError
from wire.hosted import callers_tools

CHOICES = {"auto": "auto", "required": "any", "none": "none", "tool": "tool"}
CUSTOM_SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
# Schema keywords that structured output and strict tools refuse. https://platform.claude.com/docs/en/build-with-claude/structured-outputs
REFUSED_KEYWORDS = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "maxItems", "uniqueItems",
        "minProperties", "maxProperties", "patternProperties", "propertyNames", "contains", "not", "if", "then", "else", "dependentRequired",
        "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "$schema", "$comment", "$id",
    }
)  # fmt: skip
STRING_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


def from_understood(request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
    """A body from the canonical values. Errors: CallerError for what this format cannot say and that would change the answer."""
    if request.choices > 1:
        raise CallerError("invalid_request", "n must be 1: this provider gives one answer a call. Ask several times.", field="n")
    model, dropped = wants(served_name, quirks), Dropped(request.raw or NOTHING)
    tools, hosted = callers_tools(request)
    dropped.names += hosted
    choice = request.tool_choice
    if choice and choice.allowed:
        tools = tuple(t for t in tools if t.name in choice.allowed)
    turns = Turns(tool_names.sent(request), model.system_role == "system")
    for message in request.messages:
        turns.add(message)
    system, messages = turns.finish()
    limit = request.output_limit
    if limit and model.limit and limit > model.limit:
        limit = model.limit
        dropped.say("max_tokens", "max_completion_tokens", "max_output_tokens")
    body: dict[str, Any] = {"model": served_name, "max_tokens": limit or model.limit or OUTPUT_LIMIT, "messages": messages}
    if tools:
        body["tools"] = [tool_out(t, turns.names, dropped) for t in tools]
        if written := choice_out(choice, request.parallel_tool_calls, turns.names):
            body["tool_choice"] = written
    if request.format:
        system += format_out(request.format, body, model, dropped)
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 else system
    if request.stream:
        body["stream"] = True
    thinks = reasoning_out(request, body, model, limit is not None, dropped)
    sampling_out(request, body, model, thinks, dropped)
    for name, value in (quirks.get("defaults") or {}).items():
        body.setdefault(name, value)
    return Outbound(body, headers_out(None, quirks), tuple(dict.fromkeys(dropped.names)))


@dataclass(slots=True)
class Dropped:
    """The names of what is left out, as the caller wrote them."""

    raw: Mapping[str, Any]
    names: list[str] = field(default_factory=list)

    def say(self, *names: str) -> None:
        self.names.append(next((n for n in names if n in self.raw), names[0]))


# ------------------------------------------------------------------ tools, format, thinking, sampling


def tool_out(tool: Tool, names: Mapping[str, str], dropped: Dropped) -> Block:
    description = tool.description
    if tool.kind == "custom":
        schema: Mapping[str, Any] = CUSTOM_SCHEMA
        if grammar := grammar_of(tool):
            description = f"{description}\n\nThe input must match this grammar:\n{grammar}".strip()
    else:
        schema = {**(tool.parameters or {}), "type": "object"}
        schema.setdefault("properties", {})
        if not isinstance(schema["properties"], dict):
            schema = {**schema, "properties": {}}
        if tool.strict:
            schema = kept_schema(schema, lambda word: dropped.say(f"tools: {word}"))
    out: Block = {"name": names.get(tool.name, tool.name)}
    if description:
        out["description"] = description
    out["input_schema"] = schema
    if tool.strict is not None and tool.kind != "custom":
        out["strict"] = tool.strict
    return out


def grammar_of(tool: Tool) -> str:
    """The grammar that a free-form tool's input must match, where its format tells one."""
    extra = tool.extra or NOTHING
    inner = extra.get("custom")
    told = (inner if isinstance(inner, dict) else extra).get("format")
    if not isinstance(told, dict):
        return ""
    grammar = told.get("grammar")
    found = (grammar if isinstance(grammar, dict) else told).get("definition")
    return found if isinstance(found, str) else ""


def choice_out(choice: ToolChoice | None, parallel: bool | None, names: Mapping[str, str]) -> Block | None:
    mode = CHOICES.get(choice.mode, "auto") if choice else "auto"
    if choice is None and parallel is not False:
        return None
    out: Block = {"type": mode}
    if mode == "tool" and choice:
        out["name"] = names.get(choice.name, choice.name)
    if parallel is False and mode != "none":
        out["disable_parallel_tool_use"] = True
    return out


def format_out(wanted: Format, body: dict[str, Any], model: Wants, dropped: Dropped) -> list[Block]:
    """Promises the shape; gives the system text that asks for it where the model can promise none."""
    if wanted.kind == "schema" and wanted.schema is not None and model.schema:
        schema = kept_schema(wanted.schema, lambda word: dropped.say(f"response_format: {word}"))
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return []
    asked = "Answer with one JSON object and nothing else."
    if wanted.schema is not None:
        asked += f" It must match this JSON schema:\n{orjson.dumps(dict(wanted.schema)).decode()}"
    return [text_block(asked)]


def kept_schema(schema: Mapping[str, Any], gone: Callable[[str], None]) -> dict[str, Any]:
    """A schema without the keywords that are refused; what they said is told in words, so that the model may still keep to it."""
    out: dict[str, Any] = {}
    told: list[str] = []
    for word, value in schema.items():
        if (
            word in REFUSED_KEYWORDS
            or (word == "minItems" and value not in (0, 1))
            or (word == "format" and value not in STRING_FORMATS and isinstance(value, str))
        ):
            gone(word)
            if not isinstance(value, dict | list) and not word.startswith("$"):
                told.append(f"{word}: {value}")
        elif word == "oneOf" and isinstance(value, list):
            out["anyOf"] = [kept_schema(v, gone) if isinstance(v, dict) else v for v in value]
        elif word in ("anyOf", "allOf") and isinstance(value, list):
            out[word] = [kept_schema(v, gone) if isinstance(v, dict) else v for v in value]
        elif word in ("properties", "$defs", "definitions") and isinstance(value, dict):
            out[word] = {k: kept_schema(v, gone) if isinstance(v, dict) else v for k, v in value.items()}
        elif word == "items" and isinstance(value, dict):
            out[word] = kept_schema(value, gone)
        elif word == "additionalProperties":
            if value is not False:
                gone(word)
        else:
            out[word] = value
    if out.get("type") == "object" or "properties" in out:
        out["additionalProperties"] = False
    if told:
        out["description"] = f"{out['description']} ({', '.join(told)})" if isinstance(out.get("description"), str) else f"({', '.join(told)})"
    return out


def reasoning_out(request: Request, body: dict[str, Any], model: Wants, limit_is_callers: bool, dropped: Dropped) -> bool:
    """Asks for thinking as the model knows it. Tells whether it will think."""
    asked = request.reasoning
    if asked is None:
        return False
    effort = EFFORTS.get(asked.effort, "")
    off = asked.enabled is False or asked.effort == "none" or asked.budget == 0
    if off:
        if model.thinking == "adaptive":
            body["thinking"] = {"type": "disabled"}
        return False
    forced = body.get("tool_choice", NOTHING).get("type") in ("any", "tool")
    says = ("reasoning_effort", "reasoning", "thinking", "generationConfig", "think")
    if model.thinking == "none" or (asked.effort and not effort):
        dropped.say(*says)
        return False
    if model.thinking == "adaptive":
        if not effort and asked.budget:
            effort = "low" if asked.budget <= BUDGETS["low"] else "medium" if asked.budget <= BUDGETS["medium"] else "high"
        if effort:
            body["output_config"] = {**body.get("output_config", {}), "effort": effort}
        if not forced:
            body["thinking"] = {"type": "adaptive", "display": "summarized"} if asked.summary and asked.summary != "none" else {"type": "adaptive"}
        return not forced
    budget = max(asked.budget or BUDGETS.get(asked.effort, BUDGETS["medium"]), LEAST_BUDGET)
    most = body["max_tokens"]
    if not limit_is_callers and not model.limit:
        body["max_tokens"] = most = budget + OUTPUT_LIMIT
    if budget >= most:
        budget = most // 2
    if forced or budget < LEAST_BUDGET or lacks_thinking(body["messages"]):
        body["max_tokens"] = min(most, request.output_limit or model.limit or OUTPUT_LIMIT)
        dropped.say(*says)
        return False
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return True


def sampling_out(request: Request, body: dict[str, Any], model: Wants, thinks: bool, dropped: Dropped) -> None:
    """What tunes, as far as the model takes it: none of it beside thinking or from Claude 4.7 on, never both temperature and top_p."""
    given = request.sampling
    takes = model.sampling and not thinks
    values = (
        ("temperature", None if given.temperature is None else min(max(given.temperature, 0), 1), takes),
        ("top_p", given.top_p, takes and given.temperature is None),
        ("top_k", given.top_k, takes),
        ("seed", given.seed, False),
        ("presence_penalty", given.presence_penalty, False),
        ("frequency_penalty", given.frequency_penalty, False),
    )
    for name, value, goes in values:
        if value is None:
            continue
        if goes:
            body[name] = value
        else:
            dropped.say(name)
    stops = [s for s in given.stop if s.strip()]
    if len(stops) < len(given.stop):
        dropped.say("stop", "stop_sequences")
    if stops:
        body["stop_sequences"] = stops
