"""A verdict on real work as private tasks: what a judge found real or false in an answer, with what was asked as the code.

Real and false claims of one panel are each other's controls: the same code, the same kind of sentence, one true and one false.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from access.caller import Caller
from panels import again, lookup, verdicts
from suite.api.problems import Conflict, Missing, Unprocessable, Wrong
from suite.models import Row, Subset
from suite.review import keeping

SLUG = "verdicts"
LONGEST_CODE = 200_000


@dataclass(frozen=True, slots=True)
class Kept:
    """Shape: `task_ids` of what the verdict says; `changed` those that stand there with the other answer, since rows never change."""

    subset: Subset
    added: int
    task_ids: tuple[str, ...]
    changed: tuple[str, ...]
    has_control: bool


def keep(caller: Caller, call: str) -> Kept:
    """Keeps the claims that a caller judged in one answer, in a rolling subset that only they see.

    Errors: Missing for a call or a verdict that is not theirs, Unprocessable where nothing can be asked again, CallerError 403 for somebody else's panel.
    """
    found = lookup.call(call) if call.isprintable() else None
    mine = [one for one in verdicts.current_of_calls([call]).get(call, []) if one.judge == caller.judge] if found is not None else []
    if found is None or not mine:
        raise Missing("verdict of yours on the call", call, "verdict_not_found")
    verdict = mine[0]
    judged = [(claim, True) for claim in verdict.real] + [(claim, False) for claim in verdict.false]
    if not judged:
        raise Unprocessable(
            "nothing_to_ask",
            "The verdict names no claim. Say which claims of the answer are real and which false, then keep it as a task.",
            [Wrong("/call", "nothing_to_ask", "was judged without claims.")],
        )
    code = asked_of(caller, found.panel)
    now = timezone.now()
    rows = [row_of(found.panel, call, claim, value, code, f"{now:%Y-%m-%d}") for claim, value in dict(judged).items()]
    parent = keeping.benchmark(keeping.CLAIM, f"claim-verdicts-{caller.owner}"[:200], caller.owner, caller.team)
    subset, added = keeping.keep(parent, SLUG, "What verdicts said", "Claims of answers that were judged.", "claim", rows, caller.owner, rolling=True)
    there = {row.task_id: row for row in Row.objects.filter(subset=subset, task_id__in=[row["task_id"] for row in rows])}
    changed = tuple(row["task_id"] for row in rows if answer_of(there[row["task_id"]]) != row["expected"]["value"])
    if changed and not added:
        raise Conflict("task_conflict", f"{', '.join(changed[:5])} is there with the other answer, and rows never change.", task_ids=list(changed))
    has_control = len({value for _, value in judged}) == 2
    return Kept(subset, added, tuple(row["task_id"] for row in rows), changed, has_control)


def asked_of(caller: Caller, panel: str) -> str:
    """Gives what a panel was asked, as one text. Errors: Unprocessable where it is kept no longer."""
    messages = again.asked(panel, caller).messages or []
    texts = [text for message in messages if message.get("role") == "user" for text in texts_of(message.get("content"))]
    found = "\n\n".join(texts).strip()
    if not found:
        raise Unprocessable("nothing_to_ask", "What the panel was asked is not kept any more, so nobody can be asked about it.")
    if len(found) > LONGEST_CODE:
        raise Unprocessable("nothing_to_ask", f"What the panel was asked is longer than {LONGEST_CODE:,} characters.")
    return found


def texts_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if isinstance(part, dict) and isinstance(part.get("text"), str)]


def row_of(panel: str, call: str, claim: str, value: bool, code: str, date: str) -> dict[str, Any]:
    name = hashlib.sha256(f"{panel}\n{claim}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {
        "task_id": f"verdict-{name}",
        "input": {"claim": claim, "code": code},
        "expected": {"value": value},
        "source": {"origin": "verdict", "pair": panel, "task_id": call, "date": date, "verified": "verdict"},
        "cluster": panel,
    }


def answer_of(row: Row) -> bool | None:
    import json

    found = json.loads(row.body)["expected"]
    return found.get("value") if isinstance(found, dict) else None
