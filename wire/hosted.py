"""Tools that a provider's own servers run (web search, code execution …): no other provider can."""

from __future__ import annotations

from wire.conversation import Request, Tool
from wire.errors import CallerError

# Of these the caller gets the calls and runs them.
CALLERS = frozenset({"function", "custom"})


def callers_tools(request: Request) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools that go to a provider of another format, and what to name of those that cannot.

    Errors: CallerError 400 where none is left or the one that must be called is among them: the answer would be another one.
    """
    kept = tuple(t for t in request.tools if t.kind in CALLERS)
    if len(kept) == len(request.tools):
        return kept, ()
    gone = [t for t in request.tools if t.kind not in CALLERS]
    choice = request.tool_choice
    wanted = choice.name if choice and choice.mode == "tool" else ""
    forced = next((t for t in gone if wanted and t.name == wanted), None)
    if not kept or forced:
        first = forced or gone[0]
        place = f"tools[{request.tools.index(first)}]"
        raise CallerError(
            "invalid_request",
            f"{place} ({first.kind}) is run by the servers of another kind of provider. Leave it out, or ask a model behind such a provider.",
            field=place,
        )
    return kept, tuple(f"tools: {t.kind}" for t in gone)
