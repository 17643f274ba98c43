"""LM Studio: its own list tells windows, loaded and possible, and what a model can; the plain one has names alone.

Source: https://lmstudio.ai/docs/developer/rest/list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed


class LMStudio(Hub):
    name = "lm_studio"
    title = "LM Studio"
    order = 20

    def shows(self, plain: Plain) -> bool:
        return plain.owned_by("organization_owner")

    def probe(self, root: str) -> str | None:
        return f"{root}/api/v1/models"

    def is_it(self, answer: Any) -> bool:
        return bool(entries(answer))

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        found = []
        for entry in entries(ask.get(f"{root}/api/v1/models")):
            facts, chat = model_lists.facts_of(entry), entry.get("type") != "embedding"
            found.append(Listed(entry["key"], facts, chat))
            # A second copy that is loaded has a name of its own, "key:2".
            loaded = entry.get("loaded_instances")
            ids = [one.get("id") for one in loaded if isinstance(one, Mapping)] if isinstance(loaded, list) else []
            found += [Listed(name, facts, chat) for name in ids if isinstance(name, str) and name != entry["key"]]
        return found


def entries(body: Any) -> list[Mapping[str, Any]]:
    """Only this server calls a model's name its key."""
    models = body.get("models") if isinstance(body, Mapping) else None
    return [one for one in models if isinstance(one, Mapping) and isinstance(one.get("key"), str) and one["key"]] if isinstance(models, list) else []


HUB = LMStudio()
