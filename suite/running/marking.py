"""From an answer to its grade, by whatever its kind takes: at once, by a program's tests in the sandbox, by a scorer's own code there, or by judges."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, cast

from suite import grading
from suite.grading.contract import BoxedKind, JudgedKind, Kind, Options, Output, Program
from suite.grading.outcomes import Grade, undecided
from suite.running import testing
from suite.running.asking import Said
from suite.running.coding import Coding
from suite.running.judging import Judging
from suite.running.lines import Item
from suite.running.sampling import Marked

PAIRS = max(2, os.cpu_count() or 1)


class Marking:
    """What grades the answers of one run.

    Shape: `kind` "" for each row's own; `coding` where the impl is code; without `judging` nobody is asked; `caps` are the backend's own limits.
    """

    def __init__(
        self,
        kind: str,
        grader: Mapping[str, Any],
        options: Options,
        coding: Coding | None = None,
        judging: Judging | None = None,
        caps: Mapping[str, int] | None = None,
    ) -> None:
        self.kind, self.grader, self.options, self.coding, self.judging, self.caps = kind, grader, options, coding, judging, caps or {}
        self.places = asyncio.Semaphore(PAIRS)

    def kind_of(self, kind: str) -> Kind:
        return grading.every()[self.kind or kind]

    def takes_time(self, kind: str) -> bool:
        """Whether an answer is written down before it is graded: what grades in no time needs none of that."""
        return self.coding is not None or self.kind_of(kind).needs_sandbox or self.kind_of(kind).needs_judge

    async def mark(self, item: Item, said: Said) -> Marked:
        """Grades one answer. Errors: MoneySpent."""
        if self.coding is not None:
            return Marked(await self.coding.score(item, said, self.options))
        kind = self.kind_of(item.kind)
        if kind.needs_judge:
            if self.judging is None:
                return Marked(undecided("needs_judge", "Only judges grade this, and none can be asked here."))
            return await self.judging.mark(cast(JudgedKind, kind), item, said, self.options)
        return Marked(await self.grade(kind, said.output, item.input, item.expected))

    async def grade(self, kind: Kind, output: Output, row_input: Any, expected: Any) -> Grade:
        """Grades an output without asking anybody; a program in the sandbox."""
        if not kind.needs_sandbox:
            return kind.grade(output, row_input, expected, self.options)
        found = cast(BoxedKind, kind).program(output, row_input, expected)
        if not isinstance(found, Program):
            return found
        async with self.places:
            return await testing.tested(found, self.grader, self.caps)
