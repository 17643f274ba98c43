"""LiteLLM's proxy: what it knows of its deployments stands under /model/info, folded by name under /model_group/info; a plain key may be refused both.

Source: https://docs.litellm.ai/docs/proxy/model_management.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalog import facts, model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed
from catalog.web import WebError


class LiteLLM(Hub):
    name = "litellm"
    title = "LiteLLM"
    order = 30

    def shows(self, plain: Plain) -> bool:
        return any(name.startswith("x-litellm-") for name in plain.headers)

    def probe(self, root: str) -> str | None:
        return f"{root}/health/liveliness"

    def is_it(self, answer: Any) -> bool:
        return isinstance(answer, str) and answer.strip().strip('"') == "I'm alive!"

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        try:
            return read(ask.get(f"{root}/model/info"))
        except (WebError, ValueError):
            return read(ask.get(f"{root}/model_group/info"))


def read(body: Any) -> list[Listed]:
    """Reads either list. One name may stand for several deployments, any of which may answer: what holds of all of them is told."""
    found: dict[str, list[tuple[dict[str, Any], bool]]] = {}
    for entry in model_lists.entries(body):
        name = entry.get("model_name") or entry.get("model_group") if isinstance(entry, Mapping) else None
        if isinstance(name, str) and name:
            found.setdefault(name, []).append((model_lists.facts_of(entry), model_lists.chats(entry, name)))
    return [Listed(name, folded([told for told, _ in several]), all(chat for _, chat in several)) for name, several in found.items()]


def folded(several: list[dict[str, Any]]) -> dict[str, Any]:
    """The least window and limit, what all of them can, and the dearest price, so that no cost is told too low."""
    together: dict[str, Any] = {}
    for fact in model_lists.WHERE:
        said = [told[fact] for told in several if fact in told]
        if not said:
            continue
        if fact in facts.PRICE_FIELDS:
            together[fact] = max(said, key=Decimal)
        else:
            together[fact] = all(said) if isinstance(said[0], bool) else min(said)
    return together


HUB = LiteLLM()
