"""What survives between each pair of formats, found out by small probes: the truth that docs/GATEWAY.md's tables are held to.

A probe says one thing. It is said by a client of one format (as that format writes it, or natively where nobody but a client says it so), read,
written for a provider of another, and read again as that provider would. `python -m tests.wire.pairs` prints the tables.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wire import dialects
from wire.conversation import (
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
    each_part,
)
from wire.dialects import Answer, Dialect, Inbound
from wire.errors import CallerError

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQK"
WAV = "UklGRiQAAABXQVZF"
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
LOOK = Tool("look", "looks", SCHEMA)
HEAR = Tool("hear", "hears", SCHEMA)
NAMES = {
    "openai-chat": "Chat",
    "openai-responses": "Responses",
    "anthropic-messages": "Messages",
    "gemini": "Gemini",
    "ollama": "Ollama",
}
KEPT, APPROXIMATED, DROPPED, REFUSED, UNSAID, LOST = "kept", "approximated", "dropped", "refused", "–", "LOST"


def title(dialect: Dialect) -> str:
    return NAMES.get(dialect.name, dialect.name)


def user(*parts: Part) -> Message:
    return Message(Role.USER, parts)


def assistant(*parts: Part) -> Message:
    return Message(Role.ASSISTANT, parts)


HI = user(Text("hi"))
CALLED = (
    HI,
    assistant(ToolCall("call_aaaaaaaaaa", "look", '{"at":"sky"}'), ToolCall("call_bbbbbbbbbb", "hear", '{"at":"sea"}')),
    Message(Role.TOOL, (ToolResult("call_aaaaaaaaaa", (Text("blue"),), name="look"), ToolResult("call_bbbbbbbbbb", (Text("waves"),), name="hear"))),
)


# ------------------------------------------------------------------ saying and reading


def place(dialect: Dialect, name: str = "fast") -> str:
    """A path that a format's questions come in on."""
    route = next(r for r in dialect.routes if r.operation == "ask")
    return f"{route.path}{name}:generateContent" if route.prefix else route.path


def read(dialect: Dialect, body: Any) -> Request:
    """A body as a client's request. Formats that name the model in the path find it there."""
    return dialect.read_request(Inbound(place(dialect), "alt=sse", {}, json.loads(json.dumps(body))))


def native(dialect: Dialect, request: Request) -> Request:
    """The request as a client of this format would have sent it."""
    return read(dialect, {**dialect.write_request(request, "fast", {}).body, "model": "fast"})


def made(*messages: Message, **more: Any) -> Request:
    """A request that came in no format at all."""
    return Request(dialect="none", model="fast", messages=messages or (HI,), **more)


# ------------------------------------------------------------------ what to look at


def parts_of(request: Request, kind: type) -> list[Any]:
    return [p for m in request.messages for p in each_part(m.parts) if isinstance(p, kind)]


def turns(request: Request) -> list[tuple[str, str]]:
    """Who says what, in order; what one says in several messages is one."""
    out: list[tuple[str, str]] = []
    for message in request.messages:
        who = "user" if message.role is Role.TOOL else message.role.value
        said = "\n\n".join(p.text for p in message.parts if isinstance(p, Text) and p.text)
        if said and out and out[-1][0] == who:
            out[-1] = (who, f"{out[-1][1]}\n\n{said}")
        elif said:
            out.append((who, said))
    return out


def same_json(text: str) -> Any:
    return json.loads(text or "{}")


def schema_of(given: Mapping[str, Any] | None) -> Any:
    """What a schema says of its fields, whatever words it says it in."""
    given = given or {}
    return sorted((name, str(f.get("type", "")).lower()) for name, f in (given.get("properties") or {}).items()), sorted(given.get("required") or [])


def tools_of(request: Request) -> list[Any]:
    return [(t.name, t.description, schema_of(t.parameters)) for t in request.tools]


def calls_of(request: Request) -> list[Any]:
    return [(c.name, same_json(c.arguments)) for c in parts_of(request, ToolCall)]


def results_of(request: Request) -> list[Any]:
    """What was answered to which call."""
    places = {c.id: n for n, c in enumerate(parts_of(request, ToolCall))}
    return sorted((places.get(r.call_id, -1), "".join(p.text for p in r.parts if isinstance(p, Text))) for r in parts_of(request, ToolResult))


def images_of(request: Request) -> list[Any]:
    return [p.data or p.url for p in parts_of(request, Image)]


def files_of(request: Request) -> list[Any]:
    return [(p.kind, (p.data or p.url).rpartition(",")[2]) for p in parts_of(request, File)]


