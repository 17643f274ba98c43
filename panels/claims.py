"""What a merger lists as the claims of several answers: asked for, read, and held against the answers it quotes. Pure rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.template.loader import get_template

from panels.merge import label
from panels.outcome import SeatResult
from wire.conversation import Format, Message, Request, Role, Text

TEMPLATE = "panels/compare.txt"
MOST, TEXT_MAX, QUOTE_MAX = 60, 1_000, 1_000
KINDS = ("shared", "unique", "contradicted")
FENCED = re.compile(r"```[A-Za-z]*\s*\n(.*?)```", re.S)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["claims"],
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["text", "kind", "seats"],
                "properties": {
                    "text": {"type": "string"},
                    "kind": {"type": "string", "enum": list(KINDS)},
                    "seats": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["answer", "quote"],
                            "properties": {"answer": {"type": "string"}, "quote": {"type": "string"}},
                        },
                    },
                },
            },
        }
    },
}


class Unreadable(ValueError):
    """What came is no list of claims."""


@dataclass(frozen=True, slots=True)
class Found:
    """Claims that hold up. Shape: each `{text, kind, seats: [{call, quote}]}`; how many claims and quotes were dropped."""

    claims: tuple[dict[str, Any], ...]
    dropped_claims: int
    dropped_quotes: int


def instructions(answers: Sequence[SeatResult], question: str) -> str:
    """What the merger is told. Shape: template variables as `panels.merge` has them, and `most` claims."""
    context = {
        "answers": [{"label": label(i), "text": r.text.strip(), "cut_off": r.status != "ok"} for i, r in enumerate(answers)],
        "count": len(answers),
        "question": question,
        "most": MOST,
    }
    return str(get_template(TEMPLATE).render(context))


def request_for(answers: Sequence[SeatResult], question: str, model: str, in_shape: bool) -> Request:
    """What the merger is sent. `in_shape`: its provider is asked to hold it to the schema."""
    shape = Format("schema", SCHEMA, "claims", True) if in_shape else None
    return Request(dialect="", model=model, messages=(Message(Role.USER, (Text(instructions(answers, question)),)),), format=shape)


# ------------------------------------------------------------------ reading


def read(text: str, answers: Sequence[SeatResult]) -> Found:
    """Reads what a merger wrote. Errors: Unreadable."""
    listed = listed_in(text)
    by_label = {name: r for i, r in enumerate(answers) for name in (label(i).casefold(), label(i).removeprefix("Answer ").casefold())}
    plain = {r.call: flat(r.text) for r in answers}
    claims: list[dict[str, Any]] = []
    dropped_claims = dropped_quotes = 0
    for claim in listed:
        said = claim.get("text") if isinstance(claim, dict) else None
        if not isinstance(said, str) or not said.strip():
            dropped_claims += 1
            continue
        seats: dict[tuple[str, str], None] = {}
        quoted = claim.get("seats")
        for one in quoted if isinstance(quoted, list) else ():
            named, quote = (one.get("answer"), one.get("quote")) if isinstance(one, dict) else (None, None)
            result = by_label.get(str(named).strip().strip("()[]").casefold())
            words = flat(quote) if isinstance(quote, str) else ""
            if result is None or not words or len(words) > QUOTE_MAX or words not in plain[result.call]:
                dropped_quotes += 1
            else:
                seats[result.call, words] = None
        if not seats:
            dropped_claims += 1
            continue
        kind = kind_of(claim.get("kind"), len({call for call, _ in seats}))
        claims.append({"text": said.strip()[:TEXT_MAX], "kind": kind, "seats": [{"call": call, "quote": quote} for call, quote in seats]})
    return Found(tuple(claims[:MOST]), dropped_claims + max(len(claims) - MOST, 0), dropped_quotes)


def kind_of(said: object, seats: int) -> str:
    """What a claim is by the quotes that held: one answer alone shares and contradicts nothing."""
    if seats < 2:
        return "unique"
    return "contradicted" if said == "contradicted" else "shared"


def flat(text: str) -> str:
    """A text with each stretch of white space as one space."""
    return " ".join(text.split())


def listed_in(text: str) -> list[Any]:
    for candidate in candidates(text):
        try:
            value = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        found = value.get("claims") if isinstance(value, dict) else value
        if isinstance(found, list):
            return found
    raise Unreadable("What the merger wrote is no list of claims.")


def candidates(text: str) -> Iterator[str]:
    """Where in an answer the JSON may stand: all of it, inside fences, or between the outermost braces of what thinks aloud before it."""
    yield text
    yield from FENCED.findall(text)
    for opening, closing in (("{", "}"), ("[", "]")):
        first, last = text.find(opening), text.rfind(closing)
        if 0 <= first < last:
            yield text[first : last + 1]
    if (at := text.rfind('{"claims"')) >= 0 and (last := text.rfind("}")) > at:
        yield text[at : last + 1]
