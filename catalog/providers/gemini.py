"""Google's Gemini API, and servers that speak its format.

Source: https://ai.google.dev/api/all-methods. The model and the method stand in the address; the key goes as a header, never into it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from catalog import base_urls, model_lists
from catalog.providers import Listed, Provider
from wire import refusals
from wire.errors import UpstreamError

VERSION = "v1beta"
MOST_LISTED = 1000  # the list gives fifty at a time unless asked
RESOURCE = "models/"
# What people copy besides the server's address: a call's own, or that of the OpenAI-compatible side.
TAIL = re.compile(r"(?P<root>/v\d[\w.]*(?:/[^/]+)*?)/(?:openai|models)(?:/.*)?$")


class Gemini(Provider):
    kind = "gemini"
    title = "Google Gemini"
    dialect = "gemini"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        url = self.method_url(base_url, served_name, "streamGenerateContent" if stream else "generateContent")
        return with_query(url, "alt=sse") if stream else url

    def count_url(self, base_url: str, served_name: str) -> str | None:
        return self.method_url(base_url, served_name, "countTokens")

    def models_url(self, base_url: str) -> str:
        return with_query(base_urls.call_url(bare(base_url), "models", VERSION), f"pageSize={MOST_LISTED}")

    def next_page(self, url: str, body: Any) -> str | None:
        token = body.get("nextPageToken") if isinstance(body, Mapping) else None
        return base_urls.with_parameter(url, "pageToken", token) if isinstance(token, str) and token else None

    def method_url(self, base_url: str, served_name: str, method: str) -> str:
        name = served_name if served_name.startswith((RESOURCE, "tunedModels/")) else RESOURCE + served_name
        return base_urls.call_url(bare(base_url), f"{quote(name, safe='/:@')}:{method}", VERSION)

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def read_models(self, body: Any) -> list[Listed]:
        """The list holds embedding and media models too, which answer by other methods."""
        entries = body.get("models") if isinstance(body, Mapping) else None
        if isinstance(entries, list):
            body = {"models": [without_prefix(e) for e in entries]}
        return model_lists.read(body)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, time.time())


def bare(base_url: str) -> str:
    parts = urlsplit(base_url.strip())
    return urlunsplit(parts._replace(path=TAIL.sub(r"\g<root>", parts.path)))


def with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def without_prefix(entry: Any) -> Any:
    """The name as it is asked for. `baseModelId` and `displayName` would not answer."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return {**entry, "id": name.removeprefix(RESOURCE)} if isinstance(name, str) and name else entry


PROVIDER = Gemini()
