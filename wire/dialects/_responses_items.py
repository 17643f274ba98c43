"""Items of the Responses format: a flat list of messages, reasoning, calls and their outputs, to a conversation's messages and back."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from wire.conversation import File, Image, Message, Part, Refusal, Role, Text, Thinking, Tool, ToolCall, ToolResult
from wire.dialects._openai_chat_in import DATA_URL, read_image
from wire.dialects._responses_tools import CALLS, CLIENT_SIDE, Shown, call_item, id_prefix, is_whole, joined, read_tools, wrapped
from wire.errors import CallerError
from wire.fields import missing, obj, optional_text, text, wrong

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
# Ids of items that were made here tell which answer they belong to: `msg_<its ULID>_<place>`.
OURS = re.compile(r"[a-z]{2,4}_([0-9A-HJKMNP-TV-Z]{26})_\d{1,6}")
# What another format signs its thinking with stands here as encrypted content, behind this mark; what this format encrypts travels elsewhere as a signature.
SEAL = "bw1."
TAG = "openai-responses:"
OUTPUTS = frozenset({f"{kind}_output" for kind in CALLS})  # some of these bear the call's id as their own


def item_id(prefix: str, answer_id: str, place: int) -> str:
    return f"{prefix}_{answer_id.partition('_')[2] or answer_id}_{place}"


# ------------------------------------------------------------------ what is opaque


def sealed(signature: str, redacted: str = "") -> str:
    """Another format's signature or encrypted block as encrypted content; one that came from this format as it was."""
    if signature.startswith(TAG):
        return signature[len(TAG) :]
    if not (signature or redacted):
        return ""
    return SEAL + base64.urlsafe_b64encode(orjson.dumps([signature, redacted])).decode()


def unsealed(encrypted: str) -> tuple[str, str]:
    """Signature and encrypted block as they were. Ours that somebody changed are nothing."""
    if not encrypted:
        return "", ""
    if not encrypted.startswith(SEAL):
        return TAG + encrypted, ""
    try:
        found = orjson.loads(base64.urlsafe_b64decode(encrypted[len(SEAL) :]))
    except (ValueError, binascii.Error):
        return "", ""
    if isinstance(found, list) and len(found) == 2 and all(isinstance(f, str) for f in found):
        return found[0], found[1]
    return "", ""


# ------------------------------------------------------------------ items in


