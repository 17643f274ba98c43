"""What one Gemini model must be told in its own way, and how it is told to answer: limits, sampling, thinking."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.conversation import Request
from wire.dialects._gemini_in import safe
from wire.dialects._gemini_schema import as_google_schema

Json = dict[str, Any]

VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
NEVER_THINKS = re.compile(r"(?:^|/)(?:gemma|learnlm)")
KNOWS_NO_SYSTEM = re.compile(r"(?:^|/)gemma-[123]")
# Units: tokens. As Google's own OpenAI-compatible side reads efforts.
BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
LEVELS = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
LEAST_PRO_BUDGET = 128  # a 2.5 Pro cannot be kept from thinking
MOST_STOPS = 5


@dataclass(frozen=True, slots=True)
class Wants:
    """What one model must be told in its own way. Shape: `thinking` is level, budget or none; `limit` its largest output, 0 where unknown."""

    thinking: str
    signatures: bool
    limit: int
    system: bool
    schema: bool
    ids: bool
    pro: bool
    flash: bool


def wants(served_name: str, quirks: Mapping[str, Any]) -> Wants:
    """From the quirks, else from the name: a name that tells nothing is taken for a model of today."""
    name = served_name.lower()
    found = VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else None
    thinks = "none" if NEVER_THINKS.search(name) else "level" if version is None or version >= (3, 0) else "budget" if version >= (2, 5) else "none"
    limit = quirks.get("max_tokens")
    return Wants(
        thinking=said if (said := quirks.get("thinking")) in ("level", "budget", "none") else thinks,
        signatures=bool(quirks.get("thought_signatures", thinks == "level")),
        limit=int(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1 else 0,
        system=quirks.get("system_role") != "user" and not KNOWS_NO_SYSTEM.search(name),
        schema=quirks.get("structured_output") is not False,
        ids=quirks.get("call_ids") is not False,
        pro="pro" in name,
        flash="flash" in name,
    )


@dataclass(slots=True)
class Dropped:
    """The names of what is left out, as the caller wrote them, fit for a header."""

    raw: Mapping[str, Any]
    names: dict[str, None] = field(default_factory=dict)

    def say(self, *names: str) -> None:
        self.names[next((n for n in names if n in self.raw), names[0])] = None

    def word(self, place: str, word: str) -> None:
        self.names[f"{place}: {safe(word)}"] = None


def config_out(request: Request, model: Wants, promised: bool, dropped: Dropped) -> Json:
    s = request.sampling
    limit = request.output_limit
    if limit and model.limit and limit > model.limit:
        limit = model.limit
        dropped.say("max_tokens", "max_completion_tokens", "max_output_tokens")
    stops = [t for t in s.stop if t]
    if len(stops) > MOST_STOPS or len(stops) < len(s.stop):
        stops = stops[:MOST_STOPS]
        dropped.say("stop", "stop_sequences")
    seed = s.seed
    if seed is not None and not -(2**31) <= seed < 2**31:
        seed = None
        dropped.say("seed")
    out: Json = {
        name: value
        for name, value in (
            ("temperature", s.temperature),
            ("topP", s.top_p),
            ("topK", s.top_k),
            ("seed", seed),
            ("presencePenalty", s.presence_penalty),
            ("frequencyPenalty", s.frequency_penalty),
            ("maxOutputTokens", limit),
            ("stopSequences", stops or None),
            ("thinkingConfig", thinking_out(request, model, dropped)),
        )
        if value is not None
    }
    if request.format and promised:
        out["responseMimeType"] = "application/json"
        if request.format.schema is not None:
            out["responseSchema"] = as_google_schema(request.format.schema, lambda word: dropped.word("response_format", word))
    return out


def thinking_out(request: Request, model: Wants, dropped: Dropped) -> Json | None:
    """Asks for thinking as the model knows it: a level from Gemini 3 on, a budget before."""
    asked = request.reasoning
    if asked is None:
        return None
    off = asked.enabled is False or asked.effort == "none" or asked.budget == 0
    effort = asked.effort.lower()
    if model.thinking == "none" or (effort and effort not in BUDGETS and not off):
        if not off:
            dropped.say("reasoning_effort", "reasoning", "thinking", "think", "output_config")
        return None
    if model.thinking == "budget":
        if off:
            return {"thinkingBudget": LEAST_PRO_BUDGET if model.pro else 0}
        budget = asked.budget or BUDGETS.get(effort)
        return {"includeThoughts": True, **({"thinkingBudget": budget} if budget else {})}
    if off and not (model.flash or model.pro):
        dropped.say("reasoning_effort", "reasoning", "thinking", "think", "output_config")  # of an unknown model nobody knows how little it may think
        return None
    if off:
        return {"thinkingLevel": "minimal" if model.flash else "low"}
    if not effort and asked.budget:
        effort = "low" if asked.budget <= BUDGETS["low"] else "medium" if asked.budget <= BUDGETS["medium"] else "high"
    level = LEVELS.get(effort, "")
    if level == "minimal" and not model.flash:
        level = "low"
    return {"includeThoughts": True, **({"thinkingLevel": level} if level else {})}
