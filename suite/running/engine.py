"""Works on runs: claims some, asks as many samples at once as each one's connection takes, and ends them. django-q2 only rings.

    ring ─▶ claim a queued run, or one whose worker died ─▶ samples side by side ─▶ lines ─▶ the end, as a line too
              └── a lease, renewed while it works; whoever is killed renews nothing

Work goes on for as long as there is any: a provider that takes ten minutes for an answer holds up its own runs alone, and no answer is cut off because
somebody's time is over. What the queue's limit of time would have ended, a process that is stuck, ends itself.

A run is one process's at a time, so what it spends is reckoned before each call, in memory. What is left to do is what has no sample yet: that is asked of
the database once, by numbers alone, so that a hundred thousand finished samples cost a moment.
"""

from __future__ import annotations

import asyncio
import faulthandler
import fcntl
import gc
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connections
from django_q.tasks import async_task

from access.ids import new_id
from health import errands
from panels.gateway import Gateway
from suite.api.problems import Problem
from suite.running import codehosts, recording, regrader, subjects, summary
from suite.running.holding import Claimed, Plan, begin, broke_off, claim, claimable, here, left_count, let_go, load, spent_by_model, was_answered
from suite.running.pace import Paces
from suite.running.proxy import Proxy
from suite.running.standing import Ceilings, Standing, ceilings_of
from suite.running.worker import LOOK_S, Worker
from suite.sandbox import box

log = logging.getLogger(__name__)

RUNS_AT_ONCE, RESCORINGS_AT_ONCE = 32, 4
# Nothing but a fault keeps the loop from coming round for so long: an expression that never ends, say. Meanwhile nobody else has the lock.
STUCK_S = 200.0
# What broke off is left alone for so long, or nothing else would be done but break off again.
ALONE_S = 20.0
# Whatever kills its process each time, without one new result, is not tried for ever.
MOST_INTERRUPTIONS = 3
LOCK, CODE_LOCK = "suite.lock", "suite-code.lock"
# Whom a run is claimed for before anybody has a name: with the lock held, whoever of this folder had one is dead.
NOBODY = "nobody"


def ring() -> None:
    """Has the queue look at once. Without a broker the next ring of the clock does."""
    try:
        queue()
    except Exception as error:  # whatever the broker's library raises
        log.info("The queue could not be rung at once (%s); it looks within a minute anyway.", type(error).__name__)


def queue(broker: Any = None) -> None:
    """Has a worker of the queue work on runs, for as long as there are any: without the limit of time that other tasks have."""
    async_task("suite.running.engine.work", timeout=-1, save=False, **({"broker": broker} if broker else {}))


def work(lane: str = "") -> int:
    """Works on runs until none is left or the server stops; gives how many ended.

    At most one call of this runs in a data folder, and one besides that only runs code.
    """
    lane = lane or codehosts.lane()
    with (Path(settings.HOME) / (CODE_LOCK if lane == codehosts.CODE else LOCK)).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        if not is_work(lane):
            return 0
        try:
            ended, broken = asyncio.run(worked(lane))
        finally:
            faulthandler.cancel_dump_traceback_later()
            gc.collect()  # what else of this work's threads held a connection
    if lane != codehosts.CODE and not errands.closing.is_set() and is_work(lane, broken):
        ring()  # whoever rang while this one was on its way out found the lock held, and went
    return ended


def is_work(lane: str, besides: Collection[str] = ()) -> bool:
    """Whether anything waits that this process may work on."""
    return any(waiting(NOBODY, lane).exclude(pk__in=besides).exists() for waiting in (claimable, regrader.claimable))


def release(executor: ThreadPoolExecutor) -> None:
    """Has every thread of a pool give its database connections back: they end without doing so, and what is left of them is found late, if at all."""
    count = len(executor._threads)
    together = threading.Barrier(max(1, count))

    def close() -> None:
        with suppress(threading.BrokenBarrierError):
            together.wait(5)
        connections.close_all()

    wait([executor.submit(close) for _ in range(count)], 10)


