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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log, sqrt

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


# ------------------------------------------------------------------ pairs


def pairs(errors: Iterable[Errors], models: Sequence[str]) -> list[Pair]:
    """Compares every two of these models over the panels where both were judged, the most alike first, pairs without a phi last."""
    by_panel = panels_of(errors, models)
    found = []
    for one, other in combinations(sorted(set(models)), 2):
        both = [(sat[one], sat[other]) for sat in by_panel.values() if one in sat and other in sat]
        if both:
            found.append(pair(one, other, both))
    return sorted(found, key=lambda p: (p.phi is None, -(p.phi or 0.0), -p.shared.mean, p.one, p.other))


def pair(one: str, other: str, both: Sequence[tuple[Sequence[frozenset[str]], Sequence[frozenset[str]]]]) -> Pair:
    """Compares two models by their false claims in each of some panels."""
    n = len(both)
    wrong, others_wrong = sum(bool(a) for a, _ in both), sum(bool(b) for _, b in both)
    together = sum(bool(a) and bool(b) for a, b in both)
    shared = sum(any(same(x, y) for x in a for y in b) for a, b in both)
    only, only_other = wrong - together, others_wrong - together
    neither = n - together - only - only_other
    phi = ratio = low = high = None
    if 0 < wrong < n and 0 < others_wrong < n:
        phi = (together * neither - only * only_other) / sqrt(wrong * (n - wrong) * others_wrong * (n - others_wrong))
        a, b, c, d = together + 0.5, only + 0.5, only_other + 0.5, neither + 0.5
        middle, spread = log(a * d / (b * c)), Z95 * sqrt(1 / a + 1 / b + 1 / c + 1 / d)
        ratio, low, high = exp(middle), exp(middle - spread), exp(middle + spread)
    return Pair(one, other, n, wrong, others_wrong, together, wrong * others_wrong / n**2, phi, ratio, low, high, rate(shared, n))


def panels_of(errors: Iterable[Errors], models: Sequence[str]) -> dict[str, dict[str, tuple[frozenset[str], ...]]]:
    """Sorts errors by panel and model. A model that sat twice in a panel made the claims of both seats."""
    wanted = set(models)
    found: dict[str, dict[str, tuple[frozenset[str], ...]]] = defaultdict(dict)
    for seat in errors:
        if seat.model in wanted:
            found[seat.panel][seat.model] = found[seat.panel].get(seat.model, ()) + seat.claims
    return found


# ------------------------------------------------------------------ seats


def independence(errors: Iterable[Errors], members: Sequence[str], seats: int | None = None) -> Independence:
    """Works out what the seats of these members amount to. A model listed twice errs with itself, and counts once."""
    models = sorted(set(members))
    n = min(seats, len(models)) if seats else len(models)
    errors = list(errors)
    table = {panel: sat for panel, sat in panels_of(errors, models).items() if len(sat) > 1}
    found = tuple(pairs(errors, models))
    wrong = sum(any(sat.values()) for sat in table.values())
    if needs := missing(n, len(table), wrong):
        return Independence(n, None, None, None, None, len(table), needs, found)
    flags = [{model: bool(claims) for model, claims in table[panel].items()} for panel in sorted(table)]
    rho = correlation(flags)
    if rho is None:
        return Independence(n, None, None, None, None, len(table), "No two members have both been right and wrong in panels judged together.", found)
    parts = [flags[start::GROUPS] for start in range(GROUPS)]
    without = [r for out in range(GROUPS) if (r := correlation([f for g, part in enumerate(parts) if g != out for f in part])) is not None]
    middle = sum(without) / len(without)
    spread = Z95 * sqrt((len(without) - 1) / len(without) * sum((r - middle) ** 2 for r in without))
    return Independence(n, effective(n, rho), effective(n, rho + spread), effective(n, rho - spread), rho, len(table), "", found)


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


def correlation(panels: Sequence[Mapping[str, bool]]) -> float | None:
    """Works out the mean correlation of errors over pairs of models, each by the panels it has: the covariances together over the deviations together.

    None where no pair has both been right and wrong.
    """
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for sat in panels:
        for one, other in combinations(sorted(sat), 2):
            cell = counts[one, other]
            cell[0] += 1
            cell[1] += sat[one]
            cell[2] += sat[other]
            cell[3] += sat[one] and sat[other]
    together = apart = 0.0
    for n, wrong, others_wrong, both in counts.values():
        together += both - wrong * others_wrong / n
        apart += sqrt(wrong * (n - wrong) * others_wrong * (n - others_wrong)) / n
    return together / apart if apart else None
