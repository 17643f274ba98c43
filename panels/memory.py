"""How route mode knows a conversation again, and what it keeps of one: digests of what clients repeat, in one table that all processes share.

First hit wins: the client's own session mark, a session header, what the dialect calls a cache key or conversation, an id of a tool call
that went out here, the longest known prefix of the history. Everything within one key and collection.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import connection

from access.caller import Caller
from panels.models import Pin
from wire.conversation import Image, Message, Request, Role, Text, Thinking, ToolCall, ToolResult

IDLE = timedelta(hours=24)
SESSION_HEADERS = ("x-session-id", "x-session-affinity", "session-id", "session_id", "thread-id", "x-conversation-id")
# How far back a history is looked through: beyond, a longer prefix has been known for long.
PREFIXES, TOOL_IDS = 48, 24
KEPT_IN_MEMORY = 20_000
# What stands last in an id that somebody drew by lot: "call_0" or "functions.read:1" come again in the next conversation.
DRAWN = re.compile(r"[0-9A-Za-z]{8,}$")
RESTORED = {"restored": True}  # this thinking was kept here for the model that gets it back: its signature may be trusted


@dataclass(frozen=True, slots=True)
class Known:
    """What stands under one digest. Shape: `kind` mark, tool, prefix or thought; `payload` JSON text of parts kept for a tool call."""

    kind: str
    model: str
    payload: str
    used_at: datetime


@dataclass(frozen=True, slots=True)
class Trail:
    """What a request shows of its conversation, as digests. Shape: `pins` in order of sureness; `tools` by tool call id; `thoughts` by signature or text."""

    marks: tuple[str, ...]
    tools: Mapping[str, str]
    prefixes: tuple[str, ...]  # longest first
    thoughts: Mapping[str, str]
    whole: str  # the prefix that is the whole request

    @property
    def pins(self) -> list[str]:
        return [*self.marks, *self.tools.values(), *self.prefixes]

    @property
    def digests(self) -> list[str]:
        return [*dict.fromkeys([*self.pins, *self.thoughts.values()])]


def scope_of(caller: Caller, collection: str) -> str:
    return f"{caller.key_id or caller.judge}|{collection}|"


def digest(scope: str, kind: str, text: str) -> str:
    return hashlib.sha256(f"{scope}{kind}|{text}".encode("utf-8", "surrogatepass")).hexdigest()


def trail_of(request: Request, headers: Mapping[str, str], scope: str) -> Trail:
    """Reads what a request shows. Pure."""
    own = [m for m in request.marks if m.startswith("claude:")]
    sessions = [f"session:{headers[name]}" for name in SESSION_HEADERS if headers.get(name)][:1]
    other = [m for m in request.marks if m not in own]
    tools: dict[str, str] = {}
    thoughts: dict[str, str] = {}
    root = root_of(request)
    chain, prefixes = hashlib.sha256(scope.encode()), []
    for message in request.messages:
        chain.update(canonical(message))
        if message.role in (Role.USER, Role.TOOL):
            prefixes.append(chain.hexdigest())
        for part in message.parts:
            if isinstance(part, ToolCall) and part.id:
                tools[part.id] = digest(scope, "tool", unmistakable(part.id, root))
            elif isinstance(part, Thinking) and (said := part.signature or part.redacted or part.text):
                thoughts[said] = digest(scope, "thought", said)
    recent_tools = dict(list(tools.items())[-TOOL_IDS:][::-1])
    return Trail(
        marks=tuple([digest(scope, "mark", m) for m in (*own, *sessions, *other)]),
        tools=recent_tools,
        prefixes=tuple(prefixes[-PREFIXES:][::-1]),
        thoughts=thoughts,
        whole=chain.hexdigest(),
    )


def root_of(request: Request) -> str:
    """What a conversation began with."""
    first = next((m for m in request.messages if m.role is Role.USER), None)
    return hashlib.sha256(canonical(first)).hexdigest() if first else ""


def unmistakable(call_id: str, root: str) -> str:
    """An id that no other conversation has. Some servers count their calls, from 0 each time: such a one holds together with the beginning only."""
    return call_id if DRAWN.search(call_id) else f"{call_id}|{root}"


def canonical(message: Message) -> bytes:
    """A message as its meaning: however a client writes it again, the same bytes. Ids, cache marks, thinking and empty texts do not count."""
    out: list[Any] = [message.role.value]
    text = "".join(p.text for p in message.parts if isinstance(p, Text)).strip()
    if text:
        out.append(text)
    for part in message.parts:
        if isinstance(part, ToolCall):
            out.append([part.name, same_arguments(part.arguments)])
        elif isinstance(part, ToolResult):
            out.append(["result", "".join(p.text for p in part.parts if isinstance(p, Text)).strip()])
        elif isinstance(part, Image):
            out.append(["image", hashlib.sha256((part.data or part.url).encode()).hexdigest()])
    return orjson.dumps(out)


def same_arguments(text: str) -> str:
    try:
        return orjson.dumps(orjson.loads(text or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONDecodeError:
        return text


class Memory:
    """What one process remembers of the table: what it wrote itself must be known before the table knows it."""

    def __init__(self) -> None:
        self.recent: OrderedDict[str, Known] = OrderedDict()

    def known(self, digests: Sequence[str], stored: Mapping[str, Known], now: datetime) -> dict[str, Known]:
        found = dict(stored)
        for name in digests:
            mine = self.recent.get(name)
            if mine and (name not in found or found[name].used_at <= mine.used_at):
                found[name] = mine
        return {name: known for name, known in found.items() if known.used_at > now - IDLE}

    def note(self, items: Sequence[Mapping[str, Any]]) -> None:
        for item in items:
            self.recent[item["digest"]] = Known(item["kind"], item["model"], item["payload"], datetime.fromisoformat(item["used_at"]))
            self.recent.move_to_end(item["digest"])
        while len(self.recent) > KEPT_IN_MEMORY:
            self.recent.popitem(last=False)


def look_up(digests: Sequence[str]) -> dict[str, Known]:
    """Reads the table, in one query."""
    rows = Pin.objects.filter(digest__in=list(digests)).values_list("digest", "kind", "model", "payload", "used_at")
    return {name: Known(kind, model, payload, used_at) for name, kind, model, payload, used_at in rows}


def pinned(trail: Trail, known: Mapping[str, Known]) -> str | None:
    """The member that a conversation stays with, by the surest thing known of it."""
    return next((known[name].model for name in trail.pins if name in known), None)


# ------------------------------------------------------------------ what a turn leaves behind


def items_of(trail: Trail, request: Request, parts: Sequence[Any], model: str, known: Mapping[str, Known], scope: str, now: datetime) -> list[dict[str, Any]]:
    """What a turn that succeeded leaves: its pins, the ids of its tool calls with the reasoning before them, whose its thinking is.

    A title or safety call, without tools and without a history, leaves no mark: it must not choose the member of the conversation whose mark it bears.
    """
    at = now.isoformat()

    def item(name: str, kind: str, payload: str = "") -> dict[str, Any]:
        return {"digest": name, "kind": kind, "model": model, "payload": payload, "used_at": at}

    chooses = bool(request.tools) or any(m.role is Role.ASSISTANT for m in request.messages)
    items = [item(name, "mark") for name in trail.marks] if chooses else []
    items.append(item(trail.whole, "prefix"))
    thinking = [p for p in parts if isinstance(p, Thinking)]
    # By its text too: a client whose format has no signatures repeats only that.
    for said in dict.fromkeys([s for part in thinking for s in (part.signature, part.redacted, part.text) if s]):
        items.append(item(digest(scope, "thought", said), "thought"))
    root = root_of(request)
    for part in parts:
        if isinstance(part, ToolCall) and part.id:
            items.append(item(digest(scope, "tool", unmistakable(part.id, root)), "tool", kept(part, thinking)))
    return [i for i in items if not is_fresh(known.get(i["digest"]), model, now) or i["payload"]]


def is_fresh(known: Known | None, model: str, now: datetime) -> bool:
    """What stands there already, written lately, needs no second write."""
    return known is not None and known.model == model and known.used_at > now - timedelta(minutes=10)


def kept(call: ToolCall, thinking: Sequence[Thinking]) -> str:
    if not call.signature and not thinking:
        return ""
    return orjson.dumps({"signature": call.signature, "thinking": [[t.text, t.signature, t.redacted] for t in thinking]}).decode()


def restored(request: Request, trail: Trail, known: Mapping[str, Known], model: str) -> Request:
    """Puts back, for the member that made it, the reasoning that the client's format could not carry. For requests that are translated."""
    messages, changed = [], False
    for message in request.messages:
        parts = list(message.parts)
        if message.role is Role.ASSISTANT:
            thoughts: list[Any] = []
            for place, part in enumerate(parts):
                found = known.get(trail.tools.get(part.id, "")) if isinstance(part, ToolCall) else None
                if not (isinstance(part, ToolCall) and found and found.payload and found.model == model):
                    continue
                payload = orjson.loads(found.payload)
                if payload["signature"] and not part.signature:
                    parts[place] = replace(part, signature=payload["signature"])
                    changed = True
                thoughts = thoughts or payload["thinking"]
            if thoughts:
                # What the client says again of it is the same thought, but only what was kept here can be vouched for.
                parts = [p for p in parts if not isinstance(p, Thinking)]
                first = next(i for i, p in enumerate(parts) if isinstance(p, ToolCall))
                parts[first:first] = [Thinking(text=t, signature=s, redacted=r, extra=RESTORED) for t, s, r in thoughts]
                changed = True
        messages.append(replace(message, parts=tuple(parts)))
    return replace(request, messages=tuple(messages)) if changed else request


def is_foreign(part: Thinking, trail: Trail, known: Mapping[str, Known], model: str) -> bool:
    """Whether a thought is known to be another model's. What nobody knows is not foreign."""
    found = known.get(trail.thoughts.get(part.signature or part.redacted or part.text, ""))
    return found is not None and found.model != model


# ------------------------------------------------------------------ committing

PUT = (
    "INSERT INTO panels_pin (digest, kind, model, payload, used_at) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (digest) DO UPDATE SET"
    " model = excluded.model, payload = CASE WHEN excluded.payload = '' THEN panels_pin.payload ELSE excluded.payload END, used_at = excluded.used_at"
    " WHERE excluded.used_at >= panels_pin.used_at"
)


def commit_pins(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    adapt = connection.ops.adapt_datetimefield_value
    rows = sorted(items, key=lambda i: (i["digest"], i["used_at"]))
    cursor.executemany(PUT, [[i["digest"], i["kind"], i["model"], i["payload"], adapt(datetime.fromisoformat(i["used_at"]))] for i in rows])


def forget_idle(now: datetime | None = None) -> None:
    """Deletes what nobody came back to for 24 hours. A job."""
    Pin.objects.filter(used_at__lt=(now or datetime.now(UTC)) - IDLE).delete()
