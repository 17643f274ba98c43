"""The four tools as agents see them: names, schemas, and descriptions that carry the rules of asking a bench."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RULES = (
    "Four rules. (1) Ask a collection, not a favourite model: the point is that several models disagree where one alone would mislead you. "
    "(2) Verify before acting: an answer is a claim, so check it against the code, the data or a test before anything depends on it. "
    "(3) Name every seat when you report: say which model said what, also which ones failed, were skipped or disagreed. "
    "(4) Send a verdict for each seat you judged, with its call id; the verdicts decide who sits on later panels."
)
INSTRUCTIONS = (
    "Benchwarmers asks a bench of models, a collection, one question at once and gives you every answer under the name of its seat. "
    f"Use list_collections, then ask, check what was said, then verdict. {RULES}"
)


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


@dataclass(frozen=True, slots=True)
class Tool:
    """Shape: `fields` are the arguments' JSON schemas by name; `hints` the protocol's annotations; `scope` what a caller needs to use it."""

    name: str
    title: str
    description: str
    scope: str
    fields: dict[str, Any]
    required: tuple[str, ...] = ()
    hints: dict[str, bool] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": self.fields, "required": list(self.required)}


TOOLS = (
    Tool(
        "list_collections",
        "List collections",
        "Lists the collections that you may ask: name, description, the shape of work each is for, how many member seats it has and how many "
        "explorers (models that have gone unused longest) sit with them. Ask a collection by what your work is, not by which model you like.",
        "ask",
        {},
        hints={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    ),
    Tool(
        "ask",
        "Ask a collection",
        "Asks every seat of a collection the same question at once and returns each answer under a heading with the model's alias, the kind of seat "
        "and its call id; structuredContent.bench holds the same as data. A panel can take minutes. Seats see nothing but `prompt` and `system`: "
        f"no files, no tools, no earlier conversation, so put in all that they need. {RULES}",
        "ask",
        {
            "collection": text("The collection's name, as list_collections tells it."),
            "prompt": text("The whole question, with the code or text that it is about."),
            "merged": {
                "type": "boolean",
                "default": False,
                "description": "True: one more model merges the answers into one that cites the seats and keeps their dissent. "
                "False: all answers side by side, which are easier to verify.",
            },
            "with": texts("Aliases of models to seat besides the members, for this one panel. A member named here keeps its one seat."),
            "system": text("System instructions for every seat.", default=""),
        },
        ("collection", "prompt"),
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True},
    ),
    Tool(
        "verdict",
        "Send a verdict",
        "Keeps what you found of one seat's answer once you have verified it. Send one verdict for each seat you judged, not one for the panel, and only for "
        "claims that you checked. Give at least one of useful, real and false. A second verdict on the same call replaces your first.",
        "judge",
        {
            "call": text("The seat's call id (call_…), from its heading or from structuredContent.bench.seats."),
            "useful": {"type": ["boolean", "null"], "description": "Whether the answer helped. Null: not judged as a whole."},
            "note": text("Why, in a sentence or two.", default=""),
            "real": texts("Claims of the answer that hold, each as a short sentence."),
            "false": texts("Claims of the answer that do not hold."),
        },
        ("call",),
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    ),
    Tool(
        "pending_verdicts",
        "List pending verdicts",
        "Lists your panels with seats that nobody has judged yet, oldest first: panel id, when it was asked, collection, and each seat's call id and model. "
        "For each seat you have verified since, send a verdict.",
        "judge",
        {
            "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50, "description": "How many panels to list."},
            "page_token": text("The `next` of the list before, to go on from there.", default=""),
            "calls": texts(
                "Only these seats, by their call ids, whoever asked them. Whoever knows a call's id may judge it, and so may learn whether that was done."
            ),
        },
        hints={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    ),
)
