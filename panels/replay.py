"""Verdict histories as lines of JSON without texts or names of people: written for export, and read back as a history to play policies on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from panels.models import Verdict
from panels.simulate import Scenario
from panels.standing import panels_of_calls

# A model's usefulness on a day is taken from the verdicts around it: one so many days off weighs half.
SMOOTH_DAYS = 14.0
PANELS_NEEDED = 50


class HistoryError(ValueError):
    """A history that cannot be read, or is too short to say anything. The message says which line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One current verdict. Shape: `panel` and `judge` are numbers given in their order; `real` and `false` numbers of claims."""

    at: datetime
    panel: int
    collection: str
    model: str
    judge: int
    useful: bool | None
    real: int
    false: int


def written() -> Iterator[str]:
    """Writes the current verdicts of all collections, oldest first, without claims, notes and people's names."""
    panels: dict[str, int] = {}
    judges: dict[str, int] = {}
    fields = ("at", "call", "collection", "model", "judge", "useful", "real", "false")
    rows = Verdict.objects.filter(current=True).order_by("id").values_list(*fields).iterator(chunk_size=2000)
    for some in in_batches(iter(rows), 2000):
        of_call = panels_of_calls([row[1] for row in some])
        for at, call, collection, model, judge, useful, real, false in some:
            line = {
                "at": at.isoformat(),
                "panel": panels.setdefault(of_call.get(call, call), len(panels) + 1),
                "collection": collection,
                "model": model,
                "judge": judges.setdefault(judge, len(judges) + 1),
                "useful": useful,
                "real": len(real),
                "false": len(false),
            }
            yield json.dumps(line, ensure_ascii=False)


def in_batches(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while some := list(islice(rows, size)):
        yield some


def read(lines: Iterable[str]) -> list[Line]:
    """Reads what `written` wrote. Errors: HistoryError naming the line."""
    found = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            said = json.loads(text)
            at = datetime.fromisoformat(said["at"])
            useful = said["useful"]
            if at.tzinfo is None or not (useful is None or isinstance(useful, bool)):
                raise ValueError
            found.append(
                Line(at, int(said["panel"]), str(said["collection"]), str(said["model"]), int(said["judge"]), useful, int(said["real"]), int(said["false"]))
            )
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise HistoryError(
                f"Line {number} is no verdict of an export: at (with its offset), panel, collection, model, judge, useful, real, false."
            ) from None
    return found


def scenario(lines: Iterable[Line], collection: str, seats: int) -> Scenario:
    """Makes a history to play on from a collection's verdicts.

    Shape: how useful a model was on a day is its share of useful answers around that day; where an answer was judged, a policy that seats the same
    model in the same panel is told what was said, else a throw by that share. A model is there from its first verdict on. Errors: HistoryError.
    """
    said: dict[tuple[int, str], list[bool]] = defaultdict(list)
    began: dict[int, datetime] = {}
    for line in lines:
        if line.collection == collection and line.useful is not None:
            said[line.panel, line.model].append(line.useful)
            began[line.panel] = min(began.get(line.panel, line.at), line.at)
    panels = sorted(began, key=lambda p: (began[p], p))
    if len(panels) < PANELS_NEEDED:
        raise HistoryError(f"The history holds {len(panels)} judged panels of {collection}; {PANELS_NEEDED} are the least that say anything.")
    place = {panel: t for t, panel in enumerate(panels)}
    days = [(began[p] - began[panels[0]]).days for p in panels]
    models = tuple(dict.fromkeys(model for panel, model in sorted(said, key=lambda key: place[key[0]])))
    number = {model: i for i, model in enumerate(models)}
    told = {(place[panel], number[model]): sum(words) * 2 >= len(words) for (panel, model), words in said.items()}
    columns = [column(i, told, days) for i in range(len(models))]
    judged = min(1.0, len(told) / (len(panels) * max(1, min(seats, len(models)))))
    return Scenario(f"history of {collection}", models, list(zip(*columns, strict=True)), days, judged=judged, said=told)


def column(model: int, told: dict[tuple[int, int], bool], days: list[int]) -> list[float | None]:
    """Works out how useful one model was, by panel: its verdicts weighed by how many days off they are, over one verdict at its usual share."""
    yes, of = [0.0] * (days[-1] + 1), [0.0] * (days[-1] + 1)
    first = len(days)
    for (t, i), useful in told.items():
        if i == model:
            of[days[t]] += 1.0
            yes[days[t]] += useful
            first = min(first, t)
    usual = sum(yes) / sum(of)
    yes, of = spread(yes), spread(of)
    return [(yes[day] + usual) / (of[day] + 1.0) if t >= first else None for t, day in enumerate(days)]


def spread(counts: list[float]) -> list[float]:
    """Lets each day's count reach the days before and after it, less by half every `SMOOTH_DAYS`."""
    keep = 0.5 ** (1.0 / SMOOTH_DAYS)
    after, before = list(counts), list(counts)
    for day in range(1, len(counts)):
        after[day] += keep * after[day - 1]
        before[-1 - day] += keep * before[-day]
    return [a + b - c for a, b, c in zip(after, before, counts, strict=True)]
