"""A process for tests to kill: shares the test's database and outbox folder, does one thing and says what it did."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from health import ledger
from health.database import Database
from health.outbox import Outbox
from health.writer import Denied, Writer
from tests.health.conftest import ask, hold, row

FOLDER = Path()


def say(what: Any) -> None:
    os.write(1, orjson.dumps(what) + b"\n")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limits(name: str) -> Any:
    """A call of 500 reserved tokens, one at a time of four."""
    stub = row(name, input_tokens=300, output_tokens=200, cost_pusd=77, model="limited")
    holds = [hold("endpoint:1", "tokens", 500, minute=100_000, day=1_000_000), hold("endpoint:1", "parallel", 1, parallel=4)]
    return ask(name, *holds, stub=stub)


def end(name: str) -> dict[str, Any]:
    return {
        "attempts": [row(name, input_tokens=30, output_tokens=12, model="limited")],
        "settle": [{"permit": name, "truth": {"endpoint:1|tokens": 42}}],
    }


def commit(*lines: Any) -> None:
    ledger.transact(Database(), lines)


async def one_call(point: str) -> None:
    """One limited call, killed at a point of its way."""
    outbox = Outbox(FOLDER, "victim")
    writer = Writer(outbox, coalesce_s=0 if point == "after_commit" else 3600)
    request = limits("att-1")
    await writer.reserve(None, [request])
    if point == "reserved":
        die()
    writer.record({"begin": [request.stub]})
    if point == "begun":
        die()
    if point == "half_a_line":
        os.write(outbox._fd, orjson.dumps(end("att-1"))[:200])
        die()
    if point == "in_the_transaction":
        ledger.register("deadly", lambda cursor, items: die())
        writer.record({**end("att-1"), "deadly": [1]})
        await writer.flush(60)
    if point == "not_truncated":
        outbox.append(end("att-1"))
        await asyncio.to_thread(commit, end("att-1"))
        die()
    if point in ("rotating", "rotated"):
        outbox.append(end("att-1"))
        outbox.append({"begin": [row("att-2", model="limited")]})
        position = outbox.append({"attempts": [row(f"filler-{number}", model="filler") for number in range(3000)]})
        outbox.append({"attempts": [row("att-3", model="limited")]})
        await asyncio.to_thread(commit, end("att-1"), {"attempts": [row(f"filler-{number}", model="filler") for number in range(3000)]})
        rename = Path.rename

        def deadly_rename(path: Path, target: Path) -> None:
            if point == "rotated":
                rename(path, target)
            die()

        Path.rename = deadly_rename  # type: ignore[assignment,method-assign]
        outbox.committed(position)
    writer.record(end("att-1"))
    if point == "ended":
        die()
    await writer.flush(60)
    die()


async def many_calls() -> None:
    """Calls without end, each told of once its caller would have its last byte."""
    writer = Writer(Outbox(FOLDER, "victim"))
    number = 0

    async def caller(lane: int) -> None:
        nonlocal number
        while True:
            number += 1
            name = f"{os.getpid()}-{number}"
            answer = await writer.reserve(
                None, [ask(name, hold("endpoint:1", "tokens", 10, minute=10**9, month=10**9), hold("endpoint:1", "parallel", 1, parallel=100))]
            )
            assert not isinstance(answer.rest[0], Denied)
            writer.record({"begin": [row(name)]})
            await asyncio.sleep(0)
            writer.record({"attempts": [row(name)], "settle": [{"permit": name, "truth": {"endpoint:1|tokens": 3}}]})
            say(name)

    await asyncio.gather(*[caller(lane) for lane in range(8)])


async def hammer(count: str) -> None:
    """Asks for one of ten requests a minute as often as told; says how often it got one."""
    writer = Writer(Outbox(FOLDER, "hammer"))
    asks = [writer.reserve(ask(f"{os.getpid()}-{n}", hold("endpoint:9", "requests", 1, minute=10))) for n in range(int(count))]
    answers = await asyncio.gather(*asks)
    say(sum(not isinstance(answer.first, Denied) for answer in answers))
    await writer.stop()


def ring() -> None:
    """Rings once, for a job that writes a line."""
    from health import jobs

    jobs.registered.clear()
    jobs.register("noted", 86_400, lambda now: say("ran"))
    jobs.ring()


def ring_and_die() -> None:
    """Is killed in the middle of a job."""
    from health import jobs

    jobs.registered.clear()
    jobs.register("noted", 86_400, lambda now: die())
    jobs.ring()


def a_schedule(function: Any) -> None:
    """Registers one schedule and its errand, and nothing else."""
    from health import errands, schedule_clock, schedules
    from health.schedule_runs import ERRAND

    settings.HOME = FOLDER.parent
    schedules.registered.clear()
    errands.registered.clear()
    errands.register(ERRAND, schedule_clock.do, schedule_clock.gave_up)
    schedules.register("noted", function, "* * * * *", True, "…")


def scheduled() -> None:
    """Does what waits."""
    from health import errands

    a_schedule(lambda slot, now: say("ran") or {})
    errands.work(5)


def scheduled_and_die() -> None:
    """Is killed in the middle of a schedule's run."""
    from health import errands

    a_schedule(lambda slot, now: die() or {})
    errands.work(5)


