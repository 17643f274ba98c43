"""A ChatGPT plan, as the Codex CLI reaches it: Responses at a private backend, which demands a few things of every body.

Nothing of it is documented for other programs, so it may change or end at any time. A demand that no longer holds can be overruled by a quirk of the endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from catalog import base_urls
from catalog.providers import Listed
from catalog.providers.openai_responses import OpenAIResponses
from catalog.token_claims import claim

# The list holds what this version of the CLI can use; `?client_version=…` in the base URL asks for another one's.
VERSION_FIELD, CLIENT_VERSION = "client_version", "0.153.4"
AUTH = "https://api.openai.com/auth"
ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,100}")
REFUSED = (
    *("max_output_tokens", "max_completion_tokens", "temperature", "top_p", "truncation", "user", "metadata", "safety_identifier"),
    *("prompt_cache_retention", "context_management", "stream_options"),
)


class ChatGPT(OpenAIResponses):
    kind = "chatgpt"
    title = "ChatGPT plan (Codex)"
    demands: Mapping[str, Any] = {
        "always_stream": True,
        "store": False,
        "instructions": "You are a helpful assistant.",
        "input_list": True,
        "system_role": "developer",
        "refuses": " ".join(REFUSED),
    }

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return call_url(base_url, "responses")

    def count_url(self, base_url: str, served_name: str) -> str | None:
        return None

    def models_url(self, base_url: str) -> str:
        url = call_url(base_url, "models")
        return url if f"{VERSION_FIELD}=" in url else base_urls.with_parameter(url, VERSION_FIELD, CLIENT_VERSION)

    def headers(self, key: str) -> dict[str, str]:
        account = claim(key, AUTH, "chatgpt_account_id")
        return super().headers(key) | ({"chatgpt-account-id": account} if ACCOUNT.fullmatch(account) else {})

    def read_models(self, body: Any) -> list[Listed]:
        """Its own list names models by `slug`, and holds some that are not meant to be chosen."""
        given = body.get("models") if isinstance(body, Mapping) else None
        if not isinstance(given, list):
            return super().read_models(body)
        offered = [one if not isinstance(one, Mapping) else {**one, "id": one.get("slug") or one.get("id")} for one in given if not is_hidden(one)]
        thinking = {one["id"] for one in offered if isinstance(one, Mapping) and one.get("supported_reasoning_levels") and isinstance(one["id"], str)}
        listed = super().read_models({"data": offered})
        return [replace(one, facts={"reasoning": True, **one.facts}) if one.served_name in thinking else one for one in listed]


def call_url(base_url: str, call: str) -> str:
    """The address of a call. What was pasted may end in a call's path: nothing else of its paths is called so."""
    parts = urlsplit(base_url.strip())
    path = parts.path.rstrip("/")
    for one in ("/responses", "/models"):
        path = path.removesuffix(one)
    return urlunsplit(parts._replace(path=f"{path}/{call}", fragment=""))


def is_hidden(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("visibility") in ("hide", "none")


PROVIDER = ChatGPT()
