"""What a list shows of models or collections: verdicts summed up with how sure that is, seats, the suite's score. A few queries, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime

from health import history
from panels import records, tally
from panels.beta import Rate
from panels.records import NOTHING_JUDGED, Sums


@dataclass(frozen=True, slots=True)
class Usefulness:
    """The posterior's mean and 95% interval of being useful; verdicts age."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Wrongness:
    """The same of holding a false claim."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Claims:
    real: float
    false: float


@dataclass(frozen=True, slots=True)
class Found:
    """What verdicts say. Shape: `judged` calls, `useful` of them; fractions where judges differ. The rates are None where nothing was said that counts."""

    judged: int
    useful: float
    usefulness: Usefulness | None
    claims: Claims
    confidently_wrong: Wrongness | None


@dataclass(frozen=True, slots=True)
class Figures(Found):
    """One model's. Shape: `seats` and `last_seated` are of all collections; `score` is the suite's, from 0 to 1."""

    seats: int
    last_seated: datetime | None
    score: float | None


@dataclass(frozen=True, slots=True)
class Known:
    """What was read of all models, for sorting by it; the intervals are worked out for those that are shown."""

    verdicts: Mapping[str, Sums]
    uses: Mapping[str, tuple[int, datetime]]
    collection: str

    def sums(self, alias: str) -> Sums:
        return self.verdicts.get(alias, NOTHING_JUDGED)

    def of(self, aliases: Iterable[str]) -> dict[str, Figures]:
        """Works out the figures of some models."""
        aliases = list(aliases)
        scores = self.scores(aliases)
        found = {}
        for alias in aliases:
            said = found_in(self.sums(alias))
            seats, last = self.uses.get(alias, (0, None))
            found[alias] = Figures(said.judged, said.useful, said.usefulness, said.claims, said.confidently_wrong, seats, last, scores.get(alias))
        return found

    def scores(self, aliases: Sequence[str]) -> dict[str, float]:
        """Reads the suite's scores, where there are any."""
        return {alias: word.share for alias, word in records.scores(self.collection, aliases).items()}


def of_models(now: datetime, collection: str | None = None, model: str | None = None) -> Known:
    """Reads what is known of all models, or of one, over all collections or in one. Three queries."""
    if model is not None:
        found = {alias: sums for (alias,), sums in records.sums(("model",), now, records.half_life_days(), {"model": model}).items()}
    else:
        found = everything(now).of_models(collection)
    return Known(found, history.uses_of_models(model), collection or "")


def of_collections(now: datetime, collection: str | None = None) -> dict[str, Found]:
    """Reads what verdicts say of each collection's answers, or of one's, whoever gave them. Two queries."""
    if collection is not None:
        summed = records.sums(("collection",), now, records.half_life_days(), {"collection": collection})
        return {name: found_in(sums) for (name,), sums in summed.items()}
    return {name: found_in(sums) for name, sums in everything(now).of_collections().items()}


def found_in(sums: Sums) -> Found:
    useful = usefulness(sums.usefulness()) if sums.said else None
    return Found(round(sums.judged), sums.useful, useful, Claims(sums.real, sums.false), wrongness(sums.wrongness()) if sums.judged else None)


def usefulness(rate: Rate) -> Usefulness:
    return Usefulness(rate.mean, rate.low, rate.high)


def wrongness(rate: Rate) -> Wrongness:
    return Wrongness(rate.mean, rate.low, rate.high)


NOTHING_FOUND = found_in(NOTHING_JUDGED)


# ------------------------------------------------------------------ all of them


class Everything:
    """The sums of all verdicts by collection and model, as they were read once."""

    def __init__(self, sums: Mapping[tuple[str, ...], Sums]) -> None:
        self.sums = sums
        self.models: dict[str, Sums] | None = None

    def of_models(self, collection: str | None) -> dict[str, Sums]:
        """By alias, in one collection or over all."""
        if collection is not None:
            return {model: sums for (of, model), sums in self.sums.items() if of == collection}
        if self.models is None:
            self.models = added((model, sums) for (_, model), sums in self.sums.items())
        return self.models

    def of_collections(self) -> dict[str, Sums]:
        return added((collection, sums) for (collection, _), sums in self.sums.items())


def added(several: Iterable[tuple[str, Sums]]) -> dict[str, Sums]:
    """Adds up what stands under the same name."""
    found: dict[str, list[float]] = {}
    for name, sums in several:
        values = astuple(sums)
        held = found.get(name)
        found[name] = list(values) if held is None else [a + b for a, b in zip(held, values, strict=True)]
    return {name: Sums(*values) for name, values in found.items()}


_kept: tuple[tuple[object, ...], Everything] | None = None


def everything(now: datetime) -> Everything:
    """Reads all sums, or gives those that this process knows while no verdict has come and the day and the half-life are the same. Two queries."""
    global _kept
    half_life = records.half_life_days()
    key = (tally.newest(), tally.day_of(now), half_life)
    kept = _kept
    if kept is None or kept[0] != key:
        kept = _kept = (key, Everything(records.sums(("collection", "model"), now, half_life)))
    return kept[1]
