"""Every pair of formats: what both can say survives there and back; what only one can is named as dropped, approximated, or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire import pairs
from tests.wire.pairs import LOST, PROBES, REPLIES, made, native, read, title
from wire import dialects
from wire.conversation import (
    Chunk,
    Format,
    Image,
    Message,
    Reasoning,
    Request,
    Role,
    Sampling,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from wire.dialects import Dialect
from wire.errors import CallerError

EVERY = dialects.every()
PAIRS = [pytest.param(a, b, id=f"{title(a)}-{title(b)}") for a in EVERY for b in EVERY]
OTHERS = [pytest.param(a, b, id=f"{title(a)}-{title(b)}") for a in EVERY for b in EVERY if a is not b]


# ------------------------------------------------------------------ requests


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=12)
VALUES = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | WORDS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)
TEXTS = st.builds(Text, WORDS)
IMAGES = st.builds(Image, st.just("image/png"), st.sampled_from(["iVBORw0KGgo=", "iVBORAAA", "iVBORBBB"]))
USERS = st.lists(TEXTS | IMAGES, min_size=1, max_size=3).map(lambda parts: Message(Role.USER, tuple(parts)))


@st.composite
def exchanges(draw: st.DrawFn, number: int) -> list[Message]:
    """An assistant's turn, the results of its calls, and perhaps a user's turn."""
    count = draw(st.integers(0, 3))
    calls = [
        ToolCall(
            f"call_{number:03}{i:03}abcdef", draw(st.sampled_from(["look", "hear"])), orjson.dumps(draw(st.dictionaries(WORDS, VALUES, max_size=2))).decode()
        )
        for i in range(count)
    ]
    said = draw(st.lists(TEXTS, min_size=0 if calls else 1, max_size=1))
    thought = draw(st.lists(st.builds(Thinking, WORDS), max_size=1))
    turns = [Message(Role.ASSISTANT, (*thought, *said, *calls))]
    if calls:
        results = [ToolResult(c.id, tuple(draw(st.lists(TEXTS, min_size=1, max_size=1))), name=c.name) for c in calls]
        turns += [Message(Role.TOOL, (r,)) for r in results] if draw(st.booleans()) else [Message(Role.TOOL, tuple(results))]
    if not calls or draw(st.booleans()):
        turns.append(draw(USERS))
    return turns


@st.composite
def requests(draw: st.DrawFn) -> Request:
    messages = [Message(Role.SYSTEM, (draw(TEXTS),))] if draw(st.booleans()) else []
    messages.append(draw(USERS))
    for number in range(draw(st.integers(0, 3))):
        messages += draw(exchanges(number))
        if draw(st.booleans()) and messages[-1].role is Role.USER:
            messages.insert(-1, Message(Role.SYSTEM, (draw(TEXTS),)))
    with_calls = any(isinstance(p, ToolCall) for m in messages for p in m.parts)
    schema = {"type": "object", "properties": {"at": {"type": draw(st.sampled_from(["string", "integer", "boolean"]))}}, "required": ["at"]}
    tools = (Tool("look", "looks", schema), Tool("hear", "", schema)) if with_calls or draw(st.booleans()) else ()
    choices = [None, ToolChoice("auto"), ToolChoice("none"), ToolChoice("required"), ToolChoice("tool", "look")]
    return made(
        *messages,
        tools=tools,
        tool_choice=draw(st.sampled_from(choices)) if tools else None,
        parallel_tool_calls=draw(st.sampled_from([None, False])) if tools else None,
        output_limit=draw(st.none() | st.integers(1, 100_000)),
        format=draw(st.sampled_from([None, Format("json"), Format("schema", schema, "answer")])) if not tools else None,
        reasoning=draw(st.sampled_from([None, None, Reasoning(effort="high"), Reasoning(budget=4096, enabled=True)])),
        stream=draw(st.booleans()),
        sampling=Sampling(
            temperature=draw(st.sampled_from([None, 0, 0.5, 1])),
            top_p=draw(st.sampled_from([None, 0.5])),
            top_k=draw(st.sampled_from([None, 5])),
            stop=draw(st.sampled_from([(), ("END",), ("END", "STOP")])),
            seed=draw(st.sampled_from([None, 7])),
            presence_penalty=draw(st.sampled_from([None, 0.5])),
        ),
    )


def transcript(request: Request) -> list[Any]:
    """A conversation as its meaning: the sides by turns, each with its words, pictures, calls and results, whatever messages they stand in."""
    places: dict[str, int] = {}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                places[part.id] = len(places)
    out: list[Any] = []
    for message in request.messages:
        side = "assistant" if message.role is Role.ASSISTANT else "other"
        if not out or out[-1]["side"] != side:
            out.append({"side": side, "words": "", "images": [], "calls": [], "results": []})
        turn = out[-1]
        for part in message.parts:
            if isinstance(part, Text):
                turn["words"] += part.text
            elif isinstance(part, Image):
                turn["images"].append(part.data)
            elif isinstance(part, ToolCall):
                turn["calls"].append((part.name, pairs.same_json(part.arguments)))
            elif isinstance(part, ToolResult):
                turn["results"].append((places[part.call_id], "".join(p.text for p in part.parts if isinstance(p, Text))))
    for turn in out:
        # What a format has no place for is told in words: that a turn is the system's, that the answer is to be JSON.
        for words in ("<system>", "</system>", "Answer with one JSON object and nothing else."):
            turn["words"] = turn["words"].replace(words, "")
        turn["words"] = "".join(turn["words"].split())
        turn["results"].sort()
    return out


# A value, what finds it, and the names under which it may be named as dropped.
SAYINGS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("temperature", lambda r: r.sampling.temperature, ("temperature",)),
    ("top_p", lambda r: r.sampling.top_p, ("top_p", "topP")),
    ("top_k", lambda r: r.sampling.top_k, ("top_k", "topK")),
    ("stop", lambda r: r.sampling.stop or None, ("stop", "stop_sequences", "stopSequences")),
    ("seed", lambda r: r.sampling.seed, ("seed",)),
    ("presence_penalty", lambda r: r.sampling.presence_penalty, ("presence_penalty", "presencePenalty")),
    (
        "parallel",
        lambda r: (r.parallel_tool_calls is False and not (r.tool_choice and r.tool_choice.mode == "none")) or None,
        ("parallel_tool_calls", "tool_choice"),
    ),
    ("choice", lambda r: r.tool_choice.mode if r.tool_choice and r.tool_choice.mode in ("required", "tool") else None, ("tool_choice", "toolConfig")),
    ("format", lambda r: r.format and r.format.kind, ("format", "response_format", "text", "generationConfig")),
    ("thinking", lambda r: pairs.thinks(r), ("reasoning_effort", "reasoning", "thinking", "think", "generationConfig", "output_config")),
)


def is_named(names: tuple[str, ...], dropped: tuple[str, ...]) -> bool:
    return any(said.rpartition(".")[2].partition(":")[0] in names or said.partition(".")[0].partition(":")[0] in names for said in dropped)


def compare(before: Request, after: Request, dropped: tuple[str, ...]) -> None:
    """Holds what arrived against what was said."""
    assert transcript(after) == transcript(before)
    shown = [] if before.tool_choice and before.tool_choice.mode == "none" else [t.name for t in before.tools]
    if before.tool_choice and before.tool_choice.mode == "tool" and "tool_choice" in dropped:
        shown = [before.tool_choice.name]  # who cannot be made to call it is shown nothing else
    assert [t.name for t in after.tools] in (shown, [t.name for t in before.tools])
    for tool in after.tools:
        assert pairs.schema_of(tool.parameters) == pairs.schema_of(next(t.parameters for t in before.tools if t.name == tool.name))
    assert after.stream == before.stream
    if before.output_limit is not None:
        assert after.output_limit is not None
    for name, find, names in SAYINGS:
        said, came = find(before), find(after)
        if said is not None and came != said:
            words = "".join(m.text for m in after.messages if m.role is Role.SYSTEM)
            assert is_named(names, dropped) or (name == "format" and "JSON" in words), f"{name}: {said!r} became {came!r}, and only {dropped} were named"


@pytest.mark.parametrize("client", [pytest.param(d, id=title(d)) for d in EVERY])
@given(request=requests())
@settings(max_examples=40)
def test_what_a_format_writes_it_reads_again(client: Dialect, request: Request) -> None:
    try:
        outbound = client.write_request(request, "fast", {})
    except CallerError as error:
        assert error.field  # noqa: PT017
        return
    again = read_as(client, outbound.body, request.stream)
    compare(request, again, outbound.dropped)


def read_as(dialect: Dialect, body: dict[str, Any], stream: bool) -> Request:
    """A body as its provider reads it. Where the format tells a stream by its path, the path is that of the question."""
    found = read(dialect, {**body, "model": "fast"})
    return replace(found, stream=stream) if any(r.prefix and r.operation == "ask" for r in dialect.routes) else found


@pytest.mark.parametrize(("client", "provider"), PAIRS)
@given(request=requests())
@settings(max_examples=25)
def test_what_a_client_says_reaches_a_provider_of_any_format(client: Dialect, provider: Dialect, request: Request) -> None:
    try:
        asked = replace(native(client, request), stream=request.stream)
    except CallerError:
        return
    try:
        outbound = provider.write_request(asked, "fast", {})
    except CallerError as error:
        assert error.field  # noqa: PT017
        return
    compare(asked, read_as(provider, outbound.body, request.stream), (*outbound.dropped, *asked.unread))


@pytest.mark.parametrize(("client", "provider"), OTHERS)
def test_nothing_is_lost_without_a_word(client: Dialect, provider: Dialect) -> None:
    lost = [probe.name for probe in PROBES if pairs.fate(probe, client, provider) == LOST]
    assert not lost


@pytest.mark.parametrize("client", [pytest.param(d, id=title(d)) for d in EVERY])
def test_a_provider_of_the_clients_own_format_gets_everything(client: Dialect) -> None:
    fates = {probe.name: pairs.fate(probe, client, client) for probe in PROBES}
    assert set(fates.values()) <= {pairs.KEPT, pairs.UNSAID}, fates


# ------------------------------------------------------------------ answers


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[Chunk], Usage]:
    """A stream as a provider's reader gives it: thoughts, words, calls in pieces, the end."""
    chunks = [Chunk(thinking=t) for t in draw(st.lists(WORDS, max_size=2))]
    chunks += [Chunk(text=t) for t in draw(st.lists(WORDS, max_size=3))]
    calls = draw(st.integers(0, 3))
    for n in range(calls):
        arguments = orjson.dumps(draw(st.dictionaries(WORDS, VALUES, max_size=2))).decode()
        chunks += pairs.pieces(ToolCall(f"call_{n:03}abcdefghi", draw(st.sampled_from(["look", "hear"])), arguments), n, draw(st.integers(1, 10)))
    if not any(c.text for c in chunks) and not calls:
        chunks.append(Chunk(text="x"))
    stop = Stop.TOOLS if calls else draw(st.sampled_from([Stop.END, Stop.LENGTH]))
    return [*chunks, Chunk(stop=stop, finish=stop.value)], Usage(draw(st.integers(1, 1000)), draw(st.integers(1, 1000)))


