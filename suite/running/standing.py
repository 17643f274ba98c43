"""How a run goes while a process works on it, and what of its ceilings that leaves: what may be spent is reckoned before each call, in memory.

The next sample is reckoned at the dearest of late; before the first answer nothing is known of the price, so until then one goes at a time. A ceiling may be
overshot by what the calls under way turn out dearer than that, and by one call where nothing else is under way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from catalog.roster import Model
from panels.plan import PREFIX
from panels.snapshot import Snapshot
from suite.running.limits import Limits
from suite.running.subjects import Subject

WARN_AT = 0.8
# So many infrastructure failures with one message, one after the other, and no answer among them: the subject is not there.
DEAD_AFTER = 8


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a run may cost and how long it may take. Shape: by what is exceeded, as a halt's reason names it. Units: trillionths of a US dollar, seconds."""

    costs: Mapping[str, int] = field(default_factory=dict)
    model_costs: Mapping[str, int] = field(default_factory=dict)  # by alias, where several models share a run
    durations: Mapping[str, float] = field(default_factory=dict)

    @property
    def are_of_money(self) -> bool:
        return bool(self.costs or self.model_costs)

    @property
    def are_any(self) -> bool:
        return bool(self.costs or self.model_costs or self.durations)

    def lowest(self) -> tuple[str, int] | None:
        """Gives the ceiling of cost that is reached first."""
        return min(((name, most) for name, most in self.costs.items()), key=lambda one: one[1], default=None)


@dataclass(slots=True)
class Standing:
    """Units: costs in trillionths of a US dollar."""

    spent: int
    ceilings: Ceilings
    started_at: datetime
    by_model: dict[str, int] = field(default_factory=dict)
    under_way: dict[asyncio.Task[Any], int] = field(default_factory=dict)
    costs: deque[int] = field(default_factory=lambda: deque(maxlen=50))
    of_late: deque[Mapping[str, int]] = field(default_factory=lambda: deque(maxlen=50))  # costs by model, where a ceiling stands on one
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=DEAD_AFTER))
    answered: int = 0
    started: int = 0
    halting: str = ""
    note: str = ""
    failed: str = ""
    warned: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return bool(self.halting or self.failed)

    def halt(self, why: str, note: str = "") -> None:
        if not self.is_over:
            self.halting, self.note = why, note

    def expected_cost(self) -> int:
        """What the next sample will probably cost: the dearest of late."""
        return max(self.costs, default=0)

    def add(self, cost_pusd: int, is_unpriced: bool, by_model: Mapping[str, int]) -> None:
        """Counts a sample that has ended. A ceiling of money holds only where prices are known."""
        self.spent += cost_pusd
        self.costs.append(cost_pusd)
        if self.ceilings.model_costs:
            self.of_late.append(by_model)
        for alias, cost in by_model.items():
            self.by_model[alias] = self.by_model.get(alias, 0) + cost
        if is_unpriced and self.ceilings.are_of_money:
            self.halt(
                "price_unknown", "Its ceiling of cost cannot be kept: the price of an answer is unknown. Set the model's price, or launch without the ceiling."
            )

    def may_spend(self) -> bool:
        """Reckons whether one more sample fits under the ceilings with all that is under way, and halts at one that is reached."""
        if not self.ceilings.are_of_money:
            return True
        for alias, most in self.ceilings.model_costs.items():
            spent = self.by_model.get(alias, 0)
            if spent >= most:
                self.halt("limit_exceeded:run.model_cost", f"The ceiling stands on {alias}.")
                return False
            dearest = max((each.get(alias, 0) for each in self.of_late), default=0)
            if self.under_way and (not self.of_late or spent + dearest * (len(self.under_way) + 1) > most):
                return False
        lowest = self.ceilings.lowest()
        if lowest is None:
            return True
        name, most = lowest
        if self.spent >= most:
            self.halt(f"limit_exceeded:{name}")
            return False
        if not self.under_way:
            return True
        return bool(self.costs) and self.spent + sum(self.under_way.values()) + self.expected_cost() <= most

    def outlasted(self, now: datetime) -> str:
        """Names the ceiling of duration that is reached, "" for none."""
        taken = (now - self.started_at).total_seconds()
        return min(((most, name) for name, most in self.ceilings.durations.items() if taken >= most), default=(0, ""))[1]

    def warnings(self, now: datetime) -> list[dict[str, Any]]:
        """Gives what to warn of and was not yet: ceilings that are used to four fifths. Units: dollars, seconds."""
        used: list[tuple[str, float, float]] = [(name, self.spent / 1e12, most / 1e12) for name, most in self.ceilings.costs.items()]
        for alias, most in self.ceilings.model_costs.items():
            used.append((f"run.model_cost:{alias}", self.by_model.get(alias, 0) / 1e12, most / 1e12))
        taken = (now - self.started_at).total_seconds()
        used += [(name, taken, most) for name, most in self.ceilings.durations.items()]
        new = [(name, so_far, most) for name, so_far, most in used if so_far >= WARN_AT * most and name not in self.warned]
        self.warned |= {name for name, _, _ in new}
        return [{"limit": name, "used": round(so_far, 6), "most": most} for name, so_far, most in new]

    def heard(self, error: str) -> None:
        """Counts an end: an answer, or a failure on the way."""
        if not error:
            self.answered += 1
            self.failures.clear()
            return
        self.failures.append(error)

    @property
    def seems_dead(self) -> bool:
        return not self.answered and len(self.failures) == DEAD_AFTER and len(set(self.failures)) == 1


def ceilings_of(limits: Limits, subject: Subject, snapshot: Snapshot) -> tuple[Ceilings, int | None]:
    """Puts together what a launch and the connection allow. Shape: and how many calls a person allows at once there, None where nobody said.

    A collection's members each have a connection of their own, whose ceiling stands on what that member costs.
    """
    costs = {name: to_pusd(most) for name, most in (("run.cost", limits.run_cost), ("phase.cost", limits.phase_cost)) if most is not None}
    durations = {name: most for name, most in (("run.duration", limits.run_duration), ("phase.duration", limits.phase_duration)) if most is not None}
    if subject.kind == "collection":
        asked = subject.asked_as.removeprefix(PREFIX).partition(":")[0]
        collection = snapshot.collections.get(asked)
        names = dict.fromkeys([*collection.members, *collection.mergers]) if collection else {}
        own = {alias: most for alias in names if (model := snapshot.models.get(alias)) and (most := model_cost(model)) is not None}
        return Ceilings(costs, own, durations), None
    model = snapshot.models.get(subject.asked_as)
    if model is None:
        return Ceilings(costs, {}, durations), None
    if (most := model_cost(model)) is not None:
        costs["run.model_cost"] = most
    at_once = [limits["parallel"] for limits in (model.endpoint.limits, model.limits) if limits.get("parallel")]
    return Ceilings(costs, {}, durations), min(at_once, default=None)


def model_cost(model: Model) -> int | None:
    """Reads what one run may cost at a model's connection: the lower of the endpoint's and the model's own. Units: trillionths of a US dollar."""
    said = [(limits.get("run") or {}).get("model_cost") for limits in (model.endpoint.limits, model.limits)]
    return min((to_pusd(most) for most in said if most is not None), default=None)


def to_pusd(usd: float) -> int:
    return round(usd * 1e12)