class Items:
    """Reads items into messages.

    Shape: `named` are earlier items by their ids, which references stand for; `tools` stand among the items, or were found by a tool search;
    `unread` and `only_here` as in `wire.conversation.Request`.
    """

    def __init__(self, named: Mapping[str, dict[str, Any]] | None = None) -> None:
        self.named = dict(named or {})
        self.resolved: dict[str, dict[str, Any]] = {}  # what was referred to, by its id
        self.messages: list[Message] = []
        self.group: list[Part] = []  # the assistant's turn that is being gathered
        self.callers: dict[str, str] = {}  # the shown name by call id
        self.tools: list[Tool] = []
        self.unread: list[str] = []
        self.only_here: list[str] = []

    def read(self, items: Iterable[Any], path: str) -> tuple[Message, ...]:
        for i, item in enumerate(items):
            self.item(item, f"{path}[{i}]")
        self.flush()
        return tuple(self.messages)

    def flush(self) -> None:
        if self.group:
            self.messages.append(Message(Role.ASSISTANT, tuple(self.group)))
            self.group = []

    def item(self, value: Any, path: str) -> None:
        item = obj(value, path)
        if isinstance(given_id := item.get("id"), str):
            self.named.setdefault(given_id, item)
        kind = optional_text(item, "type", f"{path}.") or ("message" if "role" in item else "")
        if not kind:
            raise missing(f"{path}.type")
        if kind == "message":
            self.message(item, path)
        elif kind == "item_reference":
            self.reference(item, path)
        elif kind == "reasoning":
            self.group += [part for part in (read_reasoning(item),) if part.text or part.signature or part.redacted]
        elif kind in ("function_call", "custom_tool_call") or kind in CALLS:
            self.call(kind, item, path)
        elif kind in ("function_call_output", "custom_tool_call_output") or (kind.endswith("_output") and ("call_id" in item or kind in OUTPUTS)):
            self.result(kind, item, path)
        elif kind.endswith("_call") and isinstance(item.get("call_id"), str):
            rest = {k: v for k, v in item.items() if k not in ("type", "id", "status", "call_id")}
            self.add_call(item["call_id"], kind.removesuffix("_call"), orjson.dumps(rest).decode())
        elif kind == "additional_tools":  # newer Codex gives its tools here
            self.tools += read_tools(item.get("tools"), f"{path}.tools")
        elif kind == "compaction":
            self.only_here.append(f"{path} (compaction)")
        elif not kind.endswith("_call"):  # a call that a provider ran itself has said in its answer what came of it
            self.unread.append(f"input.{kind[:40]}")

    def message(self, item: dict[str, Any], path: str) -> None:
        if "role" not in item:
            raise missing(f"{path}.role")
        role = ROLES.get(text(item["role"], f"{path}.role"))
        if role is None:
            raise CallerError("invalid_request", f"{path}.role must be developer, system, user or assistant.", field=f"{path}.role")
        if "content" not in item:
            raise missing(f"{path}.content")
        parts = self.content(item["content"], f"{path}.content")
        if role is not Role.ASSISTANT:
            self.flush()
            self.messages.append(Message(role, tuple(parts)))
            return
        # A second text is a second message, unless calls still wait for their results: nothing may come between these.
        if any(isinstance(p, Text) for p in self.group) and not any(isinstance(p, ToolCall) for p in self.group):
            self.flush()
        self.group += parts

    def content(self, value: Any, path: str) -> list[Part]:
        if value is None:
            return []
        if isinstance(value, str):
            return [Text(value)] if value else []
        if not isinstance(value, list):
            raise wrong(path, "a string or a list of parts", value)
        return [self.part(p, f"{path}[{i}]") for i, p in enumerate(value)]

    def part(self, value: Any, path: str) -> Part:
        if isinstance(value, str):
            return Text(value)
        part = obj(value, path)
        kind = optional_text(part, "type", f"{path}.") or ("input_text" if "text" in part else "")
        if not kind:
            raise missing(f"{path}.type")
        if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
            return Text(text(part.get("text"), f"{path}.text"))
        if kind == "refusal":
            return Refusal(text(part.get("refusal"), f"{path}.refusal"))
        if kind in ("input_image", "image_url", "computer_screenshot") and part.get("image_url") is not None:
            source = part["image_url"]
            url = source.get("url") if isinstance(source, dict) else source
            return read_image(text(url, f"{path}.image_url"), optional_text(part, "detail", f"{path}."))
        if kind == "input_file" and not part.get("file_id"):
            return read_file(part, path)
        if kind == "input_audio":
            audio = obj(part.get("input_audio", part), f"{path}.input_audio")
            return File("audio", f"audio/{optional_text(audio, 'format', f'{path}.') or 'wav'}", text(audio.get("data"), f"{path}.input_audio.data"))
        self.only_here.append(f"{path} ({kind[:40]}{' by file_id' if 'file_id' in part else ''})")
        return Image(extra=part) if kind == "input_image" else File("file", name=kind[:40], extra=part)

    def reference(self, item: dict[str, Any], path: str) -> None:
        found = self.named.get(text(item.get("id"), f"{path}.id"))
        if found is not None and found.get("type") != "item_reference":
            self.resolved[item["id"]] = found
            self.item(found, path)
        else:
            self.only_here.append(f"{path} (item_reference)")

    def call(self, kind: str, item: dict[str, Any], path: str) -> None:
        call_id = optional_text(item, "call_id", f"{path}.") or optional_text(item, "id", f"{path}.")
        if not call_id:
            raise missing(f"{path}.call_id")
        if kind in CALLS:
            side = CLIENT_SIDE[CALLS[kind]]
            given = item.get(side.field)
            fields = {k: v for k, v in given.items() if side.inside.get(k) != v} if isinstance(given, dict) else {}
            self.add_call(call_id, CALLS[kind], given if isinstance(given, str) else orjson.dumps(fields).decode())
            return
        name = joined(optional_text(item, "namespace", f"{path}."), text(item.get("name"), f"{path}.name"))
        if kind == "custom_tool_call":
            self.add_call(call_id, name, wrapped(optional_text(item, "input", f"{path}.")))
            return
        arguments = item.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = orjson.dumps(arguments).decode()
        self.add_call(call_id, name, arguments or "{}")

    def add_call(self, call_id: str, name: str, arguments: str) -> None:
        self.callers[call_id] = name
        self.group.append(ToolCall(call_id, name, arguments))

    def result(self, kind: str, item: dict[str, Any], path: str) -> None:
        call_id = optional_text(item, "call_id", f"{path}.") or (optional_text(item, "id", f"{path}.") if kind in OUTPUTS else "")
        if not call_id:
            raise missing(f"{path}.call_id")
        self.flush()
        if kind == "tool_search_output":
            found = read_tools(item.get("tools"), f"{path}.tools")
            self.tools += found
            names = "\n".join(t.name for t in found)  # what they are for stands among the tools
            parts: list[Part] = [Text(f"Tools found:\n{names}" if names else "No tools found.")]
        else:
            output = item.get("output")
            is_parts = isinstance(output, list) and all(isinstance(p, dict) and isinstance(p.get("type"), str) for p in output)
            if output is None or isinstance(output, str) or is_parts:
                parts = self.content(output, f"{path}.output")
            elif isinstance(output, dict) and output.get("type") == "computer_screenshot":
                parts = [self.part(output, f"{path}.output")]
            else:
                parts = [Text(orjson.dumps(output).decode())]
        failed = item.get("status") in ("failed", "incomplete")
        self.messages.append(Message(Role.TOOL, (ToolResult(call_id, tuple(parts), is_error=failed, name=self.callers.get(call_id, "")),)))