def amounts(chunks: list[Chunk]) -> dict[str, Any]:
    """What a stream amounts to."""
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for piece in chunk.tools:
            name, arguments = calls.get(piece.index, ["", ""])
            calls[piece.index] = [name or piece.name, arguments + piece.arguments]
    usage = next((c.usage for c in reversed(chunks) if c.usage), None)
    return {
        "text": "".join(c.text for c in chunks),
        "thinking": "".join("".join(c.thinking for c in chunks).split()),
        "calls": [(name, pairs.same_json(arguments)) for _, (name, arguments) in sorted(calls.items())],
        "stop": next((c.stop for c in reversed(chunks) if c.stop), None),
        "usage": usage and (usage.input, usage.output),
    }


@pytest.mark.parametrize(("client", "provider"), PAIRS)
@given(answer=answers(), cuts=st.lists(st.integers(0, 4000), max_size=4))
@settings(max_examples=25)
def test_a_stream_says_the_same_in_every_format(client: Dialect, provider: Dialect, answer: tuple[list[Chunk], Usage], cuts: list[int]) -> None:
    chunks, usage = answer
    from_provider = pairs.reread(provider, pairs.streamed(provider, chunks, usage), *cuts)
    told = amounts([*chunks, Chunk(usage=usage)])
    assert amounts(from_provider) == told
    final = next(c.usage for c in reversed(from_provider) if c.usage)
    for_client = pairs.reread(client, pairs.streamed(client, [replace(c, raw=None) for c in from_provider], final), *cuts)
    assert amounts(for_client) == told


