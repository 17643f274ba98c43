"""Requests in Gemini's format, written: from one of the same format nearly as it came, from any other by what was understood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from wire import tool_names
from wire.conversation import NOTHING, File, Format, Image, Message, Part, Refusal, Request, Role, Text, Thinking, Tool, ToolCall, ToolResult
from wire.dialects import Outbound
from wire.dialects._gemini_in import Box, camel, safe, snake
from wire.dialects._gemini_schema import as_google_schema, as_parameters
from wire.errors import CallerError
from wire.hosted import callers_tools
from wire.jsontext import parse_upstream

Json = dict[str, Any]

# What Google's documentation gives for calls that its models did not make and that hence bear no signature.
# https://ai.google.dev/gemini-api/docs/thought-signatures
UNSIGNED = "skip_thought_signature_validator"
NO_RESULT = "No result: the call was interrupted."
BEGIN = "Please begin."
CUSTOM_SCHEMA = {"type": "OBJECT", "properties": {"input": {"type": "STRING"}}, "required": ["input"]}
VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
NEVER_THINKS = re.compile(r"(?:^|/)(?:gemma|learnlm)")
KNOWS_NO_SYSTEM = re.compile(r"(?:^|/)gemma-[123]")
# Units: tokens. As Google's own OpenAI-compatible side reads efforts.
BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
LEVELS = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
LEAST_PRO_BUDGET = 128  # a 2.5 Pro cannot be kept from thinking
MOST_STOPS = 5
IMAGE_HEADS = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
AUDIO_TYPES = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.S)
CONFIG = frozenset(
    {
        "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType", "responseSchema", "responseJsonSchema",
        "responseModalities", "thinkingConfig", "seed", "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "mediaResolution",
        "speechConfig",
    }
)  # fmt: skip


# ------------------------------------------------------------------ what a model is known to want


@dataclass(frozen=True, slots=True)
class Wants:
    """What one model must be told in its own way. Shape: `thinking` is level, budget or none; `limit` its largest output, 0 where unknown."""

    thinking: str
    signatures: bool
    limit: int
    system: bool
    schema: bool
    ids: bool
    pro: bool
    flash: bool


def wants(served_name: str, quirks: Mapping[str, Any]) -> Wants:
    """From the quirks, else from the name: a name that tells nothing is taken for a model of today."""
    name = served_name.lower()
    found = VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else None
    thinks = "none" if NEVER_THINKS.search(name) else "level" if version is None or version >= (3, 0) else "budget" if version >= (2, 5) else "none"
    limit = quirks.get("max_tokens")
    return Wants(
        thinking=said if (said := quirks.get("thinking")) in ("level", "budget", "none") else thinks,
        signatures=bool(quirks.get("thought_signatures", thinks == "level")),
        limit=int(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1 else 0,
        system=quirks.get("system_role") != "user" and not KNOWS_NO_SYSTEM.search(name),
        schema=quirks.get("structured_output") is not False,
        ids=quirks.get("call_ids") is not False,
        pro="pro" in name,
        flash="flash" in name,
    )


@dataclass(slots=True)
class Dropped:
    """The names of what is left out, as the caller wrote them, fit for a header."""

    raw: Mapping[str, Any]
    names: dict[str, None] = field(default_factory=dict)

    def say(self, *names: str) -> None:
        self.names[next((n for n in names if n in self.raw), names[0])] = None

    def word(self, place: str, word: str) -> None:
        self.names[f"{place}: {safe(word)}"] = None


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


class Turns:
    """Builds the system instruction and the turns: results right behind their calls, in their order, one each; thinking stays with whoever thought it."""

    def __init__(self, names: Mapping[str, str], model: Wants) -> None:
        self.names, self.model = names, model
        self.system: list[Json] = []
        self.turns: list[Json] = []
        self.results: dict[str, Json] = {}
        self.called: list[tuple[str, str]] = []  # id and sent name of each call of the last model turn
        self.waiting: Json | None = None  # the turn that its results stand in

    def add(self, message: Message) -> None:
        if message.role is Role.SYSTEM:
            said = [p.text for p in message.parts if isinstance(p, Text) and p.text]
            if not self.turns:
                self.system += [{"text": t} for t in said]
            elif said:
                self.put("user", [{"text": "<system>\n" + "\n\n".join(said) + "\n</system>"}])
        elif message.role is Role.ASSISTANT:
            self.assistant(message.parts)
        else:
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self.result(part)
            if rest := [self.user(p) for p in message.parts if not isinstance(p, ToolResult) and getattr(p, "text", True)]:
                self.put("user", rest)

    def put(self, role: str, parts: list[Json]) -> None:
        last = self.turns[-1] if self.turns else None
        if last and last["role"] == role and last is not self.waiting:
            last["parts"] += parts
        else:
            self.turns.append({"role": role, "parts": parts})

    def assistant(self, parts: Iterable[Part]) -> None:
        out: list[Json] = []
        calls: list[tuple[str, str]] = []
        signed = False
        for part in parts:
            if isinstance(part, Thinking):
                # Only what was kept here and put back is this provider's own; another format's client cannot vouch for a signature.
                if part.text and part.signature and part.extra and part.extra.get("restored"):
                    out.append({"text": part.text, "thought": True, "thoughtSignature": part.signature})
            elif isinstance(part, ToolCall):
                name = self.names.get(part.name, part.name)
                call: Json = {"name": name, "args": args_of(part)}
                if self.model.ids and part.id:
                    call = {"id": part.id, **call}
                made: Json = {"functionCall": call}
                if part.signature:
                    made["thoughtSignature"] = part.signature
                elif self.model.signatures and not signed:
                    made["thoughtSignature"] = UNSIGNED
                signed = True
                calls.append((part.id, name))
                out.append(made)
            elif isinstance(part, Text | Refusal) and part.text:
                out.append({"text": part.text})
        if not out:
            return
        if self.turns and self.turns[-1]["role"] == "model":
            self.turns[-1]["parts"] += out
        else:
            self.turns.append({"role": "model", "parts": out})
        if calls:
            self.called = calls
            # Every call must be answered in the turn right behind it: what never comes is filled in at the end.
            self.waiting = {"role": "user", "parts": [self.response(i, name, {"error": NO_RESULT}) for i, name in calls]}
            self.turns.append(self.waiting)

    def response(self, call_id: str, name: str, said: Json, media: list[Json] | None = None) -> Json:
        out: Json = {"name": name, "response": said}
        if self.model.ids and call_id:
            out = {"id": call_id, **out}
        if media:
            out["parts"] = media
        return {"functionResponse": out}

    def result(self, part: ToolResult) -> None:
        """Puts a result where its call waits for it; one whose call is not there is told in words."""
        text = "".join(p.text for p in part.parts if isinstance(p, Text))
        media = [self.user(p) for p in part.parts if isinstance(p, Image | File)]
        at = next((i for i, (call_id, _) in enumerate(self.called) if call_id == part.call_id), None)
        if at is None and self.waiting is not None and not part.call_id:
            sent = self.names.get(part.name, part.name)
            at = next((i for i, (_, name) in enumerate(self.called) if name == sent and self.is_open(i)), None)
        if self.waiting is None or at is None:
            told = f"Result of {part.name or part.call_id or 'a tool'}:\n{text}"
            self.put("user", [{"text": told}, *media])
            return
        call_id, name = self.called[at]
        self.waiting["parts"][at] = self.response(call_id, name, {"error" if part.is_error else "output": text}, media)

    def is_open(self, at: int) -> bool:
        assert self.waiting is not None
        return bool(self.waiting["parts"][at]["functionResponse"]["response"] == {"error": NO_RESULT})

    def user(self, part: Part) -> Json:
        if isinstance(part, Image):
            return image_out(part)
        if isinstance(part, File):
            return file_out(part)
        return {"text": getattr(part, "text", "")}

    def finish(self) -> tuple[list[Json], list[Json]]:
        if self.system and not self.model.system:
            self.turns.insert(0, {"role": "user", "parts": self.system})
            self.system = []
            if len(self.turns) > 1 and self.turns[1]["role"] == "user":
                self.turns[0]["parts"] = [*self.turns[0]["parts"], *self.turns.pop(1)["parts"]]
        if not self.turns:
            # This format wants a turn: what was to be said stands in the last system text.
            self.turns.append({"role": "user", "parts": [self.system.pop() if self.system else {"text": BEGIN}]})
        if self.turns[0]["role"] == "model":
            self.turns.insert(0, {"role": "user", "parts": [{"text": BEGIN}]})
        return self.system, self.turns


def args_of(call: ToolCall) -> Json:
    """A call's arguments as an object, whatever the model that made it wrote."""
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        found = parse_upstream((call.arguments or "{}").encode("utf-8", "replace"))
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": call.arguments}