def read_file(part: Mapping[str, Any], path: str) -> File:
    data, url = optional_text(part, "file_data", f"{path}."), optional_text(part, "file_url", f"{path}.")
    name, media = optional_text(part, "filename", f"{path}."), ""
    if found := DATA_URL.match(data):
        media, data = found[1].strip().lower(), found[3]
    return File("file", media or ("application/pdf" if name.lower().endswith(".pdf") else ""), data, url, name)


def read_reasoning(item: Mapping[str, Any]) -> Thinking:
    """A thought by its summary, else by its own text."""
    said = [texts_of(item.get(field)) for field in ("summary", "content")]
    encrypted = item.get("encrypted_content")
    signature, redacted = unsealed(encrypted if isinstance(encrypted, str) else "")
    return Thinking("\n\n".join(said[0] or said[1]), signature, redacted)


def texts_of(parts: Any) -> list[str]:
    return [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str) and p["text"]] if isinstance(parts, list) else []


# ------------------------------------------------------------------ an answer's items


def read_output(items: Iterable[Any]) -> tuple[Part, ...]:
    """What a provider's answer holds, for callers of any format. What it ran on its own side is left out: its answer tells of it."""
    parts: list[Part] = []
    for item in items:
        if not isinstance(item, dict):
            continue
        kind = item.get("type")
        if kind == "reasoning":
            thought = read_reasoning(item)
            parts += [thought] if thought.text or thought.signature or thought.redacted else []
        elif kind == "message":
            content = item.get("content")
            for part in content if isinstance(content, list) else [{"text": content}]:
                if isinstance(part, dict) and isinstance(said := part.get("text"), str) and said:
                    parts.append(Text(said))
                elif isinstance(part, dict) and isinstance(said := part.get("refusal"), str) and said:
                    parts.append(Refusal(said))
        elif call := read_call(item):
            parts.append(call)
    return tuple(parts)


def read_call(item: Mapping[str, Any]) -> ToolCall | None:
    """A call that the caller is to answer, None for any other item."""
    kind = item.get("type")
    call_id = next((c for c in (item.get("call_id"), item.get("id")) if isinstance(c, str) and c), "")
    if kind == "function_call" and isinstance(item.get("name"), str):
        arguments = item.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else orjson.dumps(arguments).decode()
        return ToolCall(call_id, joined(space_of(item), item["name"]), text)
    if kind == "custom_tool_call" and isinstance(item.get("name"), str):
        given = item.get("input")
        return ToolCall(call_id, joined(space_of(item), item["name"]), given if isinstance(given, str) else "", kind="custom")
    if isinstance(kind, str) and kind in CALLS and item.get("call_id"):
        given = item.get(CLIENT_SIDE[CALLS[kind]].field)
        return ToolCall(call_id, CALLS[kind], orjson.dumps(given if isinstance(given, dict) else {}).decode())
    return None


def space_of(item: Mapping[str, Any]) -> str:
    namespace = item.get("namespace")
    return namespace if isinstance(namespace, str) else ""


def message_item(item: str, parts: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    return {"id": item, "type": "message", "status": status, "role": "assistant", "content": parts}


def reasoning_item(item: str, summary: list[str], encrypted: str) -> dict[str, Any]:
    made = {"id": item, "type": "reasoning", "summary": [{"type": "summary_text", "text": said} for said in summary if said]}
    return {**made, "encrypted_content": encrypted} if encrypted else made


def content_part(kind: str, said: str) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": "refusal", "refusal": said}
    return {"type": "output_text", "text": said, "annotations": [], "logprobs": []}


def write_output(parts: Iterable[Part], answer_id: str, known: Mapping[str, Shown], cut: bool) -> list[dict[str, Any]]:
    """A whole answer's items. `cut`: its end is missing, so a call whose arguments are no JSON is told as incomplete."""
    items: list[dict[str, Any]] = []
    for part in parts:
        place = len(items)
        if isinstance(part, Thinking):
            items.append(reasoning_item(item_id("rs", answer_id, place), [part.text], sealed(part.signature, part.redacted)))
        elif isinstance(part, Text | Refusal):
            made = content_part("refusal" if isinstance(part, Refusal) else "output_text", part.text)
            if items and items[-1]["type"] == "message":
                items[-1]["content"].append(made)
            else:
                items.append(message_item(item_id("msg", answer_id, place), [made], "completed"))
        elif isinstance(part, ToolCall):
            status = "incomplete" if cut and part.kind != "custom" and part.arguments and not is_whole(part.arguments) else "completed"
            made_id = item_id(id_prefix(part.name, part.kind, known), answer_id, place)
            items.append(call_item(made_id, part.id, part.name, part.arguments, part.kind, known, status))
    return items