def errors_of(request: Request) -> list[Any]:
    return [r.is_error for r in parts_of(request, ToolResult)]


# ------------------------------------------------------------------ probes of requests


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to say in a request.

    Shape: `look` finds it again and gives nothing (an empty value or None) where it is not; `nearly` tells that what was found instead means
    much the same; `bodies` are native ways to say it, by format; `silent`: what is left out of it is not named, as the contract has it.
    """

    name: str
    request: Request
    look: Callable[[Request], Any]
    nearly: Callable[[Request], Any] | None = None
    bodies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    silent: bool = False


def chosen(request: Request) -> Any:
    choice = request.tool_choice
    return (choice.mode, choice.name, choice.allowed) if choice and (choice.mode != "auto" or choice.allowed) else None


def offered(request: Request) -> Any:
    return [t.name for t in request.tools]


def sampled(name: str) -> Callable[[Request], Any]:
    return lambda request: getattr(request.sampling, name)


def thinks(request: Request) -> Any:
    wish = request.reasoning
    return bool(wish and (wish.effort or wish.budget or wish.enabled or wish.summary)) or None


BODY: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"input": "hi"},
    "anthropic-messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "ollama": {"messages": [{"role": "user", "content": "hi"}]},
}


def everywhere(more: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {**body, **more} for name, body in BODY.items()}


def with_tools(**more: Any) -> Request:
    return made(tools=(LOOK, HEAR), **more)


PROBES: tuple[Probe, ...] = (
    Probe("turns of text", made(HI, assistant(Text("hello")), user(Text("and now?"))), turns),
    Probe("system prompt", made(Message(Role.SYSTEM, (Text("Be brief."),)), HI), lambda r: [t for t in turns(r) if t[0] == "system"]),
    Probe(
        "system turn in mid-conversation",
        made(HI, assistant(Text("hello")), Message(Role.SYSTEM, (Text("Be kind."),)), user(Text("and now?"))),
        lambda r: turns(r) if "Be kind." in str(turns(r)) else None,
        None,
        {
            "anthropic-messages": {
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "hello"},
                    {"role": "user", "content": "and now?"},
                    {"role": "system", "content": "Be kind."},
                ],
            }
        },
    ),
    Probe("image by its bytes", made(user(Text("what?"), Image("image/png", PNG))), images_of),
    Probe("image by its address", made(user(Text("what?"), Image(url="https://example.org/x.png"))), images_of),
    Probe("PDF by its bytes", made(user(Text("what?"), File("file", "application/pdf", PDF, name="x.pdf"))), files_of),
    Probe("audio", made(user(Text("what?"), File("audio", "audio/wav", WAV))), files_of),
    Probe("tools", with_tools(), tools_of),
    Probe("strict tools", made(tools=(replace(LOOK, strict=True),)), lambda r: [True for t in r.tools if t.strict], offered),
    Probe(
        "free-form tools",
        made(tools=(Tool("patch", "patches", kind="custom"),)),
        lambda r: [t.name for t in r.tools if t.kind == "custom" or (t.extra or {}).get("type") == "custom"],
        offered,
        {
            "openai-chat": {**BODY["openai-chat"], "tools": [{"type": "custom", "custom": {"name": "patch", "description": "patches"}}]},
            "openai-responses": {**BODY["openai-responses"], "tools": [{"type": "custom", "name": "patch", "description": "patches"}]},
        },
    ),
    Probe(
        "tools that a provider runs",
        made(tools=(LOOK, Tool("web_search", kind="web_search"))),
        lambda r: [t.kind for t in r.tools if t.kind not in ("function", "custom")],
        None,
        {
            "openai-responses": {**BODY["openai-responses"], "tools": [{"type": "function", "name": "look"}, {"type": "web_search"}]},
            "anthropic-messages": {
                **BODY["anthropic-messages"],
                "tools": [{"name": "look", "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}],
            },
            "gemini": {**BODY["gemini"], "tools": [{"functionDeclarations": [{"name": "look"}]}, {"googleSearch": {}}]},
        },
    ),
    Probe("no tool may be called", with_tools(tool_choice=ToolChoice("none")), chosen, lambda r: not r.tools),
    Probe("some tool must be called", with_tools(tool_choice=ToolChoice("required")), chosen),
    Probe("one tool must be called", with_tools(tool_choice=ToolChoice("tool", "look")), chosen),
    Probe("only some tools may be called", with_tools(tool_choice=ToolChoice("auto", allowed=("look",))), chosen, lambda r: offered(r) == ["look"]),
    Probe("one call at a time", with_tools(parallel_tool_calls=False), lambda r: r.parallel_tool_calls is False),
    Probe("parallel calls in a history", made(*CALLED, tools=(LOOK, HEAR)), calls_of),
    Probe("results, each with its call", made(*CALLED, tools=(LOOK, HEAR)), results_of),
    Probe(
        "a result that is an error",
        made(
            HI,
            assistant(ToolCall("call_aaaaaaaaaa", "look", "{}")),
            Message(Role.TOOL, (ToolResult("call_aaaaaaaaaa", (Text("no eyes"),), is_error=True, name="look"),)),
            tools=(LOOK,),
        ),
        lambda r: [e for e in errors_of(r) if e],
        lambda r: any("rror" in text for _, text in results_of(r)),
    ),
    Probe(
        "an image in a result",
        made(
            HI,
            assistant(ToolCall("call_aaaaaaaaaa", "look", "{}")),
            Message(Role.TOOL, (ToolResult("call_aaaaaaaaaa", (Text("see"), Image("image/png", PNG)), name="look"),)),
            tools=(LOOK,),
        ),
        lambda r: [p.data for m in r.messages for t in m.parts if isinstance(t, ToolResult) for p in t.parts if isinstance(p, Image)],
        images_of,
    ),
    Probe(
        "thinking of earlier turns",
        made(HI, assistant(Thinking("hm", signature="c2lnbmVk"), Text("hello")), user(Text("and now?"))),
        lambda r: [p.text for p in parts_of(r, Thinking)],
        None,
        {
            "anthropic-messages": {
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}, {"type": "text", "text": "hello"}]},
                    {"role": "user", "content": "and now?"},
                ],
            },
            "gemini": {
                "contents": [
                    {"role": "user", "parts": [{"text": "hi"}]},
                    {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "c2lnbmVk"}, {"text": "hello"}]},
                    {"role": "user", "parts": [{"text": "and now?"}]},
                ]
            },
            "openai-responses": {
                "input": [
                    {"role": "user", "content": "hi"},
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "c2lnbmVk"},
                    {"role": "assistant", "content": "hello"},
                    {"role": "user", "content": "and now?"},
                ]
            },
        },
        silent=True,
    ),
    Probe("any JSON", made(format=Format("json")), lambda r: r.format and r.format.kind, lambda r: "JSON" in str(turns(r))),
    Probe(
        "JSON that keeps to a schema",
        made(format=Format("schema", SCHEMA, "answer")),
        lambda r: r.format and r.format.kind == "schema" and schema_of(r.format.schema),
        lambda r: "JSON" in str(turns(r)),
    ),
    Probe("output limit", made(output_limit=500), lambda r: r.output_limit == 500),
    Probe("temperature", made(sampling=Sampling(temperature=0.5)), sampled("temperature")),
    Probe("temperature over 1", made(sampling=Sampling(temperature=1.5)), sampled("temperature")),
    Probe("top_p", made(sampling=Sampling(top_p=0.5)), sampled("top_p")),
    Probe("top_k", made(sampling=Sampling(top_k=5)), sampled("top_k")),
    Probe("seed", made(sampling=Sampling(seed=7)), sampled("seed")),
    Probe("penalties", made(sampling=Sampling(presence_penalty=0.5)), sampled("presence_penalty")),
    Probe("stop sequences", made(sampling=Sampling(stop=("END",))), lambda r: list(r.sampling.stop)),
    Probe("how hard to think, in a word", made(reasoning=Reasoning(effort="high"), output_limit=60_000), lambda r: r.reasoning and r.reasoning.effort, thinks),
    Probe(
        "how much to think, in tokens",
        made(reasoning=Reasoning(budget=8192, enabled=True), output_limit=60_000),
        lambda r: r.reasoning and r.reasoning.budget,
        thinks,
    ),
    Probe(
        "no thinking",
        made(reasoning=Reasoning(effort="none", enabled=False)),
        lambda r: is_off(r) or None,
        None,
        {
            "openai-chat": {**BODY["openai-chat"], "reasoning_effort": "none"},
            "openai-responses": {**BODY["openai-responses"], "reasoning": {"effort": "none"}},
            "anthropic-messages": {**BODY["anthropic-messages"], "thinking": {"type": "disabled"}},
            "gemini": {**BODY["gemini"], "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
            "ollama": {**BODY["ollama"], "think": False},
        },
    ),
    Probe(
        "several answers",
        made(choices=2),
        lambda r: r.choices > 1,
        None,
        {"openai-chat": {**BODY["openai-chat"], "n": 2}, "gemini": {**BODY["gemini"], "generationConfig": {"candidateCount": 2}}},
    ),
    Probe(
        "cache marks",
        made(),
        lambda r: "cache_control" in json.dumps(dict(r.raw or {})),
        None,
        {
            "anthropic-messages": {
                **BODY["anthropic-messages"],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}],
            }
        },
        silent=True,
    ),
    Probe("fields that nobody knows", made(), lambda r: (r.raw or {}).get("a_new_field"), None, everywhere({"a_new_field": 5})),
)


def is_off(request: Request) -> bool:
    """Whether no thinking was asked for. A Messages model thinks only where it was asked to."""
    wish = request.reasoning
    if wish is None:
        return request.dialect == "anthropic-messages"
    return wish.enabled is False or wish.effort == "none" or wish.budget == 0


def asked(probe: Probe, client: Dialect) -> Request | None:
    """The probe as a client of a format says it; None where it cannot be said so."""
    try:
        found = read(client, {"model": "fast", **probe.bodies[client.name]}) if client.name in probe.bodies else native(client, probe.request)
    except CallerError:
        return None
    wanted = probe.look(probe.request)
    seen = probe.look(found)
    return found if seen and (seen == wanted or client.name in probe.bodies) else None


def fate(probe: Probe, client: Dialect, provider: Dialect) -> str:
    """What becomes of a probe on its way from a client to a provider."""
    request = asked(probe, client)
    if request is None:
        return UNSAID
    wanted = probe.look(request)
    try:
        if (request.bound or request.only_here) and client is not provider:
            return REFUSED
        outbound = provider.write_request(request, "fast", {})
        seen = read(provider, {**outbound.body, "model": "fast"})
    except CallerError:
        return REFUSED
    named = [*outbound.dropped, *(request.unread if client is not provider else ())]
    found = probe.look(seen)
    if found == wanted:
        return KEPT
    if found:
        return APPROXIMATED
    if probe.nearly is not None and probe.nearly(seen):
        return APPROXIMATED
    return DROPPED if named or probe.silent else LOST


# ------------------------------------------------------------------ probes of answers


@dataclass(frozen=True, slots=True)
class ReplyProbe:
    """One thing in an answer. Shape: as in `Probe`."""

    name: str
    reply: Reply
    look: Callable[[Reply], Any]
    nearly: Callable[[Reply], Any] | None = None


USED = Usage(20, 10)


def said(*parts: Part, stop: Stop = Stop.END, usage: Usage = USED) -> Reply:
    return Reply(parts, stop, "", usage)


def thoughts(reply: Reply) -> Any:
    return "".join(p.text for p in reply.parts if isinstance(p, Thinking))


def signatures(reply: Reply) -> Any:
    return any(getattr(p, "signature", "") for p in reply.parts)


def calls_in(reply: Reply) -> Any:
    return [(p.name, same_json(p.arguments)) for p in reply.parts if isinstance(p, ToolCall)]


def count(name: str) -> Callable[[Reply], Any]:
    return lambda reply: getattr(reply.usage, name) if reply.usage else None


TWO_CALLS = (ToolCall("call_aaaaaaaaaa", "look", '{"at":"sky"}'), ToolCall("call_bbbbbbbbbb", "look", '{"at":"sea"}'))
REPLIES: tuple[ReplyProbe, ...] = (
    ReplyProbe("text", said(Text("hello")), lambda r: r.text),
    ReplyProbe("thinking", said(Thinking("hm"), Text("hello")), thoughts),
    ReplyProbe("signed thinking", said(Thinking("hm", signature="c2lnbmVk"), Text("hello")), signatures, thoughts),
    ReplyProbe("parallel calls", said(*TWO_CALLS, stop=Stop.TOOLS), calls_in),
    ReplyProbe("a refusal", said(Refusal("I will not."), stop=Stop.REFUSAL), lambda r: r.stop is Stop.REFUSAL or r.stop is Stop.FILTER, lambda r: r.parts),
    ReplyProbe("ended by itself", said(Text("hello")), lambda r: r.stop),
    ReplyProbe("ended by the output limit", said(Text("hello"), stop=Stop.LENGTH), lambda r: r.stop is Stop.LENGTH),
    ReplyProbe("ended for calls", said(*TWO_CALLS, stop=Stop.TOOLS), lambda r: r.stop is Stop.TOOLS),
    ReplyProbe("ended at a stop sequence", said(Text("hello"), stop=Stop.SEQUENCE), lambda r: r.stop is Stop.SEQUENCE, lambda r: r.stop is Stop.END),
    ReplyProbe(
        "ended by a filter", said(Text("hello"), stop=Stop.FILTER), lambda r: r.stop in (Stop.FILTER, Stop.REFUSAL), lambda r: r.stop in (Stop.END, Stop.LENGTH)
    ),
    ReplyProbe("tokens in and out", said(Text("hello")), lambda r: r.usage and (r.usage.input, r.usage.output)),
    ReplyProbe("tokens read from a cache", said(Text("hello"), usage=Usage(20, 10, cache_read=5)), count("cache_read"), count("input")),
    ReplyProbe("tokens written to a cache", said(Text("hello"), usage=Usage(20, 10, cache_write=5)), count("cache_write"), count("input")),
    ReplyProbe("tokens of thinking", said(Thinking("hm"), Text("hello"), usage=Usage(20, 10, reasoning=5)), count("reasoning"), count("output")),
)


def client_request(client: Dialect, **more: Any) -> Request:
    """A client's question, with tools, and thoughts to be shown where that is asked for."""
    return native(client, made(tools=(LOOK, HEAR), reasoning=Reasoning(effort="high", summary="auto"), output_limit=60_000, **more))


