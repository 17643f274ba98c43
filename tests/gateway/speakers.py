"""The five formats that clients ask in, as far as a test needs one to say the same thing in each of them and to read what came back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from tests.http import Reply, Stream, events_of
from tests.live import Bench

PIXEL = "iVBORw0KGgo="
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Told:
    """What a client makes of a stream. `finished`: it was told that the answer is whole. `error` is the code of the error event."""

    text: str = ""
    finished: bool = False
    error: str = ""
    seats: Any = None
    bench: Any = None


@dataclass(frozen=True, slots=True)
class Speaker:
    """One format. `path` and `body` make a request of a model, a prompt and more fields; `read` understands a stream's parts.

    `tools` and `seeing` are what the format calls a tool list and an image; `alive` is its keepalive before any content.
    """

    name: str
    path: Callable[[str, bool], str]
    body: Callable[[str, bool], dict[str, Any]]
    tools: dict[str, Any]
    no_tools: dict[str, Any]
    seeing: dict[str, Any]
    alive: tuple[bytes, ...]
    code: Callable[[Any], str]
    text: Callable[[Any], str]
    read: Callable[[list[Any]], Told]
    takes_tools: bool = True
    several: dict[str, Any] | None = None

    def ask(self, bench: Bench, model: str, *, key: str | None = None, **more: Any) -> Reply:
        return bench.load().live.send("POST", self.path(model, False), {**self.body(model, False), **more}, key=key)

    def stream(self, bench: Bench, model: str, **more: Any) -> Stream:
        data = json.dumps({**self.body(model, True), **more}).encode()
        live = bench.load().live
        return Stream(live.host, live.port, self.path(model, True), data, {"content-type": "application/json"})

    def until_alive(self, stream: Stream, times: int) -> None:
        """Reads until the format's keepalive has come so often. Errors: AssertionError where the stream ends before."""
        while sum(stream.got.count(mark) for mark in self.alive) < times:
            piece = stream.response.read1(65536)
            assert piece, f"the stream ended: {stream.got[-300:]!r}"
            stream.got += piece

    def told(self, body: bytes) -> Told:
        return self.read(list(parts_of(body, self.name)))


def parts_of(body: bytes, name: str) -> Iterator[Any]:
    """A stream's parts; what only keeps it alive is left out where the format says so itself."""
    if name.startswith("ollama"):
        assert body.endswith(b"\n")
        yield from (json.loads(line) for line in body.split(b"\n")[:-1])
    elif name == "gemini array":
        yield from json.loads(body)
    else:
        yield from events_of(body)


def chat_told(parts: list[Any]) -> Told:
    told = Told()
    for part in parts:
        if part == "[DONE]":
            assert not told.error, "[DONE] stands behind an error"
            return replace(told, finished=told.finished and part is parts[-1])
        assert not told.error
        if "error" in part:
            told = replace(told, error=part["error"]["code"], seats=part["error"].get("seats"))
            continue
        for choice in part["choices"]:
            told = replace(told, text=told.text + (choice["delta"].get("content") or ""), finished=told.finished or bool(choice["finish_reason"]))
        told = replace(told, bench=part.get("bench") or told.bench)
    return replace(told, finished=False)  # without its [DONE] it is not over


def responses_told(parts: list[Any]) -> Told:
    assert parts[0]["type"] == "response.created"
    assert [p["sequence_number"] for p in parts] == list(range(len(parts)))
    text = "".join(p["delta"] for p in parts if p["type"] == "response.output_text.delta")
    last = parts[-1]
    assert all(p["type"] not in ("response.completed", "response.failed", "response.incomplete") for p in parts[:-1])
    error = last["response"]["error"] if last["type"] == "response.failed" else None
    bench = last.get("bench") or last.get("response", {}).get("bench")
    return Told(text, last["type"] == "response.completed", error["code"] if error else "", error.get("seats") if error else None, bench)


def messages_told(parts: list[Any]) -> Told:
    told, is_open = Told(), False
    assert parts[0]["type"] in ("message_start", "error")
    for part in parts:
        assert not told.finished
        assert not told.error
        kind = part["type"]
        if kind == "content_block_start":
            assert not is_open
            is_open = True
        elif kind == "content_block_delta":
            assert is_open
            told = replace(told, text=told.text + part["delta"].get("text", ""))
        elif kind == "content_block_stop":
            assert is_open
            is_open = False
        elif kind == "message_delta":
            assert not is_open
            told = replace(told, bench=part.get("bench"))
        elif kind == "message_stop":
            told = replace(told, finished=True)
        elif kind == "error":
            told = replace(told, error=part["error"]["code"], seats=part["error"].get("seats"))
    return told