@pytest.mark.parametrize(("client", "provider"), PAIRS)
def test_a_whole_answer_says_the_same_in_every_format(client: Dialect, provider: Dialect) -> None:
    fates = {probe.name: pairs.reply_fate(probe, client, provider) for probe in REPLIES}
    for name in ("text", "thinking", "parallel calls", "ended by itself", "ended by the output limit", "ended for calls", "tokens in and out"):
        assert fates[name] == pairs.KEPT, name
    assert pairs.DROPPED not in fates.values()


# ------------------------------------------------------------------ what probes found lost


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((Text("no eyes"),), (Text("Error: no eyes"),)),
        ((Text("ValueError: no eyes"),), (Text("ValueError: no eyes"),)),
        ((Image("image/png", "QUJD"),), (Text("Error."), Image("image/png", "QUJD"))),
        ((), (Text("Error."),)),
    ],
)
def test_a_failed_call_is_told_in_words_where_there_is_no_mark_for_it(parts: Any, told: Any) -> None:
    assert ToolResult("c", parts, is_error=True).told == told
    assert ToolResult("c", parts).told == parts


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (2048, "low"), (8192, "medium"), (30_000, "high")])
def test_a_budget_of_thoughts_is_an_effort_where_only_efforts_are_known(budget: int, effort: str) -> None:
    outbound = dialects.get("openai-chat").write_request(made(reasoning=Reasoning(budget=budget, enabled=True)), "fast", {})
    assert (outbound.body["reasoning_effort"], outbound.dropped) == (effort, ())


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "gemini"])
def test_a_wish_that_has_no_word_is_named_as_its_caller_wrote_it(provider: str) -> None:
    asked = read(dialects.get("ollama"), {"model": "fast", "messages": [{"role": "user", "content": "hi"}], "think": False})
    assert dialects.get(provider).write_request(asked, "fast", {}).dropped == ("think",)


def test_what_a_chat_client_adds_is_named_before_other_formats() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "logit_bias": {"5": 1}, "logprobs": False, "service_tier": "flex", "user": "u", "new": 1}
    assert read(dialects.get("openai-chat"), {"model": "fast", **body}).unread == ("logit_bias", "service_tier", "new")
