"""A conversation as Gemini's turns: results right behind their calls, attachments by their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from wire.conversation import File, Image, Message, Part, Refusal, Role, Text, Thinking, ToolCall, ToolResult
from wire.dialects._gemini_wants import Wants
from wire.errors import CallerError
from wire.jsontext import parse_upstream

Json = dict[str, Any]

# What Google's documentation gives for calls that its models did not make and that hence bear no signature.
# https://ai.google.dev/gemini-api/docs/thought-signatures
UNSIGNED = "skip_thought_signature_validator"
NO_RESULT = "No result: the call was interrupted."
BEGIN = "Please begin."
IMAGE_HEADS = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
AUDIO_TYPES = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.S)


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
