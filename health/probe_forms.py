"""In which form a model takes a small question at the lowest cost, and which form is tried after a refusal. Pure.

A model is asked in the cheapest form first. What it refuses it refuses for nothing, and says why: the next form follows from its words. The form that
went through is remembered, so that the ladder is climbed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from wire.conversation import Message, Reasoning, Request, Role, Sampling, Text

# Units: tokens. What a word may take; thinking, where it cannot be switched off, comes out of it.
LIMITS = (1, 16, 128, 1024, 4096)
# Least thinking first; an empty effort says nothing of it.
EFFORTS = ("none", "minimal", "low", "")
LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
MOST_TRIES = 6

TOKENS = re.compile(r"max_(?:completion_|output_|new_)?tokens|maxoutputtokens|num_predict|output (?:tokens?|limit)", re.IGNORECASE)
LEAST = re.compile(r"(?:>=|≥|at least|minimum(?: value)?(?: is| of)?:?|no less than|greater than or equal to|not be less than)\s*(\d{1,6})", re.IGNORECASE)
THINKING = re.compile(r"reasoning|effort|thinking", re.IGNORECASE)

NOT_CHAT = re.compile(
    r"(?:^|[^a-z])(?:embed(?:ding)?s?|rerank(?:er)?|whisper|transcri(?:be|ption)|tts|asr|speech|dall-?e|gpt-image|imagen|stable-diffusion|sdxl|flux|veo|sora"
    r"|moderation|text-to-(?:image|speech|video)|image-generation|bge|e5|clip|ocr)(?:$|[^a-z])|embedding",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Form:
    """How a question is put. Shape: `effort` empty: nothing is said of thinking; `limit_name` empty: as the roster's quirks have it.

    Units: `output_limit` tokens that one word may take; None: no limit is said.
    """

    output_limit: int | None = LIMITS[0]
    effort: str = ""
    limit_name: str = ""
    temperature: bool = True
    stream: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def first(reasons: bool | None) -> Form:
    """The form to begin with: models known to think need room even where thinking is switched off."""
    return Form(output_limit=LIMITS[2], effort=EFFORTS[0]) if reasons else Form()


def remembered(kept: Mapping[str, Any], reasons: bool | None) -> Form:
    """The form that went through last time, the first one where nothing (readable) is kept."""
    start = first(reasons)
    limit, effort = kept.get("output_limit", start.output_limit), kept.get("effort", start.effort)
    if not (limit is None or (isinstance(limit, int) and limit > 0)) or effort not in EFFORTS:
        return start
    limit_name = kept.get("limit_name", "")
    return Form(limit, effort, limit_name if limit_name in LIMIT_NAMES else "", kept.get("temperature", True) is not False, kept.get("stream", False) is True)


def after_refusal(form: Form, message: str, asks_temperature: bool = False) -> Form | None:
    """The form to try next after a refusal that says this; None where no other form would please it."""
    said = message.lower()
    if asks_temperature and form.temperature and "temperature" in said:
        return replace(form, temperature=False)
    if "max_completion_tokens" in said and form.limit_name != "max_completion_tokens" and "max_tokens" in said.replace("max_completion_tokens", ""):
        return replace(form, limit_name="max_completion_tokens")
    if "max_completion_tokens" in said and re.search(r"unknown|unrecogni[sz]ed|unexpected|extra|unsupported", said) and form.limit_name != "max_tokens":
        return replace(form, limit_name="max_tokens")
    if form.effort and THINKING.search(said):
        return with_less_said(form)
    if TOKENS.search(said) and form.output_limit is not None:
        return with_more_room(form, least=int(found[1]) if (found := LEAST.search(message)) else 0)
    if not form.stream and "stream" in said:
        return replace(form, stream=True)
    return with_less_said(form) if form.effort else None


def with_less_said(form: Form) -> Form:
    """The next effort that a model may know."""
    return replace(form, effort=EFFORTS[EFFORTS.index(form.effort) + 1])


def with_more_room(form: Form, least: int = 0) -> Form | None:
    """The next output limit, at least as large as the model asks for; None where there is none larger."""
    if form.output_limit is None:
        return None
    if least > form.output_limit:
        return replace(form, output_limit=least)
    return replace(form, output_limit=next((n for n in LIMITS if n > form.output_limit), None))


def limit_of(form: Form, words_tokens: int, most: int | None) -> int | None:
    """The output limit of a question whose answer takes more than a word. Units: tokens; `most` is the model's own limit."""
    if form.output_limit is None:
        return None
    wanted = form.output_limit if words_tokens <= 1 else words_tokens if form.output_limit <= LIMITS[1] else words_tokens + form.output_limit
    return min(wanted, most) if most else wanted


def request_of(form: Form, dialect: str, model: str, question: str, words_tokens: int, most: int | None, stream: bool, temperature: float | None) -> Request:
    """Puts a question in a form: one user's turn, no tools, no system prompt."""
    return Request(
        dialect=dialect,
        model=model,
        messages=(Message(Role.USER, (Text(question),)),),
        stream=stream or form.stream,
        output_limit=limit_of(form, words_tokens, most),
        sampling=Sampling(temperature=temperature if form.temperature else None),
        reasoning=Reasoning(effort=form.effort, enabled=False if form.effort == "none" else None) if form.effort else None,
        usage_wanted=True,
    )


def is_chat(served_name: str, listed: bool | None = None) -> bool:
    """Whether a model can be asked in words: what its endpoint's list says, else what its name does. Embeddings, images and sound are not asked."""
    return listed if listed is not None else not NOT_CHAT.search(served_name)
