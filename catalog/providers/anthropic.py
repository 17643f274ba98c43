"""Anthropic's own API, and servers that speak its format.

Source: https://platform.claude.com/docs/en/api/overview, its errors page and its model list.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from catalog import base_urls, model_lists
from catalog.providers import Listed, Provider
from wire import refusals
from wire.errors import UpstreamError

CALLS = ("messages", "messages/count_tokens", "models", "complete")
VERSION = "2023-06-01"
MOST_LISTED = 1000  # the list gives twenty at a time unless asked
# Where its model list tells facts. Each flag is an object: {"supported": true}.
CAPABILITIES = {"vision": "image_input", "files": "pdf_input", "structured_output": "structured_outputs", "reasoning": "thinking"}


class Anthropic(Provider):
    kind = "anthropic"
    title = "Anthropic"
    dialect = "anthropic-messages"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return base_urls.call_url(base_url, "messages", "v1", CALLS)

    def count_url(self, base_url: str, served_name: str) -> str | None:
        return base_urls.call_url(base_url, "messages/count_tokens", "v1", CALLS)

    def models_url(self, base_url: str) -> str:
        url = base_urls.call_url(base_url, "models", "v1", CALLS)
        return f"{url}{'&' if '?' in url else '?'}limit={MOST_LISTED}"

    def next_page(self, url: str, body: Any) -> str | None:
        if not isinstance(body, Mapping) or body.get("has_more") is not True:
            return None
        last = body.get("last_id")
        return base_urls.with_parameter(url, "after_id", last) if isinstance(last, str) and last else None

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def read_models(self, body: Any) -> list[Listed]:
        entries = body.get("data") if isinstance(body, Mapping) else None
        entries = entries if isinstance(entries, list) else []
        told = {e["id"]: facts_of(e) for e in entries if isinstance(e, Mapping) and isinstance(e.get("id"), str)}
        return [Listed(m.served_name, {**m.facts, **told.get(m.served_name, {})}, m.chat) for m in model_lists.read(body)]

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, time.time())


def facts_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry of this API's own list tells: window, output limit, and what the model can."""
    found: dict[str, Any] = {}
    for fact, field in (("context_window", "max_input_tokens"), ("output_limit", "max_tokens")):
        if (tokens := model_lists.tokens(entry.get(field))) is not None:
            found[fact] = tokens
    for fact, field in CAPABILITIES.items():
        flag = model_lists.at(entry, f"capabilities.{field}.supported")
        if isinstance(flag, bool):
            found[fact] = flag
    if found.keys() & CAPABILITIES.keys():
        found["tools"] = True  # every model of this API takes tools; its list has no flag for it
    return found


PROVIDER = Anthropic()
