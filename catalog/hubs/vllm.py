"""vLLM: its plain list tells the window it runs with.

Source: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html.
"""

from __future__ import annotations

from catalog import model_lists
from catalog.hubs import Ask, Hub, Plain
from catalog.providers import Listed


class VLLM(Hub):
    name = "vllm"
    title = "vLLM"

    def shows(self, plain: Plain) -> bool:
        return plain.owned_by("vllm")

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        """An adapter (LoRA) names the model that it sits on, and runs with that one's window."""
        facts = {one.served_name: one.facts for one in plain.models}
        found = []
        for entry in plain.entries():
            name, parent = model_lists.name_of(entry), entry.get("parent")
            if name and isinstance(parent, str) and parent in facts:
                found.append(Listed(name, {**facts[parent], **facts.get(name, {})}))
        return found


HUB = VLLM()
