"""Whole answers and streams, made from each other: an endpoint may send either, whatever it was asked for."""

from __future__ import annotations

from wire.conversation import Chunk, Part, Refusal, Reply, Stop, Text, Thinking, ToolCall, ToolPiece
from wire.errors import Empty


def is_lines(data: bytes) -> bool:
    """Several JSON objects, one a line: a stream of NDJSON, whatever it calls itself."""
    first, _, rest = data.strip().partition(b"\n")
    return first[:1] == b"{" and first[-1:] == b"}" and rest.lstrip()[:1] == b"{"


def as_chunks(answer: Reply) -> list[Chunk]:
    """A whole answer as the chunks of a stream, for a caller who asked for one."""
    chunks: list[Chunk] = []
    calls = 0
    for part in answer.parts:
        if isinstance(part, Text):
            chunks.append(Chunk(text=part.text))
        elif isinstance(part, Thinking):
            chunks.append(Chunk(thinking=part.text, signature=part.signature, redacted=part.redacted))
        elif isinstance(part, Refusal):
            chunks.append(Chunk(refusal=part.text))
        elif isinstance(part, ToolCall):
            chunks.append(Chunk(tools=(ToolPiece(calls, part.id, part.name, part.arguments, part.kind, part.signature),)))
            calls += 1
    chunks.append(Chunk(stop=answer.stop or Stop.END, finish=answer.finish, usage=answer.usage))
    return chunks


def put_together(chunks: list[Chunk]) -> Reply:
    """The first choice of a stream as a whole answer."""
    text, thinking, refusal = [], [], []
    thoughts: list[Thinking] = []
    calls: dict[int, dict[str, str]] = {}
    stop, finish, usage = None, "", None
    for chunk in chunks:
        usage = chunk.usage or usage
        if chunk.choice:
            continue
        text.append(chunk.text)
        thinking.append(chunk.thinking)
        refusal.append(chunk.refusal)
        if chunk.signature or chunk.redacted:
            # A signature ends the thinking that it signs: several of these in one answer stay apart.
            if chunk.signature or any(thinking):
                thoughts.append(Thinking("".join(thinking), signature=chunk.signature))
            if chunk.redacted:
                thoughts.append(Thinking(redacted=chunk.redacted))
            thinking = []
        if chunk.stop:
            stop, finish = chunk.stop, chunk.finish
        for piece in chunk.tools:
            call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": "", "kind": piece.kind, "signature": ""})
            call["id"] = call["id"] or piece.id
            call["name"] = call["name"] or piece.name
            call["arguments"] += piece.arguments
            call["signature"] = call["signature"] or piece.signature
    parts: list[Part] = [*thoughts]
    if joined := "".join(thinking):
        parts.append(Thinking(text=joined))
    if joined := "".join(text):
        parts.append(Text(joined))
    if joined := "".join(refusal):
        parts.append(Refusal(joined))
    parts += [ToolCall(c["id"], c["name"], c["arguments"], c["kind"], c["signature"]) for _, c in sorted(calls.items())]
    if not parts and stop in (None, Stop.END):
        raise Empty("The endpoint's stream held no answer.")
    return Reply(tuple(parts), stop or Stop.END, finish or "stop", usage)
