"""Turns as Anthropic's Messages format takes them: made of what was understood, or cleaned of what would poison a conversation."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from wire.conversation import File, Image, Message, Part, Refusal, Role, Text, Thinking, ToolCall, ToolResult
from wire.errors import CallerError

Block = dict[str, Any]

NO_RESULT = "No result: the call was interrupted."
BEGIN = "Please begin."
ID = re.compile(r"[a-zA-Z0-9_-]+")
NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
MEDIA_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
# The first characters of an image's base64, where nobody said what it is.
IMAGE_HEADS = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.S)


# ------------------------------------------------------------------ turns that are there


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


# ------------------------------------------------------------------ turns that are made


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