def gemini_told(parts: list[Any]) -> Told:
    told = Told()
    for part in parts:
        assert not told.error
        if "error" in part:
            told = replace(told, error=gemini_code(part), seats=part["error"].get("seats"))
            continue
        for candidate in part["candidates"]:
            text = "".join(p.get("text", "") for p in candidate.get("content", {}).get("parts", []))
            told = replace(told, text=told.text + text, finished=told.finished or bool(candidate.get("finishReason")))
        told = replace(told, bench=part.get("bench") or told.bench)
    return told


def ollama_told(parts: list[Any]) -> Told:
    told = Told()
    for part in parts:
        assert not told.finished
        assert not told.error
        if "error" in part:
            told = replace(told, error=part["code"], seats=part.get("seats"))
            continue
        told = replace(told, text=told.text + (part["message"]["content"] if "message" in part else part["response"]), finished=part["done"])
        told = replace(told, bench=part.get("bench"))
    return told


def gemini_code(body: Any) -> str:
    return str(body["error"]["details"][0]["reason"])


def gemini_text(body: Any) -> str:
    return "".join(p.get("text", "") for p in body["candidates"][0]["content"]["parts"])


FUNCTION = {"name": "look", "parameters": SCHEMA}

CHAT = Speaker(
    "openai-chat",
    path=lambda model, stream: "/v1/chat/completions",
    body=lambda model, stream: {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]},
    tools={"tools": [{"type": "function", "function": FUNCTION}]},
    no_tools={"tools": [], "tool_choice": "auto"},
    seeing={
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]}
        ]
    },
    alive=(b": keep-alive",),
    code=lambda body: str(body["error"]["code"]),
    text=lambda body: str(body["choices"][0]["message"]["content"]),
    read=chat_told,
    several={"n": 2},
)
RESPONSES = Speaker(
    "openai-responses",
    path=lambda model, stream: "/v1/responses",
    body=lambda model, stream: {"model": model, "stream": stream, "input": "hi"},
    tools={"tools": [{"type": "function", **FUNCTION}]},
    no_tools={"tools": [], "tool_choice": "auto"},
    seeing={
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "what?"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]}
        ]
    },
    alive=(b"response.",),
    code=lambda body: str(body["error"]["code"]),
    text=lambda body: "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"]),
    read=responses_told,
)
MESSAGES = Speaker(
    "anthropic-messages",
    path=lambda model, stream: "/v1/messages",
    body=lambda model, stream: {"model": model, "stream": stream, "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]},
    tools={"tools": [{"name": "look", "input_schema": SCHEMA}]},
    no_tools={"tools": []},
    seeing={
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "what?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}],
            }
        ]
    },
    alive=(b": keep-alive", b"event: ping"),
    code=lambda body: str(body["error"]["code"]),
    text=lambda body: "".join(block["text"] for block in body["content"]),
    read=messages_told,
)
GEMINI = Speaker(
    "gemini",
    path=lambda model, stream: f"/v1beta/models/{quote(model, safe='/:')}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}",
    body=lambda model, stream: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    tools={"tools": [{"functionDeclarations": [FUNCTION]}]},
    no_tools={"tools": []},
    seeing={"contents": [{"role": "user", "parts": [{"text": "what?"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}]},
    alive=(b'data: {"candidates":[]}',),
    code=gemini_code,
    text=gemini_text,
    read=gemini_told,
    several={"generationConfig": {"candidateCount": 2}},
)
ARRAY = replace(
    GEMINI,
    name="gemini array",
    path=lambda model, stream: f"/v1beta/models/{quote(model, safe='/:')}:{'streamGenerateContent' if stream else 'generateContent'}",
    alive=(b"\n",),
)
OLLAMA = Speaker(
    "ollama",
    path=lambda model, stream: "/api/chat",
    body=lambda model, stream: {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]},
    tools={"tools": [{"type": "function", "function": FUNCTION}]},
    no_tools={"tools": []},
    seeing={"messages": [{"role": "user", "content": "what?", "images": [PIXEL]}]},
    alive=(b" ",),
    code=lambda body: str(body["code"]),
    text=lambda body: str(body["message"]["content"]),
    read=ollama_told,
)
GENERATE = replace(
    OLLAMA,
    name="ollama generate",
    path=lambda model, stream: "/api/generate",
    body=lambda model, stream: {"model": model, "stream": stream, "prompt": "hi"},
    seeing={"prompt": "what?", "images": [PIXEL]},
    text=lambda body: str(body["response"]),
    takes_tools=False,
)
EVERY = (CHAT, RESPONSES, MESSAGES, GEMINI, ARRAY, OLLAMA, GENERATE)
