"""A model's record in a collection: what verdicts say of it, and how sure that is.

The rule, in full:
- Only current verdicts count, and only the last one of each judge on a call.
- A call that several judged is still one call: where n judges answered a question of it, each answer weighs 1/n.
- `useful` is the share of answers found useful, among those that somebody called useful or not useful. A verdict without such a word
  says nothing here.
- `confidently_wrong` is the share of judged answers that hold at least one claim found false. A verdict without claims found none.
- `real` and `false` are sums of claims, weighed the same way: two judges who each list the same claim make one claim of it.
- Verdicts age: one that is a half-life old weighs half of one of today, for what stands behind a name changes. Ages are whole days of UTC. What was counted
  stands beside what it weighs; claims are counted, not weighed.
- Both shares are Beta posteriors over the prior Beta(1, 1): a model with one good verdict is promising, not perfect, and one whose verdicts are
  all old is unknown again.

All of it is read from the sums by day that `panels.tally` keeps, so that a hundred thousand verdicts cost no more than their days.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from access import preferences
from panels.beta import Rate, rate
from panels.models import VerdictJudge
from panels.picking import Word
from panels.tally import MEASURES, WHOLE, Judged, day_of, judges_of, totals_of

HALF_LIFE = "records.half_life_days"
HALF_LIFE_DAYS = 60
TELLS = "Days after which a verdict weighs half in a model's record and in picks by record. 0: verdicts never age."
# A verdict of so many half-lives weighs less than a thousandth: nobody is picked by it.
FORGOTTEN_AFTER = 10
# Of so many it weighs nothing that a figure would show; and no verdict is older than so many days.
NOTHING_AFTER, OLDEST_DAYS = 40, 20_000


@dataclass(frozen=True, slots=True)
class Sums:
    """Verdicts summed up. Shape: calls and claims as they were counted, and after `weight_` what they weigh."""

    judged: float = 0.0
    said: float = 0.0
    useful: float = 0.0
    wrong: float = 0.0
    real: float = 0.0
    false: float = 0.0
    weight_judged: float = 0.0
    weight_said: float = 0.0
    weight_useful: float = 0.0
    weight_wrong: float = 0.0

    def usefulness(self) -> Rate:
        return rate(self.weight_useful, self.weight_said, self.useful, self.said)

    def wrongness(self) -> Rate:
        return rate(self.weight_wrong, self.weight_judged, self.wrong, self.judged)


NOTHING_JUDGED = Sums()


@dataclass(frozen=True, slots=True)
class Record:
    """What verdicts say of one model in one collection. Shape: `judged` calls, by `judges` people, which weigh `weight`; claims may be fractions."""

    collection: str
    model: str
    judged: int
    weight: float
    judges: int
    useful: Rate
    confidently_wrong: Rate
    real: float
    false: float


def records(verdicts: Iterable[Judged], today: int = 0, half_life: float = 0) -> list[Record]:
    """Sums verdicts up by collection and model, in that order of names. Pure: the same verdicts in any order give the same records."""
    verdicts = list(verdicts)
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * 10)
    for (collection, model, day), sums in totals_of(verdicts).items():
        held, weighs = found[collection, model], weight(today - day, half_life)
        for place, value in enumerate([*sums, *(weighs * s for s in sums[:4])]):
            held[place] += value
    judges: dict[tuple[str, str], int] = defaultdict(int)
    for collection, model, _ in judges_of(verdicts):
        judges[collection, model] += 1
    return [record(*key, in_calls(found[key]), judges[key]) for key in sorted(found)]


def record(collection: str, model: str, sums: Sums, judges: int) -> Record:
    judged, weighs = round(sums.judged), sums.weight_judged
    return Record(collection, model, judged, weighs, judges, sums.usefulness(), sums.wrongness(), sums.real, sums.false)


def in_calls(parts: Sequence[Any]) -> Sums:
    """Turns sums in parts of a call into calls. What rounding left of a division by many judges goes."""
    return Sums(*[round(float(part) / WHOLE, 9) for part in parts])


def weight(days: int, half_life_days: float) -> float:
    """What a verdict of some age weighs; 1 for one of today or where none ages. Units: a half-life of 0 days means never."""
    return float(0.5 ** (days / half_life_days)) if half_life_days and days > 0 else 1.0


# ------------------------------------------------------------------ read from what is kept


def half_life_days() -> float:
    """Reads after how many days a verdict weighs half; 0: none ages."""
    return float(preferences.value(HALF_LIFE))


ALL: Mapping[str, str] = {}


@lru_cache(maxsize=16)
def weighing(half_life_days: float, vendor: str) -> tuple[str, int]:
    """Writes what a verdict weighs whose `age` in days stands beside it; and the age from which it weighs no less.

    SQLite has no powers of its own (Django's are Python's, a call for every row): it multiplies those of the age's binary digits.
    """
    oldest = min(OLDEST_DAYS, round(NOTHING_AFTER * half_life_days))
    if vendor == "postgresql":
        return f"power(0.5::float8, age / {half_life_days!r}::float8)", oldest
    digits = range(oldest.bit_length())
    return " * ".join(f"CASE WHEN age & {1 << n} THEN {weight(1 << n, half_life_days)!r} ELSE 1.0 END" for n in digits), oldest


# `false` is a word of SQL's, which SQLite takes for the constant where no table stands before it.
READ = ", ".join(f'v."{name}" AS sum_{name}' for name in MEASURES)
COUNTED = ", ".join(f"SUM(t.sum_{name})" for name in MEASURES)
WEIGHED = ", ".join(f"SUM(t.sum_{name} * t.weight)" for name in MEASURES[:4])
AGE = {"sqlite": "MIN(MAX(0, %s - day), %s)", "postgresql": "LEAST(GREATEST(0, %s - day), %s)"}
# A limit keeps SQLite from working out age and weight anew at each place that names them.
ALL_ROWS = {"sqlite": "LIMIT -1", "postgresql": ""}


def sums(by: Sequence[str], now: datetime, half_life: float, of: Mapping[str, str] = ALL, since: int | None = None) -> dict[tuple[str, ...], Sums]:
    """Reads the sums of verdicts by `collection`, by `model`, or both. One query.

    Shape: keys hold what `by` names; `of` narrows to a collection or a model; `since` is the first day that counts.
    """
    vendor = connection.vendor
    grouped = ", ".join(by)
    wanted = " AND ".join([*(f"{name} = %s" for name in of), *(["day > %s"] if since is not None else [])])
    where = f"WHERE {wanted}" if wanted else ""
    limits: list[Any] = [*of.values(), *([since] if since is not None else [])]
    tail = f"GROUP BY {grouped} HAVING SUM(t.sum_judged) > 0 ORDER BY {grouped}"
    if half_life:
        weigh, oldest = weighing(half_life, vendor)
        limits = [day_of(now), oldest, *limits]
        rows = f"SELECT {grouped}, {READ}, {AGE[vendor]} AS age FROM panels_verdicttotal v {where} {ALL_ROWS[vendor]}"  # noqa: S608
        weighed = f"SELECT a.*, {weigh} AS weight FROM ({rows}) a {ALL_ROWS[vendor]}"  # noqa: S608
        query = f"SELECT {grouped}, {COUNTED}, {WEIGHED} FROM ({weighed}) t {tail}"  # noqa: S608
    else:
        query = f"SELECT {grouped}, {COUNTED} FROM (SELECT {grouped}, {READ} FROM panels_verdicttotal v {where}) t {tail}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query, limits)
        found = cursor.fetchall()
    names, size = len(by), len(MEASURES)
    return {row[:names]: in_calls([*row[names:], *(() if half_life else row[names : names + size][:4])]) for row in found}


def record_of(collection: str, now: datetime) -> list[Record]:
    """Reads the record of every model that was judged in a collection. Two queries."""
    return _records(now, collection=collection)


def records_of_model(alias: str, now: datetime) -> list[Record]:
    """Reads a model's record in every collection where it was judged. Direct calls stand under the empty name. Two queries."""
    return _records(now, model=alias)


