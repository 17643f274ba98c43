"""A model's record in a collection: what verdicts say of it, and how sure that is.

The rule, in full:
- Only current verdicts count, and only the last one of each judge on a call.
- A call that several judged is still one call: where n judges answered a question of it, each answer weighs 1/n.
- `useful` is the share of answers found useful, among those that somebody called useful or not useful. A verdict without such a word
  says nothing here.
- `confidently_wrong` is the share of judged answers that hold at least one claim found false. A verdict without claims found none.
- `real` and `false` are sums of claims, weighed the same way: two judges who each list the same claim make one claim of it.
- Both shares are Beta posteriors over the prior Beta(1, 1): a model with one good verdict is promising, not perfect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from panels.beta import Rate, rate
from panels.models import Verdict


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


@dataclass(frozen=True, slots=True)
class Record:
    """What verdicts say of one model in one collection. Shape: `judged` calls, by `judges` people; claims may be fractions (see above)."""

    collection: str
    model: str
    judged: int
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
    yes = said = wrong = real = false = 0.0
    for verdicts in calls.values():
        share = 1.0 / len(verdicts)
        wrong += sum(v.false > 0 for v in verdicts) * share
        real += sum(v.real for v in verdicts) * share
        false += sum(v.false for v in verdicts) * share
        if words := [v.useful for v in verdicts if v.useful is not None]:
            said += 1
            yes += sum(words) / len(words)
    return Record(
        collection=collection,
        model=model,
        judged=len(calls),
        judges=len({v.judge for verdicts in calls.values() for v in verdicts}),
        useful=rate(round(yes, 9), said),
        confidently_wrong=rate(round(wrong, 9), len(calls)),
        real=round(real, 9),
        false=round(false, 9),
    )


def record_of(collection: str) -> list[Record]:
    """Reads the record of every model that was judged in a collection."""
    return records(_judged(collection=collection))


def records_of_model(alias: str) -> list[Record]:
    """Reads a model's record in every collection where it was judged. Direct calls stand under the empty name."""
    return records(_judged(model=alias))


def _judged(**of: str) -> Iterable[Judged]:
    rows = Verdict.objects.filter(current=True, **of).order_by("id").values_list("call", "judge", "collection", "model", "useful", "real", "false")
    for call, judge, collection, model, useful, real, false in rows.iterator(chunk_size=2000):
        yield Judged(call=call, judge=judge, collection=collection, model=model, useful=useful, real=len(real), false=len(false))