def written(dialect: Dialect, reply: Reply) -> Any:
    """A body in a format, as its provider (or this server towards its client) writes it."""
    usage = reply.usage or Usage()
    answer = Answer(f"{dialect.id_prefix}_01J00000000000000000000000", "fast", 1_760_000_000, reply, usage, request=client_request(dialect))
    return json.loads(json.dumps(dialect.write_reply(answer)))


def reply_fate(probe: ReplyProbe, client: Dialect, provider: Dialect) -> str:
    """What becomes of a part of an answer on its way from a provider to a client."""
    foreign = made(tools=(LOOK, HEAR))
    given = provider.read_reply(written(provider, probe.reply), foreign)
    wanted = probe.look(given)
    if not wanted or wanted != probe.look(probe.reply):
        return UNSAID
    if client is provider:
        return KEPT
    seen = client.read_reply(written(client, given), foreign)
    found = probe.look(seen)
    if found == wanted:
        return KEPT
    return APPROXIMATED if found or (probe.nearly is not None and probe.nearly(seen)) else DROPPED


# ------------------------------------------------------------------ streams


def streamed(dialect: Dialect, chunks: Iterable[Chunk], usage: Usage) -> bytes:
    """A stream in a format."""
    writer = dialect.stream_writer(client_request(dialect, stream=True), f"{dialect.id_prefix}_01J00000000000000000000000", 1_760_000_000)
    return writer.start() + b"".join(writer.chunk(c) for c in chunks) + writer.finish(usage)


