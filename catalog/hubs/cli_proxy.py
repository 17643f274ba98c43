"""CLI Proxy API: its OpenAI list has names alone; the one in Gemini's shape, on the same server, tells windows and limits.

Source: https://github.com/router-for-me/CLIProxyAPI, internal/api/server_routes.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed

NAMES = ("CLI Proxy API Server", "CPA Server")


class CLIProxy(Hub):
    name = "cli_proxy"
    title = "CLI Proxy API"
    order = 70

    def probe(self, root: str) -> str | None:
        return f"{root}/"

    def is_it(self, answer: Any) -> bool:
        return isinstance(answer, Mapping) and answer.get("message") in NAMES

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        found = []
        for entry in model_lists.entries(ask.get(f"{root}/v1beta/models?pageSize=1000")):
            name = entry.get("name") if isinstance(entry, Mapping) else None
            if isinstance(name, str) and (name := name.removeprefix("models/")):
                found.append(Listed(name, model_lists.facts_of(entry), model_lists.chats(entry, name)))
        return found


HUB = CLIProxy()
