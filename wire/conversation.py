"""What any chat API means, as frozen values: a request going up, events and a reply coming back.

Each wire format in `wire/dialects` reads its JSON into these and writes them as its JSON. What a format says that no value here
holds rides along in `extra` (by the format's own field names) or, whole, in `Request.raw` and `Chunk.raw`, so that the same format
on both sides loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, Any] = MappingProxyType({})  # an empty mapping that nobody can fill


# ------------------------------------------------------------------ parts of a message


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its bytes (`data`, base64) or by its address (`url`, public http or https)."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = ""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class File:
    """Audio, a document or any other attachment; `kind` is "audio" or "file"."""

    kind: str
    media_type: str = ""
    data: str = ""
    url: str = ""
    name: str = ""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. `signature` is opaque and goes back byte for byte; `redacted` holds an encrypted block instead of text."""

    text: str = ""
    signature: str = ""
    redacted: str = ""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` is JSON text, or for kind "custom" the raw input."""

    id: str
    name: str
    arguments: str
    kind: str = "function"
    signature: str = ""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    name: str = ""
    extra: Mapping[str, Any] | None = None

    @property
    def told(self) -> tuple[Part, ...]:
        """Its parts for a format that has no mark for a call that failed: the words say so."""
        if not self.is_error or any(isinstance(p, Text) and "error" in p.text[:100].lower() for p in self.parts):
            return self.parts
        first = self.parts[0] if self.parts else None
        if isinstance(first, Text):
            return (Text(f"Error: {first.text}"), *self.parts[1:])
        return (Text("Error."), *self.parts)


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str


Part = Text | Image | File | Thinking | ToolCall | ToolResult | Refusal


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]
    name: str = ""
    extra: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        return "".join(p.text for p in self.parts if isinstance(p, Text))


# ------------------------------------------------------------------ a request


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    kind: str = "function"
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """What only tunes. None means: not said."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """A promised shape of the answer: `kind` "json" or "schema"; then `schema`, its `name` and whether it is `strict`."""

    kind: str
    schema: Mapping[str, Any] | None = None
    name: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tool a model may or must call: `mode` is auto, none, required or tool (then `name`); `allowed` narrows the tools without hiding them."""

    mode: str
    name: str = ""
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How hard a model should think. Shape: `effort` is a provider's word (minimal, low, medium, high …), `enabled` None where not said.

    Units: `budget` tokens.
    """

    effort: str = ""
    budget: int | None = None
    enabled: bool | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request in any dialect.

    Shape: `raw` is the body as it came (its own dialect's fields), `headers` those of its headers that belong to its dialect and go on to a
    provider of the same; everything else is what was understood of it. `marks` are what tells one conversation from another, surest first.
    `operation` is "ask" or "count". Units: `output_limit` tokens.
    """

    dialect: str
    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    output_limit: int | None = None
    sampling: Sampling = Sampling()
    format: Format | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    reasoning: Reasoning | None = None
    parallel_tool_calls: bool | None = None
    choices: int = 1
    raw: Mapping[str, Any] | None = field(default=None, repr=False)
    usage_wanted: bool = False  # a stream's client asked for its usage
    headers: Mapping[str, str] | None = None
    marks: tuple[str, ...] = ()
    operation: str = "ask"
    unread: tuple[str, ...] = ()  # names of what came along and no value here holds: only a provider of the same format gets it
    bound: str = ""  # a field that only a provider of the same format can honour, and without which the answer would be another
    stream_form: str = ""  # how a stream is written, where the dialect knows several ways
    only_here: tuple[str, ...] = ()  # the same of what an answer would be another one without: a provider of another format cannot be asked

    @property
    def has_images(self) -> bool:
        return any(isinstance(p, Image) for m in self.messages for p in each_part(m.parts))

    @property
    def has_image_urls(self) -> bool:
        return any(isinstance(p, Image) and p.url for m in self.messages for p in each_part(m.parts))

    @property
    def has_audio(self) -> bool:
        return any(isinstance(p, File) and p.kind == "audio" for m in self.messages for p in each_part(m.parts))

    @property
    def has_files(self) -> bool:
        return any(isinstance(p, File) for m in self.messages for p in each_part(m.parts))


def each_part(parts: tuple[Part, ...]) -> Any:
    """Walks parts and what tool results hold inside."""
    for part in parts:
        yield part
        if isinstance(part, ToolResult):
            yield from each_part(part.parts)


# ------------------------------------------------------------------ what comes back


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    LENGTH = "length"
    TOOLS = "tools"
    SEQUENCE = "sequence"
    FILTER = "filter"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. `input` includes cache reads and writes, `output` includes reasoning; the others are parts of them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """One step of an answer. Any field may be empty; `raw` is the format's own event, for a client of the same format.

    `text`, `thinking` and `refusal` are increments. Tool calls come as pieces: each holds its index in the answer, and the first of a
    call its id and name. `choice` is which of several alternatives (n > 1) it belongs to.
    """

    text: str = ""
    thinking: str = ""
    signature: str = ""
    redacted: str = ""
    refusal: str = ""
    tools: tuple[ToolPiece, ...] = ()
    stop: Stop | None = None
    finish: str = ""  # the provider's own word for the stop reason
    usage: Usage | None = None
    choice: int = 0
    raw: Any = None

    @property
    def has_content(self) -> bool:
        return bool(self.text or self.thinking or self.refusal or self.tools or self.redacted)


@dataclass(frozen=True, slots=True)
class ToolPiece:
    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    kind: str = "function"
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `raw` is the provider's body where it came in one piece."""

    parts: tuple[Part, ...]
    stop: Stop | None
    finish: str = ""
    usage: Usage | None = None
    raw: Any = None

    @property
    def text(self) -> str:
        return "".join(p.text for p in self.parts if isinstance(p, Text))