def _records(now: datetime, **of: str) -> list[Record]:
    judges: dict[tuple[str, ...], int] = defaultdict(int)
    for collection, model in VerdictJudge.objects.filter(calls__gt=0, **of).values_list("collection", "model"):
        judges[collection, model] += 1
    found = sums(("collection", "model"), now, half_life_days(), of)
    return [record(collection, model, s, judges[collection, model]) for (collection, model), s in found.items()]


def judged_collections() -> list[str]:
    """The names of collections in which somebody judged, in order; "" stands for direct calls. One query."""
    return list(VerdictJudge.objects.filter(calls__gt=0).order_by("collection").values_list("collection", flat=True).distinct())


# ------------------------------------------------------------------ read for a pick


def usefulness(collection: str, now: datetime, half_life: float) -> dict[str, tuple[float, float]]:
    """Reads by alias what the useful answers and all answers of a collection weigh, those that nobody called either way left out. One query."""
    since = day_of(now) - round(FORGOTTEN_AFTER * half_life) if half_life else None
    found = sums(("model",), now, half_life, {"collection": collection}, since)
    return {model: (s.weight_useful, s.weight_said) for (model,), s in found.items() if s.said}


def elsewhere(collection: str, aliases: Sequence[str], now: datetime, half_life: float) -> dict[str, Word]:
    """Reads by alias what verdicts of other collections say: plainly counted within two half-lives, for it decides little. One query."""
    since = day_of(now) - round(2 * half_life) if half_life else None
    counted: dict[str, tuple[float, float]] = {}
    for (of, model), s in sums(("collection", "model"), now, 0, ALL, since).items():
        if of != collection and model in aliases and s.said:
            yes, said = counted.get(model, (0.0, 0.0))
            counted[model] = yes + s.useful, said + s.said
    return {model: Word(yes / said, said) for model, (yes, said) in counted.items()}


Scores = Callable[[str, Sequence[str]], Mapping[str, Word]]
score_readers: list[Scores] = []


def register_scores(read: Scores) -> None:
    """Adds somebody who knows scores of models from elsewhere than verdicts: the suite, when it starts. Called in a thread, with a collection and aliases."""
    score_readers.append(read)


def scores(collection: str, aliases: Sequence[str]) -> dict[str, Word]:
    """Asks all who know scores; of two words on a model the weightier holds."""
    found: dict[str, Word] = {}
    for read in score_readers:
        for alias, word in read(collection, aliases).items():
            if alias not in found or found[alias].weight < word.weight:
                found[alias] = word
    return found
