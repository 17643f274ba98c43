"""The request that a program would make first, so that a page can try the connection as that program would. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from panels.connecting import PROMPT, Client

MOST_TOKENS = 200  # models that think first need some


@dataclass(frozen=True, slots=True)
class Try:
    """One request as a client makes it. Shape: `path` below the server's address; `header` carries the key, `before` stands in front of it."""

    method: str
    path: str
    header: str
    before: str
    body: Any
    spends: bool


def listing() -> Try:
    """The request for what the key may ask for: it costs nothing."""
    return Try("GET", "/v1/models", "Authorization", "Bearer ", None, spends=False)


def tested(client: Client, model: str) -> Try:
    """The client's own kind of request: one short question, or, of a client that brings tools in, what tools there are."""
    return TESTS[client.test](model)


def priced(model: str) -> dict[str, Any]:
    """The question as `POST /bench/estimate` takes it: what the try should cost, before it is made."""
    return {"model": model, "max_completion_tokens": MOST_TOKENS, "messages": [{"role": "user", "content": PROMPT}]}


def by_chat(model: str) -> Try:
    body = {"model": model, "max_tokens": MOST_TOKENS, "messages": [{"role": "user", "content": PROMPT}]}
    return Try("POST", "/v1/chat/completions", "Authorization", "Bearer ", body, spends=True)


def by_responses(model: str) -> Try:
    return Try(
        "POST", "/v1/responses", "Authorization", "Bearer ", {"model": model, "max_output_tokens": MOST_TOKENS, "input": PROMPT, "store": False}, spends=True
    )


def by_messages(model: str) -> Try:
    body = {"model": model, "max_tokens": MOST_TOKENS, "messages": [{"role": "user", "content": PROMPT}]}
    return Try("POST", "/v1/messages", "x-api-key", "", body, spends=True)


def by_gemini(model: str) -> Try:
    body = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}], "generationConfig": {"maxOutputTokens": MOST_TOKENS}}
    return Try("POST", f"/v1beta/models/{quote(model, safe='/:')}:generateContent", "x-goog-api-key", "", body, spends=True)


def by_ollama(model: str) -> Try:
    body = {"model": model, "stream": False, "options": {"num_predict": MOST_TOKENS}, "messages": [{"role": "user", "content": PROMPT}]}
    return Try("POST", "/api/chat", "Authorization", "Bearer ", body, spends=True)


def by_mcp(model: str) -> Try:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return Try("POST", "/mcp", "Authorization", "Bearer ", body, spends=False)


TESTS: dict[str, Callable[[str], Try]] = {
    "chat": by_chat,
    "responses": by_responses,
    "messages": by_messages,
    "gemini": by_gemini,
    "ollama": by_ollama,
    "mcp": by_mcp,
}
