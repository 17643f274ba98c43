"""Plays the ways to pick members against each other, on made-up or recorded histories, and counts what each of them loses. Pure.

Regret: how many useful answers fewer a policy's panels hold, on average, than those of somebody who knew how useful each model is at the time.
Every policy sees only the verdicts on the seats that it chose itself. The one that ships is `panels.picking`, the very function that seats panels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from panels import picking

MODELS, SEATS, PANELS, PER_DAY = 8, 2, 2000, 10
HALF_LIFE_DAYS = 60.0
POINTS = 100  # of a curve


@dataclass(frozen=True, slots=True)
class Scenario:
    """One history. Shape: `truth` by panel and model, how useful its answer is on average, None while it is not there; `models` in the members' order.

    `judged` is the share of answers that get a verdict, `delay` after how many panels on average; `days` since the first panel, by panel;
    `said` what was recorded, by panel and model, and stands in place of a made-up verdict.
    """

    name: str
    models: tuple[str, ...]
    truth: Sequence[Sequence[float | None]]
    days: Sequence[int]
    judged: float = 0.5
    delay: float = 0.0
    said: Mapping[tuple[int, int], bool] = field(default_factory=dict)


@dataclass(slots=True)
class Seen:
    """What one policy was told so far. Shape: `yes` and `of` count plainly, `aged_yes` and `aged_of` by a half-life."""

    yes: list[float]
    of: list[float]
    aged_yes: list[float]
    aged_of: list[float]
    waited: list[int]


Policy = Callable[[Scenario, int, Sequence[int], int, Seen, int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Played:
    """What one policy lost in one scenario. Shape: `curve` is the regret so far at `POINTS` moments; `longest_wait` panels that a model went without a seat."""

    policy: str
    scenario: str
    regret: float
    curve: tuple[float, ...]
    longest_wait: int


# ------------------------------------------------------------------ policies: (scenario, panel, models there, seats, seen, seed) → who sits


def fixed(scenario: Scenario, t: int, there: Sequence[int], seats: int, seen: Seen, seed: int) -> Sequence[int]:
    """The first in the order given."""
    return there[:seats]


def chance(scenario: Scenario, t: int, there: Sequence[int], seats: int, seen: Seen, seed: int) -> Sequence[int]:
    """Anybody."""
    return random.Random(f"chance {seed} {t}").sample(list(there), min(seats, len(there)))


def best_so_far(scenario: Scenario, t: int, there: Sequence[int], seats: int, seen: Seen, seed: int) -> Sequence[int]:
    """The highest share of useful answers; whom no verdict speaks of goes first, so that each is tried."""
    return sorted(there, key=lambda i: -(seen.yes[i] / seen.of[i] if seen.of[i] else 2.0))[:seats]


def oracle(scenario: Scenario, t: int, there: Sequence[int], seats: int, seen: Seen, seed: int) -> Sequence[int]:
    """Whoever is best at the time: it knows."""
    return sorted(there, key=lambda i: -(scenario.truth[t][i] or 0.0))[:seats]


def record(scenario: Scenario, t: int, there: Sequence[int], seats: int, seen: Seen, seed: int) -> Sequence[int]:
    """What ships: `picking: record`."""
    names = [scenario.models[i] for i in there]
    judged = {scenario.models[i]: (seen.aged_yes[i], seen.aged_of[i]) for i in there if seen.of[i]}
    waited = {scenario.models[i]: seen.waited[i] for i in there}
    found = picking.picked(names, names, seats, picking.beliefs(judged, {}), waited, seed * 1_000_003 + t)
    return [there[place] for place in found.seated]


POLICIES: dict[str, Policy] = {"fixed": fixed, "random": chance, "best so far": best_so_far, "record": record, "oracle": oracle}


# ------------------------------------------------------------------ playing


def play(scenario: Scenario, policy: str, seats: int, seed: int, half_life_days: float = HALF_LIFE_DAYS) -> Played:
    """Plays one policy through one history. The same seed gives every policy the same answers from the same seat."""
    choose = POLICIES[policy]
    n, panels = len(scenario.models), len(scenario.truth)
    seen = Seen([0.0] * n, [0.0] * n, [0.0] * n, [0.0] * n, [0] * n)
    arriving: dict[int, list[tuple[int, bool]]] = {}
    luck = random.Random(f"{scenario.name} {seed}")
    curve: list[float] = []
    regret, longest, day = 0.0, 0, 0
    for t in range(panels):
        truth = scenario.truth[t]
        if half_life_days and scenario.days[t] > day:
            keep = 0.5 ** ((scenario.days[t] - day) / half_life_days)
            seen.aged_yes, seen.aged_of = [x * keep for x in seen.aged_yes], [x * keep for x in seen.aged_of]
        day = scenario.days[t]
        for i, useful in arriving.pop(t, ()):
            for counts in (seen.of, seen.aged_of):
                counts[i] += 1.0
            if useful:
                for counts in (seen.yes, seen.aged_yes):
                    counts[i] += 1.0
        there = [i for i in range(n) if truth[i] is not None]
        sat = set(choose(scenario, t, there, seats, seen, seed))
        best = sorted((truth[i] or 0.0 for i in there), reverse=True)[:seats]
        regret += sum(best) - sum(truth[i] or 0.0 for i in sat)
        for i in there:
            # The same throws for every model and policy: they differ by whom they chose and by nothing else.
            answer, told, later = luck.random(), luck.random(), luck.random()
            seen.waited[i] = 0 if i in sat else seen.waited[i] + 1
            longest = max(longest, seen.waited[i])
            if i in sat and ((t, i) in scenario.said or told < scenario.judged):
                useful = scenario.said.get((t, i), answer < (truth[i] or 0.0))
                arriving.setdefault(t + 1 + int(2 * later * scenario.delay), []).append((i, useful))
        if (t + 1) * POINTS // panels > len(curve):
            curve += [regret] * ((t + 1) * POINTS // panels - len(curve))
    return Played(policy, scenario.name, regret, tuple(curve), longest)


def mean(played: Sequence[Played]) -> Played:
    """Averages the same policy in the same scenario over several seeds; of the waits, the longest."""
    first, n = played[0], len(played)
    curve = tuple(sum(points) / n for points in zip(*[p.curve for p in played], strict=True))
    return Played(first.policy, first.scenario, sum(p.regret for p in played) / n, curve, max(p.longest_wait for p in played))


# ------------------------------------------------------------------ made-up histories


def stationary(seed: int, panels: int = PANELS, models: int = MODELS, per_day: int = PER_DAY) -> Scenario:
    """Models that stay as they are."""
    luck = random.Random(f"stationary {seed}")
    level = [luck.uniform(0.2, 0.9) for _ in range(models)]
    return Scenario("stationary", _names(models), [level] * panels, _days(panels, per_day))


def drifting(seed: int, panels: int = PANELS, models: int = MODELS, per_day: int = PER_DAY) -> Scenario:
    """Models that change under the bench: each becomes another three times, at moments of its own."""
    luck = random.Random(f"drifting {seed}")
    columns = []
    for _ in range(models):
        moments = {luck.randrange(panels) for _ in range(3)}
        column, level = [], luck.uniform(0.2, 0.9)
        for t in range(panels):
            level = luck.uniform(0.2, 0.9) if t in moments else level
            column.append(level)
        columns.append(column)
    return Scenario("drifting", _names(models), list(zip(*columns, strict=True)), _days(panels, per_day))


def arriving(seed: int, panels: int = PANELS, models: int = MODELS, per_day: int = PER_DAY) -> Scenario:
    """A bench that begins with a third of its models; the others come one after another, each perhaps better than all."""
    luck = random.Random(f"arriving {seed}")
    first = max(2, ceil(models / 3))
    level = [luck.uniform(0.2, 0.75) if i < first else luck.uniform(0.2, 0.95) for i in range(models)]
    comes = [0 if i < first else (i - first + 1) * panels // (models - first + 1) for i in range(models)]
    truth = [[level[i] if t >= comes[i] else None for i in range(models)] for t in range(panels)]
    return Scenario("new arrivals", _names(models), truth, _days(panels, per_day))


def sparse(seed: int, panels: int = PANELS, models: int = MODELS, per_day: int = PER_DAY) -> Scenario:
    """One answer in ten gets a verdict."""
    found = stationary(seed, panels, models, per_day)
    return Scenario("sparse verdicts", found.models, found.truth, found.days, judged=0.1)


def delayed(seed: int, panels: int = PANELS, models: int = MODELS, per_day: int = PER_DAY) -> Scenario:
    """Verdicts come a fortnight later, and models change meanwhile."""
    found = drifting(seed, panels, models, per_day)
    return Scenario("delayed verdicts", found.models, found.truth, found.days, delay=14.0 * per_day)


SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "stationary": stationary,
    "drifting": drifting,
    "arriving": arriving,
    "sparse": sparse,
    "delayed": delayed,
}


def _names(models: int) -> tuple[str, ...]:
    return tuple(f"model {i + 1}" for i in range(models))


def _days(panels: int, per_day: int) -> list[int]:
    return [t // per_day for t in range(panels)]
