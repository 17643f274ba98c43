"""How alike models err: how often two make the same false claim, and how many independent seats a collection's seats amount to. Pure.

The rule, in full:
- A seat is wrong in a panel where at least one of its judged claims was found false. Only panels where both seats of a pair were judged count for it.
- Two false claims are the same where their words are: lower case, without punctuation and little words; more than half of the words of both together in common,
  no other numbers, and not one of them denied.
- Of a pair: how often both were wrong, how often that would be if they erred independently, the correlation (phi) and the odds ratio with its 95%
  interval, and in how many panels they made the very same false claim.
- Seats that err together are worth fewer: n seats with a mean correlation rho of their errors tell as much as n / (1 + (n - 1) rho) independent ones.

Sources: L. Kish, "Survey Sampling" (1965), on the effective size of a sample whose members are alike; L. Kuncheva and C. Whitaker, "Measures of
diversity in classifier ensembles", Machine Learning 51 (2003), on phi and co-error as measures; the odds ratio's half added to each cell is
J. Haldane's (1956); the interval of the effective number is by a delete-a-group jackknife over panels (B. Efron, 1982).
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection as Names
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import exp, log, sqrt
from operator import or_

from panels.beta import Rate, rate

ALIKE = 0.5
# Fewer panels judged, or fewer of them with an error, and a correlation is noise.
PANELS_NEEDED = 30
ERRORS_NEEDED = 8
GROUPS = 20
Z95 = 1.959963984540054
WORD = re.compile(r"[^\W_]+(?:[.,'][^\W_]+)*")
LITTLE = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "of", "on", "or", "that", "the", "this", "to", "was"}
)
NOT = frozenset({"not", "no", "never", "without", "cannot", "isn't", "aren't", "doesn't", "don't", "can't", "won't", "wasn't"})


@dataclass(frozen=True, slots=True)
class Errors:
    """The false claims of one seat in one panel, none where all that was judged holds. Shape: `claims` by `words_of`."""

    panel: str
    model: str
    claims: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Sat:
    """One panel. Shape: `wrong` by each model that was judged in it; `shared` pairs of models, in order, that made the same false claim."""

    wrong: Mapping[str, bool | int]
    shared: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pair:
    """How two models err together. Shape: `panels` where both were judged; `expected` is the share of both wrong if they erred independently; `phi` and
    the odds ratio with its interval are None where one of them was never, or always, wrong; `shared` is the share of panels with the same false claim."""

    one: str
    other: str
    panels: int
    one_wrong: int
    other_wrong: int
    both_wrong: int
    expected: float
    phi: float | None
    odds_ratio: float | None
    odds_low: float | None
    odds_high: float | None
    shared: Rate


@dataclass(frozen=True, slots=True)
class Independence:
    """What a collection's seats amount to. Shape: `effective` of `seats` with its 95% interval, None where too little is judged, and then `needs` says
    what is missing; `correlation` the mean over pairs; `panels` where at least two of the models were judged; `pairs` the most alike first."""

    seats: int
    effective: float | None
    low: float | None
    high: float | None
    correlation: float | None
    panels: int
    needs: str
    pairs: tuple[Pair, ...]


# ------------------------------------------------------------------ claims


def words_of(claim: str) -> frozenset[str]:
    """Cuts a claim down to the words that make it. Scripts that write without spaces are taken by pairs of characters."""
    text = unicodedata.normalize("NFKC", claim).casefold().replace("’", "'")
    found: set[str] = set()
    for word in WORD.findall(text):
        if word.isascii():
            found |= {word} - LITTLE
        elif len(word) > 2 and any(unicodedata.east_asian_width(c) in "WF" or "\u0e00" <= c <= "\u0eff" for c in word):
            found |= {word[i : i + 2] for i in range(len(word) - 1)}
        else:
            found.add(word)
    return frozenset(found or {text.strip()})


def same(one: frozenset[str], other: frozenset[str], alike: float = ALIKE) -> bool:
    """Tells whether two claims say the same: enough words in common, not other numbers, and not the one what the other denies."""
    numbers, others = {w for w in one if w[0].isdigit()}, {w for w in other if w[0].isdigit()}
    if (numbers and others and numbers.isdisjoint(others)) or one.isdisjoint(NOT) != other.isdisjoint(NOT):
        return False
    return len(one & other) > alike * len(one | other)


# ------------------------------------------------------------------ panels


def compared(claims: Mapping[str, Sequence[frozenset[str]]]) -> Sat:
    """Compares the false claims of the models judged in one panel."""
    wrong = sorted(model for model, made in claims.items() if made)
    shared = frozenset((one, other) for one, other in combinations(wrong, 2) if any(same(x, y) for x in claims[one] for y in claims[other]))
    return Sat({model: bool(made) for model, made in claims.items()}, shared)


def panels_of(errors: Iterable[Errors]) -> list[Sat]:
    """Sorts errors by panel. A model that sat twice in a panel made the claims of both seats."""
    found: dict[str, dict[str, list[frozenset[str]]]] = defaultdict(dict)
    for seat in errors:
        found[seat.panel].setdefault(seat.model, []).extend(seat.claims)
    return [compared(claims) for _, claims in sorted(found.items())]


class Table:
    """Panels as sets of bits, a bit a panel: by model where it was judged and where it was wrong, by pair where both made the same claim."""

    def __init__(self, panels: Iterable[Sat], models: Names[str]) -> None:
        self.panels = [sat for sat in panels if len(sat.wrong.keys() & models) > 1]
        self.judged, self.wrong = dict.fromkeys(sorted(models), 0), dict.fromkeys(models, 0)
        self.shared: dict[tuple[str, str], int] = defaultdict(int)
        for n, sat in enumerate(self.panels):
            bit = 1 << n
            for model, is_wrong in sat.wrong.items():
                if model in models:
                    self.judged[model] |= bit
                    self.wrong[model] |= bit * bool(is_wrong)
            for pair in sat.shared:
                self.shared[pair] |= bit
        self.any_wrong = reduce(or_, self.wrong.values(), 0).bit_count()

    def cells(self, one: str, other: str, among: int = -1) -> tuple[int, int, int, int]:
        """Of a pair: how many panels judged both, and in how many the one, the other and both were wrong. Shape: `among` are the bits that count."""
        both = self.judged[one] & self.judged[other] & among
        a, b = self.wrong[one] & both, self.wrong[other] & both
        return both.bit_count(), a.bit_count(), b.bit_count(), (a & b).bit_count()


# ------------------------------------------------------------------ pairs


def pairs(table: Table) -> list[Pair]:
    """Compares every two models over the panels where both were judged, the most alike first, pairs without a phi last."""
    found = []
    for one, other in combinations(table.judged, 2):
        cells = table.cells(one, other)
        if cells[0]:
            shared = table.shared.get((one, other), 0)
            found.append(pair(one, other, cells, shared.bit_count()))
    return sorted(found, key=lambda p: (p.phi is None, -(p.phi or 0.0), -p.shared.mean, p.one, p.other))


def pair(one: str, other: str, cells: tuple[int, int, int, int], shared: int) -> Pair:
    """Compares two models by how often each was wrong."""
    n, wrong, others_wrong, together = cells
    only, only_other = wrong - together, others_wrong - together
    neither = n - together - only - only_other
    phi = ratio = low = high = None
    if 0 < wrong < n and 0 < others_wrong < n:
        phi = (together * neither - only * only_other) / sqrt(wrong * (n - wrong) * others_wrong * (n - others_wrong))
        a, b, c, d = together + 0.5, only + 0.5, only_other + 0.5, neither + 0.5
        middle, spread = log(a * d / (b * c)), Z95 * sqrt(1 / a + 1 / b + 1 / c + 1 / d)
        ratio, low, high = exp(middle), exp(middle - spread), exp(middle + spread)
    return Pair(one, other, n, wrong, others_wrong, together, wrong * others_wrong / n**2, phi, ratio, low, high, rate(shared, n))


# ------------------------------------------------------------------ seats


def independence(panels: Iterable[Sat], members: Sequence[str], seats: int | None = None) -> Independence:
    """Works out what the seats of these members amount to. A model listed twice errs with itself, and counts once."""
    models = set(members)
    n = min(seats, len(models)) if seats else len(models)
    table = Table(panels, models)
    judged, found = len(table.panels), tuple(pairs(table))
    if needs := missing(n, judged, table.any_wrong):
        return Independence(n, None, None, None, None, judged, needs, found)
    rho = correlation(table)
    if rho is None:
        return Independence(n, None, None, None, None, judged, "No two members have both been right and wrong in panels judged together.", found)
    everything = (1 << judged) - 1
    without = [r for out in range(GROUPS) if (r := correlation(table, everything ^ group(out, judged))) is not None]
    middle = sum(without) / len(without)
    spread = Z95 * sqrt((len(without) - 1) / len(without) * sum((r - middle) ** 2 for r in without))
    return Independence(n, effective(n, rho), effective(n, rho + spread), effective(n, rho - spread), rho, judged, "", found)


def group(number: int, panels: int) -> int:
    """The bits of every `GROUPS`th panel."""
    return sum(1 << n for n in range(number, panels, GROUPS))


def missing(seats: int, panels: int, wrong: int) -> str:
    """Says what is missing for a number that means something, "" where nothing is."""
    if seats < 2:
        return "One seat is one seat: there is nothing to compare."
    if panels < PANELS_NEEDED:
        return f"Needs about {PANELS_NEEDED - panels} more panels in which two members or more were judged; there are {panels}."
    if wrong < ERRORS_NEEDED:
        return f"Needs about {ERRORS_NEEDED - wrong} more panels with a false claim; there are {wrong}, and what nobody gets wrong compares nobody."
    return ""


def effective(seats: int, correlation: float) -> float:
    """Works out how many independent seats so many correlated ones are worth: from 1 to all of them. Source: Kish's n / (1 + (n - 1) rho)."""
    return seats / (1.0 + (seats - 1) * min(max(correlation, 0.0), 1.0))


def correlation(table: Table, among: int = -1) -> float | None:
    """Works out the mean correlation of errors over pairs of models, each by the panels it has: the covariances together over the deviations together.

    Shape: `among` are the bits of the panels that count. None where no pair has both been right and wrong.
    """
    together = apart = 0.0
    for one, other in combinations(table.judged, 2):
        n, wrong, others_wrong, both = table.cells(one, other, among)
        if n:
            together += both - wrong * others_wrong / n
            apart += sqrt(wrong * (n - wrong) * others_wrong * (n - others_wrong)) / n
    return together / apart if apart else None
