"""Models of simonw's `llm` and its plugins, where that package is installed beside the server: called in this process, paced and counted like all others.

Source: https://llm.datasette.io/en/stable/python-api.html. A plugin has no address: an endpoint of this kind may have any base URL, which is not used.
The plugin's own key store is not read; the endpoint's key goes to models that take one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from catalog.providers import Listed, Local, Provider
from wire import refusals
from wire.errors import UpstreamError

INSTALLED = importlib.util.find_spec("llm") is not None


class LlmPlugins(Provider):
    kind = "llm"
    title = "Plugins of llm, in this process"
    dialect = "openai-chat"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return "llm:" + served_name

    def models_url(self, base_url: str) -> str:
        return "llm:"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-llm-key": key} if key else {}

    def local(self) -> Local | None:
        from catalog import llm_calls

        return llm_calls.CALLS

    def read_models(self, body: Any) -> list[Listed]:
        return [Listed(str(item["id"]), item.get("facts") or {}) for item in body["data"]]

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, 0.0)


PROVIDER = LlmPlugins() if INSTALLED else None