def reread(dialect: Dialect, stream: bytes, *cuts: int) -> list[Chunk]:
    """The same stream read again, in packets."""
    reader = dialect.stream_reader(made(tools=(LOOK, HEAR), stream=True))
    edges = [0, *sorted(min(c, len(stream)) for c in cuts), len(stream)]
    chunks = [c for at, end in itertools.pairwise(edges) for c in reader.feed(stream[at:end])]
    return [*chunks, *reader.close()]


def pieces(call: ToolCall, index: int, cut: int) -> list[Chunk]:
    """A call as a provider streams it."""
    cut = min(cut, len(call.arguments))
    parts = [p for p in (call.arguments[:cut], call.arguments[cut:]) if p]
    return [Chunk(tools=(ToolPiece(index, call.id, call.name, ""),)), *[Chunk(tools=(ToolPiece(index, arguments=p),)) for p in parts]]


# ------------------------------------------------------------------ the tables


def tables() -> str:
    """What the document shows: for each client's format what becomes of requests, then of answers, by the provider's format."""
    every = dialects.every()
    out: list[str] = []
    for client in every:
        out += [f"**{title(client)} clients, requests**", "", row("", [title(p) for p in every]), row("---", ["---"] * len(every))]
        for probe in PROBES:
            cells = [fate(probe, client, provider) for provider in every]
            if set(cells) != {UNSAID}:
                out.append(row(probe.name, cells))
        out += ["", f"**{title(client)} clients, answers**", "", row("", [title(p) for p in every]), row("---", ["---"] * len(every))]
        out += [row(probe.name, [reply_fate(probe, client, provider) for provider in every]) for probe in REPLIES]
        out.append("")
    return "\n".join(out).rstrip()


def row(name: str, cells: Iterable[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    print(tables())
