"""One answer from all: the merger reads the seats' answers without names and in shuffled order, and cites them by label. Pure rules."""

from __future__ import annotations

import random
from collections.abc import Sequence

from django.template.loader import get_template

from panels.outcome import SeatResult
from panels.plan import Plan
from panels.prompts import filled
from wire.conversation import Message, Request, Role, Text

TEMPLATE = "panels/merge.txt"
TEMPLATE_TOKENS = 350  # about what it takes besides the question and the answers


def shuffled(results: Sequence[SeatResult], seed: int) -> list[SeatResult]:
    """The answers in the order in which the merger reads them; position must not decide whom it believes."""
    order = sorted(results, key=lambda r: r.position)
    random.Random(f"merge {seed}").shuffle(order)
    return order


def label(index: int) -> str:
    return f"Answer {chr(ord('A') + index)}" if index < 26 else f"Answer {index + 1}"


def instructions(answers: Sequence[SeatResult], question: str, own: str | None) -> str:
    """What the merger is told. `own` is a collection's own prompt; the variables are the same.

    Shape: template variables `answers` (each with `label`, `text` and whether it is `cut_off`), `count`, `question`. Errors: PromptError.
    """
    context = {
        "answers": [{"label": label(i), "text": r.text.strip(), "cut_off": r.status != "ok"} for i, r in enumerate(answers)],
        "count": len(answers),
        "question": question,
    }
    if own:
        return filled(own, context)
    return str(get_template(TEMPLATE).render(context))


def merge_request(plan: Plan, answers: Sequence[SeatResult], own: str | None) -> Request:
    """What the merger is sent: the conversation's own words, then the answers to weigh."""
    asked = plan.request
    question = asked.messages[-1].text
    earlier = tuple(m for m in asked.messages[:-1] if m.role in (Role.SYSTEM, Role.USER, Role.ASSISTANT))
    return Request(
        dialect="",
        model=asked.model,
        messages=(*earlier, Message(Role.USER, (Text(instructions(answers, question, own)),))),
        stream=asked.stream,
        output_limit=asked.output_limit,
        sampling=asked.sampling,
        format=asked.format,
    )


def key_of_labels(answers: Sequence[SeatResult]) -> str:
    """The line after a merged text that says which label is which seat."""
    return "*" + ", ".join(f"{label(i)}: {r.model} · {r.seat} · {r.call}" for i, r in enumerate(answers)) + "*"
