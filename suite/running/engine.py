"""Works on runs: claims one, asks as many samples at once as its connection takes, and ends it. django-q2 only rings; after a slice it rings again.

    ring ─▶ claim a queued run, or one whose worker died ─▶ samples side by side ─▶ lines ─▶ the end, as a line too
              └── a lease, renewed while it works; whoever is killed renews nothing

A run is one process's at a time, so what it spends is reckoned before each call, in memory. What is left to do is what has no sample yet: that is asked of
the database once, by numbers alone, so that a hundred thousand finished samples cost a moment.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django_q.tasks import async_task

from access.ids import new_id
from health import errands
from panels.gateway import Gateway
from panels.snapshot import Snapshot
from suite.models import Answer, Row, Run
from suite.running import recording, subjects
from suite.running.asking import Said, ask, request_of
from suite.running.coding import Coding
from suite.running.concurrency import MOST, START, Controller
from suite.running.holding import LEASE_S, Plan, begin, chunks, claim, claimable, left, left_count, let_go, load, look_at, phases_at
from suite.running.judging import Judging
from suite.running.marking import Marking
from suite.running.proxy import Pass, Proxy
from suite.running.sampling import Done, Item, MoneySpent, read_back, sample, written
from suite.sandbox import box
from wire.errors import CallerError

log = logging.getLogger(__name__)

SLICE_S, LOOK_S = 50.0, 1.0
RUNS_AT_ONCE = 4
# Whatever kills its process each time, without one new result, is not tried for ever.
MOST_INTERRUPTIONS = 3
# So many infrastructure failures with one message, one after the other, and no answer among them: the subject is not there.
DEAD_AFTER = 8
LOCK = "suite.lock"


@dataclass(slots=True)
class Standing:
    """How a run goes while this process works on it. Units: costs in trillionths of a US dollar."""

    spent: int
    under_way: dict[asyncio.Task[Done], int] = field(default_factory=dict)
    costs: deque[int] = field(default_factory=lambda: deque(maxlen=50))
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=DEAD_AFTER))
    answered: int = 0
    halting: str = ""
    note: str = ""
    failed: str = ""

    def expected_cost(self) -> int:
        """What the next sample will probably cost: the dearest of late, before the first nothing is known."""
        return max(self.costs, default=0)


def ring() -> None:
    """Has the queue look at once. Without a broker the next ring of the clock does."""
    try:
        async_task("suite.running.engine.work", save=False)
    except Exception as error:  # whatever the broker's library raises
        log.info("The queue could not be rung at once (%s); it looks within a minute anyway.", type(error).__name__)


def work(slice_s: float = SLICE_S) -> int:
    """Works on runs for a while; gives how many ended. At most one call of this runs in a data folder."""
    with (Path(settings.HOME) / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        if not claimable().exists():
            return 0
        ended = asyncio.run(worked(time.monotonic() + slice_s))
    if not errands.closing.is_set() and claimable().exists():
        ring()
    return ended


async def worked(until: float) -> int:
    """Works on several runs at once until the time is over or nothing is left."""
    gateway = Gateway()
    await gateway.open()
    folder = box.scratch()
    proxy = Proxy(gateway, Path(folder.name))
    await proxy.open()
    name = f"{socket.gethostname()}:{os.getpid()}:{new_id('eng')}"[:120]
    running: dict[asyncio.Task[bool], str] = {}
    ended = 0
    loop = asyncio.get_running_loop()
    try:
        while True:
            is_over = time.monotonic() >= until or errands.closing.is_set()
            while not is_over and len(running) < RUNS_AT_ONCE and (run_id := await loop.run_in_executor(gateway.executor, claim, name)) is not None:
                running[asyncio.create_task(work_on(gateway, proxy, run_id, name, until))] = run_id
            if not running:
                break
            done, _ = await asyncio.wait(running, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                run_id = running.pop(task)
                try:
                    ended += task.result()
                except Exception:
                    log.exception("Work on %s broke off; the next ring takes it up again.", run_id)
    finally:
        await proxy.close()
        folder.cleanup()
        await gateway.close()
    return ended


async def work_on(gateway: Gateway, proxy: Proxy, run_id: str, name: str, until: float) -> bool:
    """Works on one run until it ends or the slice is over; tells whether it ended."""
    loop = asyncio.get_running_loop()

    def in_thread(function: Any, *args: Any) -> Any:
        return loop.run_in_executor(gateway.executor, function, *args)

    plan, interruptions = await in_thread(load, run_id)
    standing = Standing(plan.spent_pusd)
    try:
        if interruptions > MOST_INTERRUPTIONS:
            standing.failed = f"Its process died {interruptions} times without one new result."
        elif plan.needs.sandbox and (missing := box.trouble()):
            standing.failed = f"sandbox_unavailable: {missing}"
        else:
            await in_thread(begin, run_id)
            await Worker(gateway, proxy, plan, standing, name, until, in_thread).run()
        is_left = not (standing.halting or standing.failed) and await in_thread(left_count, plan) > 0
        if is_left:
            return False
        gateway.writer.record({recording.ENDS: [end_of(plan, standing, interruptions)]})
        await gateway.writer.flush()
        return True
    finally:
        await gateway.writer.flush()
        await in_thread(let_go, run_id, name)


class Worker:
    """One run in the hands of this process."""

    def __init__(self, gateway: Gateway, proxy: Proxy, plan: Plan, standing: Standing, name: str, until: float, in_thread: Any) -> None:
        self.gateway, self.plan, self.standing, self.name, self.until, self.in_thread = gateway, plan, standing, name, until, in_thread
        self.controller = Controller(limit=min(START, plan.most_at_once), most=min(MOST, plan.most_at_once), changes=self.tell_change)
        boxed = box.Limits(wall_s=plan.timeout_s, cpu_s=int(plan.timeout_s) + 1, **plan.caps)
        self.coding = Coding(plan.code, proxy, boxed) if plan.language != "builtin" else None
        judging = Judging(gateway, gateway.snapshot, plan.caller, plan.id, plan.grader, plan.subject) if plan.needs.judge else None
        self.marking = Marking(plan.kind, plan.grader, plan.options, self.coding, judging)
        self.keeps = plan.needs.sandbox or plan.needs.judge
        self.looked_at = self.renewed_at = time.monotonic()
        self.stop = False
        self.started = 0
        self.had: dict[tuple[int, int], Said] = {}

    async def run(self) -> None:
        items = self.items()
        waiting: deque[Item] = deque()
        exhausted = False
        try:
            while True:
                await self.look()
                while not self.stop and len(self.standing.under_way) < self.controller.limit:
                    if not waiting and not exhausted:
                        waiting.extend(await self.in_thread(lambda: list(next(items, ()))))
                        exhausted = not waiting
                    # Until one has answered, only as many as it takes to see that nobody does.
                    if not waiting or not self.may_spend() or (not self.standing.answered and self.started >= DEAD_AFTER):
                        break
                    self.start(waiting.popleft())
                if not self.standing.under_way:
                    if not self.stop and waiting and not self.standing.failed:
                        # Nothing is under way that could free what holds the next one back: nobody answered, though not all with one error.
                        self.standing.failed = (
                            f"{self.plan.subject.name} does not answer: {self.standing.failures[-1] if self.standing.failures else 'no answer came'}"
                        )
                    break
                done, _ = await asyncio.wait(self.standing.under_way, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self.finished(task)
        finally:
            for task in self.standing.under_way:
                task.cancel()
            if self.standing.under_way:
                await asyncio.wait(self.standing.under_way, timeout=10)

    def start(self, item: Item) -> None:
        plan = self.plan
        keep = self.keep if self.keeps and self.marking.takes_time(item.kind) else None
        had = self.had.pop((item.position, item.trial), None)
        task = asyncio.create_task(sample(plan.id, item, plan.trials, self.ask, self.marking.mark, plan.limits, plan.options, self.heard, keep, had))
        self.standing.under_way[task] = self.standing.expected_cost()
        self.controller.started(len(self.standing.under_way))
        self.started += 1

    def may_spend(self) -> bool:
        """Reckons whether one more sample fits under the run's ceiling, with all that is under way. One alone may always go: it is the overshoot."""
        most = self.plan.limits.run_cost
        if most is None:
            return True
        ceiling = round(most * 1e12)
        if self.standing.spent >= ceiling:
            self.standing.halting = "limit_exceeded:run.cost"
            self.stop = True
            return False
        if not self.standing.under_way:
            return True
        reserved = sum(self.standing.under_way.values())
        # Nothing is known of the price before the first answer: until then one goes at a time.
        return bool(self.standing.costs) and self.standing.spent + reserved + self.standing.expected_cost() <= ceiling

    def finished(self, task: asyncio.Task[Done]) -> None:
        self.standing.under_way.pop(task)
        try:
            done = task.result()
        except MoneySpent as error:
            self.standing.halting, self.standing.note, self.stop = "team_budget_exceeded", str(error), True
            return
        except asyncio.CancelledError:
            return
        self.standing.spent += done.cost_pusd
        self.standing.costs.append(done.cost_pusd)
        self.gateway.writer.record({recording.SAMPLES: [done.line]})
        if done.error:
            self.standing.failures.append(done.error)
            if not self.standing.answered and len(self.standing.failures) == DEAD_AFTER and len(set(self.standing.failures)) == 1:
                self.standing.failed = f"{self.plan.subject.name} does not answer: {done.error}"
                self.stop = True
        else:
            self.standing.answered += 1
            self.standing.failures.clear()

    async def look(self) -> None:
        """Now and then: the lease, and whether anybody wants it to stop."""
        now = time.monotonic()
        if now - self.looked_at < LOOK_S:
            return
        self.looked_at = now
        status = await self.in_thread(look_at, self.plan.id, self.name, now - self.renewed_at > LEASE_S / 4)
        if now - self.renewed_at > LEASE_S / 4:
            self.renewed_at = now
        if status is None:  # somebody else has it by now, or it was deleted
            self.stop = True
            self.standing.failed = ""
            for task in self.standing.under_way:
                task.cancel()
        elif status["status"] == Run.Status.HALTING:
            self.standing.halting, self.standing.note, self.stop = status["halt_reason"] or "user_requested", status["halt_note"], True
            for task in self.standing.under_way:
                task.cancel()
        elif self.plan.limits.run_duration is not None and (datetime.now(UTC) - self.plan.started_at).total_seconds() > self.plan.limits.run_duration:
            self.standing.halting, self.stop = "limit_exceeded:run.duration", True
            for task in self.standing.under_way:
                task.cancel()
        elif now >= self.until or errands.closing.is_set():
            self.stop = True  # what is under way ends by itself; the rest is for the next slice

    def items(self) -> Iterator[list[Item]]:
        """Gives what is left, some rows at a time."""
        plan = self.plan
        for chunk in chunks(left(plan)):
            by_position = {position for position, _ in chunk}
            rows = {r.position: r for r in Row.objects.filter(subset_id=plan.subset, position__in=by_position)}
            if self.keeps:
                for answer in Answer.objects.filter(run_id=plan.id, position__in=by_position):
                    self.had[(answer.position, answer.trial)] = read_back(answer.payload)
            found = []
            for position, trial in chunk:
                row = rows[position]
                body = json.loads(row.body)
                found.append(Item(position, trial, row.task_id, row.kind, row.cluster, body["input"], body["expected"]))
            yield found

    async def ask(self, item: Item, attempt: int) -> Said:
        if self.coding is not None:
            return await self.coding.solve(item, Pass(self.plan.subject.asked_as, self.plan.caller, self.snapshot, self.plan.id))
        snapshot = await self.snapshot()
        params = dict(self.plan.subject.params or {})
        if "seed" in params and isinstance(params["seed"], int):
            params["seed"] += item.trial - 1  # trials that were all alike would tell nothing
        request = request_of(self.plan.subject, self.marking.kind_of(item.kind).ask(item.input), params)
        del attempt
        return await ask(self.gateway, snapshot, self.plan.caller, request, self.plan.id)

    async def snapshot(self) -> Snapshot:
        return subjects.seated(self.plan.subject, await self.gateway.snapshot())

    def keep(self, item: Item, said: Said) -> None:
        line = {"run_id": self.plan.id, "position": item.position, "trial": item.trial, "payload": written(said)}
        self.gateway.writer.record({recording.ANSWERS: [line]})

    def heard(self, error: CallerError | None) -> None:
        now = time.monotonic()
        if error is None:
            self.controller.succeeded(now)
        elif error.status == 429:
            self.controller.limited(now, error.retry_after_s)
        else:
            self.controller.failed(now)

    def tell_change(self, before: int, after: int, why: str) -> None:
        said = {"run_id": self.plan.id, "type": "Log", "at": datetime.now(UTC).isoformat(), "data": {"message": f"Calls at once: {before} to {after} ({why})."}}
        self.gateway.writer.record({recording.NOTES: [said]})


def end_of(plan: Plan, standing: Standing, interruptions: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    status = "failed" if standing.failed else "halted" if standing.halting else "ok"
    phases = [dict(phase) for phase in plan.phases] or phases_at("Materialize", plan.started_at)
    for phase in phases:
        if phase["name"] == "Materialize":
            phase |= {"status": "ok" if status == "ok" else "failed", "finished_at": now.isoformat()}
        elif phase["name"] == "Report" and status == "ok":
            phase |= {"status": "ok", "started_at": now.isoformat(), "finished_at": now.isoformat()}
    return {
        "run_id": plan.id,
        "status": status,
        "error": standing.failed,
        "halt_reason": standing.halting,
        "halt_note": standing.note,
        "at": now.isoformat(),
        "phases": phases,
    }
