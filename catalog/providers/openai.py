"""OpenAI-compatible chat: OpenAI itself, and most hubs, clouds and local servers.

Source: https://platform.openai.com/docs/api-reference, and the model lists of OpenRouter, Groq, Together, vLLM, llama.cpp, LiteLLM, Ollama and Hugging Face.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from catalog import base_urls, model_lists
from catalog.providers import Listed, Provider
from wire import refusals
from wire.errors import UpstreamError

CALLS = ("chat/completions", "completions", "models", "responses", "embeddings")
# Roots that take no version part though they show none. Patterns over "host/path".
BARE_ROOTS = (
    r"models\.github\.ai/inference",
    r"models\.inference\.ai\.azure\.com",
    r"api\.githubcopilot\.com",
    r".*/openai/deployments/[^/]+",  # Azure, by deployment
    r".*/serving-endpoints",  # Databricks
    r".*/api/gateway",  # Kilo
)
# Servers whose list stands elsewhere than beside their calls, by host.
LISTS_ELSEWHERE = {"models.github.ai": "https://models.github.ai/catalog/models"}


class OpenAI(Provider):
    kind = "openai"
    title = "OpenAI-compatible chat"
    dialect = "openai-chat"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return base_urls.call_url(base_url, "chat/completions", "v1", CALLS, BARE_ROOTS)

    def models_url(self, base_url: str) -> str:
        if elsewhere := LISTS_ELSEWHERE.get((urlsplit(base_url.strip()).hostname or "").lower()):
            return elsewhere
        return base_urls.call_url(base_url, "models", "v1", CALLS, BARE_ROOTS)

    def next_page(self, url: str, body: Any) -> str | None:
        """OpenRouter's way; most servers give all at once. Another host's page is not asked: it would get the key."""
        said = model_lists.at(body, "links.next")
        if not isinstance(said, str) or not said:
            return None
        following = urljoin(url, said)
        return following if urlsplit(following)[:2] == urlsplit(url)[:2] else None

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def read_models(self, body: Any) -> list[Listed]:
        return model_lists.read(body)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, time.time())


PROVIDER = OpenAI()
