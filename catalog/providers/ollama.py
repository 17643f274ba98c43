"""Ollama's own API.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from catalog import model_lists
from catalog.providers import Listed, Provider
from wire import refusals
from wire.errors import UpstreamError


class Ollama(Provider):
    kind = "ollama"
    title = "Ollama"
    dialect = "ollama"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return self.address(base_url, "chat")

    def models_url(self, base_url: str) -> str:
        return self.address(base_url, "tags")

    def address(self, base_url: str, last: str) -> str:
        """People copy the address of the OpenAI-compatible side (/v1), of a call (/api/chat), or of the server."""
        parts = urlsplit(base_url.strip())
        segments = [s for s in parts.path.split("/") if s]
        while segments and segments[-1] in CALLS:
            segments.pop()
        return urlunsplit((parts.scheme, parts.netloc, "/" + "/".join([*segments, "api", last]), parts.query, ""))

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def read_models(self, body: Any) -> list[Listed]:
        items = body.get("models") if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise ValueError("no list of models")
        named = [(item.get("model") or item.get("name"), item) for item in items if isinstance(item, dict)]
        return [Listed(name, model_lists.facts_of(item), model_lists.chats(item, name)) for name, item in named if isinstance(name, str) and name]

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, time.time())


CALLS = frozenset({"v1", "api", "chat", "completions", "generate", "tags"})
PROVIDER = Ollama()