async def worked(lane: str) -> tuple[int, set[str]]:
    """Works on several runs and rescorings at once until nothing is left. Shape: how many ended, and those on which work broke off."""
    gateway = Gateway()
    await gateway.open()
    folder = box.scratch()
    proxy = Proxy(gateway, Path(folder.name))
    await proxy.open()
    paces = Paces()
    name = f"{here(lane)}:{os.getpid()}:{new_id('eng')}"[:120]
    running: dict[asyncio.Task[bool], Claimed] = {}
    regrading: dict[asyncio.Task[bool], str] = {}
    broken: dict[str, float] = {}  # until when each is left alone
    ended = 0
    loop = asyncio.get_running_loop()

    def in_thread(function: Any, *args: Any) -> Any:
        return loop.run_in_executor(gateway.executor, function, *args)

    try:
        while True:
            # Kept outside of Python, which may be what is stuck: it says where, and ends the process.
            faulthandler.dump_traceback_later(STUCK_S, exit=True, file=2)
            broken = {run: until for run, until in broken.items() if until > time.monotonic()}
            while not errands.closing.is_set() and len(running) < RUNS_AT_ONCE:
                held = Counter(mine.subject for mine in running.values())
                claimed = await in_thread(claim, name, {*broken}, lane, held)
                if claimed is None:
                    break
                running[asyncio.create_task(work_on(gateway, proxy, paces, claimed.run, name))] = claimed
            while not errands.closing.is_set() and len(regrading) < RESCORINGS_AT_ONCE:
                if (again := await in_thread(regrader.claim, name, {*broken}, lane)) is None:
                    break
                regrading[asyncio.create_task(regrader.work_on(in_thread, again, name))] = again
            if not running and not regrading:
                break
            done, _ = await asyncio.wait({*running, *regrading}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                mine = running.pop(task).run if task in running else regrading.pop(task)
                try:
                    ended += task.result()
                except Exception as error:
                    broken[mine] = time.monotonic() + ALONE_S
                    log.exception("Work on %s broke off; it is taken up again.", mine)
                    if not isinstance(error, DatabaseError | OSError):  # those pass; anything else would break it off again and again
                        with suppress(DatabaseError):
                            await in_thread(broke_off, mine)
                            await in_thread(regrader.broke_off, mine)
            with suppress(DatabaseError):  # whoever works on a run meets it too, and says so
                paces.adopt(await in_thread(paces.exchange))
    finally:
        await proxy.close()
        folder.cleanup()
        await loop.run_in_executor(None, release, gateway.executor)
        await gateway.close()
    return ended, {*broken}


async def work_on(gateway: Gateway, proxy: Proxy, paces: Paces, run_id: str, name: str) -> bool:
    """Works on one run until it ends or the server stops; tells whether it ended."""
    loop = asyncio.get_running_loop()

    def in_thread(function: Any, *args: Any) -> Any:
        return loop.run_in_executor(gateway.executor, function, *args)

    try:
        await in_thread(begin, run_id)
        plan = await in_thread(load, run_id)
        standing = Standing(plan.spent_pusd, Ceilings(), plan.started_at, warned=set(plan.warned))
        most_at_once = None
        try:
            standing.ceilings, most_at_once = ceilings_of(plan.limits, plan.subject, subjects.seated(plan.subject, await gateway.snapshot()))
        except Problem as error:  # its endpoint is gone
            standing.failed = error.message
        if standing.ceilings.model_costs:
            standing.by_model = await in_thread(spent_by_model, plan, standing.ceilings.model_costs)
        worker = None
        if plan.interruptions >= MOST_INTERRUPTIONS:
            standing.failed = f"Work on it broke off {plan.interruptions} times without one new result."
        elif plan.changed:
            standing.failed = f"fingerprint_changed: {plan.changed}"
        elif plan.needs.sandbox and (missing := box.trouble()):
            standing.failed = f"sandbox_unavailable: {missing}"
        elif plan.halting:
            standing.halt(plan.halting, plan.halt_note)
        elif not standing.failed:
            pace = paces.enter(run_id, plan.subject, most_at_once)
            worker = Worker(gateway, proxy, plan, standing, pace, name, in_thread)
            pace.watchers[run_id] = worker.tell_change
            paces.adopt(await in_thread(paces.exchange))
            try:
                await worker.run()
                paces.adopt(await in_thread(paces.exchange))  # what was found since the last look is the next process's, too
            finally:
                paces.leave(run_id, pace)
        if (worker and worker.was_taken) or (not standing.is_over and await in_thread(left_count, plan) > 0):
            return False
        if not standing.is_over and not standing.answered and not await in_thread(was_answered, plan):
            standing.failed = f"{plan.subject.name} answered none of its tasks: {standing.failures[-1] if standing.failures else 'no answer came'}"
        gateway.writer.record({recording.ENDS: [end_of(plan, standing)]})
        await gateway.writer.flush()
        await in_thread(summary.keep, run_id)
        return True
    finally:
        await gateway.writer.flush()
        await in_thread(let_go, run_id, name)


def end_of(plan: Plan, standing: Standing) -> dict[str, Any]:
    now = datetime.now(UTC)
    status = "failed" if standing.failed else "halted" if standing.halting else "ok"
    phases = [dict(phase) for phase in plan.phases]
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
