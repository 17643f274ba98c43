"""llama.cpp's server: the window that is really loaded, and what the template and the projector can, stand under /props.

Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed


class LlamaCpp(Hub):
    name = "llama_cpp"
    title = "llama.cpp"
    order = 60

    def shows(self, plain: Plain) -> bool:
        return plain.owned_by("llamacpp") or plain.headers.get("server", "").startswith("llama.cpp")

    def probe(self, root: str) -> str | None:
        return f"{root}/props"

    def is_it(self, answer: Any) -> bool:
        return isinstance(answer, Mapping) and isinstance(answer.get("default_generation_settings"), Mapping)

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        """Its properties are those of the one model that runs; a server that switches between several tells them of none."""
        if len(plain.models) != 1:
            return []
        return [Listed(plain.models[0].served_name, facts_of(ask.get(f"{root}/props", quick=True)), plain.models[0].chat)]


def facts_of(props: Any) -> dict[str, Any]:
    """The window is one slot's: a server with four slots has a quarter of its memory for each call."""
    found = {
        "context_window": model_lists.tokens(model_lists.at(props, "default_generation_settings.n_ctx")),
        "vision": model_lists.truth(model_lists.at(props, "modalities.vision")),
        "audio": model_lists.truth(model_lists.at(props, "modalities.audio")),
        "tools": model_lists.truth(model_lists.at(props, "chat_template_caps.supports_tools")),
    }
    return {name: said for name, said in found.items() if said is not None}


HUB = LlamaCpp()
