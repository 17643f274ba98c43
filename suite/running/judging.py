"""Asking judges: models, or a collection whose seats judge each by themselves. Down the gateway's own road, under a purpose of its own in the ledger.

What a judge costs is the run's, under the run's ceiling and the owner's budgets. A judge that cannot be reached is asked again, one whose words hold no
verdict once more under another sign; then the answer is `judge_failed`, which is no result of the model's.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from access.caller import Caller
from panels.gateway import Gateway
from panels.snapshot import Snapshot
from suite.api.problems import Problem
from suite.grading import verdicts
from suite.grading.answers import visible
from suite.grading.contract import JudgedKind, Options
from suite.grading.kinds.judge import judges_of
from suite.grading.outcomes import undecided
from suite.grading.verdicts import Opinion
from suite.running import subjects
from suite.running.asking import Said, ask, request_of
from suite.running.lines import Item
from suite.running.sampling import FINAL, FIRST_PAUSE_S, LONGEST_WAIT_S, MOST_WAITS, SPENT, Marked, MoneySpent
from suite.running.subjects import Subject

PURPOSE = "judge"
ATTEMPTS, READINGS = 3, 2
# How a panel's own text names its seats: a judge is not told who wrote what.
HEADING = re.compile(r"^## [^\n]* \u00b7 [^\n]* \u00b7 [^\n]*$", re.MULTILINE)
DEGRADED = re.compile(r"\A\*Degraded: [^\n]*\*\n*")


def resolved(grader: Mapping[str, Any], snapshot: Snapshot) -> list[Subject]:
    """Finds the judges that a grader names. Errors: Unprocessable, Conflict, as for a subject."""
    return [subjects.resolve(judge, snapshot) for judge in judges_of(grader)]


def unnamed(text: str, subject: Subject) -> str:
    """Takes the names of a panel's seats off its answer."""
    if subject.kind != "collection" or subject.mode != "panel":
        return text
    numbers = iter(range(1, 1000))
    return HEADING.sub(lambda _: f"## Answer {next(numbers)}", DEGRADED.sub("", text))


class Judging:
    """What asks the judges of one run."""

    def __init__(
        self, gateway: Gateway, snapshot: Callable[[], Awaitable[Snapshot]], caller: Caller, run: str, grader: Mapping[str, Any], tested: Subject
    ) -> None:
        self.gateway, self.snapshot, self.caller, self.run, self.grader, self.tested = gateway, snapshot, caller, run, grader, tested
        self.choices = verdicts.choices_of(grader.get("choices"))

    async def mark(self, kind: JudgedKind, item: Item, said: Said, options: Options) -> Marked:
        """Has all judges grade one answer, side by side. Errors: MoneySpent."""
        answer = unnamed(said.output.text, self.tested)
        try:
            judges = resolved(self.grader, await self.snapshot())
        except Problem as error:
            return Marked(undecided("judge_unknown", error.message))
        asked = await asyncio.gather(*[self.opinions(judge, kind, item, answer) for judge in judges], return_exceptions=True)
        if raised := next((found for found in asked if isinstance(found, BaseException)), None):
            raise raised
        opinions = [opinion for found in asked if not isinstance(found, BaseException) for opinion in found]
        costs = [opinion.cost_pusd for opinion in opinions]
        grade = verdicts.together(opinions, self.choices, str(self.grader.get("reduce", "majority")), options.threshold)
        return Marked(grade, None if None in costs else sum(cost or 0 for cost in costs), tuple([o.call for o in opinions if o.call]))

    async def opinions(self, judge: Subject, kind: JudgedKind, item: Item, answer: str) -> list[Opinion]:
        """Asks one judge until its words can be read, and gives what each of its seats said. What an earlier reading cost is counted with the last."""
        spent: list[int | None] = []
        found: list[Opinion] = []
        for _ in range(READINGS):
            sign = verdicts.sign_for(answer, str(item.input), str(item.expected))
            said = await self.asked(judge, kind, item, answer, sign, spent)
            found = self.read(judge, said, sign)
            if any(opinion.label for opinion in found) or (said.error is not None):
                break
        total = None if None in spent else sum(cost or 0 for cost in spent)
        return [Opinion(o.judge, o.label, o.reason, o.text, o.call, total if i == 0 else 0) for i, o in enumerate(found)]

    async def asked(self, judge: Subject, kind: JudgedKind, item: Item, answer: str, sign: str, spent: list[int | None]) -> Said:
        attempts = waits = 0
        while True:
            snapshot = subjects.seated(judge, await self.snapshot())
            question = kind.brief(answer, item.input, item.expected, self.grader, sign)
            said = await ask(self.gateway, snapshot, self.caller, request_of(judge, question, judge.params or {}), self.run, PURPOSE)
            spent.append(said.cost_pusd)
            error = said.error
            if error is None or error.code in FINAL:
                return said
            if error.code in SPENT:
                raise MoneySpent(error.message)
            if error.retry_after_s is not None and error.status == 429 and waits < MOST_WAITS:
                waits += 1
                pause = min(error.retry_after_s, LONGEST_WAIT_S) + random.random()
            elif (attempts := attempts + 1) >= ATTEMPTS:
                return said
            else:
                pause = FIRST_PAUSE_S * 2**attempts * (0.5 + random.random())
            await asyncio.sleep(pause)

    def read(self, judge: Subject, said: Said, sign: str) -> list[Opinion]:
        """Reads a judge's answer; a collection in panel mode has as many opinions as seats that were asked."""
        if judge.kind == "collection" and judge.mode == "panel" and said.seats:
            return [
                self.opinion(seat.model, seat.text, sign, seat.call, "" if seat.status in ("ok", "partial") else f"judge_{seat.status}")
                for seat in said.seats
                if seat.status != "skipped"
            ] or [Opinion(judge.name, reason="judge_unavailable")]
        call = said.calls[0] if said.calls else ""
        if said.error is not None:
            return [Opinion(judge.name, reason="judge_refused" if said.error.code == "content_policy" else "judge_unavailable", call=call)]
        reason = "judge_truncated" if said.is_truncated else "judge_refused" if said.is_refused else ""
        return [self.opinion(judge.name, said.output.text, sign, call, reason)]

    def opinion(self, name: str, text: str, sign: str, call: str, reason: str) -> Opinion:
        seen, broke_off = visible(text)
        reason = reason or ("judge_truncated" if broke_off else "")
        label = "" if reason else verdicts.read(seen, sign, self.choices)
        return Opinion(name, label, reason or ("" if label else "judge_unparsed"), seen, call)
