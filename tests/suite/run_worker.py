"""A process for tests to kill: works on runs with the test's database and an outbox of its own, and dies at a point of their way."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from health import ledger
from health.outbox import Outbox
from health.writer import Writer
from panels.single import Single
from suite.running import engine, holding, recording, regrader, regrading, rescoring
from suite.running.coding import Coding
from suite.running.worker import Worker

seen = 0
count = 1


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_last() -> bool:
    """Whether this is the time of those that were told."""
    global seen
    seen += 1
    return seen == count


def before(owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    """Dies instead of doing something, the last time of those that were told."""
    really = getattr(owner, name)

    def instead(*args: Any, **more: Any) -> Any:
        if when(*args, **more) and at_last():
            die()
        return really(*args, **more)

    setattr(owner, name, instead)


def after(owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    """Dies once something is done, the last time of those that were told."""
    really = getattr(owner, name)

    def instead(*args: Any, **more: Any) -> Any:
        found = really(*args, **more)
        if when(*args, **more) and at_last():
            die()
        return found

    setattr(owner, name, instead)


def holds(key: str) -> Callable[..., bool]:
    return lambda _, line: key in line


def tears(outbox: Outbox, line: Any) -> bool:
    """Writes half of a line, as a death in the middle of it leaves it."""
    if recording.SAMPLES not in line or not at_last():
        return False
    from health.lines import dumps

    data = dumps(line)
    os.write(outbox._fd, data[: len(data) // 2])
    die()
    return True


def in_commit(key: str) -> None:
    """Dies in the transaction, after what the lines' items say was done and before it is committed."""
    really = ledger.registered[key]

    def deadly(cursor: Any, items: Any) -> None:
        really(cursor, items)
        if at_last():
            die()

    ledger.registered[key] = deadly


def stuck() -> None:
    """Does what an expression without end does: nothing comes round any more, and no other thread of Python's does either."""
    engine.STUCK_S = 8.0  # its loop comes round each second

    def endless(*_: Any) -> None:
        ctypes.PyDLL(None).sleep(600)  # holds Python's lock

    Worker.grade = endless  # type: ignore[assignment,method-assign]


POINTS: dict[str, Callable[[], None]] = {
    "stuck": stuck,
    "never": lambda: None,
    "claimed": lambda: after(engine, "claim", lambda *_, **__: True),
    "begun": lambda: after(engine, "begin"),
    "asked": lambda: after(Single, "going_out"),
    "answered": lambda: before(Outbox, "append", holds(recording.SAMPLES)),
    "half_a_line": lambda: before(Outbox, "append", tears),
    "recorded": lambda: after(Outbox, "append", holds(recording.SAMPLES)),
    "in_the_transaction": lambda: in_commit(recording.SAMPLES),
    "not_truncated": lambda: before(Writer, "_committed"),
    "solved": lambda: after(Outbox, "append", holds(recording.ANSWERS)),
    "scoring": lambda: before(Coding, "score"),
    "scored": lambda: before(Outbox, "append", holds(recording.SAMPLES)),
    "ending": lambda: after(Outbox, "append", holds(recording.ENDS)),
    "in_the_end": lambda: in_commit(recording.ENDS),
    "ended": lambda: before(engine, "let_go"),
    "regrade_claimed": lambda: after(regrader, "claim"),
    "regrade_in_the_transaction": lambda: after(regrading, "insert"),
    "regrade_kept": lambda: after(regrader, "keep"),
    "regrade_ending": lambda: before(regrader, "ended"),
    "regrade_in_the_end": lambda: after(rescoring, "finish"),
    "regrade_ended": lambda: after(regrader, "ended"),
}


def main(home: str, point: str, times: str) -> None:
    """Works on runs in a data folder of its own until there are none, or it dies: at a point, the so-manieth time that it comes there."""
    global count
    count = int(times)
    settings.HOME, settings.OUTBOX_FOLDER = Path(home), Path(home) / "outbox"
    settings.OUTBOX_FOLDER.mkdir(parents=True, exist_ok=True)
    # The lease of another folder's process, and the time that its own queue is given, are waited for in no test.
    holding.LEASE_S, holding.ELSEWHERE_S = float(os.environ.get("LEASE_S", holding.LEASE_S)), float(os.environ.get("ELSEWHERE_S", holding.ELSEWHERE_S))
    regrading.AT_ONCE = int(os.environ.get("AT_ONCE", regrading.AT_ONCE))
    POINTS[point]()
    print(engine.work(), flush=True)
