"""Ollama: tags, what is loaded and with which window, and for each model that says no window yet what it is made of.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from catalog import model_lists, providers
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed

MOST_SHOWN = 40  # models that are asked after one by one
NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


class Ollama(Hub):
    name = "ollama"
    title = "Ollama"
    order = 40

    def shows(self, plain: Plain) -> bool:
        """Its own list is known by the digests, the OpenAI-compatible one by the owner of what comes from its library."""
        own = plain.body.get("models") if isinstance(plain.body, Mapping) else None
        return plain.owned_by("library") or (isinstance(own, list) and any(isinstance(one, Mapping) and {"digest", "details"} <= one.keys() for one in own))

    def probe(self, root: str) -> str | None:
        return f"{root}/api/version"

    def is_it(self, answer: Any) -> bool:
        return isinstance(answer, Mapping) and set(answer) == {"version"}

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        tags, running = ask.each([lambda: ask.get(f"{root}/api/tags"), lambda: ask.get(f"{root}/api/ps", quick=True)])
        own = providers.get("ollama").read_models(tags) if isinstance(tags, Mapping) else plain.models
        listed = {one.served_name: one for one in own}
        windows = loaded(running)
        blank = [name for name, one in listed.items() if one.chat and "context_window" not in one.facts and name not in windows][:MOST_SHOWN]
        shown = ask.each([lambda name=name: ask.post(f"{root}/api/show", {"model": name}) for name in blank])  # type: ignore[misc]
        found = []
        made_of = dict(zip(blank, shown, strict=True))
        for name, one in listed.items():
            facts = {**one.facts, **facts_of(made_of.get(name))}
            # What is loaded runs with the window that it was loaded with, whatever it was trained for.
            found.append(Listed(name, facts | ({"context_window": windows[name]} if name in windows else {}), one.chat))
        return found


def loaded(body: Any) -> dict[str, int]:
    """The windows of what runs now, by name."""
    items = body.get("models") if isinstance(body, Mapping) else None
    found: dict[str, int] = {}
    for item in items if isinstance(items, list) else []:
        if isinstance(item, Mapping) and (window := model_lists.tokens(item.get("context_length"))) is not None:
            found |= {name: window for field in ("name", "model") if isinstance(name := item.get(field), str)}
    return found


def facts_of(shown: Any) -> dict[str, Any]:
    """What /api/show tells: the window by the name of its architecture, unless the model's own parameters set a smaller one."""
    if not isinstance(shown, Mapping):
        return {}
    info = shown.get("model_info")
    info = info if isinstance(info, Mapping) else {}
    found = {name: said for name, said in model_lists.facts_of({"capabilities": shown.get("capabilities")}).items()}
    window = model_lists.tokens(info.get(f"{info.get('general.architecture')}.context_length"))
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (said := NUM_CTX.search(parameters)):
        window = model_lists.tokens(said[1]) or window
    return found | ({"context_window": window} if window else {})


HUB = Ollama()
