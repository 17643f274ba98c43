"""Requests in Anthropic's Messages format, written: from one of the same format nearly as it came, from any other by what was understood."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from wire import tool_names
from wire.conversation import NOTHING, File, Format, Image, Message, Part, Refusal, Request, Role, Text, Thinking, Tool, ToolCall, ToolChoice, ToolResult
from wire.dialects import Outbound
from wire.errors import CallerError
from wire.hosted import callers_tools

Block = dict[str, Any]

OUTPUT_LIMIT = 4096  # this format wants one said
LEAST_BUDGET = 1024
NO_RESULT = "No result: the call was interrupted."
BEGIN = "Please begin."
ID = re.compile(r"[a-zA-Z0-9_-]+")
NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
MEDIA_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
# The first characters of an image's base64, where nobody said what it is.
IMAGE_HEADS = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.S)
CHOICES = {"auto": "auto", "required": "any", "none": "none", "tool": "tool"}
CUSTOM_SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
# From 4.7 on Claude models refuse temperature, top_p, top_k and thinking budgets, and take an effort instead.
# https://platform.claude.com/docs/en/about-claude/models/migration-guide
CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
LATE = (4, 7)
# What count_tokens takes of a request.
COUNTED = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "context_management", "compaction",
        "mcp_servers", "speed", "user_profile_id", "workspace_id",
    }
)  # fmt: skip
# Schema keywords that structured output and strict tools refuse. https://platform.claude.com/docs/en/build-with-claude/structured-outputs
REFUSED_KEYWORDS = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "maxItems", "uniqueItems",
        "minProperties", "maxProperties", "patternProperties", "propertyNames", "contains", "not", "if", "then", "else", "dependentRequired",
        "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "$schema", "$comment", "$id",
    }
)  # fmt: skip
STRING_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


# ------------------------------------------------------------------ what a model is known to want


@dataclass(frozen=True, slots=True)
class Wants:
    """What one model must be told in its own way. Shape: `thinking` is adaptive, budget or none; `limit` its largest output, 0 where unknown."""

    sampling: bool
    thinking: str
    limit: int
    system_role: str
    schema: bool


def wants(served_name: str, quirks: Mapping[str, Any]) -> Wants:
    """From the quirks, else from the name of a Claude."""
    found = CLAUDE.search(served_name)
    late = bool(found and (int(found[1]), int(found[2] or 0)) >= LATE)
    limit = quirks.get("max_tokens")
    return Wants(
        sampling=bool(quirks.get("sampling", not late)),
        thinking=said if (said := quirks.get("thinking")) in ("adaptive", "budget", "none") else "adaptive" if late else "budget",
        limit=int(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1 else 0,
        system_role=str(quirks.get("system_role") or ""),
        schema=quirks.get("structured_output") is not False,
    )


# ------------------------------------------------------------------ the same format


def same_format(request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
    """The body as it came but for the name, and what this API would refuse for good."""
    assert request.raw is not None
    model, dropped = wants(served_name, {"sampling": True, **quirks}), []
    body = {**request.raw, "model": served_name}
    if request.stream:
        body["stream"] = True
    else:
        body.pop("stream", None)
    body["messages"] = cleaned(body["messages"], fold=model.system_role == "user")
    if isinstance(body.get("system"), list) and any(is_blank(b) for b in body["system"]):
        body["system"] = [b for b in body["system"] if not is_blank(b)]
    if not body.get("tools"):
        for name in ("tools", "tool_choice"):
            body.pop(name, None)
    if not model.sampling:
        dropped += [name for name in ("temperature", "top_p", "top_k") if body.pop(name, None) is not None]
    if body.get("max_tokens") is None:
        body["max_tokens"] = model.limit or OUTPUT_LIMIT
    elif model.limit and isinstance(body["max_tokens"], int | float) and body["max_tokens"] > model.limit:
        body["max_tokens"] = model.limit
        dropped.append("max_tokens")
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        if lacks_thinking(body["messages"]):
            without_thinking_config(body)
            dropped.append("thinking")
        elif isinstance(budget := thinking.get("budget_tokens"), int) and isinstance(most := body["max_tokens"], int) and budget >= most > LEAST_BUDGET:
            body["thinking"] = {**thinking, "budget_tokens": max(LEAST_BUDGET, most // 2)}
    for name, value in (quirks.get("defaults") or {}).items():
        body.setdefault(name, value)
    return Outbound(body, headers_out(request.headers, quirks), tuple(dropped))


def headers_out(given: Mapping[str, str] | None, quirks: Mapping[str, Any]) -> dict[str, str]:
    """The caller's betas and the endpoint's own, each once; the caller's version of the API."""
    given = dict(given or {})
    if isinstance(more := quirks.get("betas"), str) and more.strip():
        said = f"{given.get('anthropic-beta', '')},{more}"
        given["anthropic-beta"] = ",".join(dict.fromkeys([v for value in said.split(",") if (v := value.strip())]))
    return given


