"""Hugging Face's router: each model is served by several providers, of which only those that are live count.

Source: https://huggingface.co/docs/inference-providers/hub-api.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed


class HuggingFace(Hub):
    name = "huggingface"
    title = "Hugging Face"

    def shows(self, plain: Plain) -> bool:
        return plain.host == "router.huggingface.co" or any("first_token_latency_ms" in str(one.get("providers"))[:2000] for one in plain.entries()[:5])

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        """Reads the plain list again without the providers that are down or still starting."""
        found = []
        for entry in plain.entries():
            providers = entry.get("providers")
            if not isinstance(providers, list) or (name := model_lists.name_of(entry)) is None:
                continue
            live = [one for one in providers if isinstance(one, Mapping) and one.get("status", "live") == "live"]
            if live:
                found.append(Listed(name, model_lists.facts_of({**entry, "providers": live}), model_lists.chats(entry, name)))
        return found


HUB = HuggingFace()
