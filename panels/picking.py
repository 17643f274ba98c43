"""Who sits where a collection's record decides: Thompson sampling over what verdicts say, and a turn for everybody now and then. Pure rules.

The rule, in full:
- Before any verdict in the collection: the order given.
- From then on each member's usefulness is a Beta posterior: verdicts in this collection, aged, over a prior that other words about the model
  may lean a little (`prior`). One value is drawn from each; the highest draws sit. Who might be the best is tried now and then, who cannot be is not.
- The draws are from a posterior that is narrower than the true one (`SHARPER`): with few verdicts and several seats the true one tries too much.
- A member that has not sat for a while takes a seat whatever its draw, so that none goes without for `turn_within` panels. Without that a model that
  has become better would hardly be asked again, and nobody would notice.
- Everything follows from the beliefs and the seed, and both are kept with the panel.

Source: W. R. Thompson, "On the likelihood that one unknown probability exceeds another in view of the evidence of two samples", Biometrika 25
(1933); for verdicts that age: V. Raj and S. Kalyani, "Taming non-stationary bandits: a Bayesian approach" (2017), https://arxiv.org/abs/1707.09727;
for narrower posteriors: O. Chapelle and L. Li, "An empirical evaluation of Thompson sampling" (NIPS 2011). The numbers here are those that lose least
in `manage.py simulate_bench`.
"""

from __future__ import annotations

import random
from collections.abc import Collection as Names
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

# A member sits at least once in so many rounds; a round is as many panels as it takes to seat each member once.
ROUNDS = 20
# So many times the evidence that there is: draws lie half as far from the mean.
SHARPER = 4.0
# What is known from elsewhere weighs no more than so many verdicts: it decides who is tried first, and soon no more.
SCORE_WEIGHT = 3.0
ELSEWHERE_WEIGHT = 2.0
HEALTH_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Belief:
    """What is thought of a member's usefulness: Beta(a, b)."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)


@dataclass(frozen=True, slots=True)
class Word:
    """A share that was seen elsewhere. Shape: `share` from 0 to 1; `weight` how many verdicts it is worth."""

    share: float
    weight: float


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What decides in one collection. Shape: `of` by alias, empty before any verdict there; who is not in it is `unknown`."""

    of: Mapping[str, Belief]
    unknown: Belief = Belief(1.0, 1.0)

    def about(self, alias: str) -> Belief:
        return self.of.get(alias, self.unknown)


NOTHING = Beliefs({})


@dataclass(frozen=True, slots=True)
class Pick:
    """Who sits, in the members' order, and why. Shape: `draws` by alias, empty where the order given decided; `forced` sit because it was their turn."""

    seated: tuple[int, ...]
    draws: Mapping[str, float]
    forced: tuple[str, ...] = ()


def prior(score: Word | None, elsewhere: Word | None, health: Word | None) -> Belief:
    """Begins with every share being as likely as any other, and leans it by what is known: the suite's score, verdicts in other collections, health."""
    a = b = 1.0
    for word, most in ((score, SCORE_WEIGHT), (elsewhere, ELSEWHERE_WEIGHT), (health, HEALTH_WEIGHT)):
        if word is not None and word.weight > 0:
            weight = min(word.weight, most)
            share = min(max(word.share, 0.0), 1.0)
            a, b = a + weight * share, b + weight * (1.0 - share)
    return Belief(a, b)


def beliefs(judged: Mapping[str, tuple[float, float]], priors: Mapping[str, Belief]) -> Beliefs:
    """Adds this collection's verdicts to the priors. Shape: `judged` is useful and all answers by alias, aged weights; empty: no verdict yet."""
    if not judged:
        return NOTHING
    found = {}
    for alias in {*judged, *priors}:
        start = priors.get(alias, Belief(1.0, 1.0))
        yes, of = judged.get(alias, (0.0, 0.0))
        found[alias] = Belief(start.a + yes, start.b + max(0.0, of - yes))
    return Beliefs(found)


def draws(aliases: Iterable[str], known: Beliefs, seed: int) -> dict[str, float]:
    """Draws one value from each belief. The same seed and beliefs give the same values, in whatever order the aliases come."""
    luck, found = random.Random(f"pick {seed}"), {}
    for alias in sorted(set(aliases)):
        belief = known.about(alias)
        found[alias] = luck.betavariate(SHARPER * belief.a, SHARPER * belief.b)
    return found


def ranked(members: Sequence[str], known: Beliefs, seed: int) -> Pick:
    """Puts all members in the order in which a turn is offered to them: by their draws, before any verdict as given."""
    if not known.of:
        return Pick(tuple(range(len(members))), {})
    drawn = draws(members, known, seed)
    return Pick(tuple(sorted(range(len(members)), key=lambda i: -drawn[members[i]])), drawn)


def turn_within(members: int, seats: int) -> int:
    """The panels of a collection within which every member that can sit does."""
    return ROUNDS * ceil(members / max(1, seats))


def due_after(members: int, seats: int) -> int:
    """The panels without a seat after which a member's turn has come.

    If all come due at once, the last of them waits one round more; that is the round by which this is less than `turn_within`.
    """
    return turn_within(members, seats) - ceil(members / max(1, seats))


def picked(members: Sequence[str], able: Names[str], seats: int, known: Beliefs, waited: Mapping[str, int], seed: int, wanted: Names[str] = ()) -> Pick:
    """Picks the places that sit: who was asked for by name, whose turn has come, then by draws; who cannot is passed over while others can.

    Shape: `waited` is the panels of this collection since each alias sat, one that sat in the last has 0; `able` are those that nothing hinders;
    `seated` are places in `members`, in their order. A model listed twice has two places.
    """
    drawn = draws(members, known, seed) if known.of else {}
    places = range(len(members))
    asked = [i for i in places if members[i] in wanted and members.index(members[i]) == i]
    turns = len(members)
    due = due_after(turns, seats)
    late = [i for i in places if i not in asked and members[i] in able and waited.get(members[i], 0) >= due and members.index(members[i]) == i]
    late.sort(key=lambda i: -waited[members[i]])
    forced = late[: max(0, seats - len(asked))]
    taken = [*asked, *forced]
    rest = [i for i in places if i not in taken]
    rest.sort(key=lambda i: (members[i] not in able, -drawn.get(members[i], 0.0)))  # stable: without draws the order given
    taken += rest[: max(0, seats - len(taken))]
    return Pick(tuple(sorted(taken)), drawn, tuple([members[i] for i in forced]))


def waited(members: Sequence[str], panels: Sequence[Names[str]]) -> dict[str, int]:
    """Counts the panels since each member sat. Shape: `panels` are who sat in each, the last one first; one that sat in none waited for all of them."""
    return {alias: next((n for n, sat in enumerate(panels) if alias in sat), len(panels)) for alias in set(members)}
