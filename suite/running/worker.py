"""One run in the hands of this process: as many samples side by side as its connection takes, until nothing is left or somebody stops it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from typing import Any

from health import errands
from panels.gateway import Gateway
from panels.snapshot import Snapshot
from suite.api.problems import Problem
from suite.grading.contract import Output
from suite.grading.outcomes import Grade
from suite.models import Answer, Row, Run
from suite.running import pace as pacing
from suite.running import recording, subjects
from suite.running.asking import Closing, Said, ask, request_of, stops_of
from suite.running.coding import Coding
from suite.running.holding import LEASE_S, Plan, chunks, left, look_at
from suite.running.judging import Judging
from suite.running.lines import Item, read_back
from suite.running.marking import Marking
from suite.running.pace import Pace
from suite.running.proxy import Pass, Proxy
from suite.running.sampling import SCORER, UNASKABLE, Done, Marked, MoneySpent, sample
from suite.running.standing import DEAD_AFTER, Standing, ceilings_of
from suite.sandbox import box
from wire.errors import CallerError

LOOK_S = 1.0
# What the database has not taken yet. More of it is not asked for: with a slow one the file would grow as long as the run goes on.
MOST_BEHIND = 32 * 1024 * 1024


class Worker:
    """One run's. Shape: `in_thread` calls a function that asks the database."""

    def __init__(self, gateway: Gateway, proxy: Proxy, plan: Plan, standing: Standing, pace: Pace, name: str, in_thread: Callable[..., Any]) -> None:
        self.gateway, self.plan, self.standing, self.pace = gateway, plan, standing, pace
        self.name, self.in_thread = name, in_thread
        boxed = box.Limits(wall_s=plan.timeout_s, cpu_s=int(plan.timeout_s) + 1, **plan.caps)
        self.coding = Coding(plan.code, proxy, boxed) if plan.language != "builtin" else None
        judging = Judging(gateway, gateway.snapshot, plan.caller, plan.id, plan.grader, plan.subject) if plan.needs.judge else None
        self.marking = Marking(plan.kind, plan.grader, plan.options, self.coding, judging, plan.caps)
        self.closing_since = 0.0
        self.looked_at = self.renewed_at = time.monotonic()
        self.stop = False
        self.was_taken = False
        self.had: dict[tuple[int, int], Said] = {}
        self.ended: deque[asyncio.Task[Done]] = deque()
        self.bell = asyncio.Event()

    # ------------------------------------------------------------------ the loop

    async def run(self) -> None:
        items = self.items()
        waiting: deque[Item] = deque()
        is_exhausted = False
        under_way = self.standing.under_way
        try:
            while True:
                await self.look()
                while not self.stop and len(under_way) < self.most_samples() and not self.is_behind():
                    if not waiting and not is_exhausted:
                        waiting.extend(await self.in_thread(lambda: list(next(items, ()))))
                        is_exhausted = not waiting
                    # Until one has answered, only as many as it takes to see that nobody does.
                    if not waiting or not self.may_spend() or (not self.standing.answered and self.standing.started >= DEAD_AFTER):
                        break
                    self.start(waiting.popleft())
                if not under_way and not self.is_behind():
                    if not self.stop and waiting and not self.standing.is_over:
                        # Nothing is under way that could free what holds the next one back: nobody answered, though not all with one error.
                        last = self.standing.failures[-1] if self.standing.failures else "no answer came"
                        self.standing.failed = f"{self.plan.subject.name} does not answer: {last}"
                    break
                await self.rung()
                while self.ended:
                    self.finished(self.ended.popleft())
        finally:
            for task in under_way:
                task.cancel()
            if under_way:
                await asyncio.wait(under_way, timeout=10)

    async def rung(self) -> None:
        """Waits for a sample's end, or until it is time to look around."""
        timer = asyncio.get_running_loop().call_later(LOOK_S, self.bell.set)
        await self.bell.wait()
        timer.cancel()
        self.bell.clear()

    def most_samples(self) -> int:
        return min(self.pace.samples, self.plan.most_at_once)

    def is_behind(self) -> bool:
        return self.gateway.writer.behind > MOST_BEHIND

    def start(self, item: Item) -> None:
        plan, standing = self.plan, self.standing
        had = self.had.pop((item.position, item.trial), None)
        task = asyncio.create_task(sample(plan.id, item, plan.trials, self, plan.limits, plan.options, had))
        standing.under_way[task] = standing.expected_cost()
        standing.started += 1
        task.add_done_callback(self.over)

    def over(self, task: asyncio.Task[Done]) -> None:
        self.ended.append(task)
        self.bell.set()

    def may_spend(self) -> bool:
        if self.standing.may_spend():
            return True
        if self.standing.halting:
            self.halt()
        return False

    def finished(self, task: asyncio.Task[Done]) -> None:
        standing = self.standing
        standing.under_way.pop(task, None)
        try:
            done = task.result()
        except MoneySpent as error:
            standing.halt("team_budget_exceeded", str(error))
            self.halt()
            return
        except asyncio.CancelledError:
            return
        if not done.is_written:
            self.gateway.writer.record({recording.SAMPLES: [done.line]})
        standing.add(done.cost_pusd, done.line["cost_pusd"] is None and not done.error, done.by_model)
        standing.heard(done.error)
        self.warn()
        if standing.seems_dead:
            standing.failed = f"{self.plan.subject.name} does not answer: {done.error}"
            self.stop = True
        elif standing.halting and not self.stop:
            self.halt()

    def halt(self) -> None:
        """Stops, and says so: what is under way ends, unless somebody asked for the stop or the time is over."""
        self.stop = True
        line = {"run_id": self.plan.id, "reason": self.standing.halting, "note": self.standing.note, "at": datetime.now(UTC).isoformat()}
        self.gateway.writer.record({recording.HALTS: [line]})

    def warn(self) -> None:
        if self.standing.ceilings.are_any:
            for warning in self.standing.warnings(datetime.now(UTC)):
                self.note("LimitWarning", warning, once=warning["limit"])

    def cut_off(self) -> None:
        self.stop = True
        for task in self.standing.under_way:
            task.cancel()

    async def look(self) -> None:
        """Now and then: the lease, and whether anybody wants it to stop."""
        now = time.monotonic()
        if now - self.looked_at < LOOK_S:
            return
        self.looked_at = now
        renews = now - self.renewed_at > LEASE_S / 4
        status = await self.in_thread(look_at, self.plan.id, self.name, renews)
        if renews:
            self.renewed_at = now
            with suppress(Problem):  # its endpoint is gone: the calls say so
                self.pace.allow(ceilings_of(self.plan.limits, self.plan.subject, await self.snapshot())[1])
        self.warn()
        if status is None:  # somebody else has it by now, or it was deleted
            self.was_taken = True
            self.cut_off()
        elif status["status"] == Run.Status.HALTING and not self.standing.halting:
            self.standing.halt(status["halt_reason"] or "user_requested", status["halt_note"])
            self.cut_off()
        elif self.standing.halting:
            return
        elif exceeded := self.standing.outlasted(datetime.now(UTC)):
            self.standing.halt(f"limit_exceeded:{exceeded}")
            self.halt()
            self.cut_off()
        elif errands.closing.is_set():
            self.stop = True  # what is under way ends by itself; the rest is for whoever serves next
            self.closing_since = self.closing_since or now
            if now - self.closing_since > errands.CLOSE_S:  # a server that is stopped waits no longer for a provider than for an errand
                self.cut_off()

    def items(self) -> Iterator[list[Item]]:
        """Gives what is left, some rows at a time."""
        plan = self.plan
        for chunk in chunks(left(plan)):
            by_position = {position for position, _ in chunk}
            rows = {r.position: r for r in Row.objects.filter(subset_id=plan.subset, position__in=by_position)}
            if self.plan.needs.sandbox or self.plan.needs.judge:
                for answer in Answer.objects.filter(run_id=plan.id, position__in=by_position):
                    self.had[(answer.position, answer.trial)] = read_back(answer.payload)
            found = []
            for position, trial in chunk:
                row = rows[position]
                body = json.loads(row.body)
                found.append(Item(position, trial, row.task_id, row.kind, row.cluster, body["input"], body["expected"]))
            yield found

    # ------------------------------------------------------------------ a sample's way

    def place(self) -> AbstractAsyncContextManager[None]:
        return self.pace.place(self.plan.id)

    async def ask(self, item: Item, attempt: int, within_s: float | None, closing: Closing) -> Said:
        if self.coding is not None:
            return await self.coding.solve(item, Pass(self.plan.subject.asked_as, self.plan.caller, self.snapshot, self.plan.id, self.plan.limits))
        snapshot = await self.snapshot()
        params = dict(self.plan.subject.params or {})
        if "seed" in params and isinstance(params["seed"], int):
            params["seed"] += item.trial - 1  # trials that were all alike would tell nothing
        stops = stops_of(self.plan.subject, params)
        try:
            request = request_of(self.plan.subject, self.marking.kind_of(item.kind).ask(item.input), params)
        except Exception as error:  # a row that the grader cannot read, tools or parameters that are none: the others are asked all the same
            said = error.message if isinstance(error, CallerError) else f"{type(error).__name__}: {error}"
            return Said(Output(""), error=CallerError(UNASKABLE, f"The task cannot be asked by this grader. {said[:300]}", status=422))
        return await ask(self.gateway, snapshot, self.plan.caller, request, self.plan.id, within_s=within_s, closing=closing, stops=stops)

    async def snapshot(self) -> Snapshot:
        return subjects.seated(self.plan.subject, await self.gateway.snapshot())

    def keep(self, line: Mapping[str, Any]) -> None:
        self.gateway.writer.record({recording.ANSWERS: [line]})

    def takes_time(self, item: Item) -> bool:
        return self.marking.takes_time(item.kind)

    def grade(self, item: Item, said: Said) -> Grade:
        return self.marking.kind_of(item.kind).grade(said.output, item.input, item.expected, self.plan.options)

    async def mark(self, item: Item, said: Said) -> Marked:
        return await self.marking.mark(item, said)

    # ------------------------------------------------------------------ what is told of it

    def heard(self, said: Said, attempt: int) -> None:
        """Tells the connection what a call taught. One that never went out, one that the asker spoiled and a success after a failure teach nothing."""
        error, now = said.error, pacing.now()
        if error is None:
            if attempt == 1:
                self.pace.controller.succeeded(now)
                self.pace.admit()
        elif not said.calls or error.code == SCORER:
            return
        elif error.status == 429:
            self.pace.controller.limited(now, error.retry_after_s)
        elif error.status >= 500:
            self.pace.controller.failed(now)

    def retried(self, item: Item, attempt: int, error: CallerError, pause_s: float) -> None:
        self.note("TaskRetried", {"task_id": item.task_id, "trial": item.trial, "attempt": attempt, "error": error.code, "pause_s": round(pause_s, 1)})

    def tell_change(self, before: int, after: int, why: str) -> None:
        self.note("Log", {"message": f"Calls at once at {self.pace.name}: {before} to {after} ({why})."})

    def note(self, kind: str, data: Mapping[str, Any], once: str = "") -> None:
        line = {"run_id": self.plan.id, "type": kind, "data": dict(data), "once": once, "at": datetime.now(UTC).isoformat()}
        self.gateway.writer.record({recording.NOTES: [line]})
