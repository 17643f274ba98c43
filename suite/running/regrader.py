"""Works on rescorings that take their time: those of many outputs, and those that run code. Beside the runs, in the same process.

    claimed ─▶ tasks graded side by side ─▶ their rows, each second ─▶ all there: the run's newest scoring
        └── a lease, renewed while it works; who dies renews nothing, and the next goes on with what has no row yet

Its rows stand under a number that the run does not have, so nobody sees half a scoring. One that comes to nothing takes its rows along.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from health import errands
from suite.models import Rescoring, Task
from suite.running import codehosts, regrading, rescoring, summary
from suite.running.coding import BOXES
from suite.running.holding import LEASE_S, here
from suite.running.regrading import Made, OutputsGone, Plan, Stored
from suite.running.rescoring import RunChanged

LOOK_S = 1.0
# So long one is worked on before the one that has waited longest has its turn: a scorer that never ends holds up no other.
TURN_S = 60.0
# Whatever kills its process each time, without one new result, is not tried for ever.
MOST_INTERRUPTIONS = 3


def claimable(name: str = "", lane: str = codehosts.ALL) -> QuerySet[Rescoring]:
    """Finds the rescorings that nobody holds, as `holding.claimable` finds runs."""
    free = Q(leased_until=None) | Q(leased_until__lte=timezone.now())
    if name:
        free |= Q(worker__startswith=f"{here(lane)}:") & ~Q(worker=name)
    of_lane = Q() if lane == codehosts.ALL else Q(needs_sandbox=lane == codehosts.CODE)
    return Rescoring.objects.filter(free, of_lane, status__in=Rescoring.OPEN)


def claim(name: str, besides: Collection[str] = (), lane: str = codehosts.ALL) -> str | None:
    """Takes the one that has waited longest. One whose worker died counts as interrupted."""
    for pk, worker in claimable(name, lane).exclude(pk__in=besides).order_by("worked_at", "id").values_list("pk", "worker")[:20]:
        until = timezone.now() + timedelta(seconds=LEASE_S)
        mine = claimable(name, lane).filter(pk=pk, worker=worker)
        if mine.update(status=Rescoring.Status.RUNNING, worker=name, leased_until=until, interruptions=F("interruptions") + int(bool(worker))):
            return str(pk)
    return None


def let_go(pk: str, name: str) -> None:
    """Gives the lease back: what is left is for whoever rings next, and was no interruption."""
    Rescoring.objects.filter(pk=pk, worker=name).update(worker="", leased_until=None, worked_at=timezone.now())


def broke_off(pk: str) -> None:
    """Counts work that ended by a fault as an interruption."""
    Rescoring.objects.filter(pk=pk).update(interruptions=F("interruptions") + 1)


async def work_on(in_thread: Callable[..., Any], pk: str, name: str) -> bool:
    """Works on one until it ends or its turn is over; tells whether it ended."""
    try:
        found = await in_thread(load, pk, name)
        return found is not None and await Regrader(in_thread, found[0], found[1], found[2], name).run()
    finally:
        await in_thread(let_go, pk, name)


def load(pk: str, name: str) -> tuple[Rescoring, Plan, list[int]] | None:
    """Reads what is to be done. Shape: the row, the plan, and the places of the tasks that have no row yet; None where there is nothing to do."""
    row = Rescoring.objects.select_related("run__subset", "impl").filter(pk=pk, worker=name).first()
    if row is None:
        return None
    if row.interruptions >= MOST_INTERRUPTIONS:
        rescoring.give_up(pk, "worker_died", f"Work on it broke off {row.interruptions} times without one new result.", worker=name)
        return None
    there = set(Task.objects.filter(run=row.run_id, scoring=row.scoring).values_list("position", flat=True))
    left = [position for position in regrading.positions_of(row.run_id) if position not in there]
    return row, regrading.plan_of(row.run, row.impl, row.scoring), left


class Regrader:
    """One rescoring in the hands of this process."""

    def __init__(self, in_thread: Callable[..., Any], row: Rescoring, plan: Plan, left: list[int], name: str) -> None:
        self.in_thread, self.row, self.plan, self.name, self.until = in_thread, row, plan, name, time.monotonic() + TURN_S
        self.marking = regrading.marking_of(plan)
        self.batches = regrading.batched(left)
        self.waiting: deque[Stored] = deque()
        self.under_way: set[asyncio.Task[Made]] = set()
        self.made: list[Made] = []
        self.is_exhausted = False
        self.looked_at = self.renewed_at = time.monotonic()
        self.closing_since = 0.0

    async def run(self) -> bool:
        """Works; tells whether it ended."""
        try:
            while True:
                is_stopping = time.monotonic() >= self.until or errands.closing.is_set()
                while not is_stopping and len(self.under_way) < BOXES and not self.is_exhausted and not self.is_full():
                    await self.next()
                if (self.is_full() or time.monotonic() - self.looked_at >= LOOK_S) and not await self.look():
                    return False
                if not self.under_way and (is_stopping or self.is_exhausted):
                    break
                if self.under_way:
                    done, self.under_way = await asyncio.wait(self.under_way, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                    self.made += [task.result() for task in done]
                if is_stopping and self.is_cut_off():
                    break
            return await self.look() and self.is_exhausted and not self.under_way and bool(await self.in_thread(ended, self.row.pk, self.name))
        except OutputsGone:
            await self.in_thread(rescoring.give_up, self.row.pk, "outputs_gone", rescoring.gone().message)
            return True
        finally:
            for task in self.under_way:
                task.cancel()
            if self.under_way:
                await asyncio.wait(self.under_way, timeout=10)

    def is_full(self) -> bool:
        return len(self.made) >= regrading.AT_ONCE

    async def next(self) -> None:
        """Begins with the next task, or grades it where that takes no time."""
        if not self.waiting:
            some = next(self.batches, None)
            if some is None:
                self.is_exhausted = True
                return
            quick, slow = await self.in_thread(self.read, some)
            self.made += quick
            self.waiting.extend(slow)
        if self.waiting:
            self.under_way.add(asyncio.create_task(regrading.boxed(self.plan, self.marking, self.waiting.popleft())))

    def read(self, positions: list[int]) -> tuple[list[Made], list[Stored]]:
        """Reads some tasks. Shape: those that are graded at once, and those that take the sandbox. Errors: OutputsGone."""
        found = regrading.read(self.plan, positions)
        slow = [one for one in found if regrading.takes_time(self.marking, one)]
        left = {one.item.position for one in slow}
        return [regrading.graded(self.plan, self.marking, one) for one in found if one.item.position not in left], slow

    async def look(self) -> bool:
        """Writes what is there and renews the lease; tells whether this is to go on."""
        self.looked_at = now = time.monotonic()
        if self.made or now - self.renewed_at > LEASE_S / 4:
            some, self.made, self.renewed_at = self.made, [], now
            return bool(await self.in_thread(keep, self.row, self.name, some))
        return bool(await self.in_thread(is_mine, self.row.pk, self.name))

    def is_cut_off(self) -> bool:
        """Whether a server that is being stopped waits no longer. What is cut is graded again."""
        if not errands.closing.is_set():
            return False
        self.closing_since = self.closing_since or time.monotonic()
        return time.monotonic() - self.closing_since > errands.CLOSE_S


def is_mine(pk: str, name: str) -> bool:
    return Rescoring.objects.filter(pk=pk, worker=name, status=Rescoring.Status.RUNNING).exists()


def keep(row: Rescoring, name: str, some: list[Made]) -> bool:
    """Keeps rows of the scoring in one transaction with the lease. Tells whether it is still to be made: not where it was cancelled, or its run changed."""
    with transaction.atomic(), connection.cursor() as cursor:
        mine = Rescoring.objects.filter(pk=row.pk, worker=name, status=Rescoring.Status.RUNNING)
        now = timezone.now()
        moved = mine.update(done=F("done") + len(some), leased_until=now + timedelta(seconds=LEASE_S), worked_at=now, **({"interruptions": 0} if some else {}))
        if not moved:
            return False
        if rescoring.unchanged(row).exists():
            regrading.insert(cursor, row.pk, some)
            return True
    changed(row, name)
    return False


def changed(row: Rescoring, name: str) -> None:
    rescoring.give_up(row.pk, "run_changed", "The run has changed meanwhile: it was asked on, or scored again.", worker=name)


def ended(pk: str, name: str) -> bool:
    """Makes the scoring the run's newest, and sums it up; tells whether it ended."""
    row = Rescoring.objects.select_related("run").filter(pk=pk, worker=name, status=Rescoring.Status.RUNNING).first()
    if row is None:
        return False
    try:
        with transaction.atomic():
            # Taken first, so that who deletes the run or cancels this either was first or waits.
            if not Rescoring.objects.filter(pk=pk, worker=name, status=Rescoring.Status.RUNNING).update(done=row.total):
                return False
            rescoring.finish(row)
    except RunChanged:
        changed(row, name)
        return True
    summary.keep(row.run_id)
    return True