def look_at_clock() -> None:
    """Looks at five minutes of a clock as a host of its own, and does what is due."""
    from datetime import UTC, datetime, timedelta

    from health import errands, schedule_clock
    from health.models import ScheduleRun

    a_schedule(lambda slot, now: say(f"ran {slot.minute:02}") or {})
    settings.HOME = FOLDER / str(os.getpid())
    settings.HOME.mkdir()
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)
    schedule_clock.tick(noon - timedelta(seconds=30))
    for second in range(0, 300, 20):
        schedule_clock.tick(noon + timedelta(seconds=second))
        while ScheduleRun.objects.filter(state__in=["waiting", "running"]).exists():
            errands.work(5)


def saying(function: Any, folder: str) -> None:
    """Knows one kind of errand, in a data folder of its own."""
    from health import errands

    settings.HOME = FOLDER / folder
    settings.HOME.mkdir(exist_ok=True)
    errands.registered.clear()
    errands.register("say", function)
    errands.work(20)


def work_errands(folder: str) -> None:
    saying(lambda task: say(int(task.subject)) or {}, folder)


def work_errands_and_die(folder: str) -> None:
    saying(lambda task: die() or {}, folder)


def onboard_and_die(point: str, home: str) -> None:
    """Onboards until a point of one model's way: before a stage is done, in the middle of its call, or when it is over and not yet written down.

    `home` is the data folder: the test's own, or that of another host.
    """
    from health import attempt, errands, onboarding, onboarding_stages, probe_calls

    settings.HOME = Path(home)
    settings.HOME.mkdir(exist_ok=True)
    settings.OUTBOX_FOLDER = FOLDER
    errands.registered.clear()
    errands.register(onboarding.ERRAND, onboarding_stages.do, onboarding_stages.gave_up)
    where, _, stage = point.rpartition(" ")
    if where == "unnoted":
        probe_calls.note = lambda *arguments: die()  # type: ignore[assignment]
        where = "after"
    really = onboarding_stages.STAGES[stage]

    def deadly(row: Any, task: Any) -> Any:
        if not where:
            die()
        if where == "in":
            attempt.Attempt.whole, attempt.Attempt.stream = dying(attempt.Attempt.whole), dying(attempt.Attempt.stream)  # type: ignore[method-assign]
        came = really(row, task)
        die()
        return came

    onboarding_stages.STAGES[stage] = deadly
    errands.work(60)


def dying(sends: Any) -> Any:
    """Is killed once the answer is there and before anything of it is written down."""

    async def send(*arguments: Any) -> Any:
        await sends(*arguments)
        die()

    return send


def main(folder: str, what: str, *arguments: str) -> None:
    global FOLDER
    FOLDER = Path(folder)
    found = globals()[what](*arguments)
    if asyncio.iscoroutine(found):
        asyncio.run(found)