def image_out(part: Image) -> Json:
    if not part.data:
        raise CallerError("invalid_request", "An image given by its address cannot go to Gemini, which takes bytes only.", field="messages")
    media = part.media_type
    if not media or media == "application/octet-stream":
        media = next((kind for head, kind in IMAGE_HEADS if part.data.startswith(head)), "image/png")
    return {"inlineData": {"mimeType": media, "data": part.data}}


def file_out(part: File) -> Json:
    """An attachment by its bytes. Errors: CallerError for one by an id, or of a kind that this format has no part for."""
    media, data = part.media_type, part.data
    if found := DATA_URL.match(data):
        media, data = found[1] or media, found[2]
    if part.kind in ("audio", "file") and data:
        return {"inlineData": {"mimeType": AUDIO_TYPES.get(media, media) or "application/pdf", "data": data}}
    what = "a file by its address or id" if part.kind in ("audio", "file") else part.kind
    raise CallerError("invalid_request", f"messages hold {what}, which this provider cannot take. Send a file by its bytes.", field="messages")


# ------------------------------------------------------------------ tools, format, thinking, sampling


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


def config_out(request: Request, model: Wants, promised: bool, dropped: Dropped) -> Json:
    s = request.sampling
    limit = request.output_limit
    if limit and model.limit and limit > model.limit:
        limit = model.limit
        dropped.say("max_tokens", "max_completion_tokens", "max_output_tokens")
    stops = [t for t in s.stop if t]
    if len(stops) > MOST_STOPS or len(stops) < len(s.stop):
        stops = stops[:MOST_STOPS]
        dropped.say("stop", "stop_sequences")
    seed = s.seed
    if seed is not None and not -(2**31) <= seed < 2**31:
        seed = None
        dropped.say("seed")
    out: Json = {
        name: value
        for name, value in (
            ("temperature", s.temperature),
            ("topP", s.top_p),
            ("topK", s.top_k),
            ("seed", seed),
            ("presencePenalty", s.presence_penalty),
            ("frequencyPenalty", s.frequency_penalty),
            ("maxOutputTokens", limit),
            ("stopSequences", stops or None),
            ("thinkingConfig", thinking_out(request, model, dropped)),
        )
        if value is not None
    }
    if request.format and promised:
        out["responseMimeType"] = "application/json"
        if request.format.schema is not None:
            out["responseSchema"] = as_google_schema(request.format.schema, lambda word: dropped.word("response_format", word))
    return out


