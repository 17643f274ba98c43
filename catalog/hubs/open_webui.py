"""Open WebUI: each entry of its own list keeps what the server behind it said.

Source: https://docs.openwebui.com/getting-started/api-endpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed

BEHIND = {"openai", "ollama"}  # under which it keeps the entry of the server behind it


class OpenWebUI(Hub):
    name = "open_webui"
    title = "Open WebUI"
    order = 10  # before Ollama: it answers Ollama's question as well

    def shows(self, plain: Plain) -> bool:
        """What stands behind it may be any server, so its own marks count and not the owner's."""
        return any("connection_type" in one or ("urlIdx" in one and BEHIND & one.keys()) for one in plain.entries())

    def probe(self, root: str) -> str | None:
        return f"{root}/api/config"

    def is_it(self, answer: Any) -> bool:
        return isinstance(answer, Mapping) and isinstance(answer.get("features"), Mapping) and "version" in answer

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        return [Listed(name, facts_of(entry), chats(entry, name)) for entry, name in named(ask.get(f"{root}/api/models"))]


def named(body: Any) -> list[tuple[Mapping[str, Any], str]]:
    return [(entry, name) for entry in model_lists.entries(body) if isinstance(entry, Mapping) and (name := model_lists.name_of(entry))]


def behind(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the server behind it said, the closest last."""
    return [said for said in (entry, entry.get("ollama"), entry.get("openai")) if isinstance(said, Mapping)]


def facts_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A window that somebody set for a model of Ollama holds. Its switches for images and files say what the page offers, not what the model can."""
    found: dict[str, Any] = {}
    for said in behind(entry):
        found |= model_lists.facts_of({k: v for k, v in said.items() if k != "info"})
    if isinstance(entry.get("ollama"), Mapping) and (window := model_lists.tokens(model_lists.at(entry, "info.params.num_ctx"))) is not None:
        found["context_window"] = window
    return found


def chats(entry: Mapping[str, Any], name: str) -> bool:
    return all(model_lists.chats(said, name) for said in behind(entry))


HUB = OpenWebUI()
