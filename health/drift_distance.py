"""Whether tonight's answers to the fixed questions come from what answered before: distances, calibrated by the model's own noise. Pure.

Each question is compared with itself on the nights of the baseline. How far those nights are from each other is the model's noise; a night is strange where
its answers are much further from the baseline than that, or where a sign that never varied has changed: how many tokens the very same question takes, or
the name the answer was served under. One strange night is borne with: two in a row that resemble each other are a change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

# Nights that are learned from before anything is said, and that a baseline grows to.
LEAST, MOST = 3, 10
# How many of the questions must have been answered for a night to count.
QUORUM = 0.75
# Below this effect nobody would notice: shares of an answer, 0 to 1.
LEAST_EFFECT = 0.1
Z = 3.0
# Two strange nights are one change only if they are nearer to each other than to the baseline by so much.
NEARER = 0.9
# The variance that one question's distance is taken to have before anything is known of it, and the nights that this belief is worth.
PRIOR_VARIANCE, PRIOR_NIGHTS = 0.02, 4.0

WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer. Units: tokens; `input_tokens` None where nobody counted them."""

    text: str
    finish: str = ""
    input_tokens: int | None = None
    served_as: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "finish": self.finish, "input_tokens": self.input_tokens, "served_as": self.served_as}


Night = Mapping[str, Heard]


def heard(kept: Mapping[str, Any]) -> Heard:
    return Heard(str(kept.get("text", "")), str(kept.get("finish", "")), kept.get("input_tokens"), str(kept.get("served_as", "")))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One night beside the baseline.

    Shape: `effect` is how much further its answers are than the baseline's nights from each other, 0 to 1; `z` that in standard errors; `prompts` by name
    the distance and what it usually is; `tokens` and `names` as [before, now] where a sign changed.
    """

    effect: float
    z: float
    prompts: Mapping[str, tuple[float, float]]
    tokens: Mapping[str, tuple[int, int]]
    names: tuple[str, str] | None

    @property
    def is_strange(self) -> bool:
        return bool(self.tokens) or self.names is not None or (self.effect >= LEAST_EFFECT and self.z >= Z)


def counts(night: Night, asked: int) -> bool:
    """Whether enough was answered to compare."""
    return len(night) >= QUORUM * asked


def distance(one: Heard, other: Heard) -> float:
    """How different two answers to one question are, 0 to 1: mostly their words, a little their length and how they ended."""
    a, b = WORDS.findall(one.text.casefold()), WORDS.findall(other.text.casefold())
    if one.text == other.text:
        words = 0.0
    elif not a or not b:
        words = 1.0
    else:
        # Words that agree but for case, spaces or marks are nearly the same; exactly the same they are not.
        words = max(1.0 - SequenceMatcher(None, a, b, autojunk=False).ratio(), 0.02)
    longer = max(len(one.text), len(other.text))
    length = abs(len(one.text) - len(other.text)) / longer if longer else 0.0
    return 0.85 * words + 0.1 * length + 0.05 * (one.finish != other.finish)


def compare(night: Night, baseline: Sequence[Night]) -> Comparison:
    """Sets a night beside the nights of a baseline, at least two."""
    prompts: dict[str, tuple[float, float]] = {}
    gaps, variances = [], []
    for name in night:
        before = [b[name] for b in baseline if name in b]
        if len(before) < 2:
            continue
        now = mean([distance(night[name], one) for one in before])
        apart = [[distance(one, other) if i != j else 0.0 for j, other in enumerate(before)] for i, one in enumerate(before)]
        usual = [sum(row) / (len(before) - 1) for row in apart]
        expected = mean(usual)
        spread = sum((u - expected) ** 2 for u in usual)
        variance = (spread + PRIOR_NIGHTS * PRIOR_VARIANCE) / (len(usual) - 1 + PRIOR_NIGHTS)
        prompts[name] = (round(now, 3), round(expected, 3))
        gaps.append(now - expected)
        # The baseline's own mean is an estimate from few nights too.
        variances.append(variance * (1 + 2 / len(before)))
    if not gaps:
        return Comparison(0.0, 0.0, {}, {}, None)
    effect = mean(gaps)
    z = sum(gaps) / math.sqrt(sum(variances))
    return Comparison(round(effect, 3), round(z, 2), prompts, changed_tokens(night, baseline), changed_name(night, baseline))


def is_change(first: Night, second: Night, baseline: Sequence[Night]) -> bool:
    """Whether two strange nights come from one other source: a noisy model's bad nights are as far from each other as from all else."""
    names = [name for name in first if name in second]
    near = [distance(first[name], second[name]) for name in names]
    far = [distance(night[name], one[name]) for name in names for night in (first, second) for one in baseline if name in one]
    # Where a sign alone has changed the answers may be as they were.
    return not far or not near or mean(near) <= NEARER * mean(far) or mean(far) < LEAST_EFFECT


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def changed_tokens(night: Night, baseline: Sequence[Night]) -> dict[str, tuple[int, int]]:
    """Questions that take another number of tokens than they always did: another tokenizer, or another hidden prompt. Empty unless most of them do."""
    steady: dict[str, int] = {}
    for name in night:
        before = {b[name].input_tokens for b in baseline if name in b}
        if len(before) == 1 and (only := before.pop()) is not None and night[name].input_tokens is not None:
            steady[name] = only
    changed = {name: (was, now) for name, was in steady.items() if (now := night[name].input_tokens) is not None and now != was}
    return changed if len(steady) >= 3 and len(changed) * 2 > len(steady) else {}


def changed_name(night: Night, baseline: Sequence[Night]) -> tuple[str, str] | None:
    """The name that answers are served under, where it never varied before and is another one now."""
    before, now = {h.served_as for b in baseline for h in b.values()}, {h.served_as for h in night.values()}
    if len(before) == 1 and len(now) == 1 and before != now and "" not in before | now:
        return before.pop(), now.pop()
    return None