def thinking_out(request: Request, model: Wants, dropped: Dropped) -> Json | None:
    """Asks for thinking as the model knows it: a level from Gemini 3 on, a budget before."""
    asked = request.reasoning
    if asked is None:
        return None
    off = asked.enabled is False or asked.effort == "none" or asked.budget == 0
    effort = asked.effort.lower()
    if model.thinking == "none" or (effort and effort not in BUDGETS and not off):
        if not off:
            dropped.say("reasoning_effort", "reasoning", "thinking", "think", "output_config")
        return None
    if model.thinking == "budget":
        if off:
            return {"thinkingBudget": LEAST_PRO_BUDGET if model.pro else 0}
        budget = asked.budget or BUDGETS.get(effort)
        return {"includeThoughts": True, **({"thinkingBudget": budget} if budget else {})}
    if off and not (model.flash or model.pro):
        dropped.say("reasoning_effort", "reasoning", "thinking", "think", "output_config")  # of an unknown model nobody knows how little it may think
        return None
    if off:
        return {"thinkingLevel": "minimal" if model.flash else "low"}
    if not effort and asked.budget:
        effort = "low" if asked.budget <= BUDGETS["low"] else "medium" if asked.budget <= BUDGETS["medium"] else "high"
    level = LEVELS.get(effort, "")
    if level == "minimal" and not model.flash:
        level = "low"
    return {"includeThoughts": True, **({"thinkingLevel": level} if level else {})}