def without_thinking_config(body: dict[str, Any]) -> None:
    """Switches thinking off, and the clearing of old thinking that is refused without it."""
    del body["thinking"]
    management = body.get("context_management")
    if isinstance(management, dict) and isinstance(edits := management.get("edits"), list):
        kept = [e for e in edits if not (isinstance(e, dict) and str(e.get("type")).startswith("clear_thinking"))]
        body["context_management"] = {**management, "edits": kept}


def is_blank(block: Any) -> bool:
    """A text block without a visible character: providers write them, and refuse to read them back."""
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str) and not block["text"].strip()


def is_unsigned(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")


def is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def cleaned(messages: list[Any], fold: bool = False) -> list[Any]:
    """Turns without what poisons a conversation: blank texts, unsigned thinking, a second result for one call, a call without any.

    What needs no change is the caller's own object. `fold` makes user turns of system turns, for models that know no other.
    """
    turns: list[Any] = []
    for message in messages:
        if fold and message["role"] == "system":
            message = {"role": "user", "content": folded(message.get("content"))}
        content = message.get("content")
        if isinstance(content, list):
            blocks = settled(content)
            if blocks is not content:
                message = {**message, "content": blocks}
            if not blocks:
                continue
        turns.append(message)
    out: list[Any] = []
    for at, message in enumerate(turns):
        if message["role"] != "assistant" and (at == 0 or turns[at - 1]["role"] == "assistant"):
            run = turns[at : next((i for i in range(at, len(turns)) if turns[i]["role"] == "assistant"), len(turns))]
            out += answered(run, calls_of(out[-1]) if out else [], merge=fold)
        elif message["role"] == "assistant":
            if out and out[-1]["role"] == "assistant" and (calls := calls_of(out[-1])):
                out.append({"role": "user", "content": [no_result(i) for i in calls]})
            out.append(message)
    if out and out[-1]["role"] == "assistant" and (calls := calls_of(out[-1])):
        out.append({"role": "user", "content": [no_result(i) for i in calls]})
    return out or messages


def folded(content: Any) -> list[Block]:
    said = content if isinstance(content, str) else "\n\n".join(b["text"] for b in content or [] if isinstance(b.get("text"), str))
    return [text_block(as_system(said))] if said.strip() else []


def calls_of(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    return [b["id"] for b in content if b.get("type") == "tool_use"] if isinstance(content, list) else []


def answered(run: list[Any], calls: list[str], merge: bool) -> list[Any]:
    """The turns between two of the assistant's, with one result for each of its calls at their beginning."""
    users = [t for t in run if t["role"] == "user"]
    results = [[b.get("tool_use_id") for b in as_blocks(t["content"]) if is_result(b)] for t in users]
    lost = [no_result(i) for i in calls if not any(i in given for given in results)]
    if not lost and not any(results[1:]) and not (merge and len(users) > 1):
        return run
    first = {"role": "user", "content": settled([*[b for t in users for b in as_blocks(t["content"])], *lost])}
    rest = [t for t in run if t["role"] != "user"]
    return [{**users[0], **first} if users else first, *rest]


def as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return list(content)


def settled(blocks: list[Any]) -> list[Any]:
    """The blocks of one turn: nothing blank or unsigned, results first, one a call and that the last. The same list where all is well."""
    kept = [b for b in blocks if not (is_blank(b) or is_unsigned(b))]
    results = {b.get("tool_use_id"): b for b in kept if is_result(b)}
    if results:
        kept = [*[b for b in kept if is_result(b) and results[b.get("tool_use_id")] is b], *[b for b in kept if not is_result(b)]]
        kept = [with_clean_content(b) if is_result(b) else b for b in kept]
    return blocks if len(kept) == len(blocks) and all(a is b for a, b in zip(kept, blocks, strict=True)) else kept


def with_clean_content(result: Block) -> Block:
    content = result.get("content")
    if isinstance(content, list) and any(is_blank(b) for b in content):
        return {**result, "content": [b for b in content if not is_blank(b)]}
    return result


def no_result(call_id: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}


def as_system(text: str) -> str:
    """System text inside a user's turn, where a model knows no better place for it."""
    return f"<system>\n{text}\n</system>"


def lacks_thinking(turns: list[Any]) -> bool:
    """Whether a tool loop is under way whose last assistant turn does not begin with thinking: budgeted thinking is then refused."""
    last = next((t for t in reversed(turns) if t.get("role") == "assistant"), None)
    content = last.get("content") if last else None
    if not isinstance(content, list) or not any(b.get("type") == "tool_use" for b in content):
        return False
    after = turns[-1].get("content")
    in_loop = isinstance(after, list) and any(is_result(b) for b in after)
    return in_loop and content[0].get("type") not in ("thinking", "redacted_thinking")


# ------------------------------------------------------------------ another format


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


class Turns:
    """Builds the system prompt and the turns: user and assistant by turns, results first, every call answered once, ids that this format takes."""

    def __init__(self, names: Mapping[str, str], mid_system: bool) -> None:
        self.names, self.mid_system = names, mid_system
        self.system: list[Block] = []
        self.turns: list[dict[str, Any]] = []
        self.ids: dict[str, str] = {}  # the caller's id to the one sent, of the latest call of that id
        self.used: set[str] = set()
        self.unnamed: list[str] = []  # calls without an id of their own, not yet answered

    def add(self, message: Message) -> None:
        if message.role is Role.SYSTEM:
            self.add_system([text_block(p.text) for p in message.parts if isinstance(p, Text) and p.text.strip()])
        elif message.role is Role.ASSISTANT:
            if blocks := self.assistant(message.parts):
                self.put("assistant", blocks)
        else:
            blocks = [b for p in message.parts for b in self.user(p)]
            if blocks:
                self.put("user", blocks)

    def add_system(self, blocks: list[Block]) -> None:
        if not blocks:
            return
        if not self.turns:
            self.system += blocks
        elif self.mid_system and self.turns[-1]["role"] != "assistant":
            self.put("system", blocks)
        else:
            self.put("user", [text_block(as_system("\n\n".join(b["text"] for b in blocks)))])

    def put(self, role: str, blocks: list[Block]) -> None:
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["content"] += blocks
        else:
            self.turns.append({"role": role, "content": blocks})

    def assistant(self, parts: Iterable[Part]) -> list[Block]:
        thinking: list[Block] = []
        rest: list[Block] = []
        for part in parts:
            if isinstance(part, Thinking):
                # Another format's client cannot vouch for a signature: only thinking that was kept here and put back is this provider's own.
                if part.extra and part.extra.get("restored") and (part.redacted or part.signature):
                    thinking.append(
                        {"type": "redacted_thinking", "data": part.redacted}
                        if part.redacted
                        else {"type": "thinking", "thinking": part.text, "signature": part.signature}
                    )
            elif isinstance(part, ToolCall):
                rest.append(self.call(part))
            elif isinstance(part, Text | Refusal) and part.text.strip():
                rest.append(text_block(part.text))
        return [*thinking, *rest]

    def call(self, part: ToolCall) -> Block:
        wanted = part.id if ID.fullmatch(part.id) else NOT_IN_IDS.sub("_", part.id) or "toolu_1"
        sent, count = wanted, 1
        while sent in self.used:
            count += 1
            sent = f"{wanted}_{count}"
        self.used.add(sent)
        if part.id:
            self.ids[part.id] = sent
        else:
            self.unnamed.append(sent)
        return {"type": "tool_use", "id": sent, "name": self.names.get(part.name, part.name), "input": input_of(part)}

    def result(self, part: ToolResult) -> Block:
        sent = self.ids.get(part.call_id) or NOT_IN_IDS.sub("_", part.call_id)
        if not part.call_id and self.unnamed:
            sent = self.unnamed.pop(0)
        block: Block = {"type": "tool_result", "tool_use_id": sent or "toolu_1"}
        inner = [b for p in part.parts for b in self.user(p)]
        if inner:
            block["content"] = inner[0]["text"] if len(inner) == 1 and inner[0]["type"] == "text" else inner
        if part.is_error:
            block["is_error"] = True
        return block

    def user(self, part: Part) -> list[Block]:
        if isinstance(part, ToolResult):
            return [self.result(part)]
        if isinstance(part, Image):
            return [image_out(part)]
        if isinstance(part, File):
            return [file_out(part)]
        said = getattr(part, "text", "")
        return [text_block(said)] if said.strip() else []

    def finish(self) -> tuple[list[Block], list[dict[str, Any]]]:
        if not self.turns:
            # This format wants a turn: what was to be said stands in the last system text.
            self.put("user", [self.system.pop()] if self.system else [text_block(BEGIN)])
        if self.turns[0]["role"] == "assistant":
            self.turns.insert(0, {"role": "user", "content": [text_block(BEGIN)]})
        turns = cleaned(self.turns)
        last = turns[-1]
        if last["role"] == "assistant" and last["content"][-1].get("type") == "text":
            # An answer begun by the caller must not end in white space.
            *before, end = last["content"]
            turns[-1] = {**last, "content": [*before, {**end, "text": end["text"].rstrip()}]}
        return self.system, turns


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def input_of(call: ToolCall) -> Any:
    """A call's arguments as an object, whatever the model that made it wrote."""
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        found = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        found = None
    return found if isinstance(found, dict) else {"arguments": call.arguments}


def image_out(part: Image) -> Block:
    if part.url:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    media = MEDIA_TYPES.get(part.media_type, part.media_type)
    if not media or media == "application/octet-stream":
        media = next((kind for head, kind in IMAGE_HEADS if part.data.startswith(head)), "image/png")
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": part.data}}


def file_out(part: File) -> Block:
    """A document: PDF by its bytes or address, text as text. Errors: CallerError for what this format has no block for."""
    media, data = part.media_type, part.data
    if found := DATA_URL.match(data):
        media, data = found[1] or media, found[2]
    source: dict[str, Any]
    if part.kind == "file" and part.url:
        source = {"type": "url", "url": part.url}
    elif part.kind == "file" and data and media.startswith("text/"):
        try:
            source = {"type": "text", "media_type": "text/plain", "data": base64.b64decode(data).decode("utf-8", "replace")}
        except (binascii.Error, ValueError):
            raise CallerError("invalid_request", "A file in messages is not valid base64.", field="messages") from None
    elif part.kind == "file" and data and media in ("", "application/pdf"):
        source = {"type": "base64", "media_type": "application/pdf", "data": data}
    else:
        what = part.kind if part.kind != "file" else media or "a file named by an id"
        raise CallerError(
            "invalid_request", f"messages hold {what}, which this provider cannot take. It takes PDF and text by their bytes or address.", field="messages"
        )
    return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}


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
