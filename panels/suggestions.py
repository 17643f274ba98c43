"""What a record suggests: an explorer that should be a member, a member that should not. Nothing is done by itself.

The rule, in full: two models are compared by their posteriors of usefulness in the collection, aged as in the record. Nothing is said of a model with
fewer than `JUDGED_NEEDED` judged answers there, nor where age has left less than half of that weight.

- Promote: a model that is no member is better than the weakest member with a probability above `SURE`.
- Bench: a member is worse than the median of the other members with a probability above `SURER`, or is the one that such an explorer beats.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Sequence
from dataclasses import dataclass

from panels.beta import Rate, better
from panels.records import Record

JUDGED_NEEDED = 10
SURE = 0.90
SURER = 0.95
MEMBERS_LEFT = 2  # a panel of one is none


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change that the record speaks for. Shape: `kind` promote or bench; `probability` that `model` is better (promote) or worse (bench) than `than`."""

    kind: str
    model: str
    than: str
    probability: float
    useful: Rate
    useful_than: Rate
    reason: str


def suggestions(records: Sequence[Record], members: Sequence[str], playable: Names[str]) -> list[Suggestion]:
    """Compares explorers with the weakest member, and members with each other. Shape: `playable` are the models that may be promoted."""
    known = {r.model: r for r in records if r.useful.counted >= JUDGED_NEEDED and r.useful.of >= JUDGED_NEEDED / 2}
    seated = sorted((known[m] for m in set(members) if m in known), key=lambda r: (r.useful.mean, r.model))
    if not seated:
        return []
    weakest = seated[0]
    found = []
    outside = sorted((r for r in known.values() if r.model not in members and r.model in playable), key=lambda r: (-r.useful.mean, r.model))
    for record in outside:
        if (sure := p_better(record, weakest)) > SURE:
            found.append(promote(record, weakest, sure))
    promoted = bool(found)
    if len(set(members)) > MEMBERS_LEFT:
        for record in seated:
            others = [r for r in seated if r is not record]
            if promoted and record is weakest:
                found.append(bench(record, outside[0], p_better(outside[0], record)))
            elif len(others) >= 2 and (sure := p_better(middle := others[len(others) // 2], record)) > SURER:
                found.append(bench(record, middle, sure))
    return found


def p_better(one: Record, other: Record) -> float:
    """Works out how probable it is that one model is more useful than another."""
    a, b = one.useful, other.useful
    return better(1.0 + a.yes, 1.0 + max(0.0, a.of - a.yes), 1.0 + b.yes, 1.0 + max(0.0, b.of - b.yes))


def promote(record: Record, weakest: Record, sure: float) -> Suggestion:
    said = f"{told(record)} against {told(weakest)}, the weakest member: better with {sure:.0%} probability."
    return Suggestion("promote", record.model, weakest.model, sure, record.useful, weakest.useful, said)


def bench(record: Record, better_one: Record, sure: float) -> Suggestion:
    said = f"{told(record)} against {told(better_one)}: worse with {sure:.0%} probability."
    return Suggestion("bench", record.model, better_one.model, sure, record.useful, better_one.useful, said)


def told(record: Record) -> str:
    useful = record.useful
    return f"{record.model} is useful in {useful.mean:.0%} ({useful.low:.0%} to {useful.high:.0%}, {useful.counted:g} judged)"
