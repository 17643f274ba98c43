"""What a run says of review work: found, cleared, both halves of a pair. Planted and real faults are never one number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from suite.models import Row, Run, Task
from suite.statistics import intervals

KIND = "review_line"
NAMED_WRONGLY = ("wrong_line", "false_alarm", "too_many_lines")
# Summaries are read while a run goes on; above so many review rows they do without this part.
MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Member:
    """One half of a pair. Shape: `origin` is planted, real or other; `pair` "" where it has no other half."""

    origin: str
    pair: str
    is_faulty: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """One scored task: which half it is, whether it was right, and whether a line was named that is not at fault."""

    member: Member
    is_right: bool
    is_named_wrongly: bool
    cluster: str


@lru_cache(maxsize=64)
def members(subset: str, version: int) -> Mapping[int, Member]:
    """Reads what the review rows of a version are, by position. A version never changes."""
    rows = Row.objects.filter(subset_id=subset, since__lte=version, kind=KIND).values_list("position", "body")[: MOST_ROWS + 1]
    found: dict[int, Member] = {}
    for position, body in rows:
        row = json.loads(body)
        source = row.get("source") or {}
        expected = row.get("expected")
        lines = expected.get("lines") if isinstance(expected, dict) else None
        found[position] = Member(str(source.get("origin") or "other"), str(source.get("pair") or ""), bool(lines))
    return {} if len(found) > MOST_ROWS else found


def of(run: Run, scoring: int) -> dict[str, Any] | None:
    """Sums up a run's review tasks by origin; None where it has none."""
    known = members(run.subset_id, run.version)
    if not known:
        return None
    tasks = Task.objects.filter(run=run, scoring=scoring, kind=KIND, passed__isnull=False).values_list("position", "passed", "reason", "cluster")
    answered: dict[str, list[Answered]] = {}
    for position, passed, reason, cluster in tasks:
        if member := known.get(position):
            answered.setdefault(member.origin, []).append(Answered(member, bool(passed), not passed and reason in NAMED_WRONGLY, cluster))
    return {origin: figures(found) for origin, found in sorted(answered.items())}


def figures(found: Sequence[Answered]) -> dict[str, Any]:
    """Works out the rates of one origin. A pair counts as right only with both of its halves, so guessing earns next to nothing."""
    faulty, clean = [a for a in found if a.member.is_faulty], [a for a in found if not a.member.is_faulty]
    pairs: dict[str, list[Answered]] = {}
    for one in found:
        if one.member.pair:
            pairs.setdefault(one.member.pair, []).append(one)
    whole = [both for both in pairs.values() if len({one.member.is_faulty for one in both}) == 2]
    recall, specificity = rate([(a.is_right, a.cluster) for a in faulty]), rate([(a.is_right, a.cluster) for a in clean])
    balanced = (recall["rate"] + specificity["rate"]) / 2 if faulty and clean else None
    return {
        "faulty": len(faulty),
        "clean": len(clean),
        "pairs": len(whole),
        "recall": recall,
        "specificity": specificity,
        "pair_accuracy": rate([(all(one.is_right for one in both), both[0].cluster) for both in whole]),
        "balanced_accuracy": balanced,
        "confident_wrong": rate([(a.is_named_wrongly, a.cluster) for a in found]),
    }


def rate(found: Sequence[tuple[bool, str]]) -> dict[str, Any]:
    """Gives a rate with its interval, clustered where the tasks have clusters."""
    hits, n = sum(hit for hit, _ in found), len(found)
    clusters = [cluster or f"#{i}" for i, (_, cluster) in enumerate(found)]
    wide = len(set(clusters)) < n
    interval = intervals.rate([hit for hit, _ in found], clusters) if wide else intervals.wilson(hits, n)
    return {
        "rate": hits / n if n else None,
        "ci95": [interval.low, interval.high] if interval else None,
        "n": n,
    }
