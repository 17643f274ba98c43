"""OpenAI's Responses API, and servers that speak it: the same addresses, keys, lists and errors as the chat API's."""

from __future__ import annotations

from catalog import base_urls
from catalog.providers.openai import BARE_ROOTS, CALLS, OpenAI

COUNTS = "responses/input_tokens"


class OpenAIResponses(OpenAI):
    kind = "openai-responses"
    title = "OpenAI Responses"
    dialect = "openai-responses"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return base_urls.call_url(base_url, "responses", "v1", CALLS, BARE_ROOTS)

    def count_url(self, base_url: str, served_name: str) -> str | None:
        return base_urls.call_url(base_url, COUNTS, "v1", CALLS, BARE_ROOTS)


PROVIDER = OpenAIResponses()
