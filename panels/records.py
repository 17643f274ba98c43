"""A model's record in a collection: what verdicts say of it, and how sure that is.

The rule, in full:
- Only current verdicts count, and only the last one of each judge on a call.
- A call that several judged is still one call: where n judges answered a question of it, each answer weighs 1/n.
- `useful` is the share of answers found useful, among those that somebody called useful or not useful. A verdict without such a word
  says nothing here.
- `confidently_wrong` is the share of judged answers that hold at least one claim found false. A verdict without claims found none.
- `real` and `false` are sums of claims, weighed the same way: two judges who each list the same claim make one claim of it.
- Verdicts age: one that is a half-life old weighs half of one of today, for what stands behind a name changes. Ages are whole days. What was counted
  stands beside what it weighs; claims are counted, not weighed.
- Both shares are Beta posteriors over the prior Beta(1, 1): a model with one good verdict is promising, not perfect, and one whose verdicts are
  all old is unknown again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Count, Q

from access import preferences
from panels.beta import Rate, rate
from panels.models import Verdict
from panels.picking import Word

HALF_LIFE = "records.half_life_days"
HALF_LIFE_DAYS = 60
TELLS = "Days after which a verdict weighs half in a model's record and in picks by record. 0: verdicts never age."
# A verdict of so many half-lives weighs less than a thousandth: nobody is picked by it.
FORGOTTEN_AFTER = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """One current verdict, as much of it as a record needs. Shape: `real` and `false` are numbers of claims."""

    call: str
    judge: str
    collection: str
    model: str
    useful: bool | None
    real: int
    false: int
    weight: float = 1.0


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


def records(verdicts: Iterable[Judged]) -> list[Record]:
    """Sums verdicts up by collection and model, in that order of names. Pure: the same verdicts in any order give the same records."""
    by_call: dict[tuple[str, str], dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        by_call[verdict.collection, verdict.model][verdict.call].append(verdict)
    return [_record(collection, model, calls) for (collection, model), calls in sorted(by_call.items())]


def _record(collection: str, model: str, calls: dict[str, list[Judged]]) -> Record:
    useful, wrong = Share(), Share()
    weight = real = false = 0.0
    for verdicts in calls.values():
        share = 1.0 / len(verdicts)
        wrong.add([v.false > 0 for v in verdicts], [v.weight for v in verdicts])
        weight += sum(v.weight for v in verdicts) * share
        real += sum(v.real for v in verdicts) * share
        false += sum(v.false for v in verdicts) * share
        if words := [(v.useful, v.weight) for v in verdicts if v.useful is not None]:
            useful.add([said for said, _ in words], [weighs for _, weighs in words])
    return Record(
        collection=collection,
        model=model,
        judged=len(calls),
        weight=round(weight, 9),
        judges=len({v.judge for verdicts in calls.values() for v in verdicts}),
        useful=useful.rate(),
        confidently_wrong=wrong.rate(),
        real=round(real, 9),
        false=round(false, 9),
    )


class Share:
    """Sums answers to one question over calls, as they are and as they weigh; the judges of one call share its weight."""

    def __init__(self) -> None:
        self.yes = self.of = self.counted_yes = self.counted = 0.0

    def add(self, said: Sequence[bool], weights: Sequence[float]) -> None:
        if len(said) == 1:  # as nearly all are
            self.of += weights[0]
            self.counted += 1
            if said[0]:
                self.yes += weights[0]
                self.counted_yes += 1
            return
        share = 1.0 / len(said)
        self.yes += sum(w for yes, w in zip(said, weights, strict=True) if yes) * share
        self.of += sum(weights) * share
        self.counted_yes += sum(said) * share
        self.counted += 1

    def rate(self) -> Rate:
        return rate(round(self.yes, 9), round(self.of, 9), round(self.counted_yes, 9), self.counted)


def weight_of(at: datetime, now: datetime, half_life_days: float) -> float:
    """What a verdict of some age weighs; 1 for one of today or where none ages. Units: a half-life of 0 days means never."""
    days = (now - at).days
    return 0.5 ** (days / half_life_days) if half_life_days and days > 0 else 1.0


# ------------------------------------------------------------------ read from what is kept


def half_life_days() -> float:
    """Reads after how many days a verdict weighs half; 0: none ages."""
    return float(preferences.value(HALF_LIFE))


def record_of(collection: str, now: datetime) -> list[Record]:
    """Reads the record of every model that was judged in a collection."""
    return records(_judged(now, collection=collection))


def records_of_model(alias: str, now: datetime) -> list[Record]:
    """Reads a model's record in every collection where it was judged. Direct calls stand under the empty name."""
    return records(_judged(now, model=alias))


def _judged(now: datetime, **of: str) -> Iterable[Judged]:
    half_life = half_life_days()
    rows = Verdict.objects.filter(current=True, **of).order_by("id").values_list("call", "judge", "collection", "model", "useful", "real", "false", "at")
    for call, judge, collection, model, useful, real, false, at in rows.iterator(chunk_size=2000):
        yield Judged(call, judge, collection, model, useful, len(real), len(false), weight_of(at, now, half_life))


# ------------------------------------------------------------------ read for a pick


# Each verdict is its share of its call, and verdicts of one age are one row: a collection with many of them is summed where they are.
USEFULNESS = (
    "SELECT model, days, SUM(CASE WHEN useful THEN 1.0 / judges ELSE 0.0 END), SUM(1.0 / judges) FROM (SELECT model, useful, {days} AS days,"
    " COUNT(*) OVER (PARTITION BY call) AS judges FROM panels_verdict WHERE collection = %s AND current AND useful IS NOT NULL AND at > %s) v"
    " GROUP BY model, days"
)
DAYS = {"sqlite": "CAST(julianday(%s) - julianday(at) + 0.000001 AS INTEGER)", "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM %s - at) / 86400) AS INTEGER)"}


def usefulness(collection: str, now: datetime, half_life: float) -> dict[str, tuple[float, float]]:
    """Reads by alias what the useful answers and all answers of a collection weigh, those that nobody called either way left out. One query."""
    since = now - timedelta(days=FORGOTTEN_AFTER * half_life) if half_life else datetime(1970, 1, 1, tzinfo=UTC)
    found: dict[str, tuple[float, float]] = {}
    with connection.cursor() as cursor:
        adapted = [connection.ops.adapt_datetimefield_value(at) for at in (now, since)]
        cursor.execute(USEFULNESS.format(days=DAYS[connection.vendor]), [adapted[0], collection, adapted[1]])
        for model, days, yes, of in cursor.fetchall():
            weight = 0.5 ** (days / half_life) if half_life and days > 0 else 1.0
            before = found.get(model, (0.0, 0.0))
            found[model] = before[0] + weight * float(yes), before[1] + weight * float(of)
    return found


def elsewhere(collection: str, aliases: Sequence[str], now: datetime, half_life: float) -> dict[str, Word]:
    """Reads by alias what verdicts of other collections say: plainly counted within two half-lives, for it decides little."""
    verdicts = Verdict.objects.filter(current=True, model__in=aliases, useful__isnull=False).exclude(collection=collection)
    if half_life:
        verdicts = verdicts.filter(at__gt=now - timedelta(days=2 * half_life))
    counted = verdicts.order_by().values_list("model").annotate(of=Count("id"), yes=Count("id", filter=Q(useful=True)))
    return {model: Word(yes / of, float(of)) for model, of, yes in counted}


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
